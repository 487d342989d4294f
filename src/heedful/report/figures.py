"""The figures of the papers, each a function from a finished table to a Vega-Lite drawing.

Nothing is decided here that a summary does not also say: values are counted into bins or drawn as they are.
What can be clicked has, in its datum, the fields that a list of instances is filtered by: `measure` (see
`instances.MEASURES`), `low`, `high`, `closed` (the last bin holds its upper end) and `label`; a point has
`example`. A drawing is as wide as what holds it, and names its colours as `theme` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa

from heedful.experiments.summary import column
from heedful.heatmap import visible
from heedful.report.drawing import (
    Rows,
    Spec,
    by_max_attention,
    chart,
    finished,
    groups_of,
    histogram,
    lines_at,
    points,
    some,
)
from heedful.report.naming import pair_name
from heedful.report.theme import variable

LN2 = float(np.log(2))


def tau_histogram(
    table: pa.Table, pair: str, labels: Sequence[str], references: Mapping[str, float] | None = None
) -> Spec:
    """Figure 2 of Jain & Wallace 2019: Kendall's tau of one pair by predicted class, with lines to compare."""
    rows = table.filter(pa.array(table["pair"].to_numpy(zero_copy_only=False) == pair))
    x = alt.X("low:Q", bin="binned", scale=alt.Scale(domain=[-1, 1]), title="Kendall's τ of one text")
    bars = histogram(rows, "tau", labels, np.linspace(-1, 1, 41), f"tau:{pair}", x)
    layers = [bars, *lines_at(references or {}, 0.3)]
    return finished(layers, 180, f"Histogram of Kendall's tau between {pair_name(pair)}")


def jsd_histogram(table: pa.Table, labels: Sequence[str]) -> Spec:
    """Figure 4: the epsilon-max JSD of each text by predicted class; ln 2 is the most there can be."""
    bins = np.append(np.arange(28) * 0.025, LN2)
    scale = alt.Scale(domain=[0, 0.7], nice=False)
    x = alt.X("low:Q", bin="binned", scale=scale, title="distance of the farthest attention (JSD)")
    bars = histogram(table, "jsd", labels, bins, "jsd", x)
    layers = [bars, *lines_at({"most possible: ln 2": LN2}, 0.3)]
    return finished(layers, 180, "Histogram of the epsilon-max JSD of each text")


def change_by_max_attention(table: pa.Table, labels: Sequence[str]) -> Spec:
    """Figure 3: the median change of the output under permuted attention, against the largest weight."""
    return by_max_attention(table, labels, "median", "change when shuffled (TVD)", (0.0, 1.0))


def jsd_by_max_attention(table: pa.Table, labels: Sequence[str]) -> Spec:
    """Figure 5: the epsilon-max JSD against the largest weight."""
    return by_max_attention(table, labels, "jsd", "farthest attention (JSD)", (0.0, 0.7))


def exact_against_adam(table: pa.Table, labels: Sequence[str]) -> Spec:
    """How far the published search stayed below the true maximum, for each text."""
    exact, adam, places = column(table, "jsd_exact"), column(table, "jsd_adam"), table["example"].to_numpy()
    groups, names = groups_of(table, labels)
    rows = [
        {
            "example": int(places[i]),
            "x": round(float(adam[i]), 4),
            "y": round(float(exact[i]), 4),
            "label": names[groups[i]],
        }
        for i in some(np.flatnonzero(~np.isnan(exact) & ~np.isnan(adam)))
    ]
    scale = alt.Scale(domain=[0, 0.7], nice=False)
    titles = ("found by the published search (JSD)", "true maximum (JSD)")
    diagonal = chart([{"x": 0, "y": 0}, {"x": 0.7, "y": 0.7}])
    line = diagonal.mark_line(color=variable("quiet"), strokeDash=[4, 4]).encode(
        x=alt.X("x:Q", scale=scale, title=titles[0]), y=alt.Y("y:Q", scale=scale, title=titles[1])
    )
    dots = points(rows, labels, titles, (scale, scale))
    return finished([line, dots], 260, "True epsilon-max JSD against what Adam found")


def agreement(summary: Mapping[str, Any], published: Mapping[str, float] | None = None) -> Spec:
    """The mean tau of every pair with its 95% interval; orange ticks where a study has published one."""
    rows: Rows = []
    for pair, lines in summary.items():
        tau = lines["overall"]["tau"]
        if tau["mean"] is not None:
            numbers = {key: tau[key] and round(tau[key], 4) for key in ("mean", "low", "high")}
            rows.append({"pair": pair_name(pair), "role": _role(pair), **numbers})
    rows.sort(key=lambda row: -row["mean"])
    order = [row["pair"] for row in rows]
    title = "mean Kendall's τ, with 95% interval"
    scale = alt.Scale(domain=[-0.2, 1], nice=False)
    x, y = alt.X("mean:Q", title=title, scale=scale), alt.Y("pair:N", sort=order, title=None, axis=None)
    tip = [alt.Tooltip("pair:N"), alt.Tooltip("mean:Q", title="mean τ", format=".3f")]
    ends = [alt.Tooltip(f"{end}:Q", title=end, format=".3f") for end in ("low", "high")]
    base = chart(rows).encode(y=y)
    colours = alt.Scale(domain=["attention", "reference"], range=[variable("c0"), variable("quiet")])
    colour = alt.Color("role:N", scale=colours, legend=None)
    name = base.mark_text(align="left", dy=-17).encode(x=alt.value(2), text="pair:N")
    interval = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", color=colour
    )
    mean = base.mark_point(size=110, filled=True, opacity=1).encode(x=x, color=colour, tooltip=tip + ends)
    number = base.mark_text(align="left", dx=13, fontWeight="bold").encode(
        x=x, text=alt.Text("mean:Q", format=".2f")
    )
    theirs = [
        {"pair": pair_name(pair), "mean": value}
        for pair, value in (published or {}).items()
        if pair_name(pair) in order
    ]
    tick = chart(theirs).mark_tick(thickness=3, height=22, color=variable("c1"))
    layers = [*([tick.encode(x=x, y=y, tooltip=tip)] if theirs else []), interval, mean, name, number]
    return finished(layers, 50 * max(1, len(order)), "Mean Kendall's tau of every pair")


def words(rows: Rows, title: str) -> Spec:
    """Words with their mean effect; rows have `word`, `effect`, `attention` and `times`."""
    rows = [row | {"word": visible(row["word"], 28).replace("\n", " ")} for row in rows]
    y = alt.Y("word:N", sort=None, title=None, axis=alt.Axis(labelColor=variable("ink"), labelLimit=150))
    x = alt.X(
        "effect:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1.2 * max((row["effect"] for row in rows), default=1.0)], nice=False),
    )
    tips = [
        alt.Tooltip("word:N"),
        alt.Tooltip("effect:Q", title="when deleted", format="+.3f"),
        alt.Tooltip("attention:Q", title="attention it gets", format=".2f"),
        alt.Tooltip("times:Q", title="seen so often"),
    ]
    base = chart(rows).encode(y=y, x=x, tooltip=tips)
    bar = base.mark_bar(color=variable("c0"), height={"band": 0.62})
    number = base.mark_text(align="left", dx=4).encode(text=alt.Text("effect:Q", format=".2f"))
    return finished([bar, number], 24 * max(1, len(rows)), title)


def _role(pair: str) -> str:
    first, second = pair.split("/")
    return "attention" if first == "attention" and second != "random" else "reference"
