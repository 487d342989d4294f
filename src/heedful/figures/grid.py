"""Numbers in the cells of a grid, layers by heads for example."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from heedful.figures.drawing import Data, chart, draws, finish
from heedful.figures.figure import Spec
from heedful.figures.theme import variable
from heedful.measure.columns import DIGITS


@draws
def grid(cells: Sequence[tuple[int, int, float]], titles: tuple[str, str, str], description: str) -> Spec:
    """A number for each (column, row), written in its cell; the strongest colour is the largest of them."""
    largest = max((value for _, _, value in cells), default=0.0) or 1.0
    rows: Data = [
        {"x": x, "y": y, "value": round(value, DIGITS), "strength": round(0.7 * value / largest, 3)}
        for x, y, value in cells
    ]
    base = chart(rows).encode(
        x=alt.X("x:O", title=titles[0], axis=alt.Axis(labelAngle=0)),
        y=alt.Y("y:O", title=titles[1], sort="descending"),
        tooltip=[
            alt.Tooltip("y:O", title=titles[1]),
            alt.Tooltip("x:O", title=titles[0]),
            alt.Tooltip("value:Q", title=titles[2], format=".4f"),
        ],
    )
    coloured = base.mark_rect(color=variable("c0")).encode(
        opacity=alt.Opacity("strength:Q", scale=None, legend=None)
    )
    written = base.mark_text(fontSize=10, color=variable("ink")).encode(
        text=alt.Text("value:Q", format=".3f")
    )
    return finish([coloured, written], 60 + 26 * len({y for _, y, _ in cells}), description)
