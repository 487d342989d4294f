"""How verdicts are graded: `for` (the attention can be believed in this respect), `mixed`, `against`, `unclear`.

The bars are ours; the papers give none. The headline only adds grades up, by a rule that is also stated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

Grade = Literal["for", "mixed", "against", "unclear"]

AGREES, PARTLY = 0.8, 0.5  # of the way from chance to the ceiling
APART = 0.2  # tau between chance and ceiling, or there is nothing to measure against
HARDLY, MUCH = 0.05, 0.2  # TVD of the output
PINNED, FREE = 0.4, 0.8  # of the distance that is possible
FOUND, MISSED = 0.8, 0.5  # of the deciding words
HEADLINE_RULE = (
    "The headline says “believe” with at least two verdicts for and none against, “do not” with at least two against "
    "and none for, and “with caution” otherwise."
)
MARKS: dict[Grade, str] = {"for": "✓", "mixed": "~", "against": "✗", "unclear": "?"}
BELIEVE: dict[Grade, str] = {  # its attention?
    "for": "✓ yes",
    "mixed": "~ with caution",
    "against": "✗ no",
    "unclear": "? not told",
}


def graded(value: float, low: float, high: float, rising: bool) -> Grade:
    """Below `low`, between, from `high` on; `rising` says that more speaks for the attention."""
    if value >= high:
        return "for" if rising else "against"
    return "mixed" if value >= low else "against" if rising else "for"


def grade_of_agreement(means: Sequence[float]) -> Grade:
    """Of the mean taus with gradients and with leave-one-out, the ceiling and chance, over the same texts."""
    gradients, omission, ceiling, floor = means
    if ceiling - floor < APART:
        return "unclear"
    return graded(((gradients + omission) / 2 - floor) / (ceiling - floor), PARTLY, AGREES, rising=True)


def grade_of_change(median: float) -> Grade:
    """Of the median change under shuffled attention."""
    return graded(median, HARDLY, MUCH, rising=True)


def grade_of_freedom(share: float, exact: bool) -> Grade:
    """Of the mean share of the possible distance; a search that finds little proves little."""
    grade = graded(share, PINNED, FREE, rising=False)
    if exact or grade == "against":
        return grade
    return "mixed" if share >= PINNED else "unclear"


def overall_of(grades: Sequence[Grade]) -> Grade:
    """By HEADLINE_RULE."""
    good, bad = grades.count("for"), grades.count("against")
    if len(grades) == grades.count("unclear"):
        return "unclear"
    if not bad and good >= 2:
        return "for"
    return "against" if not good and bad >= 2 else "mixed"
