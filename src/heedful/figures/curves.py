"""Lines of means over a share, one for each name, with bands of their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from heedful.figures.drawing import Data, chart, draws, finish
from heedful.figures.figure import Spec
from heedful.figures.theme import SERIES, variable
from heedful.measure.columns import DIGITS


@draws
def curves(lines: Mapping[str, Sequence[Mapping[str, Any]]], titles: tuple[str, str]) -> Spec:
    """Points have fraction, mean, low and high; those without a mean are left out."""
    rows: Data = [
        {
            "name": name,
            "fraction": point["fraction"],
            **{
                key: round(point["mean"] if point[key] is None else point[key], DIGITS)
                for key in ("mean", "low", "high")
            },
        }
        for name, points in lines.items()
        for point in points
        if point["mean"] is not None
    ]
    names = list(lines)
    colour = alt.Color(
        "name:N",
        title=None,
        scale=alt.Scale(domain=names, range=[variable(SERIES[i % len(SERIES)]) for i in range(len(names))]),
    )
    x = alt.X("fraction:Q", title=titles[0], scale=alt.Scale(domain=[0, 1]))
    y = alt.Scale(
        domain=[min([0.0, *(row["low"] for row in rows)]), max([1.0, *(row["high"] for row in rows)])]
    )
    base = chart(rows).encode(x=x, color=colour)
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", scale=y, title=titles[1]), y2="high:Q")
    tip = [
        alt.Tooltip("name:N"),
        *(alt.Tooltip(f"{key}:Q", format=".3f") for key in ("fraction", "mean", "low", "high")),
    ]
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", scale=y, title=titles[1]), tooltip=tip)
    return finish([band, line], 260, f"{titles[1]} against the {titles[0]}")
