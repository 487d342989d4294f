"""The list of instances behind the figures: every text with its measures, as compact JSON for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from heedful.experiments import Experiment, find
from heedful.experiments.framework.plain_figures import measure_key
from heedful.explanation.drawing import LEVELS, visible
from heedful.figures.drawing import class_names
from heedful.figures.theme import CLASSES
from heedful.measure import columns
from heedful.measure.columns import DIGITS
from heedful.records import Example

LONGEST = 60  # words of a text that the list shows
BUDGET = 60_000  # words of all texts in one list


def list_texts(
    tables: Mapping[str, pa.Table], examples: Mapping[int, Example], labels: Sequence[str], always: Sequence[int] = ()
) -> dict[str, Any]:
    """Texts evenly spread, as many as BUDGET allows, and `always`; measures by key, null where undefined.

    A row is [place, id, predicted, truth, words, own, other, values]: the weights that an experiment has kept of
    the words (`Weights`), the model's own and another, as one digit (0 to LEVELS of the largest) for each word.
    """
    values, titles, predicted = measures(tables)
    places = sorted(place for place in predicted if place in examples)
    words = sum(min(len(examples[place].passage), LONGEST) for place in places)
    step = max(1, -(-words // BUDGET))
    kept = sorted({*places[::step], *(place for place in always if place in predicted)})
    titles_of_weights, weights = weights_of(tables)
    rows = []
    for place in kept:
        example = examples[place]
        own, other = weights.get(place, ("", ""))
        rows.append(
            [
                place,
                visible(example.id, 80),
                predicted[place],
                example.label,
                [visible(example.passage.surface(i), 40) for i in range(min(len(example.passage), LONGEST))],
                own,
                other,
                [_number(values[key].get(place)) for key in titles],
            ]
        )
    cut = {place for place in kept if len(examples[place].passage) > LONGEST}
    return {
        "labels": [visible(label, 40) for label in labels],
        "classes": class_names(labels) if len(labels) <= len(CLASSES) else [],  # as figures call them
        "measures": list(titles.items()),
        "weights": titles_of_weights,
        "total": len(places),
        "cut": sorted(cut),
        "rows": rows,
    }


def measures(tables: Mapping[str, pa.Table]) -> tuple[dict[str, dict[int, float]], dict[str, str], dict[int, int]]:
    """(values by key and place, title of each key, predicted label by place)."""
    values: dict[str, dict[int, float]] = {}
    titles: dict[str, str] = {}
    predicted: dict[int, int] = {}
    for name, table in tables.items():
        experiment = find(name)
        groups = experiment.groups(table)
        for group in groups or (None,):
            for column in _columns(experiment, table):
                frame = columns.frame(table, column, experiment.by, group)
                places, key = frame.example.tolist(), measure_key(column, group)
                values[key] = dict(zip(places, frame.value.tolist(), strict=True))
                titles[key] = _title(experiment, column, group)
                predicted |= dict(zip(places, frame.predicted.tolist(), strict=True))
        if "max_attention" in table.column_names:
            frame = columns.frame(table, "max_attention", experiment.by, groups[0] if groups else None)
            values["max_attention"] = dict(zip(frame.example.tolist(), frame.value.tolist(), strict=True))
    if "max_attention" in values:
        values["max_attention"] = values.pop("max_attention")  # last in the list
        titles["max_attention"] = "largest attention weight"
    return values, titles, predicted


def _columns(experiment: Experiment, table: pa.Table) -> list[str]:
    """The columns of its measures; of an experiment without measures, the first that can be drawn."""
    types = {name: str(kind) for name, kind in zip(table.schema.names, table.schema.types, strict=True)}
    own = dict.fromkeys(measure.column for measure in experiment.measures if measure.column in types)
    return list(own) or experiment.drawable(types)[:1]


def _title(experiment: Experiment, column: str, group: str | None) -> str:
    title = experiment.column(column).title
    return title if group is None else f"{title} of {experiment.pages.group_title(group)}"


def weights_of(tables: Mapping[str, pa.Table]) -> tuple[tuple[str, str] | None, dict[int, tuple[str, str]]]:
    """(what they are called, by place as digits on one scale): the first experiment that keeps weights of words."""
    for name, table in tables.items():
        weights = find(name).pages.weights
        if weights is None or not {weights.own, weights.other} <= set(table.column_names):
            continue
        found = {}
        for place, own, other in zip(
            *(table[name].to_pylist() for name in ("example", weights.own, weights.other)), strict=True
        ):
            both = np.array([own[:LONGEST], other[:LONGEST]])
            peak = max([*own, *other], default=0.0) or 1.0
            levels = np.round(both / peak * LEVELS).astype(int)
            found[int(place)] = ("".join(map(str, levels[0])), "".join(map(str, levels[1])))
        return weights.titles, found
    return None, {}


def _number(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(value, DIGITS)
