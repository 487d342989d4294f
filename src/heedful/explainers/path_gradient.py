"""f_c and its slope along the paths of some texts: all steps together, or in turns when there is no room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.explainers.path import Path, path
from heedful.models import AttentiveClassifier
from heedful.models.classifier import Of, score
from heedful.models.encoders import BiLSTM
from heedful.records import Batch

TOKENS = 4096  # in one forward pass: more do not fit the processor's cache, and take longer each


def rooms(
    model: AttentiveClassifier, batch: Batch, rows: Tensor, n_steps: int, internal_batch_size: int | None
) -> Iterator[tuple[Tensor, int]]:
    """Cut `rows` into texts of like length that travel together, and say how many steps fit one pass.

    A recurrent encoder takes a few steps of even the longest text together: it has little to do at each
    position, and its memory grows with the length only.
    """
    least = 4 if isinstance(model.encoder, BiLSTM) else 1
    sizes = batch.passage.present[rows].sum(1)  # (texts,)
    if batch.query is not None:
        sizes = sizes + batch.query.present[rows].sum(1)
    sizes, order = sizes.sort(descending=True, stable=True)
    start = 0
    while start < len(rows):
        room = internal_batch_size or max(least, TOKENS // max(1, int(sizes[start])))
        texts = max(1, room // n_steps)
        yield rows[order[start : start + texts]], min(room, n_steps)
        start += texts


@torch.no_grad()
def start(
    model: AttentiveClassifier,
    batch: Batch,
    target: Tensor,
    of: Of,
    baselines: tuple[Tensor | None, Tensor | None],
    hold_attention: bool = False,
) -> PathGradient:
    """The texts at the beginning of their paths from baselines, like x; None: a part that does not move."""
    tokens, encoders = (batch.passage, batch.query), (model.encoder, model.query_encoder)
    paths = [
        path(encoder, part, model.embed(part), baseline)
        for part, encoder, baseline in zip(tokens, encoders, baselines, strict=True)
        if part is not None and encoder is not None
    ]
    return PathGradient(model, batch, target, of, paths, hold_attention)


@dataclass(frozen=True, slots=True)
class PathGradient:
    """Some texts on their way from baseline to input."""

    model: AttentiveClassifier
    batch: Batch
    target: Tensor  # (texts,)
    of: Of
    paths: list[Path]  # of the passage, and of the query where there is one
    hold_attention: bool = False  # alpha is a constant: words count only through the states they make

    def change(self, like: Tensor) -> Tensor:
        """f(x) - f(b): (texts,)."""
        ends = torch.tensor([0.0, 1.0]).to(like)
        with torch.no_grad():
            f = self._f([path.at(ends) for path in self.paths], 2).view(-1, 2)
        return f[:, 1] - f[:, 0]

    def integrate(self, a: Tensor, weights: Tensor, room: int) -> list[Tensor]:
        """sum_k weights_k (df_c/dx at a_k) . (x - b) for each word: (texts, length) of each part."""
        total: list[Tensor] = []
        for first in range(0, len(a), room):
            some = slice(first, first + room)
            pairs = zip(self.paths, self.slopes(a[some]), strict=True)
            shares = [path.along(slope, weights[some]) for path, slope in pairs]
            total = [sum_ + share for sum_, share in zip(total, shares, strict=True)] if total else shares
        return total

    def slopes(self, a: Tensor) -> tuple[Tensor, ...]:
        """df_c at the points of each path (see `Path.at`), of their shape."""
        points = [path.at(a) for path in self.paths]
        with torch.enable_grad():
            f = self._f([point.requires_grad_() for point in points], len(a))
            return torch.autograd.grad(f.sum(), points)  # texts do not mix: one sum serves them all

    def _f(self, points: list[Tensor], n_steps: int) -> Tensor:
        """f_c at such points: (texts * steps,), the steps of a text side by side."""

        def again(part: Tensor) -> Tensor:
            return part.repeat_interleave(n_steps, 0)

        query = None
        if self.model.query_encoder is not None and self.batch.query is not None:
            present = again(self.batch.query.present)
            query = self.model.query_encoder.summary(self.paths[1].encode(points[1], present), present)
        h = self.paths[0].encode(points[0], again(self.batch.passage.present))
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.hold_attention):
            alpha = self.model.attend(h, again(self.batch.passage.mask), query)
        candidates = None if self.batch.candidates is None else again(self.batch.candidates)
        return score(self.model.decode(h, alpha, query, candidates), again(self.target), self.of)
