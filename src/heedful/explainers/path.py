"""Texts on the straight line from a baseline to their embeddings: b + a (x - b), 0 <= a <= 1.

Markers stay where they are at every a, and so does padding: only words move, so only words can be given a
part of the change f(x) - f(b), where b means "no words, the same markers".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.records import Tokens


@dataclass(frozen=True, slots=True)
class Path:
    """One part (passage or query) of some texts, on its way: the embeddings themselves move."""

    x: Tensor  # (texts, length, dim)
    step: Tensor  # (texts, length, dim): x - b at words, 0 elsewhere

    @classmethod
    def between(cls, tokens: Tokens, x: Tensor, baseline: Tensor) -> Path:
        """From a baseline to x, both (texts, length, dim)."""
        return cls(x, (x - baseline) * tokens.mask.unsqueeze(-1))

    def at(self, a: Tensor) -> Tensor:
        """Every text at each a (steps,), the steps of a text side by side: points from which gradients start."""
        back = (a - 1).view(-1, 1, 1)  # (steps, 1, 1): b + a (x - b) = x + (a - 1)(x - b)
        return torch.addcmul(self.x.unsqueeze(1), self.step.unsqueeze(1), back).flatten(0, 1)

    def along(self, slope: Tensor, weights: Tensor) -> Tensor:
        """sum_k weights_k (df/dx at a_k) . (x - b) for each word: (texts, length)."""
        by_step = slope.view(len(self.x), len(weights), *slope.shape[1:])  # (texts, steps, length, dim)
        return (torch.einsum("nkld,k->nld", by_step, weights) * self.step).sum(-1)

    def at_embeddings(self, slope: Tensor) -> Tensor:
        """df/dx, (texts * steps, length, dim), from the slope at such points."""
        return slope
