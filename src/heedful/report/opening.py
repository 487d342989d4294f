"""The text that a report opens with: its attention can be dragged, and the page itself says what the model would.

A model that pools by attention needs little for that (`PooledStates.arithmetic`), so a page without a server can carry
it. Of any other model the text is shown with its scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from heedful.experiments import find
from heedful.experiments.framework.description import WeightsPair
from heedful.explanation.drawing import html, visible
from heedful.explanation.record import Explained
from heedful.records import Example
from heedful.report.effect import ATTENTION, OMISSION
from heedful.report.instances import measures

READABLE = (6, 24)  # words of a text that fits the screen with its bars
LABELS = 4  # bars of the prediction
HEIGHT = 56  # of a word's bar, in pixels: that of opening.js
HINT = "Drag a bar up or down: the others give way, and the prediction follows at once."
LONGEST_WORD = 24


@dataclass(frozen=True, slots=True)
class Opening:
    """A text by its place, explained; `arithmetic` is None where the page cannot answer for the model."""

    place: int
    explained: Explained
    arithmetic: Mapping[str, Any] | None = None


def typical(tables: Mapping[str, Any], examples: Mapping[int, Example]) -> int | None:
    """The place of the text whose measures are nearest to the middle of all texts: neither the best case nor the worst.

    Of texts that fit the screen and are predicted rightly, where there are such; the mean over the measures of
    |rank - middle|. None without texts.
    """
    values, _, predicted = measures(tables)
    known = [place for place in predicted if place in examples and len(examples[place].passage)]
    short = [p for p in known if READABLE[0] <= len(examples[p].passage) <= READABLE[1]]
    right = [p for p in short or known if examples[p].label in (None, predicted[p])]
    some = right or short or known
    if not some:
        return None
    away = dict.fromkeys(some, 0.0)
    for found in values.values():
        defined = np.sort([value for value in found.values() if not np.isnan(value)])
        for place in some:
            value = found.get(place, np.nan)
            rank = 0.5 if not len(defined) or np.isnan(value) else _middle_rank(defined, value)
            away[place] += abs(rank - 0.5) + (0.5 if np.isnan(value) else 0.0)
    return min(some, key=lambda place: (round(away[place], 9), len(examples[place].passage), place))


def _middle_rank(defined: Any, value: float) -> float:
    low, high = (np.searchsorted(defined, value, side=side) for side in ("left", "right"))
    return float(low + high) / 2 / len(defined)


def other_weights(tables: Mapping[str, Any], place: int, words: int) -> tuple[WeightsPair, list[float]] | None:
    """Another attention over the words of this text that an experiment has kept, and what it is."""
    for name, table in tables.items():
        weights = find(name).pages.weights
        if weights is None or weights.other not in table.column_names:
            continue
        rows = table.filter(table["example"].to_numpy() == place)
        kept = rows[weights.other].to_pylist()
        if kept and kept[0] is not None and len(kept[0]) == words:
            return weights, kept[0]
    return None


def draw_opening(
    opening: Opening, example: Example, tables: Mapping[str, Any], asked: str
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What the template shows; and what the script needs, where the attention can be moved."""
    e = opening.explained
    own = _attention(e)
    shown = sorted(e.probabilities.argsort()[::-1][:LABELS].tolist())
    other = other_weights(tables, opening.place, len(e.passage)) if opening.arithmetic is not None else None
    view = {
        "place": opening.place,
        "id": visible(e.id, 80),
        "predicted": visible(e.predicted, 60),
        "outcome": ""
        if e.truth is None
        else "rightly"
        if e.truth == e.predicted
        else f"wrongly: it is {visible(e.truth, 60)}",
        "asked": asked,
        "query": visible(e.query.text, 600) if e.query else "",
        "words": [] if opening.arithmetic is None else _chips(e, own),
        "other": None if other is None else other[0].titles[1],
        "labels": [
            {
                "i": i,
                "name": visible(e.labels[i], 40),
                "p": float(e.probabilities[i]),
                "top": e.labels[i] == e.predicted,
            }
            for i in shown
        ],
        "heats": [] if opening.arithmetic is not None else _heats(e),
        "hint": HINT,
        "why": _why(e, len(e.passage)),
    }
    if opening.arithmetic is None:
        return view, None
    data = {
        "arithmetic": dict(opening.arithmetic),
        "own": own,
        "other": None if other is None else other[1],
        "labels": [visible(label, 60) for label in e.labels],
        "distribution": opening.arithmetic["link"] in ("log_odds", "softmax"),
        "hint": HINT,
    }
    return view, data


def _why(e: Explained, words: int) -> str:
    """By which rule `typical` chose it."""
    short = " that fit here" if READABLE[0] <= words <= READABLE[1] else ""
    right = " and are predicted rightly" if short and e.truth == e.predicted else ""
    return f"A typical text: its numbers are nearest to the middle of all texts{short}{right}."


def _attention(e: Explained) -> list[float]:
    found = [a.scores["passage"] for a in e.attributions if a.method == ATTENTION]
    return [float(weight) for weight in found[0]] if found else []


def _chips(e: Explained, own: Sequence[float]) -> list[dict[str, Any]]:
    return [
        {
            "word": visible(e.passage.surface(i), LONGEST_WORD).replace("\n", " "),
            "share": f"{weight:.0%}",
            "now": round(100 * weight),
            "y": f"{HEIGHT * (1 - weight):.2f}",
            "height": f"{HEIGHT * weight:.2f}",
        }
        for i, weight in enumerate(own)
    ]


def _heats(e: Explained) -> list[tuple[str, Markup]]:
    """The text by attention, or by the first method there is, and by leave-one-out."""
    known = {a.method: a for a in e.attributions}
    names = [name for name in (ATTENTION, OMISSION) if name in known] or list(known)[:1]
    return [
        (name, Markup(html(e.passage, a.scores["passage"], a.signed, label=name, peak=a.peak)))
        for name in names
        if (a := known[name])
    ]
