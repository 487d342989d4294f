"""Examples that are worth a look, each chosen for a reason that is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedful.experiments.summary import column
from heedful.records import Example

Floats = NDArray[np.float64]

READABLE = (6, 45)  # words: texts that one takes in at a glance, where there are any
NEARLY = 20  # where all are long, the shortest of so many
GRADIENT = "attention/gradient_x_input"
DISAGREES = "Attention disagrees"


@dataclass(frozen=True, slots=True)
class Choice:
    """A text by its place in the split, and why it is shown."""

    place: int
    title: str
    reason: str


def choose(tables: Mapping[str, pa.Table], examples: Mapping[int, Example]) -> list[Choice]:
    """One text for each reason that the results allow, no text twice."""
    taken: dict[int, Choice] = {}
    for title, reason, places in _reasons(tables, examples):
        known = [p for p in places if p in examples and p not in taken and len(examples[p].passage)]
        short = [p for p in known if READABLE[0] <= len(examples[p].passage) <= READABLE[1]]
        shortest = sorted(known[:NEARLY], key=lambda p: len(examples[p].passage))
        for place in (short or shortest)[:1]:
            taken[place] = Choice(place, title, reason)
    return list(taken.values())


def _reasons(
    tables: Mapping[str, pa.Table], examples: Mapping[int, Example]
) -> Iterator[tuple[str, str, list[int]]]:
    """(title, reason, places from best to worst)."""
    if "correlation" in tables:
        rows = tables["correlation"]
        rows = rows.filter(pa.array(rows["pair"].to_numpy(zero_copy_only=False) == GRADIENT))
        tau = column(rows, "tau")
        with_gradients = "agreement of the attention's order of words with that of the gradients"
        yield "Attention agrees", f"The highest {with_gradients}.", _ranked(rows, -tau)
        yield DISAGREES, f"The lowest {with_gradients}.", _ranked(rows, tau)
    if "adversarial" in tables:
        rows = tables["adversarial"]
        jsd, peak = column(rows, "jsd"), column(rows, "max_attention")
        most = (
            "The most different attention that gives the same prediction, where the model's own is sharpest."
        )
        yield "Attention can be replaced", most, _ranked(rows, -np.round(jsd, 2), -peak)
        least = "The prediction allows the least change of attention here."
        yield "Attention is pinned down", least, _ranked(rows, jsd)
    if "permutation" in tables:
        rows = tables["permutation"]
        change, peak = column(rows, "median"), column(rows, "max_attention")
        yield "Shuffling matters most", _shuffled(rows, change), _ranked(rows, -change)
        calm = "Attention is sharp (its largest weight is above one half), and shuffling it changes nothing."
        yield "Sharp, and without effect", calm, _ranked(rows, np.where(peak > 0.5, change, np.nan))
    table = next(iter(tables.values()))
    predicted = dict(zip(table["example"].to_pylist(), table["predicted"].to_pylist(), strict=True))
    peaks = dict(zip(table["example"].to_pylist(), column(table, "max_attention"), strict=True))
    wrong = [p for p, label in predicted.items() if p in examples and examples[p].label not in (None, label)]
    wrong.sort(key=lambda place: (-np.nan_to_num(peaks[place]), place))
    yield "A wrong prediction", "Wrong, with the sharpest attention.", wrong
    yield "Another wrong prediction", "Wrong, with the most even attention.", wrong[::-1]


def _shuffled(rows: pa.Table, change: Floats) -> str:
    """For two labels, a change of the probability by more than one half always turns the answer."""
    said = "The prediction that shuffled attention changes most"
    turned = np.nanmax(change, initial=0.0) > 0.5 and set(rows["predicted"].to_pylist()) <= {0, 1}
    return f"{said}{': most shuffles turn it into the other label' if turned else ''}."


def _ranked(rows: pa.Table, *keys: Floats) -> list[int]:
    """Places by the first key, ties by the next, then by place; undefined ones are left out."""
    places = rows["example"].to_numpy()
    order = np.lexsort((places, *keys[::-1]))
    return [int(places[i]) for i in order if not any(np.isnan(key[i]) for key in keys)]
