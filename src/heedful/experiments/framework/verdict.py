"""Verdicts: what the numbers of a trial say about a model's attention, in sentences a reader can repeat.

Grades: `for` (the attention can be believed in this respect), `mixed`, `against`; `undecided` where the 95% interval
holds a bar, so that other texts could give another grade; `unclear` where the question has no answer. Where the bars
come from: docs/experiments/verdicts.md. The headline only adds grades up, by a rule that is stated with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np

from heedful.figures.figure import join_words
from heedful.measure.statistics import Interval

Grade = Literal["for", "mixed", "against", "undecided", "unclear"]

OUR_OWN = "The thresholds are heedful's own, because the papers give none."
HEADLINE_RULE = (
    "The headline says “believe” with at least two verdicts for and none against, “do not” with at least two against "
    "and none for, and “with caution” otherwise; it is undecided where undecided verdicts could turn it either way."
)
MARKS: dict[Grade, str] = {"for": "✓", "mixed": "~", "against": "✗", "undecided": "±", "unclear": "?"}
BADGES: dict[Grade, str] = {
    "for": "supports",
    "mixed": "mixed",
    "against": "against",
    "undecided": "undecided",
    "unclear": "no answer",
}
BELIEVE: dict[Grade, str] = {  # its attention?
    "for": "✓ yes",
    "mixed": "~ with caution",
    "against": "✗ no",
    "undecided": "± undecided",
    "unclear": "? not told",
}
HEADLINES: dict[Grade, str] = {
    "for": "The attention of this model can be believed, as far as these tests go",
    "against": "Do not take the attention of this model for the reason of its predictions",
    "mixed": "Read the attention of this model with caution",
    "undecided": "These texts do not decide whether the attention of this model can be believed",
    "unclear": "These tests do not show whether the attention of this model can be believed",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One question, its grade, and the sentences. `clause` completes "the attention of this model ..."."""

    question: str
    grade: Grade
    answer: str
    sentence: str
    rule: str  # which value gets which grade
    clause: str
    value: float | None = None  # what was graded, with its 95% interval
    low: float | None = None
    high: float | None = None
    bars: tuple[float, ...] = ()  # the values at which the grade changes
    source: str = OUR_OWN  # where the bars come from
    counts: bool = True  # in the headline: whether people would point at the same words does not, for example
    rising: bool = True  # more speaks for the attention
    claim: str = ""  # what p is the p-value of: "attention agrees ... better than a random order"
    p: float | None = None
    # Made by `settle` and `control` (certainty.py):
    texts: int | None = None  # that the interval is over
    q: float | None = None  # of the claim, among all claims of the report
    could_be: tuple[Grade, ...] = ()  # of an undecided verdict: the grades that its interval touches
    needed: int | None = None  # texts that would decide it, about
    sensitivity: str = ""  # whether other bars would change the grade
    contains: str = ""  # which uncertainty the interval contains
    scale: str = ""  # what `value` is, in words (`Experiment.scale`)

    @property
    def short(self) -> str:
        """The one sentence that stands beside the badge: what was found, or that it is open."""
        if self.grade == "undecided":
            about = "" if self.needed is None else f" About {self.needed:,} texts would."
            return f"These texts do not decide it.{about}"
        if self.grade == "unclear":
            return f"{self.answer}."
        return f"Its attention {self.clause}."


class Wording(NamedTuple):
    """What a verdict says at one grade: the fields `answer` and `clause` of it."""

    answer: str
    clause: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """What all verdicts on one question share."""

    question: str
    rule: str
    wordings: Mapping[Grade, Wording]
    bars: tuple[float, float]
    rising: bool = True
    counts: bool = True

    def unclear(self, answer: str, sentence: str, clause: str) -> Verdict:
        """There is nothing to grade."""
        return Verdict(
            self.question, "unclear", answer, sentence, self.rule, clause, bars=self.bars, counts=self.counts
        )

    def of(
        self,
        found: Interval,
        sentence: str,
        grade: Grade | None = None,
        *,
        says_border: bool = True,
        claim: str = "",
        p: float | None = None,
        contains: str = "",
    ) -> Verdict:
        """Graded by the bars, unless a `grade` is given; the sentence then says which bar the interval holds."""
        if grade is None:
            grade = grade_at(found.value, *self.bars, rising=self.rising)
        answer, clause = self.wordings[grade]
        verdict = Verdict(self.question, grade, answer, sentence, self.rule, clause, *ends(found), bars=self.bars)
        verdict = replace(verdict, counts=self.counts, rising=self.rising, claim=claim, p=p, contains=contains)
        return replace(verdict, sentence=sentence + border(found, *self.bars)) if says_border else verdict


def to_json(verdict: Verdict) -> dict[str, Any]:
    return asdict(verdict)


def from_json(values: Mapping[str, Any]) -> Verdict | None:
    """As it was stored; None for what another version has written."""
    if set(values) != {field.name for field in fields(Verdict)} or values["grade"] not in MARKS:
        return None
    return Verdict(**{**values, "bars": tuple(values["bars"]), "could_be": tuple(values["could_be"])})


def grade_at(value: float, low: float, high: float, rising: bool) -> Grade:
    """Below `low`, between, from `high` on; `rising` says that more speaks for the attention."""
    if value >= high:
        return "for" if rising else "against"
    return "mixed" if value >= low else "against" if rising else "for"


def ends(found: Interval) -> tuple[float | None, float | None, float | None]:
    """The fields `value`, `low` and `high` of a verdict."""
    return known(float(found.value)), known(float(found.low)), known(float(found.high))


def known(number: float) -> float | None:
    """nan as None."""
    return None if np.isnan(number) else number


def two_digits(value: float) -> float:
    """To two digits, and never "-0.00"."""
    return round(value, 2) + 0.0


def interval(found: Interval, digits: int = 2) -> str:
    """ "0.05 (95% CI 0.04 to 0.06)"; without an interval where there is none."""
    if np.isnan(found.low) or np.isnan(found.high):
        return f"{found.value:.{digits}f}"
    return f"{found.value:.{digits}f} (95% CI {found.low:.{digits}f} to {found.high:.{digits}f})"


def percent(found: Interval) -> str:
    """ "68% (95% CI 66% to 70%)"."""
    told = "" if np.isnan(found.low) else f" (95% CI {found.low:.0%} to {found.high:.0%})"
    return f"{found.value:.0%}{told}"


def crossed(low: float, high: float, bars: Sequence[float]) -> list[float]:
    """The bars that an interval has on its two sides; a value at a bar is above it."""
    return [bar for bar in bars if low < bar <= high]


def border(found: Interval, *bars: float) -> str:
    """A sentence where the interval holds a bar: then the grade could as well be the next."""
    held = crossed(found.low, found.high, bars)
    return (
        f" The interval contains the threshold of {held[0]:g}, so it is not clear on which side the value lies."
        if held
        else ""
    )


def overall(grades: Sequence[Grade]) -> Grade:
    """By HEADLINE_RULE, of grades that are decided."""
    good, bad = grades.count("for"), grades.count("against")
    if len(grades) == grades.count("unclear"):
        return "unclear"
    if not bad and good >= 2:
        return "for"
    return "against" if not good and bad >= 2 else "mixed"


def grade_of(verdicts: Sequence[Verdict]) -> Grade:
    """The grade of the headline: that of all ways in which undecided verdicts could be decided, if it is one."""
    verdicts = [v for v in verdicts if v.counts]
    open_ = [v for v in verdicts if v.grade == "undecided"]
    decided: list[Grade] = [v.grade for v in verdicts if v.grade != "undecided"]
    if open_ and overall(decided) == "unclear":  # nothing else was decided
        return "undecided"
    could_be = {overall([*decided, *way]) for way in product(*(v.could_be or ALL for v in open_))}
    return could_be.pop() if len(could_be) == 1 else "undecided"


ALL: tuple[Grade, ...] = ("for", "mixed", "against")


def headline(verdicts: Sequence[Verdict]) -> str:
    """One sentence: the grade, then what speaks for the attention, and what does not."""
    because = reasons(verdicts)
    return HEADLINES[grade_of(verdicts)] + (f": it {because}." if because else ".")


def reasons(verdicts: Sequence[Verdict]) -> str:
    """What completes "it ...": "hardly moves the prediction and ..."; empty where nothing is known.

    Only what is decided is said as a finding.
    """
    good, middle, bad = (
        [v.clause for v in verdicts if v.grade == wanted and v.counts] for wanted in ("for", "mixed", "against")
    )
    halves = {"for": [good + middle], "against": [bad + middle]}.get(
        grade_of(verdicts), [good, middle + bad] if good else [middle, bad]
    )
    return ", but ".join(join_words(half) for half in halves if half)
