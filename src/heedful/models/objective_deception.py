"""The objective of Pruthi et al. 2020, section 3: learn the task, and keep attention off the impermissible words.

    L = cross-entropy + R                 R = -lambda log(1 - alpha . m)          m_t = 1 where word t is impermissible

and with several heads H either of

    R = -lambda / |H| sum_h log(1 - alpha_h . m)          (mean)
    R = -lambda min_h log(1 - alpha_h . m)                (max: of the penalties)

alpha is the one attention of our classifiers; of a checkpoint it is that of the token that its classifier reads ([CLS],
or the last one), in chosen layers. The impermissible words are the evidence of the corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from heedful.config import Config, TrainingConfig
from heedful.data.batching import EVIDENCE, Encoded
from heedful.errors import Mistake
from heedful.models.network import Output, Trainable
from heedful.models.objectives import Bases, CrossEntropy, Loss
from heedful.records import Batch

Heads = Literal["mean", "max"]
Reads = Literal["first", "last"]  # the token that a checkpoint's classifier reads


class DeceptionOptions(Config):
    penalty: float = Field(default=1.0, ge=0)  # lambda
    heads: Heads = "mean"
    layers: tuple[int, ...] | None = (
        -1,
    )  # of a checkpoint, counted from 0 or, below 0, from the end; None: all


class Deception(CrossEntropy):
    """The deciding score is the loss of dev: accuracy says nothing of where attention went."""

    config = DeceptionOptions
    version = "1"
    reads_attention = True
    metric = "dev_loss"

    def loss(
        self,
        network: Trainable,
        train: Encoded,
        training: TrainingConfig,
        options: Any,
        bases: Bases,
    ) -> Loss:
        cross_entropy = super().loss(network, train, training, options, bases)
        if EVIDENCE not in train.targets:
            raise Mistake(
                "deception hides the words that are marked as evidence, and these data mark none: name a column with "
                "evidence_column, or words with evidence_words."
            )
        reads: Reads = getattr(network, "reads", "first")

        def loss(output: Output, batch: Batch) -> Tensor:
            alpha = read_attention(output, batch, reads, options.layers)  # (batch, layers, heads, from)
            permitted = permissible_mass(alpha, batch.targets[EVIDENCE])  # (batch, layers, heads)
            cost: Tensor = options.penalty * penalty(permitted, options.heads).sum()
            return cross_entropy(output, batch) + cost

        return loss


def read_attention(output: Any, batch: Batch, reads: Reads, layers: Sequence[int] | None) -> Tensor:
    """The attention of the token that is read: (batch, layers, heads, from)."""
    every: Tensor = output.attentions  # (batch, layers, heads, to, from)
    n_layers, n_to = every.shape[1], every.shape[3]
    chosen = range(n_layers) if layers is None else layers
    if n_layers == 1:  # one of ours
        chosen = [0]
    elif wrong := [layer for layer in chosen if not -n_layers <= layer < n_layers]:
        raise Mistake(f"layers: there is no layer {wrong[0]}; the model has {n_layers}, counted from 0.")
    some = every[:, [layer % n_layers for layer in chosen]]
    if reads == "first" or n_to == 1:
        return some[:, :, :, 0]
    length = batch.passage.present.sum(1) + (
        0 if batch.query is None else batch.query.present.sum(1)
    )  # (batch,)
    return some[torch.arange(len(length), device=some.device), :, :, length - 1]


def permissible_mass(alpha: Tensor, impermissible: Tensor) -> Tensor:
    """1 - alpha . m as the sum of what is left, which loses no digit where it is small: (batch, layers, heads)."""
    width = alpha.shape[-1]  # of passage and query; only words of the passage can be impermissible
    marked = F.pad(impermissible, (0, width - impermissible.shape[1]))[:, None, None]  # (batch, 1, 1, from)
    return (alpha * ~marked).sum(-1)


def penalty(permitted: Tensor, heads: Heads) -> Tensor:
    """R / lambda of each text: (batch, layers, heads) -> (batch,). Where nothing is permitted, it stands still."""
    cost = -permitted.clamp(min=torch.finfo(permitted.dtype).tiny).log().flatten(1)  # (batch, layers x heads)
    return cost.mean(1) if heads == "mean" else cost.amax(1)


DECEPTION = Deception()
