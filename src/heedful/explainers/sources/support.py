"""What supports a statement: how far its log probability falls without each unit, and without several at once.

A unit supports a statement where removing it makes the statement at least half as probable, and lowers its log
probability by more than any removal raises it: what is left out at random moves it up as well as down. Of a fact that
stands twice neither sentence does that, so those that say most by themselves are also left out in pairs. A statement
that no removal touches is unsupported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from math import log

import numpy as np
from numpy.typing import NDArray

from heedful.explainers.sources.ablations import draw, fit_surrogate
from heedful.explainers.sources.subsets import all_subsets, values_of

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Function = Callable[[Bools], Floats]

HALF = log(2.0)  # a fall of the log probability that counts at all
CANDIDATES = 5  # units that are left out in pairs
SHARE = 0.05  # of the largest score: documents below it are not looked into
MANY = 40  # units: of more, documents come first


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """Of each unit; what was not asked is nan."""

    falls: Floats  # (units,) log P(all) - log P(all without it)
    alone: Floats  # (units,) log P(it alone) - log P(no unit)
    scores: Floats  # (units,) Shapley values of log P where all subsets were asked, else weights of a surrogate
    pairs: dict[tuple[int, int], float]  # log P(all) - log P(all without both), of those that were asked
    whole: float  # log P(all)
    nothing: float  # log P(no unit)
    exact: bool
    lds: float = float("nan")  # of the surrogate
    bar: float = HALF
    unseen: tuple[int, ...] = field(default=())  # units that were left out with their document only

    @property
    def single(self) -> list[int]:
        """The units that support it by themselves, the strongest first."""
        order = np.argsort(-np.nan_to_num(self.falls, nan=-np.inf), kind="stable")
        return [int(i) for i in order if self.falls[i] > self.bar]

    @property
    def together(self) -> list[tuple[int, int]]:
        """Pairs that support it where neither does by itself, and the two falls do not add up to that of the pair."""
        alone = np.maximum(np.nan_to_num(self.falls), 0)
        weak = {i for i in range(len(self.falls)) if not self.falls[i] > self.bar}
        found = [
            (i, j) for (i, j), fall in self.pairs.items() if {i, j} <= weak and fall - alone[i] - alone[j] > self.bar
        ]
        return sorted(found, key=lambda pair: -self.pairs[pair])

    @property
    def verdict(self) -> str:
        """single, together, context (as a whole, no unit or pair of them), or none."""
        if self.single:
            return "single"
        if self.together:
            return "together"
        return "context" if self.whole - self.nothing > self.bar else "none"


def support(
    f: Function,
    log_p: Callable[[Floats], Floats],
    units: int,
    passes: int,
    ablations: int,
    rng: np.random.Generator,
    tokens: int = 1,
) -> Support:
    """f: log-odds of a statement after subsets of the units; exact where all are no more than `passes`."""
    if 2**units <= passes:
        table = log_p(f(all_subsets(units)))
        last, bits = len(table) - 1, 1 << np.arange(units)
        pairs = {(i, j): float(table[-1] - table[last ^ (1 << i | 1 << j)]) for i, j in combinations(range(units), 2)}
        falls, alone = values_of(table, "leave_one_out"), table[bits] - table[0]
        scores = values_of(table, "shapley")
        return Support(falls, alone, scores, pairs, float(table[-1]), float(table[0]), True, bar=_bar(falls))
    one = np.eye(units, dtype=np.bool_)
    ends = np.stack([np.ones(units, np.bool_), np.zeros(units, np.bool_)])
    whole, nothing = log_p(f(ends)).tolist()
    falls, alone = whole - log_p(f(~one)), log_p(f(one)) - nothing
    keep = draw(ablations, units, 0.5, rng)
    surrogate = fit_surrogate(keep, f(keep), tokens)
    pairs = {}
    chosen = _candidates(falls, alone, surrogate.weights)
    if asked := list(combinations(chosen, 2)):
        without = np.ones((len(asked), units), np.bool_)
        for row, pair in zip(without, asked, strict=True):
            row[list(pair)] = False
        pairs = dict(zip(asked, (whole - log_p(f(without))).tolist(), strict=True))
    return Support(falls, alone, surrogate.weights, pairs, whole, nothing, False, surrogate.lds, bar=_bar(falls))


def _bar(falls: Floats) -> float:
    return max(HALF, float(-falls.min()))


def _candidates(falls: Floats, alone: Floats, weights: Floats) -> list[int]:
    """Those that lead by any of the three."""
    leading = [np.argsort(-one, kind="stable") for one in (alone, weights, falls)]
    found = dict.fromkeys(int(order[place]) for place in range(len(falls)) for order in leading)
    return sorted(list(found)[:CANDIDATES])


def hierarchical(
    f: Function,
    log_p: Callable[[Floats], Floats],
    document: NDArray[np.int64],
    passes: int,
    ablations: int,
    rng: np.random.Generator,
    tokens: int = 1,
) -> Support:
    """Whole documents first, then the units of those that matter, the others staying as they are."""
    names = np.unique(document)
    outer = support(lambda keep: f(keep[:, document]), log_p, len(names), passes, ablations, rng, tokens)
    scored = np.maximum(outer.scores, outer.alone)
    chosen = {int(d) for d in np.flatnonzero(scored >= SHARE * max(scored.max(), outer.bar))}
    chosen |= {*outer.single, *(d for pair in outer.together for d in pair)}
    at = np.flatnonzero(np.isin(document, sorted(chosen)))
    n = len(document)

    def within(keep: Bools) -> Floats:
        there = np.ones((len(keep), n), np.bool_)
        there[:, at] = keep
        return f(there)

    def spread(values: Floats) -> Floats:
        found = np.full(n, np.nan)
        found[at] = values
        return found

    if len(at) == 0:
        empty = np.full(n, np.nan)
        return Support(empty, empty, empty, {}, outer.whole, outer.nothing, False, bar=outer.bar, unseen=(*range(n),))
    inner = support(within, log_p, len(at), passes, ablations, rng, tokens)
    pairs = {(int(at[i]), int(at[j])): fall for (i, j), fall in inner.pairs.items()}
    unseen = tuple(int(i) for i in np.flatnonzero(~np.isin(np.arange(n), at)))
    return Support(
        spread(inner.falls),
        spread(inner.alone),
        spread(inner.scores),
        pairs,
        outer.whole,
        outer.nothing,
        inner.exact,
        inner.lds,
        inner.bar,
        unseen,
    )
