"""Means with their intervals, one below the other, and lines to compare them with."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from heedful.figures.drawing import Data, chart, draws, finish, lines_at
from heedful.figures.figure import Spec
from heedful.figures.theme import variable
from heedful.measure.columns import DIGITS


@draws
def interval_lines(
    lines: Mapping[str, Mapping[str, float | None]], references: Mapping[str, float], title: str
) -> Spec:
    """A point for each name, from lines with mean, low and high; without an interval the point alone."""
    rows: Data = []
    for name, line in lines.items():
        mean = line["mean"] or 0.0
        low, high = (mean if line[end] is None else line[end] for end in ("low", "high"))
        rows.append({"name": name, "mean": mean, "low": low, "high": high})
    rows = [{k: v if k == "name" else round(v, DIGITS) for k, v in row.items()} for row in rows]
    least, most = min([0.0, *(row["low"] for row in rows)]), max([1.0, *(row["high"] for row in rows)])
    scale = alt.Scale(domain=[least, most], nice=False)
    base = chart(rows).encode(y=alt.Y("name:N", sort=[row["name"] for row in rows], title=None))
    tip = [alt.Tooltip("name:N"), *(alt.Tooltip(f"{key}:Q", format=".3f") for key in ("mean", "low", "high"))]
    reach = base.mark_rule(strokeWidth=2, color=variable("quiet")).encode(
        x=alt.X("low:Q", scale=scale, title=title), x2="high:Q"
    )
    point = base.mark_circle(size=70, color=variable("c0")).encode(
        x=alt.X("mean:Q", scale=scale, title=title), tooltip=tip
    )
    marks = lines_at(references, least + 0.65 * (most - least))
    return finish([*marks, reach, point], 40 + 24 * max(1, len(rows)), title)
