"""Each measure of each explainer, tested against chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from heedful.auditing.outcome import sequences
from heedful.auditing.outcome.series import Series
from heedful.measure.columns import Floats
from heedful.measure.paired import sign_flip_test
from heedful.measure.statistics import Interval, Range, mean_interval
from heedful.measure.tests import benjamini_hochberg, minimum_detectable, texts_needed

Answer = Literal["better", "no better", "worse", "cannot tell"]

Shares = tuple[Floats, float, Floats | None]  # of each text, 1 or nan where these are gains, their spread
LEVEL = 0.05  # of all findings of an audit, the share that may be expected to be chance
ONE_SIDED = 0.05  # of error where something is called negligible
MARGIN = 0.05  # of the same way: who is at most so far behind the best may be recommended in its place
ENOUGH = 10  # texts, below which nobody is proved to be within the margin: an interval of fewer rests on its form
NEGLIGIBLE = 0.1  # of the way from a random order to the best one that was found
SMALL = 0.2  # where nothing is known of the best order: in standard deviations of the gain (Cohen 1988: small)
WHOLE = 1.0  # share that one more text could be off, for all that the texts so far show
FEWEST = 8  # texts needed, at least: two or three have no standard deviation to rest on
SHARES = (-math.inf, 1.0)  # no order is better than the best
MOST = 100_000  # texts: more is "more than can be had"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What decides between the four answers."""

    level: float = LEVEL
    negligible: float = NEGLIGIBLE
    margin: float = MARGIN  # of shares

    @property
    def rule(self) -> str:
        return (
            f"An explainer is “better” or “worse” than random if q ≤ {self.level:g} and the 95% interval excludes "
            f"zero; of all such statements in this audit at most {self.level:.0%} are expected to be chance "
            "(Benjamini & Hochberg 1995), the convention of the field. It is “no better” if a one-sided test at "
            f"5% shows that it gets at most {self.negligible:.0%} of the way from a random order to the best order"
            " found (Schuirmann 1987; the threshold is heedful's own: what explains less explains next to "
            f"nothing; where the best order is not known, it is {SMALL:g} standard deviations, Cohen's small "
            "effect). Otherwise these texts cannot tell. The audit recommends the explainer with the highest "
            "score among those that are better than random, unless another one is shown to be within "
            f"{points(self.margin)} of it (out of 100 from a random order to the best order found) and takes fewer"
            " passes, passes its own checks where the highest fails them, or gives the same answer under all ways"
            " of removing words where the highest does not. “Shown” means that the difference, taken text by text"
            f" over at least {ENOUGH} texts, is below the margin by one-sided tests that err in at most "
            f"{ONE_SIDED:.0%} of audits (tests of non-inferiority, with Bonferroni's correction for the number of "
            "explainers; the margin is heedful's own). Texts are used one after the other, and an explainer that is "
            "decided is left out of the rest; intervals and tests hold at every number of texts from "
            f"{sequences.LEAST} to {sequences.MOST:,} at once (confidence sequences: Pocock 1977, Miller & "
            "Siegmund 1982), so looking in between costs no promise."
        )


def points(share: float) -> str:
    """ "5 points": a difference of shares."""
    number = f"{100 * share:.3g}"
    return f"{number} point" if number == "1" else f"{number} points"


@dataclass(frozen=True, slots=True)
class Behind:
    """How far an explainer is behind the best one, text by text, in the shares of both (positive: the best is
    better); where no share is known, in gains."""

    n: int
    difference: float
    low: float  # 95% interval of the difference
    high: float
    at_most: float  # upper end of its one-sided interval, wide enough for all explainers together
    unit: bool  # whether these are shares: only of them is a margin known
    q: float = float("nan")  # of no difference

    def within(self, margin: float) -> bool:
        """Whether it is proved that the best is better by less than the margin."""
        return self.unit and self.n >= ENOUGH and self.at_most < margin


def looks(n: int, looked: bool) -> bool:
    """Whether n texts were looked at more than once: before the first look nothing is decided."""
    return looked and n >= sequences.LEAST


def behind_of(best: Shares, other: Shares, others: int, looked: bool = False) -> tuple[Behind, float]:
    """The paired difference to the best of one of so many `others`, and the p-value of its test. `looked`: after each
    block of texts, so that it has to hold at all of them.

    The interval is that of the difference of two ratios with one denominator (`Series.beyond_room`), the test that of
    the differences of shares."""
    difference = best[0] - other[0]
    kept = difference[~np.isnan(difference)]
    spread = difference if best[2] is None or other[2] is None else best[2] - other[2]
    spread = spread[~np.isnan(spread)]
    nan, n = float("nan"), kept.size
    low, high, at_most, often = nan, nan, nan, looks(n, looked)
    if n > 1:
        each = sequences.level_of_a_look if often else float
        spread = sequences.with_one_more(spread, WHOLE) if often and not math.isnan(best[1]) else spread
        low, high = mean_interval(spread, level=each(0.95))
        # never less strict than the interval that is shown
        at_most = max(high, mean_interval(spread, level=each(1 - 2 * ONE_SIDED / max(2, others)))[1])
    p = sequences.sequential_p(spread) if often else sign_flips(kept)
    unit = not math.isnan(best[1]) and not math.isnan(other[1])
    mean = float(kept.mean()) if n else nan
    return Behind(n, mean, low, high, at_most, unit), p


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better than chance, over the texts where both are known, and what can be said of it."""

    n: int
    mean: float
    low: float
    high: float
    at_most: float  # upper end of the one-sided 95% interval
    sd: float
    p: float  # two-sided, of no difference from chance
    worth: float  # a smaller mean is negligible at the bar of NEGLIGIBLE; nan where nothing is known
    q: float = float("nan")
    looked: bool = False  # at every number of texts: then all of this holds at all of them

    def answer(self, thresholds: Thresholds) -> Answer:
        """`q` and the interval decide whether there is a difference, `at_most` whether one could be hidden: that is a
        test of its own, of the null hypothesis that it is worth the margin or more (Schuirmann 1987), so one-sided.

        Sign flips take gains to be symmetric where there is no difference. Those of a random order are not: it seldom
        finds the word that decides, and then gains much. The interval knows of skewness.
        """
        if self.n < 2 or math.isnan(self.mean):
            return "cannot tell"
        if self.q <= thresholds.level and (self.low > 0 or self.high < 0):
            return "better" if self.low > 0 else "worse"
        return "no better" if self.at_most <= self.margin(thresholds) else "cannot tell"

    @property
    def effect(self) -> float:
        """In standard deviations between texts (Cohen's d_z); nan where there are none."""
        return self.mean / self.sd if self.sd > 0 else float("nan")

    def detectable(self, thresholds: Thresholds) -> float:
        """The smallest mean that so many texts find in four cases of five, at the level of one test."""
        return minimum_detectable(self.sd, self.n, level=thresholds.level)

    def margin(self, thresholds: Thresholds) -> float:
        scale = thresholds.negligible / NEGLIGIBLE
        return scale * (SMALL * self.sd if math.isnan(self.worth) else self.worth)

    def needed(self, thresholds: Thresholds) -> int | None:
        """Texts that would tell, if the mean stays what it is: that it is better, or that it is negligible, whichever
        takes fewer. The first at the level that is left to one of many tests (Benjamini & Hochberg), the second by a
        one-sided test. None: more than MOST."""
        if self.n < 2 or math.isnan(self.mean):
            return None
        level = thresholds.level * (self.p / self.q if self.q > 0 else 1.0)
        one_sided = 2 * ONE_SIDED
        if self.looked:
            level, one_sided = (1 - sequences.level_of_a_look(1 - one) for one in (thresholds.level, one_sided))
        effects = ((self.mean, level), (self.margin(thresholds) - self.mean, one_sided))
        found = [texts_needed(effect, self.sd, level=at) for effect, at in effects if effect > 0]
        least = max(self.n + 1, FEWEST, min(found, default=MOST + 1))
        return least if least <= MOST else None


def gain_of(values: Floats, room: float, beyond_room: Floats | None = None, looked: bool = False) -> Gain:
    """Of gains text by text (texts,); `room` is what the best order gains, nan where nobody knows. Where they are
    shares of it, `beyond_room` has their intervals (Series.beyond_room), and no mean of them is above 1."""
    defined = ~np.isnan(values)
    kept = values[defined]
    spread = kept if beyond_room is None else beyond_room[defined]
    n, often = kept.size, looks(kept.size, looked)
    each = sequences.level_of_a_look if often else float
    if often and not math.isnan(room):
        spread = sequences.with_one_more(spread, WHOLE * room)
    nan, within = float("nan"), None if beyond_room is None else SHARES
    mean, sd = (float(kept.mean()) if n else nan), (float(kept.std(ddof=1)) if n > 1 else nan)
    low, high, at_most = nan, nan, nan
    if n > 1:
        low, high = mean_interval(spread, level=each(0.95), within=within)
        at_most = mean_interval(spread, level=each(1 - 2 * ONE_SIDED), within=within)[1]
    tested = sequences.with_one_more(kept, WHOLE * room) if often and not math.isnan(room) else kept
    p = 1.0 if n > 1 and not kept.any() else sequences.sequential_p(tested) if often else sign_flips(kept)
    return Gain(n, mean, low, high, at_most, sd, p, NEGLIGIBLE * room, looked=often)


def sign_flips(kept: Floats) -> float:
    """Of one look, at a number of texts that was fixed before."""
    return sign_flip_test(kept) if kept.size else float("nan")


@dataclass(frozen=True, slots=True)
class Finding:
    """One measure of one explainer under one condition."""

    experiment: str
    measure: str
    title: str
    about: str
    method: str
    condition: str
    value: Interval
    chance: float
    share: Interval  # of the way from chance to the best order found; nan where it is not known
    gain: Gain
    ranks: bool

    @property
    def name(self) -> str:
        """As a bar names it."""
        given = self.method if not self.condition else f"{self.method}, {self.condition}"
        return f"{self.experiment}({given}).{self.measure}"


def finding_of(series: Series, looked: bool = False) -> Finding:
    measure, room = series.measure, series.room
    gain = gain_of(series.gain, room, looked=looked)
    return Finding(
        series.experiment,
        measure.name,
        measure.title,
        measure.about,
        series.method,
        series.condition,
        mean_of(series.value),
        mean_of(series.chance).value,
        mean_of(series.beyond_room / room, within=SHARES),
        gain,
        measure.ranks,
    )


def mean_of(values: Floats, within: Range | None = None) -> Interval:
    kept = values[~np.isnan(values)]
    if not kept.size:
        return Interval(float("nan"), float("nan"), float("nan"))
    return Interval(float(kept.mean()), *mean_interval(kept, within=within))


def adjust(gains: Iterable[Gain], others: Sequence[float] = ()) -> list[Gain]:
    """With the q-values of one family: all tests of an audit, `others` among them."""
    given = list(gains)
    q = benjamini_hochberg(np.array([gain.p for gain in given] + list(others)))
    return [replace(gain, q=float(at)) for gain, at in zip(given, q, strict=False)]
