"""A few named numbers with their intervals, one below the other, and named lines to compare with."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from heedful.figures.drawing import Data, chart, draws, finish, lines_at
from heedful.figures.figure import Spec
from heedful.figures.theme import variable


@draws
def intervals(
    lines: Mapping[str, tuple[float, float | None, float | None]],
    title: str,
    references: Mapping[str, float] | None = None,
    whole: tuple[float, float] | None = None,
) -> Spec:
    """Name -> (value, low, high); ends that are None are not drawn. `whole`: what the axis shows at least."""
    rows: Data = [
        {
            "name": name, "value": round(value, 4), "low": round(value if low is None else low, 4),
            "high": round(value if high is None else high, 4),
        }
        for name, (value, low, high) in lines.items()
    ]  # fmt: skip
    ends = [row[key] for row in rows for key in ("low", "high")] + list((references or {}).values())
    room = 0.0 if whole else 0.1 * (max(ends) - min(ends)) or 0.1
    low, high = min([*ends, *(whole or ())]) - room, max([*ends, *(whole or ())]) + room
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    y = alt.Y("name:N", title=None, sort=list(lines))
    tooltip = [
        alt.Tooltip("name:N", title=" "),
        *(alt.Tooltip(f"{key}:Q", title=key, format=".3f") for key in ("value", "low", "high")),
    ]
    span = chart(rows).mark_rule(strokeWidth=2, color=variable("c0")).encode(
        x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", y=y, tooltip=tooltip
    )  # fmt: skip
    dot = chart(rows).mark_point(filled=True, size=80, color=variable("c0"), opacity=1).encode(
        x=alt.X("value:Q", title=title, scale=scale), y=y, tooltip=tooltip
    )  # fmt: skip
    marks = lines_at(references or {}, low + 0.65 * (high - low))
    return finish([span, dot, *marks], 60 + 40 * len(rows), f"{title} with intervals")
