"""The parts that figures are made of: counted bars, points, boxes, lines to compare with.

A part is drawn from a `Frame`. `chosen` says which texts are selected: the others are pale. Without it the
reader's own click decides (`picked`), as on a page that has no server behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from itertools import pairwise
from typing import Any, ParamSpec

import altair as alt
import numpy as np
from altair.utils.schemapi import debug_mode

from heedful.explanation.drawing import visible
from heedful.figures.figure import Spec
from heedful.figures.theme import CLASSES, CONFIG, variable
from heedful.measure.columns import DIGITS, EDGES, Bools, Floats, Frame, Ints, bin_of, quantiles

P = ParamSpec("P")
Data = list[dict[str, Any]]  # what a drawing is of

POINTS = 400  # drawn in one figure; which ones is decided once and for all
TOGETHER = "all labels"
HEADROOM = 1.3  # of a histogram's height, for the names of its lines
LARGEST = "largest attention weight in the text"
PALE = 0.3
_ROWS: ContextVar[dict[str, Data] | None] = ContextVar("rows", default=None)  # of the figure that is being drawn
UNIT = (0.0, 1.0)


def class_names(labels: Sequence[str]) -> list[str]:
    """What a legend calls each label: short, harmless to show, and different from each other."""
    names = [visible(label, 24).replace("\n", " ") or "∅" for label in labels]
    return [name if names.count(name) == 1 else f"{name} ({i})" for i, name in enumerate(names)]


def groups_of(predicted: Ints, labels: Sequence[str]) -> tuple[Ints, list[str]]:
    """The group of each text and the groups' names: its label, or one group where labels are many or unknown."""
    known = predicted.size == 0 or (predicted.min() >= 0 and predicted.max() < len(labels))
    if len(labels) > len(CLASSES) or not known:
        return np.zeros_like(predicted), [TOGETHER]
    return predicted, class_names(labels)


def some(indices: Ints, most: int = POINTS) -> Ints:
    """At most POINTS of them, always the same."""
    if len(indices) <= most:
        return indices
    return np.sort(np.random.default_rng(0).choice(indices, most, replace=False))


def colour(names: Sequence[str]) -> alt.Color:
    return alt.Color(
        "label:N",
        title="predicted",
        scale=alt.Scale(domain=list(names), range=[variable(c) for c in CLASSES[: len(names)]]),
        legend=None if len(names) == 1 else alt.Legend(),
    )


def draws(draw: Callable[P, Spec]) -> Callable[P, Spec]:
    """For functions that draw: without altair's checks of each part and its copies of the data, which take most of
    the time. The tests check whole figures against the schema."""

    @wraps(draw)
    def quickly(*arguments: P.args, **named: P.kwargs) -> Spec:
        before = _ROWS.set({})
        try:
            with debug_mode(False):
                return draw(*arguments, **named)
        finally:
            _ROWS.reset(before)

    return quickly


@draws
def histogram(
    frame: Frame,
    labels: Sequence[str],
    edges: Sequence[float],
    measure: str,
    title: str,
    *,
    references: Mapping[str, float] | None = None,
    domain: tuple[float, float] | None = None,
    description: str = "",
    chosen: Bools | None = None,
) -> Spec:
    """The value counted into bins by predicted class, stacked, with named lines to compare with."""
    low, high = domain or (float(edges[0]), float(edges[-1]))
    rows, names, highest = count_bins(frame, labels, edges, measure, chosen)
    x = alt.X("low:Q", bin="binned", scale=alt.Scale(domain=[low, high], nice=False), title=title)
    height = alt.Scale(domain=[0, HEADROOM * max(1, highest)], nice=False)
    picked = alt.selection_point(name="picked", fields=["low", "label"])
    base = chart(rows).encode(
        x=x,
        x2="high:Q",
        color=colour(names),
        tooltip=[
            alt.Tooltip("low:Q", title="from", format=".2f"),
            alt.Tooltip("high:Q", title="to", format=".2f"),
            alt.Tooltip("label:N", title="predicted"),
            alt.Tooltip("texts:Q", title="texts"),
        ],
    )
    axis = alt.Axis(tickMinStep=1, tickCount=4)
    y = alt.Y("texts:Q", title="texts", scale=height, axis=axis)
    if chosen is None:
        opacity = alt.condition(picked, alt.value(1), alt.value(PALE))
        layers = [base.mark_bar(cursor="pointer").encode(y=y, opacity=opacity).add_params(picked)]
    else:  # stacked by hand: of each bar the selected part is strong
        ends = {"y": alt.Y("bottom:Q", title="texts", scale=height, axis=axis), "y2": "top:Q"}
        layers = [
            base.mark_bar(cursor="pointer", opacity=PALE).encode(**ends),
            base.mark_bar(cursor="pointer", tooltip=None).encode(**(ends | {"y2": "selected:Q"})),
        ]
    middle = low + 0.65 * (high - low)
    return finish([*layers, *lines_at(references or {}, middle)], 180, description or f"Histogram: {title}")


def count_bins(
    frame: Frame, labels: Sequence[str], edges: Sequence[float], measure: str, chosen: Bools | None = None
) -> tuple[Data, list[str], int]:
    """(one row for each bin and label that has texts, the labels' names, texts of the highest bin).

    Values are rounded like those of a list of texts, so that a bar and its list hold the same texts.
    """
    bins = np.round(np.asarray(edges, dtype=np.float64), DIGITS)
    values = np.round(frame.value, DIGITS)
    groups, names = groups_of(frame.predicted, labels)
    defined = ~np.isnan(values)
    rows: Data = []
    total = np.zeros(len(bins) - 1, dtype=int)
    for group, label in enumerate(names):
        here = (groups == group) & defined
        found = np.histogram(values[here], bins)[0]
        strong = None if chosen is None else np.histogram(values[here & chosen], bins)[0]
        for i in np.flatnonzero(found):
            row = {
                "measure": measure,
                "low": float(bins[i]),
                "high": float(bins[i + 1]),
                "closed": bool(i == len(found) - 1),
                "label": label,
                "texts": int(found[i]),
            }
            if strong is not None:
                row |= {"bottom": int(total[i]), "top": int(total[i] + found[i])}
                row |= {"selected": int(total[i] + strong[i])}
            rows.append(row)
        total += found
    return rows, names, int(total.max(initial=0))


def lines_at(references: Mapping[str, float], middle: float) -> list[alt.Chart]:
    """Dashed lines with their names, one below the other; right of `middle` a name stands left of its line."""
    layers = []
    for i, (name, value) in enumerate(references.items()):
        side = -1 if value > middle else 1
        base = chart([{"at": round(value, 4), "name": name}]).encode(x="at:Q")
        layers.append(base.mark_rule(strokeDash=[4, 3], color=variable("ink")))
        text = base.mark_text(align="left" if side > 0 else "right", dx=5 * side, baseline="top", fontSize=11)
        layers.append(text.encode(y=alt.value(1 + 14 * i), text="name:N"))
    return layers


@draws
def by_max_attention(
    frame: Frame, labels: Sequence[str], title: str, domain: tuple[float, float], chosen: Bools | None = None
) -> Spec:
    """Points, and for each bin of max attention and each class the middle half and the median."""
    scales = alt.Scale(domain=list(UNIT)), alt.Scale(domain=list(domain), nice=False)
    groups, names = groups_of(frame.predicted, labels)
    defined = ~np.isnan(frame.value) & ~np.isnan(frame.max_attention)
    strong = np.ones(len(frame), dtype=bool) if chosen is None else chosen
    drawn = some(np.flatnonzero(defined & strong))
    if chosen is not None:
        rest = some(np.flatnonzero(defined & ~chosen), max(0, POINTS - len(drawn)))
        drawn = np.concatenate([rest, drawn])
    rows = dots(frame.example, frame.max_attention, frame.value, drawn, groups, names)
    if chosen is not None:
        rows = [row | {"chosen": bool(chosen[i])} for row, i in zip(rows, drawn, strict=True)]
    boxed = boxes(_boxes(frame, groups, names), names, title, scales)
    layers = [points(rows, names, (LARGEST, title), scales, chosen is not None), *boxed]
    return finish(layers, 260, f"{title} against the {LARGEST}")


def dots(example: Ints, x: Floats, y: Floats, drawn: Ints, groups: Ints, names: list[str]) -> Data:
    """The rows of `points`."""
    return [
        {"example": int(example[i]), "x": round(float(x[i]), 4), "y": round(float(y[i]), 4), "label": names[groups[i]]}
        for i in drawn
    ]


def _boxes(frame: Frame, groups: Ints, names: list[str]) -> Data:
    rows: Data = []
    bins, values = bin_of(frame.max_attention), frame.value
    for i, (low, high) in enumerate(pairwise(EDGES)):
        width = (high - low) / len(names)
        for group, label in enumerate(names):
            found = values[(bins == i) & (groups == group) & ~np.isnan(values)]
            if found.size:
                rows.append(
                    {
                        "measure": "max_attention",
                        "low": low,
                        "high": high,
                        "closed": high == EDGES[-1],
                        "label": label,
                        "left": low + group * width + 0.006,
                        "right": low + (group + 1) * width - 0.006,
                        "texts": int(found.size),
                        **{key: round(value or 0.0, 4) for key, value in quantiles(found).items()},
                    }
                )
    return rows


def boxes(rows: Data, names: Sequence[str], title: str, scales: tuple[alt.Scale, alt.Scale]) -> list[alt.Chart]:
    """The middle half as a box, the median as a thick line."""
    picked = alt.selection_point(name="picked", fields=["low", "label"])
    x = alt.X("left:Q", scale=scales[0], title=LARGEST, axis=alt.Axis(values=list(EDGES), format=".2f"))
    base = chart(rows).encode(
        x=x,
        x2="right:Q",
        color=colour(names),
        tooltip=[
            alt.Tooltip("label:N", title="predicted"),
            alt.Tooltip("low:Q", title="largest weight from"),
            alt.Tooltip("high:Q", title="to"),
            alt.Tooltip("q50:Q", title="median", format=".3f"),
            alt.Tooltip("q25:Q", title="a quarter is below", format=".3f"),
            alt.Tooltip("q75:Q", title="a quarter is above", format=".3f"),
            alt.Tooltip("texts:Q", title="texts"),
        ],
    )
    box = base.mark_rect(cursor="pointer", fillOpacity=0.3, strokeWidth=1).encode(
        y=alt.Y("q25:Q", scale=scales[1], title=title),
        y2="q75:Q",
        stroke=colour(names),
        opacity=alt.condition(picked, alt.value(1), alt.value(PALE)),
    )
    median = base.mark_rule(strokeWidth=3).encode(y=alt.Y("q50:Q", scale=scales[1], title=title))
    return [box.add_params(picked), median]


def points(
    rows: Data,
    names: Sequence[str],
    titles: tuple[str, str],
    scales: tuple[alt.Scale, alt.Scale],
    selected: bool = False,
) -> alt.Chart:
    """One circle for each text: rows have `x`, `y`, `label` and `example`; where `selected`, also `chosen`."""
    strength = alt.condition("datum.chosen", alt.value(0.75), alt.value(0.15)) if selected else alt.value(0.5)
    circles: alt.Chart = (
        chart(rows)
        .mark_circle(size=26, cursor="pointer")
        .encode(
            x=alt.X("x:Q", scale=scales[0], title=titles[0]),
            y=alt.Y("y:Q", scale=scales[1], title=titles[1]),
            color=colour(names),
            opacity=strength,
            tooltip=[
                alt.Tooltip("example:Q", title="text"),
                alt.Tooltip("label:N", title="predicted"),
                alt.Tooltip("x:Q", title=titles[0], format=".3f"),
                alt.Tooltip("y:Q", title=titles[1], format=".3f"),
            ],
        )
    )
    return circles


@draws
def against(
    rows: Data, names: Sequence[str], titles: tuple[str, str], domain: tuple[float, float], description: str
) -> Spec:
    """Points of two numbers on one scale, and the line on which both are equal."""
    low, high = domain
    scale = alt.Scale(domain=[low, high], nice=False)
    diagonal = chart([{"x": low, "y": low}, {"x": high, "y": high}])
    line = diagonal.mark_line(color=variable("quiet"), strokeDash=[4, 4]).encode(
        x=alt.X("x:Q", scale=scale, title=titles[0]), y=alt.Y("y:Q", scale=scale, title=titles[1])
    )
    return finish([line, points(rows, names, titles, (scale, scale))], 260, description)


def chart(rows: Data) -> alt.Chart:
    """A chart of these rows, which inside a function that `draws` stand in by a name until it is finished."""
    kept = _ROWS.get()
    if kept is None:
        return alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]
    name = f"rows {len(kept)}"
    kept[name] = rows
    return alt.Chart(alt.NamedData(name=name))


def finish(layers: Sequence[alt.Chart], height: int, description: str) -> Spec:
    """As wide as what holds it, in the colours of the theme."""
    whole = alt.layer(*layers).properties(width="container", height=height, description=description)
    spec: Spec = whole.to_dict(validate=False)
    kept = _ROWS.get() or {}
    for part in (spec, *spec["layer"]):
        if part.get("data", {}).get("name") in kept:
            part["data"] = {"values": kept[part["data"]["name"]]}
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    spec["config"] = CONFIG
    return spec
