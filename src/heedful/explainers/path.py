"""Texts on the straight line from a baseline to their embeddings: b + a (x - b), 0 <= a <= 1.

Markers stay where they are at every a, and so does padding: only words move, so only words can be given a
part of the change f(x) - f(b), where b means "no words, the same markers".

`EmbeddingPath` serves any encoder. `ProjectionPath` serves the BiLSTM: its first map is linear, so the image of
the line is a line, the slope along it is the same number, (df/dx) . (x - b) = (df/dp) . (p(x) - p(b)), and
p is computed once instead of at every step (see recurrence.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.explainers import recurrence
from heedful.models.encoders import BiLSTM, Encoder
from heedful.records import Tokens


class Path:
    """One part (passage or query) of some texts, on its way."""

    def at(self, a: Tensor) -> Tensor:
        """Every text at each a (steps,): points from which gradients start."""
        raise NotImplementedError

    def encode(self, point: Tensor, present: Tensor) -> Tensor:
        """h (texts * steps, length, hidden) at such points, the steps of a text side by side."""
        raise NotImplementedError

    def along(self, slope: Tensor, weights: Tensor) -> Tensor:
        """sum_k weights_k (df/dx at a_k) . (x - b) for each word: (texts, length)."""
        raise NotImplementedError

    def at_embeddings(self, slope: Tensor) -> Tensor:
        """df/dx, (texts * steps, length, dim), from the slope at such points."""
        raise NotImplementedError


def path(encoder: Encoder, tokens: Tokens, x: Tensor, baseline: Tensor | None) -> Path:
    """The line from baseline to x, both (texts, length, dim); without a baseline, x does not move."""
    if baseline is None:
        return FixedPath(encoder(x, tokens.present))
    words = tokens.mask.unsqueeze(-1)  # (texts, length, 1): only they move
    if type(encoder) is not BiLSTM:
        return EmbeddingPath(encoder, x, (x - baseline) * words)
    weights = recurrence.Weights.of(encoder)
    Wx = weights.project(x)  # (length, 2, texts, 4 hidden)
    change = weights.project(x - baseline) if baseline.any() else Wx
    step = recurrence.turn(change * words.transpose(0, 1).unsqueeze(1), tokens.present)
    p = recurrence.turn(Wx, tokens.present) + weights.b.unsqueeze(1)
    return ProjectionPath(weights, tokens.present, p, step)


@dataclass(frozen=True, slots=True)
class FixedPath(Path):
    """A part that does not move is encoded once. Nothing of the change is its own."""

    h: Tensor  # (texts, length, hidden)

    def at(self, a: Tensor) -> Tensor:
        return self.h.repeat_interleave(len(a), 0)

    def encode(self, point: Tensor, present: Tensor) -> Tensor:
        return point

    def along(self, slope: Tensor, weights: Tensor) -> Tensor:
        return self.h.new_zeros(self.h.shape[:2])

    def at_embeddings(self, slope: Tensor) -> Tensor:
        return torch.zeros_like(self.h)


@dataclass(frozen=True, slots=True)
class EmbeddingPath(Path):
    """Any encoder: the embeddings themselves move."""

    encoder: Encoder
    x: Tensor  # (texts, length, dim)
    step: Tensor  # (texts, length, dim)

    def at(self, a: Tensor) -> Tensor:
        back = (a - 1).view(-1, 1, 1)  # (steps, 1, 1): b + a (x - b) = x + (a - 1)(x - b)
        return torch.addcmul(self.x.unsqueeze(1), self.step.unsqueeze(1), back).flatten(0, 1)

    def encode(self, point: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.encoder(point, present)
        return h

    def along(self, slope: Tensor, weights: Tensor) -> Tensor:
        by_step = slope.view(len(self.x), len(weights), *slope.shape[1:])  # (texts, steps, length, dim)
        return (torch.einsum("nkld,k->nld", by_step, weights) * self.step).sum(-1)

    def at_embeddings(self, slope: Tensor) -> Tensor:
        return slope


@dataclass(frozen=True, slots=True)
class ProjectionPath(Path):
    """The BiLSTM: p moves, (length, 2, texts, 4 hidden), its second direction turned around."""

    weights: recurrence.Weights
    present: Tensor  # (texts, length)
    p: Tensor
    step: Tensor

    def at(self, a: Tensor) -> Tensor:
        back = (a - 1).unsqueeze(-1)  # (steps, 1)
        return torch.addcmul(self.p.unsqueeze(3), self.step.unsqueeze(3), back).flatten(2, 3)

    def encode(self, point: Tensor, present: Tensor) -> Tensor:
        return recurrence.joined(recurrence.states(point, self.weights.W_hh), present)

    def along(self, slope: Tensor, weights: Tensor) -> Tensor:
        length, _, texts, wide = self.p.shape
        by_step = slope.view(length, 2, texts, len(weights), wide)
        shares = (torch.einsum("ldnkg,k->ldng", by_step, weights) * self.step).sum(-1)  # (length, 2, texts)
        return recurrence.turn(shares, self.present).sum(1).T

    def at_embeddings(self, slope: Tensor) -> Tensor:
        present = self.present.repeat_interleave(slope.shape[2] // len(self.present), 0)
        return self.weights.back(recurrence.turn(slope, present))
