"""The summary of `deception`: each model's accuracy and attention, and what each method sees of the hidden words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heedful.experiments.framework.summary import Line, column, mean, plain, spread
from heedful.measure.columns import Floats
from heedful.measure.paired import mcnemar, paired
from heedful.measure.statistics import proportion

MEASURES = ("share", "auc", "hit", "precision")
CONTROL = "control"  # trained on texts whose impermissible words are one and the same word


def summarise(table: pa.Table) -> dict[str, Any]:
    """`overall` is the attention that the last model, with the strongest penalty, leaves on the hidden words."""
    models, first = names_of(table, "model"), rows_of(table, names_of(table, "model")[0])
    own = column(first, "correct")
    return {
        "overall": spread(column(first, "deceived_mass")),
        "by_model": {name: _model(rows_of(table, name), own) for name in models},
        "by_method": {
            method: {name: _method(rows_of(table, name, method)) for name in models}
            for method in names_of(table, "method")
        },
        CONTROL: accuracy(column(first, "control_correct"), own),
        "texts": {"all": len(first), "with_hidden_words": int((~np.isnan(column(first, "chance"))).sum())},
    }


def names_of(table: pa.Table, name: str) -> list[str]:
    """The models or the methods, in the order of the rows."""
    return [str(one) for one in dict.fromkeys(table[name].to_pylist())]


def rows_of(table: pa.Table, model: str, method: str | None = None) -> pa.Table:
    """One row for each text: of a model, and of a method or, where it does not matter, of the first."""
    method = method or names_of(table, "method")[0]
    return table.filter(pc.and_(pc.equal(table["model"], model), pc.equal(table["method"], method)))


def _model(rows: pa.Table, own: Floats) -> Line:
    """Percent as published; `p` is that the accuracy is that of the model as it is (McNemar)."""
    mass, most = column(rows, "attention_mass"), column(rows, "max_attention_mass")
    return {
        "accuracy": accuracy(column(rows, "correct"), own),
        "attention_mass": spread(mass) | {"percent": _percent(mass)},
        "max_attention_mass": spread(most) | {"percent": _percent(most)},
    }


def accuracy(correct: Floats, own: Floats) -> Line:
    both = ~np.isnan(correct) & ~np.isnan(own)
    right, before = correct[both] > 0, own[both] > 0
    found, change = proportion(int(right.sum()), len(right)), paired(right * 1.0, before * 1.0)
    return plain(
        {
            "n": len(right),
            "mean": found.value,
            "low": found.low,
            "high": found.high,
            "percent": 100 * found.value,
            "change": change.difference,  # from the model as it is, with its interval
            "change_low": change.low,
            "change_high": change.high,
            "p": mcnemar(int((right & ~before).sum()), int((~right & before).sum())),
        }
    )


def _method(rows: pa.Table) -> Line:
    return {name: spread(column(rows, name)) for name in MEASURES} | {"chance": mean(column(rows, "chance"))}


def _percent(values: Floats) -> float | None:
    found = mean(values)
    return None if found is None else 100 * found
