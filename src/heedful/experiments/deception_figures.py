"""Drawings of `deception`: accuracy against the attention on hidden words, and what methods see of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from heedful.figures.drawing import Data, chart, draws, finish
from heedful.figures.figure import Spec
from heedful.figures.names import method_name
from heedful.figures.theme import CLASSES, variable

Lines = Mapping[str, Mapping[str, Any]]


@draws
def accuracy_and_mass(models: Lines, control: Mapping[str, Any]) -> Spec:
    """A point for each model, with both intervals and its name, and the control's accuracy as a line."""
    rows: Data = [
        {
            "model": name,
            **{f"mass {end}": _percent(line["attention_mass"], end) for end in ("mean", "low", "high")},
            **{f"accuracy {end}": _percent(line["accuracy"], end) for end in ("mean", "low", "high")},
        }
        for name, line in models.items()
    ]
    titles = ("attention on hidden words (percent)", "texts that are right (percent)")
    low = min([row["accuracy low"] for row in rows] + [_percent(control, "mean")])
    scales = (alt.Scale(domain=[0, 100], nice=False), alt.Scale(domain=[min(50.0, low), 100], nice=False))
    base = chart(rows)
    x, y = (
        alt.X("mass mean:Q", scale=scales[0], title=titles[0]),
        alt.Y("accuracy mean:Q", scale=scales[1], title=titles[1]),
    )
    tip = [
        alt.Tooltip(f"{name}:{kind}")
        for name, kind in (("model", "N"), ("mass mean", "Q"), ("accuracy mean", "Q"))
    ]
    point = base.mark_point(filled=True, size=70, color=variable("c0")).encode(x=x, y=y, tooltip=tip)
    across = base.mark_rule(color=variable("ink")).encode(
        x=alt.X("mass low:Q", scale=scales[0], title=titles[0]), x2="mass high:Q", y=y
    )
    along = base.mark_rule(color=variable("ink")).encode(
        x=x, y=alt.Y("accuracy low:Q", scale=scales[1], title=titles[1]), y2="accuracy high:Q"
    )
    name = base.mark_text(align="left", dx=8, dy=-8, color=variable("ink")).encode(x=x, y=y, text="model:N")
    ends = [{"x": at, "y": _percent(control, "mean")} for at in (0.0, 100.0)]
    without = (
        chart(ends)
        .mark_line(color=variable("quiet"), strokeDash=[4, 4])
        .encode(
            x=alt.X("x:Q", scale=scales[0], title=titles[0]), y=alt.Y("y:Q", scale=scales[1], title=titles[1])
        )
    )
    return finish([without, across, along, point, name], 260, "Accuracy against attention on hidden words")


@draws
def seen_by_methods(methods: Mapping[str, Lines]) -> Spec:
    """A dot for each method and model with its interval, and the line of a random order."""
    rows: Data = [
        {
            "method": method_name(method),
            "model": model,
            **{end: round(line["auc"][end] or 0.0, 4) for end in ("mean", "low", "high")},
        }
        for method, models in methods.items()
        for model, line in models.items()
        if line["auc"]["mean"] is not None
    ]
    models = list(next(iter(methods.values())))
    scale = alt.Scale(domain=[0, 1], nice=False)
    title = "how often a hidden word is above another one"
    colours = [variable(CLASSES[i % len(CLASSES)]) for i in range(len(models))]
    colour = alt.Color("model:N", sort=models, scale=alt.Scale(domain=models, range=colours), title=None)
    order = [method_name(method) for method in methods]
    place = {"y": alt.Y("method:N", sort=order, title=None), "yOffset": alt.YOffset("model:N", sort=models)}
    base = chart(rows)
    tip = [alt.Tooltip("method:N"), alt.Tooltip("model:N"), alt.Tooltip("mean:Q", format=".3f")]
    line = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", scale=scale, title=title), x2="high:Q", color=colour, **place
    )
    dot = base.mark_point(filled=True, size=60).encode(
        x=alt.X("mean:Q", scale=scale, title=title), color=colour, shape=alt.Shape("model:N", sort=models, title=None),
        tooltip=tip, **place,
    )  # fmt: skip
    half = (
        chart([{"x": 0.5}])
        .mark_rule(color=variable("quiet"), strokeDash=[4, 4])
        .encode(x=alt.X("x:Q", scale=scale, title=title))
    )
    return finish([half, line, dot], 30 + 50 * len(methods), "Hidden words by method")


def _percent(line: Mapping[str, Any], end: str) -> float:
    found = line[end] if line[end] is not None else line["mean"]
    return round(100 * (found or 0.0), 3)
