"""A text that is asked about: prediction, every method's heatmap, and attention weights that can be moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from heedful.explanation.attribution import Attribution
from heedful.explanation.drawing import LEGEND, LEVELS, html, visible
from heedful.explanation.record import Explained
from heedful.records import Example, Words
from heedful.report.cards import check_says
from heedful.server.live.inference import LoadedModel
from heedful.server.question import DEADLINE

MOST_LABELS = 6  # bars of the prediction
MOST_SLIDERS = 200  # words that get a slider each; longer texts are moved as a whole
LONGEST_WORD = 60


def look(
    model: LoadedModel, example: Example, methods: tuple[str, ...], target: str | None
) -> tuple[dict[str, Any], Explained]:
    """Everything the model says about a text, as JSON values; and as the record, for drawing."""
    attention, known = model.attention(example), model.known(example)  # before the deadline ends a method
    explained, unfinished = model.explain(example, methods, target)
    p = explained.probabilities
    order = p.argsort()[::-1][:MOST_LABELS].tolist()
    data = {
        "text": example.passage.text,
        "query": None if example.query is None else example.query.text,
        "labels": list(explained.labels),
        "probabilities": p.tolist(),
        "predicted": explained.predicted,
        "truth": explained.truth,
        "likeliest": order,
        "words": [
            {"word": example.passage.surface(i), "token": form, "known": known[i]}
            for i, form in enumerate(example.passage.forms)
        ],
        "query_words": None if example.query is None else [*example.query.forms],
        "attention": attention,
        "attributions": [_to_json(a) for a in explained.attributions],
        "unfinished": unfinished,  # methods that the deadline ended
        "deadline": DEADLINE,
    }
    return data, explained


def draw(model: LoadedModel, example: Example, looked: dict[str, Any], explained: Explained) -> dict[str, Any]:
    """What only a page needs of it."""
    return {
        "drawn": heatmaps(explained),
        "text": paint(example, looked["attention"]),
        "sliders": sliders(example, looked["attention"]),
        "legend": legend(),
        "arithmetic": model.arithmetic(example) if looked["attention"] else None,
    }


def _to_json(a: Attribution) -> dict[str, Any]:
    return {
        "method": a.method,
        "kind": a.kind,
        "signed": a.signed,
        "target": a.target,
        "scores": {part: scores.tolist() for part, scores in a.scores.items()},
        "removal": a.removal,
        "check": None if a.check is None else {"ok": a.check.ok, "says": check_says(a)},
        "passes": {"forward": a.cost.forward, "backward": a.cost.backward},
    }


def heatmaps(explained: Explained) -> dict[str, list[tuple[str, Markup]]]:
    """The heatmaps of each method: (part, HTML); heatmap.html escapes what comes from the text."""
    return {
        a.method: [
            (part, Markup(html(explained.parts[part], scores, a.signed, label=f"{a.method}, {part}", peak=a.peak)))
            for part, scores in a.scores.items()
        ]
        for a in explained.attributions
    }


def paint(example: Example, attention: list[float]) -> Markup:
    """The text once, coloured by attention; script repaints it."""
    weights = attention or [0.0] * len(example.passage)  # of a model whose attention cannot be changed
    return Markup(html(example.passage, weights, False, label="attention"))


def paint_beginning(words: Words, weights: Sequence[float], longest: int) -> Markup:
    """As many words as fit into so many characters, coloured; the strongest colour is the text's own."""
    ends = words.offsets[:, 1]
    n = max(1, int((ends <= longest).sum()))
    text = words.text[: int(ends[n - 1])]
    some = Words(text, words.forms[:n], words.offsets[:n])
    drawn = html(some, list(weights[:n]), False, label="attention", peak=max(weights))
    return Markup(drawn) + ("" if n == len(words) else " …")


def legend() -> list[tuple[str, str]]:
    return [(f"hf-{sign}{LEVELS}", said) for sign, said in LEGEND.items()]


def sliders(example: Example, attention: list[float]) -> list[dict[str, Any]]:
    """What a row of the attention table shows of each word."""
    rows = []
    for i, weight in enumerate(attention[:MOST_SLIDERS]):
        word = example.passage.surface(i)
        shown = visible(word, LONGEST_WORD)
        rows.append({"i": i, "word": shown, "editable": shown == word, "weight": weight})
    return rows
