"""The examples of a page: one text, the heatmaps of all methods, and its attention beside the adversarial."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from heedful.attribution import Attribution, Explained
from heedful.heatmap import Pair, html, visible
from heedful.records import Example
from heedful.report.examples import DISAGREES, Choice
from heedful.report.findings import Illustrated
from heedful.report.naming import check_says, method_name

Row = dict[str, Any]


def cards(run: Illustrated) -> list[dict[str, Any]]:
    """What the template shows of each choice."""
    adversaries = _adversaries(run, {choice.place for choice in run.choices})
    return [
        _card(
            choice,
            explained,
            run.examples[choice.place],
            adversaries.get(choice.place),
            run.findings.info["task"],
        )
        for choice, explained in zip(run.choices, run.chosen, strict=True)
    ]


def _adversaries(run: Illustrated, places: set[int]) -> dict[int, Row]:
    table = run.findings.tables.get("adversarial")
    if table is None:
        return {}
    rows = np.flatnonzero(np.isin(table["example"].to_numpy(), list(places)))
    found = table.select(["example", "attention", "adversarial", "delta_y", "jsd"]).take(rows)
    return {row["example"]: row for row in found.to_pylist()}


def _card(
    choice: Choice, explained: Explained, example: Example, adversary: Row | None, task: str
) -> dict[str, Any]:
    words = explained.passage
    pair, delta = [], ""
    if adversary and adversary["jsd"] is not None and len(adversary["attention"]) == len(words):
        own, other = (np.array(adversary[name]) for name in ("attention", "adversarial"))
        names = ("the model's attention", "adversarial attention")
        pair = [
            {"name": name, "html": Markup(html(words, scores, False, label=name, peak=peak))}
            for name, scores, peak in Pair(words, own, other, adversary["delta_y"], names).halves()
        ]
        delta = (
            f"The prediction changes by {adversary['delta_y']:.4f} between the two (Δŷ); "
            f"their distance is {adversary['jsd']:.2f} (JSD, at most 0.69)."
        )
    return {
        "place": choice.place,
        "title": choice.title,
        "reason": choice.reason,
        "outcome": _outcome(explained, example),
        "note": _note(choice, explained),
        "asked": "Hypothesis" if task == "nli" else "Question",
        "query": visible(explained.query.text, 2000) if explained.query else "",
        "methods": [_method(explained, a) for a in explained.attributions],
        "pair": pair,
        "delta": delta,
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
    return f"{said}. ({visible(explained.id, 80)})"


def _note(choice: Choice, explained: Explained) -> str:
    """A low rank correlation often is about words that hardly count: say so where the strongest word is the same."""
    pair = [a for a in explained.attributions if a.method in ("attention", "gradient_x_input")]
    tops = {int(np.abs(a.scores["passage"]).argmax()) for a in pair if len(a.scores["passage"])}
    if choice.title != DISAGREES or len(pair) != 2 or len(tops) != 1:
        return ""
    word = visible(explained.passage.surface(tops.pop()), 40)
    return (
        f"Both put “{word}” first: they disagree about the words after it, which hardly count here. "
        "Rank correlation gives every word the same say; that is a known weakness of it."
    )


def _method(explained: Explained, a: Attribution) -> dict[str, Any]:
    scores: NDArray[np.float64] = a.scores["passage"]
    label = visible(f"{a.method} for {a.target}")
    kind = "" if a.kind == a.method else a.kind
    warning = f" · {check_says(a)}" if a.check and not a.check.ok else ""
    return {
        "name": method_name(a.method),
        "about": visible(f"{kind}{warning}", 300),
        "html": Markup(html(explained.passage, scores, a.signed, label=label, peak=a.peak)),
    }
