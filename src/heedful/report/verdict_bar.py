"""The one bar of a verdict: where the value and its interval are, between the bars that decide its grade.

Drawn in per cent of its width, so it fits a card of any size; for the report, the audit and `heedful serve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from heedful.experiments.certainty import grade_by
from heedful.experiments.verdict import BADGES


def span_of(value: float, low: float, high: float, bars: Sequence[float]) -> tuple[float, float]:
    """What the bar spans: from 0 to 1 where that shows anything, else as far as values and bars go."""
    least, most = min(0.0, low, value), max(high, value, *bars)
    return least, 1.0 if 0.4 < most <= 1 else 1.25 * most


def verdict_bar(
    value: float | None,
    low: float | None,
    high: float | None,
    bars: Sequence[float],
    rising: bool,
    scale: str = "",
) -> Markup:
    """The zones of the grades, the interval and the value; nothing where a verdict has no value or no bars.

    `scale` says what the value is: what a screen reader says instead of the drawing.
    """
    if value is None or not bars:
        return Markup()
    ends = (value if low is None else low, value if high is None else high)
    least, most = span_of(value, *ends, bars)

    def at(x: float) -> str:
        return f"{100 * (min(max(x, least), most) - least) / (most - least):.2f}%"

    edges = [least, *sorted(bars), most]
    zones, names = Markup(), Markup()
    for a, b in pairwise(edges):
        grade = grade_by((a + b) / 2, tuple(sorted(bars)), rising)
        width = f"{100 * (b - a) / (most - least):.2f}%"
        zones += Markup('<rect class="zone {}" x="{}" y="4" width="{}" height="12"/>').format(
            grade, at(a), width
        )
        if (b - a) / (most - least) > 0.16:  # else there is no room for its name
            names += Markup('<text class="name" x="{}" y="30" text-anchor="middle">{}</text>').format(
                at((a + b) / 2), BADGES[grade]
            )
    told = f"{value:.2f}" + (
        "" if low is None or high is None else f" (95% interval {low:.2f} to {high:.2f})"
    )
    where = " and ".join(f"{bar:g}" for bar in sorted(bars))
    spoken = f"{scale[:1].upper()}{scale[1:]}: {told}. The grade changes at {where}." if scale else told
    return Markup(
        '<svg class="verdict-bar" role="img" aria-label="{}" width="100%" height="34">{}'
        '<line class="interval" x1="{}" x2="{}" y1="10" y2="10"/><circle class="value" cx="{}" cy="10" r="6"/>{}</svg>'
    ).format(spoken, zones, at(ends[0]), at(ends[1]), at(value), names)
