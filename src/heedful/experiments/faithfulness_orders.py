"""Orders of the words of a text, and how good an order can be: sets, chains of sets, and the law of a random order.

An order of n words is a chain of nested sets: the k first words, for each size k. Every metric here that goes along
an order is a weighted sum over the chain of what the model says without (or with only) those words,

    F(order) = sum_k w_k v(first k words)

so the best order is the best chain (`best_chain`): a maximum over the sets of each size, from one size to the next.
With all 2^n sets this is exact; with some of them it is the best order that can be made of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, comb

import numpy as np

from heedful.measure.columns import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The sizes k at which orders of n words are looked at, and what each counts in a metric."""

    n: int
    sizes: Ints  # (levels,) rising, from 1 to n
    bins: Floats  # (levels,) weights of comprehensiveness and sufficiency, sum 1
    grid: Floats  # (levels,) weights of the areas under curves, sum 1


def levels_of(n: int, bins: Sequence[float], points: int) -> Levels:
    """Bins are shares of the words (DeYoung et al. 2020), at least one word: k_b = max(1, ceil(b n)).

    A curve has every size from 1 to n, or for longer texts about `points` sizes, as many from the end as from the
    beginning: what is left of a set on the grid is on the grid.
    """
    in_bins = [max(1, ceil(round(b * n, 9))) for b in bins]
    half = [n * i // points for i in range(points // 2 + 1)]
    grid = range(1, n + 1) if n <= points else sorted({*half, *(n - size for size in half)} - {0})
    sizes = np.array(sorted({*in_bins, *grid}), dtype=np.int64)
    of_bins = np.array([in_bins.count(int(size)) / len(in_bins) for size in sizes])
    of_grid = np.array([(int(size) in grid) / len(grid) for size in sizes])
    return Levels(n, sizes, of_bins, of_grid)


def falling(scores: Floats) -> Ints:
    """Words by falling score, of equal scores the first in the text first: (..., n) -> (..., n)."""
    return np.argsort(-scores, axis=-1, kind="stable")


def prefixes(orders: Ints, sizes: Ints) -> Bools:
    """The first words of each order: (m, n), (levels,) -> (m, levels, n)."""
    place: Ints = np.argsort(orders, axis=1)[:, None, :]
    return np.less(place, sizes[None, :, None])


def all_sets(n: int) -> Bools:
    """Every set of n words, in the order of their numbers in binary, word 0 the lowest digit: (2^n, n)."""
    return ((np.arange(2**n)[:, None] >> np.arange(n)) % 2).astype(np.bool_)


def best_chain(sets: Bools, values: Floats, sizes: Ints, weights: Floats) -> float:
    """The largest sum_k w_k v(S_k) over nested sets S_1 < S_2 < ... of these sizes: (m, n), (m,) -> a number.

    Sizes of weight 0 need no set. -inf where there is no such chain.
    """
    counts = sets.sum(1)
    best, last = np.zeros(1), np.zeros((1, sets.shape[1]), dtype=np.float32)
    for size, weight in zip(sizes[weights > 0].tolist(), weights[weights > 0].tolist(), strict=True):
        at = counts == size
        here = sets[at].astype(np.float32)  # (b, n)
        inside = last @ here.T == last.sum(1)[:, None]  # (a, b): a is a subset of b
        best = np.where(inside, best[:, None], -np.inf).max(0, initial=-np.inf) + weight * values[at]
        last = here
    return float(best.max(initial=-np.inf))


def level_means(sets: Bools, values: Floats, sizes: Ints) -> Floats:
    """The mean over all sets of each size where every one of them is known, else nan: (levels,).

    That is the law of a random order: its first k words are any k words with the same probability.
    """
    n, counts = sets.shape[1], sets.sum(1)
    complete = [int((counts == size).sum()) == comb(n, size) for size in sizes.tolist()]
    return np.array(
        [
            values[counts == size].mean() if all_known else np.nan
            for size, all_known in zip(sizes, complete, strict=True)
        ]
    )


def expected_first_flip(sets: Bools, flips: Bools) -> float:
    """The mean over all orders of the share of words gone at the first flip, 1 where there is none; needs all sets.

    P(no flip among the first k) = sum over sets S of k words of p(S), p(S) = [S does not flip] sum_{w in S}
    p(S without w) / (n - k + 1).
    """
    n = sets.shape[1]
    code = sets @ (1 << np.arange(n))  # (2^n,)
    flipping = np.zeros(2**n, dtype=np.bool_)
    flipping[code] = flips
    p = np.zeros(2**n)
    p[0] = 1.0
    every, size = np.arange(2**n), all_sets(n).sum(1)
    lasting = 1.0  # P(no flip yet), summed over k
    for k in range(1, n):
        for bit in range(n):
            with_it = every[(size == k) & (every >> bit & 1 == 1)]
            p[with_it] += p[with_it - (1 << bit)] / (n - k + 1)
        p[(size == k) & flipping] = 0.0
        lasting += p[size == k].sum()
    return float(lasting / n)


@dataclass(frozen=True, slots=True, eq=False)
class Beam:
    """The best few sets of one size, and what each has gathered on its way: for one text and one direction."""

    sets: Bools  # (width, n)
    gathered: Floats  # (width,)

    @classmethod
    def start(cls, n: int) -> Beam:
        return cls(np.zeros((1, n), dtype=np.bool_), np.zeros(1))

    def children(self, more: int, ranked: Ints) -> tuple[Bools, Ints]:
        """Each set with `more` words added: (children, n), and the parent of each.

        One word: each of those that are left. Several (long texts): neighbours in `ranked` together.
        """
        found, parents = [], []
        for parent, one in enumerate(self.sets):
            left = ranked[~one[ranked]]
            starts = [*range(0, len(left) - more, more), len(left) - more]
            child = np.repeat(one[None], len(starts), axis=0)
            for row, start in zip(child, starts, strict=True):
                row[left[start : start + more]] = True
            found.append(child)
            parents += [parent] * len(starts)
        return np.concatenate(found), np.array(parents)

    def keep(self, children: Bools, parents: Ints, values: Floats, width: int) -> Beam:
        """The children that have gathered most. Values are compared to 9 digits: rounding decides nothing."""
        gathered = self.gathered[parents] + values
        best: dict[bytes, int] = {}  # of equal sets (by two parents) the one that has gathered more
        for i in np.argsort(-np.round(gathered, 9), kind="stable").tolist():
            best.setdefault(children[i].tobytes(), i)
            if len(best) == width:
                break
        chosen = list(best.values())
        return Beam(children[chosen], gathered[chosen])
