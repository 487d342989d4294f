"""How sure a verdict is: undecided where its interval holds a bar, what other bars would say, how many texts would
decide, and which statements of a report survive being many.

Pure functions of a `Verdict`: every experiment gets them (`Experiment.verdict`), whatever it measures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scipy.special import ndtri

from heedful.experiments.framework.verdict import ALL, Grade, Verdict, crossed, grade_at
from heedful.measure.levels import Sources, over_intervals
from heedful.measure.statistics import Interval
from heedful.measure.tests import Statement, discoveries, texts_needed

WORDS: dict[Grade, str] = {
    "for": "for the attention",
    "mixed": "mixed",
    "against": "against it",
    "undecided": "undecided",
}
MANY = 1_000_000  # texts: more are not a number to tell


def settle(verdict: Verdict, texts: int, runs: int = 1) -> Verdict:
    """The verdict with what its interval allows: the grade of all of it, or `undecided`.

    What has no value, no bars, or a grade by another rule than the bars stays as it is.
    """
    rising = _direction(verdict)
    if verdict.value is None or rising is None:
        return verdict
    seeds = verdict.contains != ""  # an experiment may have drawn seeds, too: then more texts would not decide
    contains = verdict.contains or Sources(texts, runs).sentence()
    value, verdict = verdict.value, replace(verdict, texts=texts, contains=contains)
    if verdict.low is None or verdict.high is None:
        told = f"{verdict.sentence} So few texts give no interval, so nothing can be concluded."
        return replace(verdict, grade="undecided", answer="Undecided", sentence=told, could_be=ALL)
    found = Interval(value, verdict.low, verdict.high)
    verdict = replace(verdict, sensitivity=sensitivity(found, verdict.bars, rising))
    could_be = grades_of(found, verdict.bars, rising)
    if len(could_be) == 1:
        return verdict
    needed = None if seeds else texts_to_decide(found, verdict.bars, texts)
    about = f"more than {MANY:,}" if needed is None else f"about {needed:,}"
    cannot = "texts and seeds are too few to tell." if seeds else f"texts are too few to tell; {about} would be needed."
    told = f"{verdict.sentence} These {texts:,} {cannot}"
    answer = f"Undecided ({' or '.join(WORDS[grade] for grade in could_be)})"
    return replace(verdict, grade="undecided", answer=answer, sentence=told, could_be=could_be, needed=needed)


def _direction(verdict: Verdict) -> bool | None:
    """Whether more speaks for the attention; None where the grade does not follow from value and bars."""
    if verdict.value is None or verdict.grade not in ALL or not 1 <= len(verdict.bars) <= 2:
        return None
    for rising in (verdict.rising, not verdict.rising):
        if grade_by(verdict.value, verdict.bars, rising) == verdict.grade:
            return rising
    return None


def grade_by(value: float, bars: Sequence[float], rising: bool) -> Grade:
    """`grade_at`; with one bar there is nothing between."""
    return grade_at(value, bars[0], bars[-1], rising)


def grades_of(found: Interval, bars: Sequence[float], rising: bool) -> tuple[Grade, ...]:
    """The grades that an interval touches, from its lower end on."""
    values = [found.low, *crossed(found.low, found.high, sorted(bars))]
    return tuple(grade_by(value, bars, rising) for value in values)


def sensitivity(found: Interval, bars: Sequence[float], rising: bool) -> str:
    """One sentence: would half or twice the bars give another grade? With the interval, as for the bars themselves."""
    half, twice = other_bars(bars)

    def grade(at: Sequence[float]) -> Grade:
        could_be = grades_of(found, at, rising)
        return could_be[0] if len(could_be) == 1 else "undecided"

    now = grade(bars)
    told = []
    for name, at in (("half", half), ("twice", twice)):
        where = " and ".join(f"{bar:.3g}" for bar in at)
        same = "the same" if grade(at) == now else f"“{WORDS[grade(at)]}”"
        told.append(f"at {name} the bars ({where}) {same}")
    as_odds = " (as odds, because twice a large share is none)" if _as_odds(bars) else ""
    return f"Other bars{as_odds}: {told[0]}, {told[1]}."


def other_bars(bars: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(half, twice) the bars. Shares so large that twice is more than all are halved and doubled as odds: 80% is 4 to
    1, so 2 to 1 (67%) and 8 to 1 (89%)."""
    if not _as_odds(bars):
        return tuple(bar / 2 for bar in bars), tuple(2 * bar for bar in bars)
    odds = [bar / (1 - bar) for bar in bars]
    return tuple(o / 2 / (1 + o / 2) for o in odds), tuple(2 * o / (1 + 2 * o) for o in odds)


def _as_odds(bars: Sequence[float]) -> bool:
    return min(bars) > 0 and max(bars) < 1 <= 2 * max(bars)


def texts_to_decide(found: Interval, bars: Sequence[float], texts: int) -> int | None:
    """About how many texts would tell the value from the nearest bar that the interval holds; None: too many.

    The standard deviation of one text follows from the width of the interval of so many.
    """
    distance = min(abs(found.value - bar) for bar in crossed(found.low, found.high, bars))
    sd = (found.high - found.low) / 2 / float(ndtri(0.975)) * math.sqrt(texts)
    if distance * math.sqrt(MANY) <= 2.8 * sd:  # (z + z') sd / sqrt(n) is what n texts find
        return None
    needed = max(texts + 1, texts_needed(distance, sd))
    digits = 10 ** max(0, len(str(needed)) - 2)
    return int(math.ceil(needed / digits) * digits)


def control(reports: Sequence[Mapping[str, Verdict]]) -> list[dict[str, Verdict]]:
    """The verdicts of all runs of one report, with q: false discovery is controlled over all claims that were tested.

    A verdict that says something of the attention (`for`, `mixed`) and whose claim does not survive is undecided.
    """
    claims = [
        (at, name, verdict.p)
        for at, report in enumerate(reports)
        for name, verdict in report.items()
        if verdict.p is not None
    ]
    found = discoveries([Statement(f"{at}/{name}", p) for at, name, p in claims])
    made = [dict(report) for report in reports]
    for (at, name, _), one in zip(claims, found, strict=True):
        verdict = replace(made[at][name], q=one.q)
        if not one.found and verdict.grade in ("for", "mixed"):
            many = f"among the {len(claims)} tested statements of this report" if len(claims) > 1 else "by itself"
            told = f"{verdict.sentence} That {verdict.claim} could be chance {many} (q = {one.q:.2g}): no finding."
            could_be = tuple(dict.fromkeys((*(verdict.could_be or (verdict.grade,)), "against")))
            verdict = replace(verdict, grade="undecided", answer="Undecided", sentence=told, could_be=could_be)
        made[at][name] = verdict
    return made


def over_seeds(verdicts: Sequence[Verdict]) -> Verdict | None:
    """One verdict for runs that differ only in their seed, with both uncertainties; None without numbers to combine."""
    known = [
        Interval(v.value, v.low, v.high)
        for v in verdicts
        if v.value is not None and v.low is not None and v.high is not None and v.bars and v.texts
    ]
    if len(known) < 2 or len(known) < len(verdicts):
        return None
    first, found = verdicts[0], over_intervals(known)
    directions = [rising for v in verdicts if (rising := _direction(v)) is not None]
    rising = directions[0] if directions else first.rising
    each = ", ".join(f"{one.value:.2f}" for one in known)
    grade = grade_by(found.value, first.bars, rising)
    sentence = (
        f"Over {len(known)} training runs the mean is {found.value:.2f} (95% CI {found.low:.2f} to {found.high:.2f}); "
        f"the runs have {each}."
    )
    combined = replace(
        first,
        grade=grade,
        answer=WORDS[grade].capitalize(),
        sentence=sentence,
        value=found.value,
        low=found.low,
        high=found.high,
        rising=rising,
        claim="",
        p=None,
        q=None,
        could_be=(),
        needed=None,
        contains="",
    )
    return settle(combined, min(v.texts or 0 for v in verdicts), len(known))
