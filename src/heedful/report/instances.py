"""The list of instances behind the figures: every text with its measures, as compact JSON for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from heedful.colours import LEVELS
from heedful.experiments.summary import column
from heedful.heatmap import visible
from heedful.records import Example
from heedful.report.drawing import DIGITS, class_names
from heedful.report.naming import pair_name
from heedful.report.theme import CLASSES

LONGEST = 60  # words of a text that the list shows
BUDGET = 60_000  # words of all texts in one list


def listed(
    tables: Mapping[str, pa.Table],
    examples: Mapping[int, Example],
    labels: Sequence[str],
    always: Sequence[int] = (),
) -> dict[str, Any]:
    """Texts evenly spread, as many as BUDGET allows, and `always`; measures by key, null where undefined.

    A row is [place, id, predicted, truth, words, attention, adversarial, values]: the attentions as one digit
    (0 to LEVELS of the largest weight) for each word.
    """
    values, titles, predicted = measures(tables)
    places = sorted(place for place in predicted if place in examples)
    words = sum(min(len(examples[place].passage), LONGEST) for place in places)
    step = max(1, -(-words // BUDGET))
    kept = sorted({*places[::step], *(place for place in always if place in predicted)})
    weights = _weights(tables)
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
        "total": len(places),
        "cut": sorted(cut),
        "rows": rows,
    }


def measures(
    tables: Mapping[str, pa.Table],
) -> tuple[dict[str, dict[int, float]], dict[str, str], dict[int, int]]:
    """(values by key and place, title of each key, predicted label by place)."""
    values: dict[str, dict[int, float]] = {}
    titles: dict[str, str] = {}
    predicted: dict[int, int] = {}
    for name, table in tables.items():
        for part, key, title, of in _columns(name, table):
            places = part["example"].to_pylist()
            values[key] = dict(zip(places, column(part, of).tolist(), strict=True))
            titles[key] = title
            predicted |= dict(zip(places, part["predicted"].to_pylist(), strict=True))
    return values, titles, predicted


def _columns(name: str, table: pa.Table) -> list[tuple[pa.Table, str, str, str]]:
    """(rows, key, title, column) of an experiment."""
    if name == "correlation":
        names = table["pair"].to_numpy(zero_copy_only=False)
        return [
            (table.filter(pa.array(names == pair)), f"tau:{pair}", f"τ of {pair_name(pair)}", "tau")
            for pair in dict.fromkeys(names)
        ]
    own = {
        "permutation": [("median", "change when shuffled")],
        "adversarial": [("jsd", "farthest attention (JSD)")],
    }
    found = [(table, of, title, of) for of, title in own.get(name, [])]
    return [*found, (table, "max_attention", "largest attention weight", "max_attention")]


def _weights(tables: Mapping[str, pa.Table]) -> dict[int, tuple[str, str]]:
    """Attention and adversarial attention as digits, on one scale."""
    table = tables.get("adversarial")
    if table is None:
        return {}
    columns = (table[name].to_pylist() for name in ("example", "attention", "adversarial"))
    found = {}
    for place, own, other in zip(*columns, strict=True):
        both = np.array([own[:LONGEST], other[:LONGEST]])
        peak = max([*own, *other], default=0.0) or 1.0
        levels = np.round(both / peak * LEVELS).astype(int)
        found[int(place)] = ("".join(map(str, levels[0])), "".join(map(str, levels[1])))
    return found


def _number(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else round(value, DIGITS)
