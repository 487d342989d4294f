"""Figures of the words that a model relied on, from a sample of explained texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from heedful.explanation import Explanation
from heedful.figures.drawing import chart, draws, finish
from heedful.figures.figure import Figure, Spec
from heedful.figures.theme import variable
from heedful.heatmap import visible
from heedful.report.sample import relied_on

LABELS = 4  # of which the words are shown, the most frequent ones
NAMED = 4  # words in a sentence


@dataclass(frozen=True, slots=True)
class Words:
    """The strongest words of one predicted label, drawn."""

    label: str
    top: tuple[str, ...]
    figure: Figure


def words_figures(explained: Explanation) -> list[Words]:
    """One for each predicted label, the most frequent labels first where there are many."""
    if not len(explained) or not {"omission", "attention"} <= set(explained.methods):
        return []
    relied = relied_on(explained)
    often = [e.predicted for e in explained]
    made = []
    for i, label in enumerate(most_frequent(list(relied), often)):
        rows, shown = relied[label], visible(label, 40)
        if rows:
            words = tuple(visible(str(row["word"]), 40) for row in rows)
            figure = Figure(
                f"words-{i}",
                f"Predicted “{shown}”",
                f"From {often.count(label)} texts with this prediction.",
                f"Words whose deletion weakens the prediction {shown} most: {', '.join(words)}.",
                draw_words(rows, "mean fall of the probability"),
            )
            made.append(Words(shown, words[:NAMED], figure))
    return made


def most_frequent(labels: list[str], predicted: list[str]) -> list[str]:
    """At most LABELS of them, by name."""
    return sorted(sorted(labels, key=lambda label: -predicted.count(label))[:LABELS])


@draws
def draw_words(rows: list[dict[str, Any]], title: str) -> Spec:
    """Words with their mean effect; rows have `word`, `effect`, `attention` and `times`."""
    rows = [row | {"word": visible(row["word"], 28).replace("\n", " ")} for row in rows]
    y = alt.Y("word:N", sort=None, title=None, axis=alt.Axis(labelColor=variable("ink"), labelLimit=150))
    x = alt.X(
        "effect:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1.2 * max((row["effect"] for row in rows), default=1.0)], nice=False),
    )
    tips = [
        alt.Tooltip("word:N"),
        alt.Tooltip("effect:Q", title="when deleted", format="+.3f"),
        alt.Tooltip("attention:Q", title="attention it gets", format=".2f"),
        alt.Tooltip("times:Q", title="seen so often"),
    ]
    base = chart(rows).encode(y=y, x=x, tooltip=tips)
    bar = base.mark_bar(color=variable("c0"), height={"band": 0.62})
    number = base.mark_text(align="left", dx=4).encode(text=alt.Text("effect:Q", format=".2f"))
    return finish([bar, number], 24 * max(1, len(rows)), title)


def relied_sentence(words: Sequence[Words]) -> str:
    """Which words, in one sentence."""
    parts = [f"{', '.join(one.top)} for “{one.label}”" for one in words]
    return f"What it relied on most, by deleting words: {'; '.join(parts)}." if parts else ""
