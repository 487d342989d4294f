"""A curve through a few named points, other points beside it, and named lines to compare with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from heedful.figures.drawing import HEADROOM, Data, chart, draws, finish, lines_at
from heedful.figures.figure import Spec
from heedful.figures.theme import SERIES, variable


@draws
def curve(
    points: list[dict[str, Any]],
    titles: tuple[str, str],
    domain: tuple[float, float],
    references: Mapping[str, float] | None = None,
) -> Spec:
    """Points with `x`, `y`, `name` and `kind`: those of the first kind are joined in order and have their names."""
    rows: Data = [point | {"x": round(point["x"], 4), "y": round(point["y"], 4)} for point in points]
    kinds = list(dict.fromkeys(point["kind"] for point in points))
    highest = max((point["y"] for point in points), default=0.0) or 0.1
    x = alt.X("x:Q", title=titles[0], scale=alt.Scale(domain=list(domain), nice=False))
    y = alt.Y("y:Q", title=titles[1], scale=alt.Scale(domain=[0, HEADROOM * highest], nice=False))
    joined = [row for row in rows if row["kind"] == kinds[0]] if kinds else []
    order = [row | {"order": i} for i, row in enumerate(joined)]
    line = chart(order).mark_line(color=variable("quiet")).encode(x=x, y=y, order="order:Q")
    shapes = chart(rows).mark_point(filled=True, size=70, opacity=0.9).encode(
        x=x, y=y,
        color=alt.Color(
            "kind:N", title=None, scale=alt.Scale(domain=kinds, range=[variable(c) for c in SERIES[: len(kinds)]])
        ),
        shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds)),
        tooltip=[
            alt.Tooltip("name:N", title=" "),
            alt.Tooltip("x:Q", title=titles[0], format=".3f"),
            alt.Tooltip("y:Q", title=titles[1], format=".3f"),
        ],
    )  # fmt: skip
    names = [  # by turns above and below: points may be close
        chart(order[i::2]).mark_text(dy=dy, fontSize=11).encode(x=x, y=y, text="name:N")
        for i, dy in enumerate((-14, 16))
    ]
    low, high = domain
    marks = lines_at(references or {}, low + 0.65 * (high - low))
    return finish([line, shapes, *names, *marks], 280, f"{titles[1]} against {titles[0]}")
