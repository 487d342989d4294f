"""Attention that is told where to look (Bao et al. 2018; Strout et al. 2019): the evidence is its target.

    L = cross-entropy + lambda KL(e || alpha)          e_t = m_t / sum_s m_s,  m_t = 1 where word t is evidence

Texts without evidence add only their cross-entropy. alpha is the one attention of our classifiers; of a checkpoint that
of the token that its classifier reads, in chosen layers, the mean over heads. A sparse attention that gives a word
exactly nothing is not pulled back to it: the logarithm stands still there.
"""

from __future__ import annotations

from typing import Any

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


class SupervisedOptions(Config):
    lambda_: float = Field(default=1.0, ge=0)
    layers: tuple[int, ...] | None = (-1,)  # of a checkpoint, as for deception


class Supervised(WithTerm):
    """The deciding score is the loss of dev: accuracy says nothing of where attention went."""

    config = SupervisedOptions
    version = "1"
    reads_attention = True
    metric = "dev_loss"

    def term(self, network: Trainable, train: Encoded, options: Any) -> Loss:
        if EVIDENCE not in train.targets or not train.targets[EVIDENCE].any():
            raise Mistake(
                "supervised attention needs words that are marked as evidence, and these data mark none: give a corpus "
                "that has them (planted, eraser_movies, hatexplain, sst_wiki), name a column with evidence_column, or "
                "words with evidence_words."
            )
        reads: Reads = getattr(network, "reads", "first")

        def term(output: Output, batch: Batch) -> Tensor:
            alpha = read_attention(output, batch, reads, options.layers)  # (batch, layers, heads, from)
            cost: Tensor = options.lambda_ * evidence_kl(alpha, batch.targets[EVIDENCE]).sum()
            return cost

        return term


def evidence_kl(alpha: Tensor, evidence: Tensor) -> Tensor:
    """KL(e || alpha), the mean over layers and heads: (batch, layers, heads, from), (batch, length) -> (batch,).

    With n words of evidence it is -log n - 1/n sum over them of log alpha_t; 0 where there is none.
    """
    marked = F.pad(evidence, (0, alpha.shape[-1] - evidence.shape[1]))[:, None, None]  # (batch, 1, 1, from)
    n = evidence.sum(1).clamp(min=1).to(alpha.dtype)  # (batch,)
    logarithms = alpha.clamp(min=torch.finfo(alpha.dtype).tiny).log() * marked
    cross = -logarithms.sum(-1).mean((1, 2)) / n  # (batch,)
    return (cross - n.log()) * evidence.any(1)


SUPERVISED = Supervised()
