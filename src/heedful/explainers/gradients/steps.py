"""Gradients of many steps of one continuation: one forward pass, and a backward pass for each step.

The steps of a family (models/language/families.py) are places of one text. Its graph is made once and kept, so that T
steps cost one forward and T backward passes instead of T of each. A step does not see what is said after it, so its
slope there is exactly zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import Tensor

from heedful.explainers.gradients.path import TOKENS, Path, PathGradient
from heedful.models.language.families import Families, alike, keys_of, lengths_of
from heedful.models.language.generator import Generator, content
from heedful.models.network import Differentiable, token_budget
from heedful.records import Batch


class StepsPathGradient(PathGradient):
    """Points of the longest text of each family serve all its members."""

    @classmethod
    def applies(cls, network: Differentiable) -> bool:
        return isinstance(network, Generator) and network.share

    @classmethod
    def cut(
        cls, network: Differentiable, batch: Batch, rows: Tensor, n_steps: int, internal_batch_size: int | None
    ) -> Iterator[tuple[Tensor, int]]:
        """Whole families, as many points together as there is room for."""
        tokens = token_budget(network, getattr(network, "tokens_at_once", TOKENS))
        some = batch.rows(rows)
        lengths = lengths_of(some)
        for members in alike(some).of_one_size(lengths):  # (families, size)
            longest = lengths[members].amax(1)  # (families,)
            order = longest.argsort(descending=True)
            start = 0
            while start < len(members):
                room = internal_batch_size or max(1, tokens // max(1, int(longest[order[start]])))
                families = max(1, room // n_steps)
                yield rows[members[order[start : start + families]].flatten()], min(room, n_steps)
                start += families

    def by_step(self, a: Tensor, room: int) -> list[Tensor | None]:
        found = [
            None if path is None else path.x.new_zeros(len(self.batch), len(a), path.x.shape[1]) for path in self.paths
        ]
        done = 0
        for some in torch.split(a, room):
            for rows, paths, slopes in self._each(some):
                for kept, path, slope in zip(found, paths, slopes, strict=True):
                    if kept is not None and path is not None and slope is not None:
                        kept[rows, done : done + len(some)] = path.along(slope, len(some))
            done += len(some)
        return found

    def norms(self) -> list[Tensor | None]:
        found = [None if path is None else path.x.new_zeros(path.x.shape[:2]) for path in self.paths]
        for rows, _, slopes in self._each(self._end):
            for kept, slope in zip(found, slopes, strict=True):
                if kept is not None and slope is not None:
                    kept[rows] = slope.square().sum(-1).sqrt()
        return found

    def _each(self, a: Tensor) -> Iterator[tuple[Tensor, list[Path | None], list[Tensor | None]]]:
        """One step of each family in turn: its rows, the paths of the longest, and slopes at their points."""
        for members in self._families().of_one_size(lengths_of(self.batch)):  # (families, size)
            paths = [
                None if path is None else Path(path.x[members[:, -1]], path.step[members[:, -1]]) for path in self.paths
            ]
            points = [None if path is None else path.at(a).requires_grad_() for path in paths]
            moving = [point for point in points if point is not None]
            with torch.enable_grad():
                f = self._of_members(members, points, len(a))  # (families, size, steps)
                for k in range(members.shape[1]):
                    more = k + 1 < members.shape[1]
                    slopes = iter(torch.autograd.grad(f[:, k].sum(), moving, retain_graph=more))
                    yield members[:, k], paths, [None if point is None else next(slopes) for point in points]

    def _of_members(self, members: Tensor, points: list[Tensor | None], steps: int) -> Tensor:
        families, size = members.shape
        rows = members.flatten().repeat_interleave(steps)  # each member at each point
        batch, network = self.batch.rows(rows), cast(Generator, self.network)
        at = torch.arange(steps, device=rows.device)
        family = torch.arange(families, device=rows.device)
        longest = ((family.unsqueeze(1) * size + size - 1) * steps + at).flatten()  # (families * steps,)
        of = (family.view(-1, 1, 1) * steps + at).expand(families, size, steps).flatten()
        held: dict[str, Any] = {"edit": lambda layer, weights: weights.detach()} if self.hold_attention else {}
        x, x_query = points
        output = network.together(batch, Families(longest, of), x, x_query, **held)
        return output.score(self.target[rows], self.of).view(families, size, steps)

    def _families(self) -> Families:
        """Of one family are rows whose embeddings and baselines are the same, too."""
        codes: list[Tensor | None] = []
        for tokens, path in zip((self.batch.passage, self.batch.query), self.paths, strict=True):
            if tokens is None or path is None:
                codes.append(None if tokens is None else tokens.ids)
            else:
                codes.append(2 * (content(path.x) + 3 * content(path.step)) + tokens.present)
        assert codes[0] is not None
        return Families.find(keys_of(self.batch, codes[0], codes[1]), self.target.device)
