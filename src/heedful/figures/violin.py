"""Violins: how a number is distributed in each bin of the largest attention weight.

The form of Wiegreffe & Pinter 2019, section 3.2: the number along x, a violin for each bin, as wide as there are texts.
"""

from __future__ import annotations

import altair as alt
import numpy as np

from heedful.figures.drawing import LARGEST, Data, chart, draws, finish
from heedful.figures.figure import Spec
from heedful.figures.theme import variable
from heedful.measure.columns import BINS, Frame, bin_of

SLICES = 28  # of a violin
HALF = 0.46  # of the room between two violins


@draws
def violins(frame: Frame, title: str, domain: tuple[float, float], description: str = "") -> Spec:
    """The value's distribution in each bin, and its median as a line. Each violin has the same largest width."""
    rows, medians = violin_rows(frame, domain)
    names = " : ".join(f"datum.value == {i + 0.5} ? '{name}'" for i, name in enumerate(BINS))
    axis = alt.Axis(values=[i + 0.5 for i in range(len(BINS))], labelExpr=f"{names} : ''", grid=False)
    y = alt.Y("low:Q", title=LARGEST, axis=axis, scale=alt.Scale(domain=[0, len(BINS)], nice=False))
    x = alt.Scale(domain=list(domain), nice=False)
    shape = (
        chart(rows)
        .mark_rect(color=variable("c0"), opacity=0.6)
        .encode(
            x=alt.X("left:Q", title=title, scale=x), x2="right:Q", y=y, y2="high:Q",
            tooltip=[
                alt.Tooltip("bin:N", title=LARGEST),
                alt.Tooltip("left:Q", title="from", format=".3f"),
                alt.Tooltip("right:Q", title="to", format=".3f"),
                alt.Tooltip("values:Q", title="values"),
            ],
        )
    )  # fmt: skip
    line = (
        chart(medians)
        .mark_rule(strokeWidth=3, color=variable("ink"))
        .encode(
            x=alt.X("median:Q", title=title, scale=x), y=y, y2="high:Q",
            tooltip=[
                alt.Tooltip("bin:N", title=LARGEST),
                alt.Tooltip("median:Q", title="median", format=".3f"),
                alt.Tooltip("values:Q", title="values"),
            ],
        )
    )  # fmt: skip
    return finish([shape, line], 260, description or f"{title} by the {LARGEST}")


def violin_rows(frame: Frame, domain: tuple[float, float]) -> tuple[Data, Data]:
    """(slices, medians): `low` and `high` are places on the axis of bins, one unit for each."""
    edges = np.linspace(*domain, SLICES + 1)
    bins, slices, medians = bin_of(frame.max_attention), list[dict[str, object]](), list[dict[str, object]]()
    for i, name in enumerate(BINS):
        values = frame.value[(bins == i) & ~np.isnan(frame.value)]
        if not values.size:
            continue
        counts = np.histogram(np.clip(values, *domain), edges)[0]
        for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True):
            if count:
                half = HALF * count / counts.max()
                slices.append(
                    {
                        "bin": name, "left": round(float(left), 4), "right": round(float(right), 4),
                        "low": round(float(i + 0.5 - half), 4), "high": round(float(i + 0.5 + half), 4),
                        "values": int(count),
                    }
                )  # fmt: skip
        medians.append(
            {
                "bin": name, "median": round(float(np.median(values)), 4), "low": i + 0.5 - HALF,
                "high": i + 0.5 + HALF, "values": int(values.size),
            }
        )  # fmt: skip
    return slices, medians
