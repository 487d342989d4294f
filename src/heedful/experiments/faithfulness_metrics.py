"""The metrics of faithfulness of one text, from what a model says without some of its words: pure numbers, no torch.

With f(x) of the whole text, f(x without R) and f(only R), and R_k the k words that an order puts first:

    comprehensiveness   mean over bins b of  f(x) - f(x without R_b)        high is good   DeYoung et al. 2020, eq. 1
    sufficiency         mean over bins b of  f(x) - f(only R_b)             low is good    eq. 2
    deletion            mean over k = 1..n of  f(x) - f(x without R_k)      high is good   Samek et al. 2017 (AOPC)
    insertion           mean over k = 1..n of  f(only R_k) - f(nothing)     high is good   Petsiuk et al. 2018
    flip_fraction       k / n at the first k at which the decision is another, 1 if never: low is good
                        Serrano & Smith 2019; Chrysostomou & Aletras 2021
    tau                 Kendall's tau-b of the scores and of f(x) - f(x without word i): leave-one-out

The mean over bins is that of the authors' code; the paper divides by one bin more, the empty one. Each, with m for
the metric, also normalised between a random order and the best one that was found:

    m_normalised = (m - m_floor) / (m_best - m_floor)          0: as good as chance, 1: nothing better is known

and the two areas between the lowest and the highest that was found (`naopc_...`, after Edin et al. 2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from heedful.experiments.faithfulness_orders import (
    Levels,
    best_chain,
    expected_first_flip,
    level_means,
)
from heedful.measure.columns import Bools, Floats

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
    exact: bool  # all sets were asked: floors and best values are no estimates


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
        np.where(np.isnan(without), draws.without, without),
        np.where(np.isnan(only), draws.only, only),
        draws.flips,
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
    return (
        np.interp(FRACTIONS, place, [text.whole, *without]),
        np.interp(FRACTIONS, place, [text.empty, *only]),
    )
