"""Adversarial attention for any model that answers under other weights: candidates, and a forward pass for each.

Nothing is known about the readout here, so the candidates are those among which the exact answer lies for two labels
and a linear readout (exact.py, steps 2 and 3): one word with all the weight, and two words that share it so that the
constraint just holds. Of the pairs, those whose words are attended least are tried; the bound is that of the one-hot
on the least attended word, because JSD is convex.
"""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.experiments.adversarial.adam import farthest_feasible
from heedful.experiments.adversarial.exact import Adversary
from heedful.experiments.adversarial.search import BISECTIONS, boundary, ceiling, least_change
from heedful.experiments.edited_attention.observe import Observed

GRID = 9  # values of the weight that a pair shares


@torch.no_grad()
def general_adversary(seen: Observed, epsilon: float, pairs: int = 10) -> Adversary:
    """The farthest feasible attention among one-hots and among pairs of the `pairs` least attended words and all."""
    bound = ceiling(seen)
    width = seen.alpha.shape[1]
    if width == 0:
        return farthest_feasible(seen, seen.alpha.unsqueeze(1), epsilon, bound)
    B = len(seen.alpha)
    one_hots = torch.eye(width, dtype=torch.float64).expand(B, -1, -1)  # (B, T, T)
    y = seen.y.unsqueeze(1)
    candidates = [torch.where(seen.real.unsqueeze(-1), one_hots, seen.alpha.unsqueeze(1))]
    least = torch.where(seen.real, seen.alpha, torch.inf).argsort(dim=1, stable=True)[:, :pairs]  # (B, P)
    t = least.repeat_interleave(width, 1)  # (B, P T): each of the least attended with every word
    u = torch.arange(width).repeat(least.shape[1]).expand(B, -1)
    both = seen.real.gather(1, t) & seen.real.gather(1, u) & (t != u)
    line = _EditedLine(seen, _one_hot(t, width), _one_hot(u, width), y)
    inside = line.least_change()  # (B, P T)
    for end in (0.0, 1.0):  # as far towards either word as the constraint allows
        found = line.at(boundary(line.change, inside, end, epsilon * (1 - 1e-10)))
        candidates.append(torch.where(both.unsqueeze(-1), found, seen.alpha.unsqueeze(1)))
    return farthest_feasible(seen, torch.cat(candidates, dim=1), epsilon, bound)


def _one_hot(index: Tensor, width: int) -> Tensor:
    return torch.zeros(*index.shape, width, dtype=torch.float64).scatter_(2, index.unsqueeze(-1), 1.0)


class _EditedLine:
    """w e_t + (1 - w) e_u for many pairs of words (B, n)."""

    def __init__(self, seen: Observed, e_t: Tensor, e_u: Tensor, y: Tensor) -> None:
        self.seen, self.e_t, self.e_u, self.y = seen, e_t, e_u, y

    def at(self, w: Tensor) -> Tensor:
        return torch.lerp(self.e_u, self.e_t, w.unsqueeze(-1))  # (B, n, T)

    def change(self, w: Tensor) -> Tensor:
        return self.seen.distance(self.seen.decode(self.at(w)), self.y)  # (B, n)

    def least_change(self) -> Tensor:
        """The w of least change: the best of a grid, then ever nearer."""
        grid = torch.linspace(0, 1, GRID, dtype=torch.float64)
        change, best = torch.stack([self.change(w.expand(self.e_t.shape[:2])) for w in grid]).min(0)
        return least_change(self.change, grid[best], change, 0.5 / (GRID - 1), BISECTIONS)
