"""The words that a model relied on, from many texts whose words were left out one at a time.

The mean effect of a word that was seen once is a matter of luck, and the luckiest of thousands of words would lead any
list. So a word needs some texts (`minimum_texts`), and its mean is drawn to that of all words (measure/levels.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.explanation.drawing import visible
from heedful.explanation.explanation import Explanation
from heedful.figures.figure import join_words
from heedful.measure.levels import shrink_means
from heedful.report.effect import ATTENTION, OMISSION

Row = dict[str, Any]

SHOWN = 8  # words of each label
LABELS = 4  # of which the words are shown, the most frequent ones
NAMED = 3  # words of each label in a sentence
NOTHING = 0.05  # of probability: a word whose whole interval is within it changes next to nothing


def minimum_texts(texts: int) -> int:
    """Texts that must hold a word, or nothing is said of it: three, of a thousand texts five."""
    return max(3, texts // 200)


@dataclass(frozen=True, slots=True)
class LabelWords:
    """The words of one predicted label, the strongest first; `looked_at` get much attention and change nothing."""

    label: str
    texts: int  # with this prediction
    relied: tuple[Row, ...]
    looked_at: tuple[Row, ...]


def words_by_label(explained: Explanation, places: Sequence[int]) -> list[LabelWords]:
    """Of the most frequent predicted labels, by name; none without the two methods."""
    if not len(explained) or not {OMISSION, ATTENTION} <= set(explained.methods):
        return []
    rows, often = effects_by_word(explained, places), [e.predicted for e in explained]
    return [
        LabelWords(label, often.count(label), tuple(_relied(rows[label])), tuple(_looked_at(rows[label])))
        for label in most_frequent(list(rows), often)
    ]


def effects_by_word(explained: Explanation, places: Sequence[int]) -> dict[str, list[Row]]:
    """For each predicted label the words of `minimum_texts` or more, by falling effect.

    `effect` (`low`, `high`: 95% interval) is the fall of the label's probability when the word is left out, one value
    for each text that holds it (the mean over its places there), and the mean of those drawn to the mean of all words
    of the label: `shrink_means`. `attention` is the mean weight that the word gets at a place, `even` what it would
    get there if all words were alike, `places` the texts it is in.
    """
    effects: dict[str, dict[str, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    weights: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for place, e in zip(places, explained, strict=True):
        scores, attention = (e.attribution(name).scores["passage"] for name in (OMISSION, ATTENTION))
        for i in range(len(e.passage)):
            word = e.passage.surface(i).lower()
            effects[e.predicted][word][place].append(float(scores[i]))
            weights[e.predicted, word].append((float(attention[i]), 1 / len(e.passage)))
    least = minimum_texts(len(explained))
    return {label: _rows(label, words, weights, least) for label, words in sorted(effects.items())}


def _rows(
    label: str,
    words: Mapping[str, Mapping[int, list[float]]],
    weights: Mapping[tuple[str, str], list[tuple[float, float]]],
    least: int,
) -> list[Row]:
    known = {word: found for word, found in words.items() if len(found) >= least}
    means = shrink_means([np.array([np.mean(values) for values in found.values()]) for found in known.values()])
    rows = []
    for (word, found), mean in zip(known.items(), means, strict=True):
        attention, even = np.mean(weights[label, word], axis=0).tolist()
        numbers = {"effect": mean.value, "low": mean.low, "high": mean.high, "attention": attention, "even": even}
        rounded = {name: round(value, 4) for name, value in numbers.items()}
        rows.append({"word": word, **rounded, "texts": len(found), "places": sorted(found)})
    return sorted(rows, key=lambda row: (-row["effect"], row["word"]))


def _relied(rows: Sequence[Row]) -> list[Row]:
    """The strongest, as far as their interval is above 0. Signs of punctuation are not words to tell people of."""
    return [row for row in rows if row["low"] > 0 and any(map(str.isalnum, row["word"]))][:SHOWN]


def _looked_at(rows: Sequence[Row]) -> list[Row]:
    """At least twice an even share of the attention, and a whole interval within NOTHING; the most attended first."""
    found = [
        row for row in rows if row["attention"] >= 2 * row["even"] and row["low"] > -NOTHING and row["high"] < NOTHING
    ]
    return sorted(found, key=lambda row: (-row["attention"] / row["even"], row["word"]))[:NAMED]


def most_frequent(labels: Sequence[str], predicted: Sequence[str]) -> list[str]:
    """At most LABELS of them, by name."""
    return sorted(sorted(labels, key=lambda label: -predicted.count(label))[:LABELS])


def relied_sentence(words: Sequence[LabelWords]) -> str:
    """Which words, in one sentence; empty where none was found."""
    parts = [
        f"on {_quoted([row['word'] for row in one.relied])} to say “{visible(one.label, 40)}”"
        for one in words
        if one.relied
    ]
    return f"It relied most {'; '.join(parts)}." if parts else ""


def apart_sentence(words: Sequence[LabelWords]) -> str:
    """The words that decide with less than an even share of the attention; and those that have it for nothing."""
    unseen = [row["word"] for one in words for row in one.relied if row["attention"] < row["even"]]
    looked = list(dict.fromkeys(row["word"] for one in words for row in one.looked_at))
    told = []
    if unseen:
        them = "it" if len(unseen) == 1 else "them"
        told.append(f"It relies on {_quoted(unseen)} and looks at {them} less than at an average word.")
    if looked:
        them = "it" if len(looked) == 1 else "them"
        told.append(f"It looks a lot at {_quoted(looked)}, and deleting {them} changes next to nothing.")
    return " ".join(told) or ("What it relies on it also looks at." if any(one.relied for one in words) else "")


def _quoted(words: Sequence[str]) -> str:
    return join_words([f"“{visible(word, 40)}”" for word in words[:NAMED]])
