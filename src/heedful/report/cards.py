"""The examples of a page: one text, the heatmaps of all methods, and its attention beside another."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from heedful.experiments import find
from heedful.experiments.framework.description import WeightsPair
from heedful.explainers import Explainer
from heedful.explanation.attribution import Attribution
from heedful.explanation.drawing import html, visible
from heedful.explanation.record import Explained
from heedful.figures.figure import method_name
from heedful.records import Example, Words
from heedful.report.effect import ATTENTION, OMISSION
from heedful.report.findings import Choice, Illustrated

Row = dict[str, Any]

FIRST = (ATTENTION, OMISSION)  # shown before anybody asks for more: what it looks at, and what it relies on
# Of a method that sums along a path, which sharp attention bends: on pages it takes as many steps as it needs, up to a
# bound. It begins with few, and none is lost when they are doubled: most texts need no more than 49. See `takes_steps`.
STEPS: dict[str, Any] = {"tolerance": 0.05, "n_steps": 24, "max_steps": 400, "method": "fejer"}


def takes_steps(explainer: Explainer) -> bool:
    """Whether STEPS are options of it."""
    return set(STEPS) <= explainer.options


def cards(run: Illustrated) -> list[dict[str, Any]]:
    """What the template shows of each choice."""
    pairs = _pairs(run, {choice.place for choice in run.choices})
    task = run.findings.info["task"]
    return [
        _card(choice, explained, run.examples[choice.place], pairs.get(choice.place, []), task)
        for choice, explained in zip(run.choices, run.chosen, strict=True)
    ]


def _pairs(run: Illustrated, places: set[int]) -> dict[int, list[tuple[str, WeightsPair, Row]]]:
    """By place the rows of experiments that have weights over the words, with the experiment."""
    found: dict[int, list[tuple[str, WeightsPair, Row]]] = {}
    for name, table in run.findings.tables.items():
        weights = find(name).pages.weights
        if weights is not None and {weights.own, weights.other} <= set(table.column_names):
            for row in table.take(np.flatnonzero(np.isin(table["example"].to_numpy(), list(places)))).to_pylist():
                if row[weights.own] is not None and row[weights.other] is not None:
                    found.setdefault(row["example"], []).append((name, weights, row))
    return found


def _card(
    choice: Choice, explained: Explained, example: Example, pairs: list[tuple[str, WeightsPair, Row]], task: str
) -> dict[str, Any]:
    words = explained.passage
    return {
        "place": choice.place,
        "title": choice.title,
        "reason": choice.reason,
        "outcome": _outcome(explained, example),
        "note": _note(choice, explained),
        "asked": "Hypothesis" if task == "nli" else "Question",
        "query": visible(explained.query.text, 2000) if explained.query else "",
        "methods": sorted([_method(explained, a) for a in explained.attributions], key=lambda one: not one["first"]),
        "pairs": [
            _pair(words, weights, row) | {"first": name == choice.experiment}
            for name, weights, row in pairs
            if len(words) and len(row[weights.own]) == len(row[weights.other]) == len(words)
        ],
    }


def _pair(words: Words, weights: WeightsPair, row: Row) -> dict[str, Any]:
    """Two lists of weights over the same words, on one scale."""
    both = [np.array(row[weights.own]), np.array(row[weights.other])]
    peak = float(np.abs(both).max(initial=0.0))
    return {
        "heading": weights.heading,
        "halves": [
            {"name": name, "html": Markup(html(words, scores, False, label=name, peak=peak))}
            for name, scores in zip(weights.titles, both, strict=True)
        ],
        "caption": weights.caption(row),
    }


def _outcome(explained: Explained, example: Example) -> str:
    sure = float(explained.probabilities.max())
    said = f"Predicted {visible(explained.predicted)} with probability {sure:.2f}"
    if explained.truth is not None:
        right = explained.truth == explained.predicted
        said += ", which is right" if right else f", which is wrong: it is {visible(explained.truth)}"
    if example.evidence:
        known = ", ".join(f"“{visible(example.passage.surface(i), 40)}”" for i in example.evidence)
        said += f". Known to decide: {known}"
    return f"{said}. (Its id in the data: {visible(explained.id, 80)}.)"


def _note(choice: Choice, explained: Explained) -> str:
    """A low rank correlation often is about words that hardly count: say so where the strongest word is the same."""
    pair = [a for a in explained.attributions if a.method in choice.ranked_by]
    tops = {int(np.abs(a.scores["passage"]).argmax()) for a in pair if len(a.scores["passage"])}
    if len(pair) != 2 or len(tops) != 1:
        return ""
    word = visible(explained.passage.surface(tops.pop()), 40)
    return (
        f"Both put “{word}” first: they disagree about the words after it, which hardly count here. "
        "Rank correlation gives every word the same say; that is a known weakness of it."
    )


def _method(explained: Explained, a: Attribution) -> dict[str, Any]:
    scores: NDArray[np.float64] = a.scores["passage"]
    label = visible(f"{a.method} for {a.target}")
    kind = a.about_support() if a.kind == a.method else a.kind
    warning = f" · {check_says(a)}" if a.check and not a.check.kept else ""
    return {
        "name": method_name(a.method),
        "first": a.method in FIRST,
        "about": visible(f"{kind}{warning}", 300),
        "html": Markup(html(explained.passage, scores, a.signed, label=label, peak=a.peak)),
    }


def check_says(a: Attribution) -> str:
    """How far a method met its own promise. On a page nobody can raise an option, so it says what to make of it."""
    check = a.check
    if check is None:
        return ""
    steps, missed = a.options.get("max_steps"), check.relative
    if check.ok or missed is None or steps is None:
        return str(check)
    share = f"{missed:.0%}" if missed < 1 else "all"
    return f"✗ after {steps} steps {share} of the change is still missing: read these scores with care"
