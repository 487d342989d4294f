"""Drawings of faithfulness: curves by method, and bars of what each reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa

from heedful.experiments.faithfulness.orders import FRACTIONS
from heedful.figures.drawing import Data, chart, draws, finish
from heedful.figures.figure import Spec, method_name
from heedful.figures.theme import SERIES, variable
from heedful.measure.columns import Floats, rows_of
from heedful.measure.statistics import mean_interval

DASHES = ([1, 0], [6, 3], [2, 2])  # a colour serves several methods


@draws
def curve_lines(table: pa.Table, name: str, operator: str, scale: str) -> Spec:
    """The mean output at each share of the words, with its interval, by method; the random order in grey."""
    methods = list(dict.fromkeys(table["method"].to_pylist()))
    rows: Data = []
    chance: Data = []
    for method in methods:
        some = rows_of(table, "method_operator", f"{method}/{operator}")
        rows += _points(_curves(some, f"{name}_curve"), method_name(method))
        chance = chance or _points(_curves(some, f"random_{name}_curve"), "chance")
    names = [method_name(method) for method in methods]
    x = alt.X("share:Q", scale=alt.Scale(domain=[0, 1], nice=False), title=_axis(name))
    colour = alt.Color(
        "method:N",
        title="method",
        scale=alt.Scale(domain=names, range=[variable(SERIES[i % len(SERIES)]) for i in range(len(names))]),
    )
    dash = alt.StrokeDash(
        "method:N",
        title="method",
        scale=alt.Scale(domain=names, range=[DASHES[i // len(SERIES) % len(DASHES)] for i in range(len(names))]),
    )
    tip = [
        alt.Tooltip("method:N"),
        alt.Tooltip("share:Q", title="share of the words", format=".0%"),
        alt.Tooltip("mean:Q", format=".3f"),
        alt.Tooltip("texts:Q"),
    ]
    base = chart(rows).encode(x=x)
    band = base.mark_area(opacity=0.12).encode(y=alt.Y("low:Q", title=scale), y2="high:Q", color=colour)
    line = base.mark_line(strokeWidth=2).encode(
        y=alt.Y("mean:Q", title=scale), color=colour, strokeDash=dash, tooltip=tip
    )
    grey = chart(chance).encode(x=x).mark_line(strokeWidth=3, color=variable("quiet"), opacity=0.7)
    return finish([band, grey.encode(y=alt.Y("mean:Q", title=scale)), line], 280, f"{name} curves")


def _axis(name: str) -> str:
    return f"share of the words {'removed' if name == 'deletion' else 'kept'}"


def _curves(table: pa.Table, name: str) -> Floats:
    """(texts, 11): of those texts that have a curve."""
    found = [row for row in table[name].to_pylist() if row]
    return np.array(found).reshape(-1, len(FRACTIONS))


def _points(curves: Floats, method: str) -> Data:
    rows: Data = []
    for share, values in zip(FRACTIONS.tolist(), curves.T if len(curves) else [], strict=False):
        low, high = mean_interval(values, resamples=200) if len(values) > 1 else (values[0], values[0])
        rows.append(
            {
                "method": method,
                "share": round(share, 2),
                "mean": round(float(values.mean()), 4),
                "low": round(float(low), 4),
                "high": round(float(high), 4),
                "texts": len(values),
            }
        )
    return rows


@draws
def reached_bars(lines: Sequence[tuple[str, str, Mapping[str, Any]]]) -> Spec:
    """(method, operator, line of the summary): a bar each, those of one method together, with intervals."""
    rows: Data = [
        {"method": method_name(method), "operator": operator, "texts": line["n"]}
        | {end: round(float(line["mean"] if line[end] is None else line[end]), 4) for end in ("mean", "low", "high")}
        for method, operator, line in lines
    ]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    operators = list(dict.fromkeys(row["operator"] for row in rows))
    title = "share of the way from a random order to the best order found"
    y = alt.Y("method:N", sort=methods, title=None)
    offset = alt.YOffset("operator:N", sort=operators)
    colour = alt.Color(
        "operator:N",
        title="removed by",
        scale=alt.Scale(domain=operators, range=[variable(SERIES[i % len(SERIES)]) for i in range(len(operators))]),
    )
    tip = [
        alt.Tooltip("method:N"),
        alt.Tooltip("operator:N"),
        alt.Tooltip("mean:Q", format=".3f"),
        alt.Tooltip("low:Q", format=".3f"),
        alt.Tooltip("high:Q", format=".3f"),
        alt.Tooltip("texts:Q"),
    ]
    base = chart(rows).encode(y=y, yOffset=offset)
    bar = base.mark_bar().encode(x=alt.X("mean:Q", title=title), color=colour, tooltip=tip)
    interval = base.mark_rule(strokeWidth=2, color=variable("ink")).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    return finish([bar, interval], 30 + 16 * max(1, len(rows)), "Normalised comprehensiveness")
