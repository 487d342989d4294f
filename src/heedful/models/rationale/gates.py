"""How words are selected: states of the words -> gates, in training by chance or by degrees, and then for good.

Whatever the kind, what a trained model selects is a set: gates of 0 and 1. A word is selected when its probability of
being selected is above a threshold, which is set after each epoch so that of the training texts the target share of
the words is above it. The published rule of HardKuma, the most probable of 0, 1 and between, is the
threshold 1/2 where gates are sure of themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.models.rationale.budget import fuse, select_budget
from heedful.models.rationale.kuma import HardKuma


@dataclass(frozen=True, slots=True)
class Draw:
    """The gates of a step of training."""

    gates: Tensor  # (batch, length) from 0 to 1, 0 on what is no word
    p: Tensor  # (batch, length) the probability that a gate is not 0; of what is not drawn: the gate itself
    log_p: Tensor | None = None  # (batch,) of the whole draw, where no gradient flows through the gates


class Gates(nn.Module):
    """The interface of all kinds. `rate`: the share of the words of a text that is to be selected."""

    title: ClassVar[str] = ""  # in words, for people
    from_evidence: ClassVar[bool] = False  # whether it learns from marked words, and not from the labels
    by_penalty: ClassVar[bool] = True  # whether the rate has to be held by a multiplier
    threshold: Tensor

    def __init__(self, rate: float, coherence: float) -> None:
        super().__init__()
        self.rate, self.coherence = rate, coherence
        self.register_buffer("threshold", torch.tensor(0.5))

    def probability(self, h: Tensor, mask: Tensor) -> Tensor:
        """Of each word to be selected: h (batch, length, hidden) -> (batch, length), 0 on what is no word."""
        raise NotImplementedError

    def draw(self, h: Tensor, mask: Tensor) -> Draw:
        """The gates of a step of training."""
        raise NotImplementedError

    def choose(self, p: Tensor, mask: Tensor) -> Tensor:
        """The words that are selected, (batch, length) bool."""
        return (p > self.threshold) & mask

    @torch.no_grad()
    def settle(self, p: Tensor, weight: Tensor) -> None:
        """Set the threshold: p (words,) of many texts, and of each word the share of all texts that it is, which sum
        to 1. Above it are the most probable words, the target share of them."""
        falling, order = p.sort(descending=True)
        within = int((weight[order].cumsum(0) <= self.rate).sum())
        self.threshold.fill_(falling[min(within, len(falling) - 1)])


class HardKumaGates(Gates):
    """Bastings et al. 2019: z_t ~ HardKuma(a_t, b_t), with gradients through the sample."""

    title = "HardKuma gates"

    def __init__(self, hidden: int, rate: float, coherence: float) -> None:
        super().__init__(rate, coherence)
        self.shape = nn.Linear(hidden, 2)

    def distribution(self, h: Tensor) -> HardKuma:
        a, b = F.softplus(self.shape(h)).clamp(1e-2, 1e2).unbind(-1)  # (batch, length) each
        return HardKuma(a, b)

    def probability(self, h: Tensor, mask: Tensor) -> Tensor:
        return (1 - self.distribution(h).zero) * mask

    def draw(self, h: Tensor, mask: Tensor) -> Draw:
        gate = self.distribution(h)
        return Draw(gate.sample(torch.rand_like(gate.a)) * mask, (1 - gate.zero) * mask)


class BernoulliGates(Gates):
    """Lei et al. 2016, their independent selection: z_t ~ Bernoulli(p_t), whose gradient is REINFORCE's."""

    title = "Bernoulli gates"

    def __init__(self, hidden: int, rate: float, coherence: float) -> None:
        super().__init__(rate, coherence)
        self.logit = nn.Linear(hidden, 1)

    def probability(self, h: Tensor, mask: Tensor) -> Tensor:
        p: Tensor = self.logit(h).squeeze(-1).sigmoid()
        return p * mask

    def draw(self, h: Tensor, mask: Tensor) -> Draw:
        logit = self.logit(h).squeeze(-1)  # (batch, length)
        p = logit.sigmoid()
        z = (torch.rand_like(p) < p).to(p)
        return Draw(z * mask, p * mask, log_probability(logit, z, mask))


def log_probability(logit: Tensor, z: Tensor, mask: Tensor) -> Tensor:
    """log P(z) of independent gates: (batch, length) each -> (batch,)."""
    return -(F.binary_cross_entropy_with_logits(logit, z, reduction="none") * mask).sum(1)


class SparseGates(Gates):
    """A sparse structured selection, without chance: scores are projected on what has the target share of the words
    and few changes (budget.py). What a trained model selects are the words with the highest fused scores, as many as
    the share says, and one at least."""

    title = "a sparse selection with a budget"
    by_penalty = False

    def __init__(self, hidden: int, rate: float, coherence: float) -> None:
        super().__init__(rate, coherence)
        self.score = nn.Linear(hidden, 1)

    def probability(self, h: Tensor, mask: Tensor) -> Tensor:
        """mu, and among equals a trace of the score itself, so that the strongest are known."""
        scores: Tensor = self.score(h).squeeze(-1)
        fused = fuse(scores, mask, self.coherence) if self.coherence else scores
        return (fused + 1e-3 * scores.tanh()).sigmoid() * mask

    def draw(self, h: Tensor, mask: Tensor) -> Draw:
        scores = self.score(h).squeeze(-1)  # (batch, length)
        mu = select_budget(scores, mask, self.budget(mask), self.coherence)
        return Draw(mu, mu)

    def budget(self, mask: Tensor) -> Tensor:
        """Words of each text, (batch,)."""
        n = mask.sum(1)
        return torch.minimum((self.rate * n).round().clamp(min=1), n)

    def choose(self, p: Tensor, mask: Tensor) -> Tensor:
        place = p.masked_fill(~mask, -1).argsort(dim=1, descending=True, stable=True).argsort(dim=1)  # (batch, length)
        return (place < self.budget(mask).unsqueeze(1)) & mask


class SupervisedGates(BernoulliGates):
    """Told by marked words: the selection learns from evidence alone, the prediction from what is selected."""

    title = "gates that learn from evidence"
    from_evidence = True
    by_penalty = False

    def draw(self, h: Tensor, mask: Tensor) -> Draw:
        p = self.probability(h, mask)
        return Draw(self.choose(p, mask).to(p), p)
