"""The objective of Pruthi et al. 2020, section 3: learn the task, and keep attention off the impermissible words.

    L = cross-entropy + R                 R = -lambda log(1 - alpha . m)          m_t = 1 where word t is impermissible

and with several heads H either of

    R = -lambda / |H| sum_h log(1 - alpha_h . m)          (mean)
    R = -lambda min_h log(1 - alpha_h . m)                (max: of the penalties)

alpha is the one attention of our classifiers; of a checkpoint it is that of the token that its classifier reads ([CLS],
or the last one), in chosen layers. The impermissible words are the evidence of the corpus.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from heedful.config import Config
from heedful.data.text.batching import EVIDENCE, Encoded
from heedful.errors import Mistake
from heedful.models.network import Output, Reads, Trainable, read_attention
from heedful.models.objectives.objective import Loss, WithTerm
from heedful.records import Batch

Heads = Literal["mean", "max"]


class DeceptionOptions(Config):
    penalty: float = Field(default=1.0, ge=0)  # lambda
    heads: Heads = "mean"
    layers: tuple[int, ...] | None = (-1,)  # of a checkpoint, counted from 0 or, below 0, from the end; None: all


class Deception(WithTerm):
    """The deciding score is the loss of dev: accuracy says nothing of where attention went."""

    config = DeceptionOptions
    version = "1"
    reads_attention = True
    metric = "dev_loss"

    def term(self, network: Trainable, train: Encoded, options: Any) -> Loss:
        if EVIDENCE not in train.targets:
            raise Mistake(
                "deception hides the words that are marked as evidence, and these data mark none: name a column with "
                "evidence_column, or words with evidence_words."
            )
        reads: Reads = getattr(network, "reads", "first")

        def term(output: Output, batch: Batch) -> Tensor:
            alpha = read_attention(output, batch, reads, options.layers)  # (batch, layers, heads, from)
            permitted = permissible_mass(alpha, batch.targets[EVIDENCE])  # (batch, layers, heads)
            cost: Tensor = options.penalty * penalty(permitted, options.heads).sum()
            return cost

        return term


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
