"""The parts that figures are made of: counted bars, points, boxes, lines to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedful.experiments.summary import EDGES, bin_of, column, quantiles
from heedful.heatmap import visible
from heedful.report.theme import CLASSES, CONFIG, variable

Spec = dict[str, Any]
Rows = list[dict[str, Any]]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POINTS = 400  # drawn in one figure; which ones is decided once and for all
TOGETHER = "all labels"
HEADROOM = 1.3  # of a histogram's height, for the names of its lines
DIGITS = 6  # of a value that bins are made of
LARGEST = "largest attention weight in the text"


def class_names(labels: Sequence[str]) -> list[str]:
    """What a legend calls each label: short, harmless to show, and different from each other."""
    names = [visible(label, 24).replace("\n", " ") or "∅" for label in labels]
    return [name if names.count(name) == 1 else f"{name} ({i})" for i, name in enumerate(names)]


def groups_of(table: pa.Table, labels: Sequence[str]) -> tuple[Ints, list[str]]:
    """The group of each text and the groups' names: its label, or one group where labels are many."""
    predicted: Ints = table["predicted"].to_numpy()
    if len(labels) > len(CLASSES):
        return np.zeros_like(predicted), [TOGETHER]
    return predicted, class_names(labels)


def some(indices: Ints) -> Ints:
    """At most POINTS of them, always the same."""
    if len(indices) <= POINTS:
        return indices
    return np.sort(np.random.default_rng(0).choice(indices, POINTS, replace=False))


def colour(labels: Sequence[str]) -> alt.Color:
    names = [TOGETHER] if len(labels) > len(CLASSES) else class_names(labels)
    return alt.Color(
        "label:N",
        title="predicted",
        scale=alt.Scale(domain=names, range=[variable(c) for c in CLASSES[: len(names)]]),
        legend=None if len(names) == 1 else alt.Legend(),
    )


def histogram(
    table: pa.Table, name: str, labels: Sequence[str], bins: Floats, measure: str, x: alt.X
) -> alt.Chart:
    """The column `name` counted into bins by predicted class, stacked."""
    # rounded like the values of the list of instances, so that a bar and its list hold the same texts
    values, bins = np.round(column(table, name), DIGITS), np.round(bins, DIGITS)
    groups, names = groups_of(table, labels)
    rows: Rows = []
    total = np.zeros(len(bins) - 1, dtype=int)
    for group, label in enumerate(names):
        found = np.histogram(values[(groups == group) & ~np.isnan(values)], bins)[0]
        total += found
        rows += [
            {
                "measure": measure,
                "low": float(bins[i]),
                "high": float(bins[i + 1]),
                "closed": i == len(found) - 1,
                "label": label,
                "texts": int(n),
            }
            for i, n in enumerate(found)
            if n
        ]
    height = alt.Scale(domain=[0, HEADROOM * max(1, int(total.max(initial=0)))], nice=False)
    picked = alt.selection_point(name="picked", fields=["low", "label"])
    bars: alt.Chart = (
        chart(rows)
        .mark_bar(cursor="pointer")
        .encode(
            x=x,
            x2="high:Q",
            y=alt.Y("texts:Q", title="texts", scale=height, axis=alt.Axis(tickMinStep=1, tickCount=4)),
            color=colour(labels),
            opacity=alt.condition(picked, alt.value(1), alt.value(0.3)),
            tooltip=[
                alt.Tooltip("low:Q", title="from", format=".2f"),
                alt.Tooltip("high:Q", title="to", format=".2f"),
                alt.Tooltip("label:N", title="predicted"),
                alt.Tooltip("texts:Q", title="texts"),
            ],
        )
        .add_params(picked)
    )
    return bars


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


def by_max_attention(
    table: pa.Table, labels: Sequence[str], name: str, title: str, domain: tuple[float, float]
) -> Spec:
    """Points, and for each bin of max attention and each class the middle half and the median."""
    x = alt.Scale(domain=[0, 1])
    y = alt.Scale(domain=list(domain), nice=False)
    values, peak, places = column(table, name), column(table, "max_attention"), table["example"].to_numpy()
    groups, names = groups_of(table, labels)
    drawn = some(np.flatnonzero(~np.isnan(values) & ~np.isnan(peak)))
    rows: Rows = [
        {
            "example": int(places[i]),
            "x": round(float(peak[i]), 4),
            "y": round(float(values[i]), 4),
            "label": names[groups[i]],
        }
        for i in drawn
    ]
    dots = points(rows, labels, (LARGEST, title), (x, y))
    boxed = boxes(_boxes(values, bin_of(peak), groups, names), labels, title, (x, y))
    return finished([dots, *boxed], 260, f"{title} against the {LARGEST}")


def _boxes(values: Floats, bins: Ints, groups: Ints, names: list[str]) -> Rows:
    rows: Rows = []
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
                        **{key: round(float(value), 4) for key, value in quantiles(found).items()},
                    }
                )
    return rows


def boxes(
    rows: Rows, labels: Sequence[str], title: str, scales: tuple[alt.Scale, alt.Scale]
) -> list[alt.Chart]:
    """The middle half as a box, the median as a thick line."""
    picked = alt.selection_point(name="picked", fields=["low", "label"])
    x = alt.X("left:Q", scale=scales[0], title=LARGEST, axis=alt.Axis(values=list(EDGES), format=".2f"))
    base = chart(rows).encode(
        x=x,
        x2="right:Q",
        color=colour(labels),
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
        stroke=colour(labels),
        opacity=alt.condition(picked, alt.value(1), alt.value(0.3)),
    )
    median = base.mark_rule(strokeWidth=3).encode(y=alt.Y("q50:Q", scale=scales[1], title=title))
    return [box.add_params(picked), median]


def points(
    rows: Rows, labels: Sequence[str], titles: tuple[str, str], scales: tuple[alt.Scale, alt.Scale]
) -> alt.Chart:
    """One circle for each text: rows have `x`, `y`, `label` and `example`."""
    circles: alt.Chart = (
        chart(rows)
        .mark_circle(size=26, opacity=0.5, cursor="pointer")
        .encode(
            x=alt.X("x:Q", scale=scales[0], title=titles[0]),
            y=alt.Y("y:Q", scale=scales[1], title=titles[1]),
            color=colour(labels),
            tooltip=[
                alt.Tooltip("example:Q", title="text"),
                alt.Tooltip("label:N", title="predicted"),
                alt.Tooltip("x:Q", title=titles[0], format=".3f"),
                alt.Tooltip("y:Q", title=titles[1], format=".3f"),
            ],
        )
    )
    return circles


def chart(rows: Rows) -> alt.Chart:
    return alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]


def finished(layers: Sequence[alt.Chart], height: int, description: str) -> Spec:
    """As wide as what holds it, in the colours of the theme."""
    whole = alt.layer(*layers).properties(width="container", height=height, description=description)
    spec: Spec = whole.to_dict()
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    spec["config"] = CONFIG
    return spec
