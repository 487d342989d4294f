"""How the explainers stand: one number each, its test against chance, and what else speaks for or against each.

An explainer's share is, with means over the texts, the measures that rank, and the conditions they were asked under,

    mean of (value - chance) / mean of (best order found - chance)

0 is a random order, 1 the best order that was found (the normalisation of Edin et al. 2024, NAOPC, over means, so that
a text that nothing changes, or a measure with hardly any room, has no say). Explainers are compared text by text. Where
the best order found is no better than a random one in any text, no order is: shares are undefined, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from heedful.auditing.outcome.findings import (
    Answer,
    Behind,
    Finding,
    Gain,
    Shares,
    Thresholds,
    adjust,
    behind_of,
    finding_of,
    gain_of,
)
from heedful.auditing.outcome.series import Series
from heedful.figures.figure import join_words
from heedful.measure.columns import Floats

DRAWS = 400  # of the texts, from which it is seen how often another explainer would come first


@dataclass(frozen=True, slots=True)
class MethodCheck:
    """A promise of an explainer's own, or of its sampling: what it is, whether it is kept, and the numbers."""

    name: str
    ok: bool
    told: str


@dataclass(frozen=True, slots=True)
class MethodCost:
    """Of one text, the median of some; seconds in the mean over those that were explained, nan where none was: then
    the passes are those that the explainer declares."""

    forward: int
    backward: int
    seconds: float

    @property
    def passes(self) -> int:
        """What costs are compared by: seconds differ from one audit to the next."""
        return self.forward + self.backward


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """What is known of an explainer beside what the experiments say."""

    kind: str
    removal: str | None = None  # what "absent" means to it
    checks: tuple[MethodCheck, ...] = ()
    cost: MethodCost | None = None
    unchecked: bool = False  # it has checks, and they were not made

    @property
    def broken(self) -> bool:
        return any(not check.ok for check in self.checks)

    @property
    def keeps(self) -> bool:
        """Whether it is known to keep its own checks, or has none."""
        return not self.broken and not self.unchecked


@dataclass(frozen=True, slots=True)
class Standing:
    """An explainer among the others."""

    method: str
    explained: MethodFacts
    share: Gain
    answer: Answer
    needed: int | None  # texts that would tell, where these cannot
    by_condition: Mapping[str, Answer]
    to_best: Behind | None = None  # None: it is the best one that is better than random, or none is and it leads

    @property
    def behind(self) -> float | None:
        """q of the difference to the best one; None: it is the best."""
        return None if self.to_best is None else self.to_best.q

    @property
    def torn(self) -> bool:
        """Whether the conclusion changes with the condition: better under one, and not under another."""
        answers = set(self.by_condition.values())
        return "better" in answers and bool(answers & {"no better", "worse"})

    @property
    def agreement(self) -> str:
        """What the conditions say, in words; empty where there is one, or they do not contradict each other."""
        if not self.torn:
            return ""
        groups: dict[str, list[str]] = {}
        for condition, answer in self.by_condition.items():
            groups.setdefault(answer, []).append(condition)
        return "; ".join(f"{answer} under {join_words(names)}" for answer, names in groups.items())


@dataclass(frozen=True, slots=True)
class Standings:
    """`order` from the best; `experiment` is the one whose measures rank, "" where none was asked."""

    experiment: str
    order: tuple[Standing, ...]
    findings: tuple[Finding, ...]
    tests: int  # of the family in which false discoveries are counted
    thresholds: Thresholds = field(default_factory=Thresholds)
    drawn: Mapping[str, Floats] = field(default_factory=dict)  # shares in draws of the texts, by method: (DRAWS,)

    def of(self, method: str) -> Standing | None:
        return next((one for one in self.order if one.method == method), None)

    @property
    def best(self) -> Standing | None:
        """Of the explainers that are better than random the one with the highest share."""
        better = [one for one in self.order if one.explained.kind != "control" and one.answer == "better"]
        return next((one for one in better if one.to_best is None), None)

    def level_with_best(self) -> list[Standing]:
        """The best one and those that cannot be told from it; empty where none is better than random."""
        best, level = self.best, self.thresholds.level
        if best is None:
            return []
        return [
            one
            for one in self.order
            if one.explained.kind != "control"
            and one.answer == "better"
            and (one.behind is None or not one.behind <= level)
        ]

    def within_margin(self) -> list[Standing]:
        """Those that are better than random and proved to be less than the margin behind the best one."""
        margin = self.thresholds.margin
        return [
            one
            for one in self.level_with_best() + self.behind_best()
            if one.to_best is not None and one.to_best.within(margin)
        ]

    def behind_best(self) -> list[Standing]:
        """Those that are better than random, and told from the best one."""
        level = self.level_with_best()
        return [
            one
            for one in self.order
            if level and one.explained.kind != "control" and one.answer == "better" and one not in level
        ]

    def at(self, thresholds: Thresholds) -> Standings:
        """The same findings under other thresholds."""
        order = tuple(replace(one, answer=one.share.answer(thresholds)) for one in self.order)
        return replace(self, order=order, thresholds=thresholds)


def rank(
    series: Sequence[Series], known: Mapping[str, MethodFacts], thresholds: Thresholds | None = None, looked: str = ""
) -> Standings:
    """Test everything that the series say, in one family of statements, and put the explainers in order. `looked`: the
    experiment whose texts were looked at one after the other; what is said of it holds whenever that ends."""
    thresholds = thresholds or Thresholds()
    findings = [finding_of(one, one.experiment == looked) for one in series]
    ranking = [one for one in series if one.measure.ranks]
    experiment = ranking[0].experiment if ranking else ""
    ranking = [one for one in ranking if one.experiment == experiment]
    methods = list(dict.fromkeys(one.method for one in ranking))
    conditions = list(dict.fromkeys(one.condition for one in ranking))
    shares = {method: share_of([one for one in ranking if one.method == method]) for method in methods}
    parts = {
        (method, condition): share_of([one for one in ranking if (one.method, one.condition) == (method, condition)])
        for method in methods
        for condition in conditions
        if len(conditions) > 1
    }
    gains = [one.gain for one in findings]
    often = experiment == looked != ""
    gains += [gain_of(*share, often) for share in (*shares.values(), *parts.values())]
    by_share = sorted(
        methods, key=lambda method: -np.nan_to_num(gains[len(findings) + methods.index(method)].mean, nan=-9)
    )
    explainers = [method for method in by_share if _kind(known, method) != "control"]
    at = {method: len(findings) + number for number, method in enumerate(methods)}

    def to(best: str) -> tuple[dict[str, Behind], list[Gain]]:
        """How far the others are behind, and all tests with their q-values, those of the differences last."""
        found = {m: behind_of(shares[best], shares[m], len(explainers) - 1, often) for m in methods if m != best}
        return {m: one for m, (one, _) in found.items()}, adjust([*gains, *(_as_gain(p) for _, p in found.values())])

    highest = next(iter(explainers), None)
    versus, adjusted = to(highest) if highest else ({}, adjust(gains))
    # one that cannot be told from random is not what others are measured by, however high its mean
    better = (method for method in explainers if adjusted[at[method]].answer(thresholds) == "better")
    best = next(better, highest)
    differences = adjusted[len(gains) :]
    if best is not None and best != highest:
        versus, again_adjusted = to(best)
        differences = again_adjusted[len(gains) :]
    own, rest = adjusted[: len(findings)], adjusted[len(findings) :]
    by_method = dict(zip(methods, rest, strict=False))
    by_part = dict(zip(parts, rest[len(methods) :], strict=False))
    behind = {m: replace(one, q=gain.q) for (m, one), gain in zip(versus.items(), differences, strict=True)}
    order = [
        _standing(
            method,
            known.get(method, MethodFacts("unknown")),
            by_method[method],
            {c: by_part[method, c] for c in conditions if (method, c) in by_part},
            behind.get(method),
            thresholds,
        )
        for method in by_share
    ]
    told = tuple(replace(one, gain=gain) for one, gain in zip(findings, own, strict=True))
    tests = sum(not np.isnan(gain.p) for gain in adjusted)
    return Standings(experiment, tuple(order), told, tests, thresholds, redrawn(ranking, methods))


def redrawn(series: Sequence[Series], methods: Sequence[str]) -> dict[str, Floats]:
    """The share of each method in draws of the texts with replacement, the same texts for all: (DRAWS,) each."""
    known = [one for one in series if not np.isnan(one.room)]
    if not known:
        return {}
    n, rng = len(known[0].examples), np.random.default_rng(0)
    times = rng.multinomial(n, np.full(n, 1 / n), DRAWS).astype(np.float64)  # (DRAWS, n)
    found = {}
    for method in methods:
        own = [one for one in known if one.method == method]
        if own:
            gains, rooms = _mean([one.gain for one in own]), _mean([one.rooms for one in own])
            defined = ~np.isnan(gains) & ~np.isnan(rooms)
            room = times @ np.where(defined, rooms, 0.0)
            gained = times @ np.where(defined, gains, 0.0)
            found[method] = np.where(room > 0, gained / np.where(room > 0, room, 1.0), 0.0)
    return found


def share_of(series: Sequence[Series]) -> Shares:
    """(share of each text, 1, its spread), or where no best order is known (mean gain of each text, nan, None).

    Gains and rooms are first averaged over the series: one with hardly any room has hardly any say."""
    known = [one for one in series if not np.isnan(one.room)]
    if known:
        gains, rooms = _mean([one.gain for one in known]), _mean([one.rooms for one in known])
        defined = ~np.isnan(gains) & ~np.isnan(rooms)
        room = float(rooms[defined].mean()) if defined.any() else float("nan")
        more = np.where(defined, rooms - room, 0.0)
        shares = gains / room
        return shares, 1.0, shares - float(shares[defined].mean()) * more / room
    gains = _mean([one.gain for one in series])
    if any(not np.isnan(one.rooms).all() for one in series):
        return np.full_like(gains, np.nan), 1.0, None
    return gains, float("nan"), None


def _mean(values: Sequence[Floats]) -> Floats:
    """Over the measures that are defined for a text."""
    stacked = np.stack(values)
    n = (~np.isnan(stacked)).sum(0)
    return np.where(n > 0, np.nansum(stacked, 0) / np.maximum(n, 1), np.nan)


def _standing(
    method: str,
    known: MethodFacts,
    share: Gain,
    parts: Mapping[str, Gain],
    behind: Behind | None,
    thresholds: Thresholds,
) -> Standing:
    answer = share.answer(thresholds)
    needed = share.needed(thresholds) if answer == "cannot tell" else None
    return Standing(
        method, known, share, answer, needed, {c: gain.answer(thresholds) for c, gain in parts.items()}, behind
    )


def again(standings: Standings, thresholds: Thresholds) -> dict[str, Answer]:
    """What would be said of each explainer at other thresholds."""
    return {one.method: one.share.answer(thresholds) for one in standings.order}


def _kind(known: Mapping[str, MethodFacts], method: str) -> str:
    return known[method].kind if method in known else "unknown"


def _as_gain(p: float) -> Gain:
    """A test of its own that only takes its place in the family."""
    nan = float("nan")
    return Gain(0, nan, nan, nan, nan, nan, p, nan)
