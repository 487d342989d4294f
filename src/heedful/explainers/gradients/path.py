"""Texts on the straight line from a baseline to their embeddings: b + a (x - b), 0 <= a <= 1.

Padding stays where it is at every a, and so do markers, unless they are asked about: where only words move, only
words can be given a part of the change f(x) - f(b), where b means "no words, the same markers".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from heedful.models.link import Of
from heedful.models.network import Differentiable, token_budget
from heedful.records import Batch, Tokens


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


# f_c and its slope along the paths of some texts: all steps together, or in turns when there is no room.
#
# `PathGradient` serves every network that takes embeddings. What is faster for some networks is registered in
# `SPECIALISED`, and agrees with it.


# In one pass, of networks that do not say it themselves: more do not fit the processor's cache, and take longer each.
TOKENS = 4096


def gradients_of(network: Differentiable) -> type[PathGradient]:
    """The way to follow paths that costs this network least."""
    from heedful.explainers.gradients.recurrent import BiLSTMPathGradient

    specialised: list[type[PathGradient]] = [BiLSTMPathGradient]
    if "generates" in network.can:
        from heedful.explainers.gradients.steps import StepsPathGradient

        specialised.append(StepsPathGradient)
    return next((way for way in specialised if way.applies(network)), PathGradient)


def cut_steps(
    network: Differentiable, batch: Batch, rows: Tensor, n_steps: int, internal_batch_size: int | None
) -> Iterator[tuple[Tensor, int]]:
    """Cut `rows` into texts that travel together, and say how many steps fit one pass."""
    return gradients_of(network).cut(network, batch, rows, n_steps, internal_batch_size)


class PathGradient:
    """Some texts on their way from baseline to input. A part without a baseline stays where it is."""

    least: ClassVar[int] = 1  # steps of even the longest text that are taken together

    @torch.no_grad()
    def __init__(
        self,
        network: Differentiable,
        batch: Batch,
        target: Tensor,  # (texts,)
        of: Of,
        baselines: tuple[Tensor | None, Tensor | None],  # of passage and query, like x
        hold_attention: bool = False,  # alpha is a constant: words count only through the states they make
        special: bool = False,  # markers and other special tokens move, too
    ) -> None:
        self.network, self.batch, self.target, self.of = network, batch, target, of
        self.hold_attention, self.special = hold_attention, special
        self.paths = self._paths(baselines)

    @classmethod
    def applies(cls, network: Differentiable) -> bool:
        return True

    @classmethod
    def cut(
        cls, network: Differentiable, batch: Batch, rows: Tensor, n_steps: int, internal_batch_size: int | None
    ) -> Iterator[tuple[Tensor, int]]:
        """Texts of like length."""
        tokens = token_budget(network, getattr(network, "tokens_at_once", TOKENS))
        sizes = batch.passage.present[rows].sum(1)  # (texts,)
        if batch.query is not None:
            sizes = sizes + batch.query.present[rows].sum(1)
        sizes, order = sizes.sort(descending=True, stable=True)
        start = 0
        while start < len(rows):
            room = internal_batch_size or max(cls.least, tokens // max(1, int(sizes[start])))
            texts = max(1, room // n_steps)
            yield rows[order[start : start + texts]], min(room, n_steps)
            start += texts

    def _paths(self, baselines: tuple[Tensor | None, Tensor | None]) -> list[Path | None]:
        tokens = (self.batch.passage, self.batch.query)
        return [
            None if part is None or b is None else Path.between(self.network.embed(part), b, self._moves(part))
            for part, b in zip(tokens, baselines, strict=True)
        ]

    def _moves(self, tokens: Tokens) -> Tensor:
        """(texts, length)"""
        return tokens.present if self.special else tokens.mask

    def change(self, like: Tensor) -> Tensor:
        """f(x) - f(b): (texts,)."""
        ends = torch.tensor([0.0, 1.0]).to(like)
        with torch.no_grad():
            f = self._f([None if path is None else path.at(ends) for path in self.paths], 2).view(-1, 2)
        return f[:, 1] - f[:, 0]

    def by_step(self, a: Tensor, room: int) -> list[Tensor | None]:
        """(df_c/dx at a_k) . (x - b) for each step and word: (texts, steps, length) of each part that moves."""
        found: list[list[Tensor]] = [[] for _ in self.paths]
        for some in torch.split(a, room):
            for part, path, slope in zip(found, self.paths, self.slopes(some), strict=True):
                if path is not None and slope is not None:
                    part.append(path.along(slope, len(some)))
        return [torch.cat(part, dim=1) if part else None for part in found]

    @property
    def _end(self) -> Tensor:
        """Where the text itself is."""
        return torch.ones(1, device=self.network.device, dtype=self.network.dtype)

    def norms(self) -> list[Tensor | None]:
        """|| df_c/dx_i || at the text itself: (texts, length) of each part that moves."""
        return [
            None if path is None or slope is None else path.at_embeddings(slope).square().sum(-1).sqrt()
            for path, slope in zip(self.paths, self.slopes(self._end), strict=True)
        ]

    def slopes(self, a: Tensor) -> list[Tensor | None]:
        """df_c at the points of each path (see `Path.at`), of their shape; None for a part that does not move."""
        points = [None if path is None else path.at(a).requires_grad_() for path in self.paths]
        with torch.enable_grad():
            f = self._f(points, len(a))
            moving = [point for point in points if point is not None]
            found = iter(torch.autograd.grad(f.sum(), moving))  # texts do not mix: one sum serves them all
        return [None if point is None else next(found) for point in points]

    def _f(self, points: list[Tensor | None], n_steps: int) -> Tensor:
        """f_c at such points: (texts * steps,), the steps of a text side by side."""
        every = torch.arange(len(self.batch), device=self.target.device).repeat_interleave(n_steps)
        given = {name: point for name, point in zip(("x", "x_query"), points, strict=True) if point is not None}
        held = {"edit": lambda layer, weights: weights.detach()} if self.hold_attention else {}
        output = self.network(self.batch.rows(every), **given, **held)
        return output.score(self.target[every], self.of)
