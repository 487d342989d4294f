"""Attention: h (batch, length, hidden) and a query -> alpha (batch, length), sum 1 over real words.

alpha = softmax(phi(h, Q)) with a similarity function phi (Jain & Wallace 2019, section 2). Where the task
has no query, phi has none (additive) or a learned one (dot, general). A text with no real word gets all
zeros: there is nothing to attend to, and the context vector is zero.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """softmax over the last dimension where mask is True, exactly 0 elsewhere, never NaN."""
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return scores.softmax(-1) * mask


class Attention(nn.Module):
    """The interface of all attentions: a similarity `phi`, turned into weights."""

    def phi(self, h: Tensor, query: Tensor | None) -> Tensor:
        """h (batch, length, hidden), query (batch, hidden) -> scores (batch, length)."""
        raise NotImplementedError

    def weigh(self, scores: Tensor, mask: Tensor) -> Tensor:
        """scores (batch, length) -> weights, sum 1 where mask is True, 0 elsewhere."""
        return masked_softmax(scores, mask)

    def forward(self, h: Tensor, mask: Tensor, query: Tensor | None) -> Tensor:
        return self.weigh(self.phi(h, query), mask)


class Additive(Attention):
    """phi = v . tanh(W1 h + W2 Q + b), hidden / 2 units (Bahdanau et al. 2014).

    With attention_dim 100 and no query it is the attention of Yang et al. 2016, whose context vector is v.
    """

    def __init__(self, hidden: int, has_query: bool, attention_dim: int | None = None) -> None:
        super().__init__()
        units = attention_dim or hidden // 2
        self.W1 = nn.Linear(hidden, units)
        self.W2 = nn.Linear(hidden, units, bias=False) if has_query else None
        self.v = nn.Linear(units, 1, bias=False)

    def phi(self, h: Tensor, query: Tensor | None) -> Tensor:
        inner: Tensor = self.W1(h)  # (batch, length, hidden / 2)
        if self.W2 is not None:
            inner = inner + self.W2(query).unsqueeze(1)
        scores: Tensor = self.v(inner.tanh()).squeeze(-1)
        return scores


class Dot(Attention):
    """phi = h . Q / sqrt(hidden) (Vaswani et al. 2017); Q is a learned vector where the task has no query."""

    def __init__(self, hidden: int, has_query: bool) -> None:
        super().__init__()
        self.Q = None if has_query else learned_query(hidden)

    def phi(self, h: Tensor, query: Tensor | None) -> Tensor:
        Q = query if self.Q is None else self.Q.expand(len(h), -1)  # (batch, hidden)
        assert Q is not None
        return (h @ Q.unsqueeze(-1)).squeeze(-1) / math.sqrt(h.shape[-1])


class General(Attention):
    """phi = h . W Q (Luong et al. 2015, "general"); Q is a learned vector where the task has no query."""

    def __init__(self, hidden: int, has_query: bool) -> None:
        super().__init__()
        self.W = nn.Linear(hidden, hidden, bias=False)
        self.Q = None if has_query else learned_query(hidden)

    def phi(self, h: Tensor, query: Tensor | None) -> Tensor:
        Q = query if self.Q is None else self.Q.expand(len(h), -1)  # (batch, hidden)
        keys: Tensor = self.W(Q)  # (batch, hidden)
        return (h @ keys.unsqueeze(-1)).squeeze(-1)


class Uniform(Attention):
    """phi = 0: every real word gets 1 / length (the baseline of Wiegreffe & Pinter 2019)."""

    def __init__(self, hidden: int, has_query: bool) -> None:
        super().__init__()

    def phi(self, h: Tensor, query: Tensor | None) -> Tensor:
        return h.new_zeros(h.shape[:2])


def learned_query(hidden: int) -> nn.Parameter:
    """A query vector to be learned, drawn as a row of a linear layer is."""
    bound = 1 / math.sqrt(hidden)
    return nn.Parameter(torch.empty(hidden).uniform_(-bound, bound))
