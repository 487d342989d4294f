"""Drawings of erased attention: figure 3, table 2 and figure 5 of Serrano & Smith 2019."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from heedful.experiments.framework.description import Result
from heedful.figures.drawing import Data, chart, dots, draws, finish, groups_of, points, some
from heedful.figures.figure import Spec
from heedful.figures.theme import variable

CELL_NAMES = {
    "both": "both items",
    "only_top": "only the most attended",
    "only_random": "only the other",
    "neither": "neither",
}


@draws
def difference_points(trial: Result) -> Spec:
    """delta JS against delta alpha, with the line at zero."""
    js, gap = trial.frame("delta_js"), trial.frame("delta_alpha").value
    groups, names = groups_of(js.predicted, trial.labels)
    drawn = some(np.flatnonzero(~np.isnan(js.value) & ~np.isnan(gap)))
    most = float(np.abs(js.value[drawn]).max(initial=0.05))
    scales = (alt.Scale(domain=[min(0.0, float(gap[drawn].min(initial=0.0))), 1.0]), alt.Scale(domain=[-most, most]))
    titles = ("Δα: weight of the most attended item − of the other", "ΔJS (nats)")
    zero = chart([{"x": 0.0, "y": 0.0}, {"x": 1.0, "y": 0.0}]).mark_line(color=variable("quiet"), strokeDash=[4, 4])
    line = zero.encode(
        x=alt.X("x:Q", scale=scales[0], title=titles[0]), y=alt.Y("y:Q", scale=scales[1], title=titles[1])
    )
    rows = dots(js.example, gap, js.value, drawn, groups, names)
    return finish([line, points(rows, names, titles, scales)], 260, "ΔJS against Δα")


@draws
def flip_bars(summary: Mapping[str, Any]) -> Spec:
    """The four cells in percent, with their intervals."""
    line = summary["overall"]
    rows = [
        {"cell": name, **{key: round(line[cell][key] or 0.0, 2) for key in ("percent", "low", "high")}}
        | {"texts": line[cell]["count"]}
        for cell, name in CELL_NAMES.items()
    ]
    scale = alt.Scale(domain=[0, 100], nice=False)
    title = "percent of the texts whose decision changes without ..."
    y = alt.Y("cell:N", sort=list(CELL_NAMES.values()), title=None)
    tip = [alt.Tooltip("cell:N"), alt.Tooltip("percent:Q", format=".1f"), alt.Tooltip("texts:Q")]
    base = chart(rows).encode(y=y)
    bar = base.mark_bar(color=variable("c0")).encode(x=alt.X("percent:Q", scale=scale, title=title), tooltip=tip)
    interval = base.mark_rule(strokeWidth=2, color=variable("ink")).encode(
        x=alt.X("low:Q", scale=scale, title=title), x2="high:Q"
    )
    return finish([bar, interval], 40 * len(rows), "Decision flips")


@draws
def share_boxes(lines: Mapping[str, Mapping[str, float | None]], names: Mapping[str, str]) -> Spec:
    """Quartiles of the share removed, one box for each ranking: thin lines from 5 to 95 percent."""
    rows: Data = [
        {"ranking": names[key], **{q: round(line[q] or 0.0, 4) for q in ("q05", "q25", "q50", "q75", "q95", "mean")}}
        for key, line in lines.items()
        if line["q50"] is not None
    ]
    scale = alt.Scale(domain=[0, 1], nice=False)
    title = "share of the items removed before the decision changes"
    tip = [
        alt.Tooltip("ranking:N"),
        alt.Tooltip("q50:Q", title="median", format=".3f"),
        alt.Tooltip("q25:Q", title="a quarter is below", format=".3f"),
        alt.Tooltip("q75:Q", title="a quarter is above", format=".3f"),
        alt.Tooltip("mean:Q", title="mean", format=".3f"),
    ]
    base = chart(rows).encode(y=alt.Y("ranking:N", sort=[row["ranking"] for row in rows], title=None), tooltip=tip)
    reach = base.mark_rule(color=variable("quiet")).encode(x=alt.X("q05:Q", scale=scale, title=title), x2="q95:Q")
    box = base.mark_bar(color=variable("c0"), fillOpacity=0.35, height=16).encode(
        x=alt.X("q25:Q", scale=scale, title=title), x2="q75:Q"
    )
    median = base.mark_tick(color=variable("c0"), thickness=3, height=20).encode(
        x=alt.X("q50:Q", scale=scale, title=title)
    )
    return finish([reach, box, median], 34 * max(1, len(rows)), "Share of items removed before the first flip")
