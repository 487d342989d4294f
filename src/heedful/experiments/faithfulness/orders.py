"""Orders of the words of a text, and how good an order can be: sets, chains of sets, and the law of a random order.

An order of n words is a chain of nested sets: the k first words, for each size k. Every metric here that goes along
an order is a weighted sum over the chain of what the model says without (or with only) those words,

    F(order) = sum_k w_k v(first k words)

so the best order is the best chain (`best_chain`): a maximum over the sets of each size, from one size to the next.
With all 2^n sets this is exact; with some of them it is the best order that can be made of those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    def children(self, more: int, ranked: Ints, widest: int | None = None) -> tuple[Bools, Ints]:
        """Each set with `more` words added: (children, n), and the parent of each.

        One word: each of those that are left. Several (long texts): neighbours in `ranked` together. At most `widest`
        of them for each set, the first in `ranked`.
        """
        found, parents = [], []
        for parent, one in enumerate(self.sets):
            left = ranked[~one[ranked]]
            starts = [*range(0, len(left) - more, more), len(left) - more][:widest]
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


# The metrics of faithfulness of one text, from what a model says without some of its words: pure numbers, no torch.
#
# With f(x) of the whole text, f(x without R) and f(only R), and R_k the k words that an order puts first:
#
#     comprehensiveness   mean over bins b of  f(x) - f(x without R_b)        high is good   DeYoung et al. 2020, eq. 1
#     sufficiency         mean over bins b of  f(x) - f(only R_b)             low is good    eq. 2
#     deletion            mean over k = 1..n of  f(x) - f(x without R_k)      high is good   Samek et al. 2017 (AOPC)
#     insertion           mean over k = 1..n of  f(only R_k) - f(nothing)     high is good   Petsiuk et al. 2018
#     flip_fraction       k / n at the first k at which the decision is another, 1 if never: low is good
#                         Serrano & Smith 2019; Chrysostomou & Aletras 2021
#     tau                 Kendall's tau-b of the scores and of f(x) - f(x without word i): leave-one-out
#
# The mean over bins is that of the authors' code; the paper divides by one bin more, the empty one. Each, with m for
# the metric, also normalised between a random order and the best one that was found:
#
#     m_normalised = (m - m_floor) / (m_best - m_floor)          0: as good as chance, 1: nothing better is known
#
# and the two areas between the lowest and the highest that was found (`naopc_...`, after Edin et al. 2024).


METRICS = ("comprehensiveness", "sufficiency", "deletion", "insertion", "flip_fraction")
LOW_IS_GOOD = frozenset({"sufficiency", "flip_fraction"})
FRACTIONS = np.linspace(0, 1, 11)  # of the words: where curves are kept
TINY = 1e-6  # of the output: with less room between floor and best there is nothing to normalise


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A text of n words: where orders are looked at, and what is said of all of it and of nothing."""

    levels: Levels
    whole: float  # f(x)
    empty: float  # f(nothing)
    decides: bool  # whether there is a decision that can flip


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """What is said along m orders of one text: (m, levels) each."""

    without: Floats
    only: Floats
    flips: Bools  # of the decision, without


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """What chance and the best order give: by metric; `error` is the standard error of a floor from draws."""

    floor: Mapping[str, float]
    error: Mapping[str, float]
    best: Mapping[str, float]
    lowest: Mapping[str, float]  # of the two areas
    exact: bool  # all sets were asked: floors and best values are not estimates


def metrics_of(text: Text, curves: Curves) -> dict[str, Floats]:
    """Each metric of each order: (m,)."""
    levels = text.levels
    dropped, missing = text.whole - curves.without, text.whole - curves.only  # (m, levels)
    first = np.where(curves.flips.any(1), levels.sizes[curves.flips.argmax(1)] / levels.n, 1.0)
    return {
        "comprehensiveness": dropped @ levels.bins,
        "sufficiency": missing @ levels.bins,
        "deletion": dropped @ levels.grid,
        "insertion": (curves.only - text.empty) @ levels.grid,
        "flip_fraction": first if text.decides else np.full(len(first), np.nan),
    }


def limits_of(text: Text, sets: Bools, f: Floats, flips: Bools, draws: Curves) -> Limits:
    """From all that was asked about a text: sets of removed words (m, n), f and flips without them; and from random
    orders. Where all sets of a size were asked, their mean takes the place of the draws."""
    levels = text.levels
    exact = len(sets) == 2**levels.n
    without, only = (level_means(which, f, levels.sizes) for which in (sets, ~sets))  # (levels,)
    known = Curves(
        np.where(np.isnan(without), draws.without, without), np.where(np.isnan(only), draws.only, only), draws.flips
    )
    drawn = metrics_of(text, known)
    floor = {name: float(values.mean()) for name, values in drawn.items()}
    several = len(draws.without) > 1
    error = {
        name: float(values.std(ddof=1) / np.sqrt(len(values))) if several else float("nan")
        for name, values in drawn.items()
    }
    if exact:
        error = dict.fromkeys(error, 0.0)
        if text.decides:
            floor["flip_fraction"] = expected_first_flip(sets, flips)
    best, lowest = _best(text, sets, f, flips)
    return Limits(floor, error, best, lowest, exact)


def _best(text: Text, sets: Bools, f: Floats, flips: Bools) -> tuple[dict[str, float], dict[str, float]]:
    levels = text.levels

    def most(which: Bools, values: Floats, weights: Floats) -> float:
        return best_chain(which, values, levels.sizes, weights)

    best = {
        "comprehensiveness": most(sets, text.whole - f, levels.bins),
        "sufficiency": -most(~sets, f - text.whole, levels.bins),
        "deletion": most(sets, text.whole - f, levels.grid),
        "insertion": most(~sets, f - text.empty, levels.grid),
        "flip_fraction": float("nan"),
    }
    if text.decides:
        best["flip_fraction"] = float(sets[flips].sum(1).min() / levels.n) if flips.any() else 1.0
    lowest = {
        "deletion": -most(sets, f - text.whole, levels.grid),
        "insertion": -most(~sets, text.empty - f, levels.grid),
    }
    return best, lowest


def normalised(text: Text, name: str, value: float, limits: Limits) -> float:
    """nan where chance is as good as anything that was found: the text cannot tell methods apart."""
    room = limits.best[name] - limits.floor[name]
    sign = -1.0 if name in LOW_IS_GOOD else 1.0
    if not sign * room > _tiny(text):
        return float("nan")
    return min(1.0, (value - limits.floor[name]) / room)  # beyond 1 is rounding: the order itself was found


def naopc(text: Text, name: str, value: float, limits: Limits) -> float:
    """Of an area: between the lowest and the highest that was found."""
    room = limits.best[name] - limits.lowest[name]
    if not room > _tiny(text):
        return float("nan")
    return min(1.0, max(0.0, (value - limits.lowest[name]) / room))


def _tiny(text: Text) -> float:
    return TINY * max(1.0, abs(text.whole))


def sampled(text: Text, without: Floats, only: Floats) -> tuple[Floats, Floats]:
    """f at FRACTIONS of the words along the deletion and the insertion curve, (levels,) -> (11,) each."""
    place = np.concatenate([[0], text.levels.sizes]) / text.levels.n
    return (np.interp(FRACTIONS, place, [text.whole, *without]), np.interp(FRACTIONS, place, [text.empty, *only]))
