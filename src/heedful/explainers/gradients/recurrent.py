"""Paths through an LSTM or BiLSTM: its first map is linear, so the image of the line is a line, in p = W_ih x + b.

The slope along it is the same number, (df/dx) . (x - b) = (df/dp) . (p(x) - p(b)), and p is computed once instead
of at every step (see recurrence.py). No gradient has to come back through the largest matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heedful.explainers.gradients import recurrence
from heedful.explainers.gradients.path import Path, PathGradient
from heedful.models.attentive.classifier import AttentiveClassifier
from heedful.models.attentive.encoders import LSTM, BiLSTM, Encoder
from heedful.models.network import Differentiable
from heedful.records import Tokens


@dataclass(frozen=True, slots=True)
class ProjectionPath(Path):
    """p and its step, (length, 2, texts, 4 hidden), the second direction turned around; an LSTM has one direction."""

    weights: recurrence.LstmWeights
    present: Tensor  # (texts, length)

    @classmethod
    def through(
        cls, encoder: LSTM | BiLSTM, tokens: Tokens, x: Tensor, baseline: Tensor, moves: Tensor
    ) -> ProjectionPath:
        weights = recurrence.LstmWeights.of(encoder)
        Wx = weights.project(x)  # (length, 2, texts, 4 hidden)
        change = weights.project(x - baseline) if baseline.any() else Wx
        step = recurrence.turn(change * moves.T[:, None, :, None], tokens.present)
        p = recurrence.turn(Wx, tokens.present) + weights.b.unsqueeze(1)
        return cls(p, step, weights, tokens.present)

    def at(self, a: Tensor) -> Tensor:
        back = (a - 1).unsqueeze(-1)  # (steps, 1)
        return torch.addcmul(self.x.unsqueeze(3), self.step.unsqueeze(3), back).flatten(2, 3)

    def encode(self, point: Tensor, present: Tensor) -> Tensor:
        """h (texts * steps, length, hidden) at such points."""
        return recurrence.join_directions(recurrence.states(point, self.weights.W_hh), present)

    def along(self, slope: Tensor, steps: int) -> Tensor:
        length, directions, texts, wide = self.x.shape
        by_step = slope.view(length, directions, texts, steps, wide)
        shares = (by_step * self.step.unsqueeze(3)).sum(-1)  # (length, 2, texts, steps)
        return recurrence.turn(shares, self.present).sum(1).permute(1, 2, 0)

    def at_embeddings(self, slope: Tensor) -> Tensor:
        present = self.present.repeat_interleave(slope.shape[2] // len(self.present), 0)
        return self.weights.back(recurrence.turn(slope, present))


class BiLSTMPathGradient(PathGradient):
    """A few steps of even the longest text go together: there is little to do at each position."""

    least: ClassVar[int] = 4
    network: AttentiveClassifier

    @classmethod
    def applies(cls, network: Differentiable) -> bool:
        return type(network) is AttentiveClassifier and type(network.encoder) in (LSTM, BiLSTM)

    def _paths(self, baselines: tuple[Tensor | None, Tensor | None]) -> list[Path | None]:
        tokens = (self.batch.passage, self.batch.query)
        encoders = (self.network.encoder, self.network.query_encoder)
        self.still: list[Tensor | None] = [None, None]  # h of a part that does not move, encoded once
        paths: list[Path | None] = [None, None]
        for i, (part, encoder, baseline) in enumerate(zip(tokens, encoders, baselines, strict=True)):
            if part is None or encoder is None:
                continue
            x = self.network.embed(part)
            if baseline is None:
                self.still[i] = encoder(x, part.present)
            else:
                assert isinstance(encoder, LSTM | BiLSTM)
                paths[i] = ProjectionPath.through(encoder, part, x, baseline, self._moves(part))
        return paths

    def _f(self, points: list[Tensor | None], n_steps: int) -> Tensor:
        def again(part: Tensor) -> Tensor:
            return part.repeat_interleave(n_steps, 0)

        def states(i: int, present: Tensor) -> Tensor:
            path, point, still = self.paths[i], points[i], self.still[i]
            if isinstance(path, ProjectionPath) and point is not None:
                return path.encode(point, present)
            assert still is not None
            return again(still)

        network, query = self.network, None
        encoder: Encoder | None = network.query_encoder
        if encoder is not None and self.batch.query is not None:
            present = again(self.batch.query.present)
            query = encoder.summary(states(1, present), present)
        h = states(0, again(self.batch.passage.present))
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.hold_attention):
            alpha = network.attend(h, again(self.batch.passage.mask), query)
        candidates = None if self.batch.candidates is None else again(self.batch.candidates)
        logits = network.decode(h, alpha, query, candidates)
        return network.link.score(logits, again(self.target), self.of)
