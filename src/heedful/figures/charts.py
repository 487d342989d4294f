"""A curve through a few named points, other points beside it, and named lines to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from heedful.figures.drawing import HEADROOM, LARGEST, Data, chart, draws, finish, lines_at
from heedful.figures.figure import Spec
from heedful.figures.theme import SERIES, variable
from heedful.measure.columns import BINS, DIGITS, Frame, bin_of


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
    shapes = (
        chart(rows)
        .mark_point(filled=True, size=70, opacity=0.9)
        .encode(
            x=x,
            y=y,
            color=alt.Color(
                "kind:N", title=None, scale=alt.Scale(domain=kinds, range=[variable(c) for c in SERIES[: len(kinds)]])
            ),
            shape=alt.Shape("kind:N", title=None, scale=alt.Scale(domain=kinds)),
            tooltip=[
                alt.Tooltip("name:N", title=" "),
                alt.Tooltip("x:Q", title=titles[0], format=".3f"),
                alt.Tooltip("y:Q", title=titles[1], format=".3f"),
            ],
        )
    )
    names = [  # by turns above and below: points may be close
        chart(order[i::2]).mark_text(dy=dy, fontSize=11).encode(x=x, y=y, text="name:N")
        for i, dy in enumerate((-14, 16))
    ]
    low, high = domain
    marks = lines_at(references or {}, low + 0.65 * (high - low))
    return finish([line, shapes, *names, *marks], 280, f"{titles[1]} against {titles[0]}")


# Lines of means over a share, one for each name, with bands of their intervals.


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
    y = alt.Scale(domain=[min([0.0, *(row["low"] for row in rows)]), max([1.0, *(row["high"] for row in rows)])])
    base = chart(rows).encode(x=x, color=colour)
    band = base.mark_area(opacity=0.15).encode(y=alt.Y("low:Q", scale=y, title=titles[1]), y2="high:Q")
    tip = [
        alt.Tooltip("name:N"),
        *(alt.Tooltip(f"{key}:Q", format=".3f") for key in ("fraction", "mean", "low", "high")),
    ]
    line = base.mark_line(point=True).encode(y=alt.Y("mean:Q", scale=y, title=titles[1]), tooltip=tip)
    return finish([band, line], 260, f"{titles[1]} against the {titles[0]}")


# Numbers in the cells of a grid, layers by heads for example.


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
    coloured = base.mark_rect(color=variable("c0")).encode(opacity=alt.Opacity("strength:Q", scale=None, legend=None))
    written = base.mark_text(fontSize=10, color=variable("ink")).encode(text=alt.Text("value:Q", format=".3f"))
    return finish([coloured, written], 60 + 26 * len({y for _, y, _ in cells}), description)


# A few named numbers with their intervals, one below the other, and named lines to compare with.


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
            "name": name,
            "value": round(value, 4),
            "low": round(value if low is None else low, 4),
            "high": round(value if high is None else high, 4),
        }
        for name, (value, low, high) in lines.items()
    ]
    ends = [row[key] for row in rows for key in ("low", "high")] + list((references or {}).values())
    room = 0.0 if whole else 0.1 * (max(ends) - min(ends)) or 0.1
    low, high = min([*ends, *(whole or ())]) - room, max([*ends, *(whole or ())]) + room
    scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    y = alt.Y("name:N", title=None, sort=list(lines))
    tooltip = [
        alt.Tooltip("name:N", title=" "),
        *(alt.Tooltip(f"{key}:Q", title=key, format=".3f") for key in ("value", "low", "high")),
    ]
    span = (
        chart(rows)
        .mark_rule(strokeWidth=2, color=variable("c0"))
        .encode(x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", y=y, tooltip=tooltip)
    )
    dot = (
        chart(rows)
        .mark_point(filled=True, size=80, color=variable("c0"), opacity=1)
        .encode(x=alt.X("value:Q", title=title, scale=scale), y=y, tooltip=tooltip)
    )
    marks = lines_at(references or {}, low + 0.65 * (high - low))
    return finish([span, dot, *marks], 60 + 40 * len(rows), f"{title} with intervals")


# Violins: how a number is distributed in each bin of the largest attention weight.
#
# The form of Wiegreffe & Pinter 2019, section 3.2: the number along x, a violin for each bin, as wide as there are
# texts.


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
            x=alt.X("left:Q", title=title, scale=x),
            x2="right:Q",
            y=y,
            y2="high:Q",
            tooltip=[
                alt.Tooltip("bin:N", title=LARGEST),
                alt.Tooltip("left:Q", title="from", format=".3f"),
                alt.Tooltip("right:Q", title="to", format=".3f"),
                alt.Tooltip("values:Q", title="values"),
            ],
        )
    )
    line = (
        chart(medians)
        .mark_rule(strokeWidth=3, color=variable("ink"))
        .encode(
            x=alt.X("median:Q", title=title, scale=x),
            y=y,
            y2="high:Q",
            tooltip=[
                alt.Tooltip("bin:N", title=LARGEST),
                alt.Tooltip("median:Q", title="median", format=".3f"),
                alt.Tooltip("values:Q", title="values"),
            ],
        )
    )
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
                        "bin": name,
                        "left": round(float(left), 4),
                        "right": round(float(right), 4),
                        "low": round(float(i + 0.5 - half), 4),
                        "high": round(float(i + 0.5 + half), 4),
                        "values": int(count),
                    }
                )
        medians.append(
            {
                "bin": name,
                "median": round(float(np.median(values)), 4),
                "low": i + 0.5 - HALF,
                "high": i + 0.5 + HALF,
                "values": int(values.size),
            }
        )
    return slices, medians
