"""Texts on the straight line from a baseline to their embeddings: b + a (x - b), 0 <= a <= 1.

Padding stays where it is at every a, and so do markers, unless they are asked about: where only words move, only
words can be given a part of the change f(x) - f(b), where b means "no words, the same markers".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Path:
    """One part (passage or query) of some texts, on its way: the embeddings themselves move."""

    x: Tensor  # (texts, length, dim)
    step: Tensor  # (texts, length, dim): x - b at what moves, 0 elsewhere

    @classmethod
    def between(cls, x: Tensor, baseline: Tensor, moves: Tensor) -> Path:
        """From a baseline to x, both (texts, length, dim), where `moves` (texts, length)."""
        return cls(x, (x - baseline) * moves.unsqueeze(-1))

    def at(self, a: Tensor) -> Tensor:
        """Every text at each a (steps,), the steps of a text side by side: points from which gradients start."""
        back = (a - 1).view(-1, 1, 1)  # (steps, 1, 1): b + a (x - b) = x + (a - 1)(x - b)
        return torch.addcmul(self.x.unsqueeze(1), self.step.unsqueeze(1), back).flatten(0, 1)

    def along(self, slope: Tensor, steps: int) -> Tensor:
        """(df/dx at a_k) . (x - b) of each step for each word: (texts, steps, length)."""
        by_step = slope.view(len(self.x), steps, *slope.shape[1:])  # (texts, steps, length, dim)
        return (by_step * self.step.unsqueeze(1)).sum(-1)

    def at_embeddings(self, slope: Tensor) -> Tensor:
        """df/dx, (texts * steps, length, dim), from the slope at such points."""
        return slope
