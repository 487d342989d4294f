"""Drawings of `deception`: accuracy and attention on hidden words by model, and what methods see of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from heedful.figures.drawing import Data, chart, draws, finish
from heedful.figures.figure import Spec, method_name
from heedful.figures.theme import SERIES, variable

Lines = Mapping[str, Mapping[str, Any]]
RIGHT, ATTENDED, WITHOUT = "texts that are right", "attention on hidden words", "without the words"
SHAPES = ("circle", "square", "triangle-up", "diamond")


@draws
def accuracy_and_mass(models: Lines, control: Mapping[str, Any]) -> Spec:
    """For each model, and the control, both in percent with their intervals."""
    found = [(name, RIGHT, line["accuracy"]) for name, line in models.items()]
    found += [(WITHOUT, RIGHT, control)]
    found += [(name, ATTENDED, line["attention_mass"]) for name, line in models.items()]
    rows = [_row(model, what, line, 100.0) for model, what, line in found]
    return _dots(rows, [WITHOUT, *models], [RIGHT, ATTENDED], (0, 100), "percent", None)


@draws
def seen_by_methods(methods: Mapping[str, Lines]) -> Spec:
    """For each method and model, with the line of a random order."""
    rows = [
        _row(method_name(method), model, line["auc"], 1.0)
        for method, models in methods.items()
        for model, line in models.items()
    ]
    names, models = [method_name(method) for method in methods], list(next(iter(methods.values())))
    return _dots(rows, names, models, (0, 1), "how often a hidden word is above another one", 0.5)


def _row(place: str, what: str, line: Mapping[str, Any], times: float) -> dict[str, Any]:
    value = line["mean"]
    ends = {end: value if line[end] is None else line[end] for end in ("low", "high")}
    numbers = {"value": value, **ends}
    return {"place": place, "what": what} | {
        name: None if number is None else round(times * number, 4) for name, number in numbers.items()
    }


def _dots(
    rows: Sequence[dict[str, Any]],
    places: list[str],
    kinds: list[str],
    domain: tuple[int, int],
    title: str,
    at: float | None,
) -> Spec:
    """A dot with its interval for each row: places from top to bottom, kinds by colour and shape."""
    data: Data = [row for row in rows if row["value"] is not None]
    scale = alt.Scale(domain=list(domain), nice=False)
    colours = [variable(SERIES[i % len(SERIES)]) for i in range(len(kinds))]
    shapes = [SHAPES[i % len(SHAPES)] for i in range(len(kinds))]
    colour = alt.Color("what:N", sort=kinds, scale=alt.Scale(domain=kinds, range=colours), title=None)
    shape = alt.Shape("what:N", sort=kinds, scale=alt.Scale(domain=kinds, range=shapes), title=None)
    base = chart(data).encode(y=alt.Y("place:N", sort=places, title=None), yOffset=alt.YOffset("what:N", sort=kinds))
    tip = [alt.Tooltip("place:N"), alt.Tooltip("what:N"), alt.Tooltip("value:Q", format=".3f")]
    line = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", scale=scale, title=title), x2="high:Q", color=colour)
    dot = base.mark_point(filled=True, size=60).encode(
        x=alt.X("value:Q", scale=scale, title=title), color=colour, shape=shape, tooltip=tip
    )
    layers = [line, dot]
    if at is not None:
        dashed = chart([{"x": at}]).mark_rule(color=variable("quiet"), strokeDash=[4, 4])
        layers.insert(0, dashed.encode(x=alt.X("x:Q", scale=scale, title=title)))
    return finish(layers, 30 + 18 * len(places) * len(kinds), title)
