"""The edit `plant`: a known shortcut to the label is put into a corpus (Bastings et al. 2022, section 3).

    single    one word for each label: where it stands, that is the label              evidence: the word
    ordered   two words; which of them comes first tells which of two labels it is     evidence: both
    context   one word for each label, which tells it only where a third word stands   evidence: the word and the third
              in the text, too; alone, either of them tells nothing

Planted words occur nowhere else in the corpus, stand at random places, and decide: the label is drawn first, whatever
the text says. A `share` of the training and dev texts is planted and the rest stays as it is; every text of the test
split is planted, and its evidence is where the words stand. Under `context` as many texts again get one of the words
alone and keep their labels, so that no word decides by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.random import Generator
from pydantic import Field

from heedful.config import Config, RunConfig, Seed
from heedful.data.edits.edit import Scores, join_words, split_words
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus, Example, Split

Kind = Literal["single", "ordered", "context"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SYLLABLES = ("zor", "ble", "qua", "vin", "dax", "mup", "fep", "tog", "wug", "nim")


class PlantConfig(Config):
    kind: Kind = "single"
    share: float = Field(default=0.25, gt=0, le=1)  # of the training and dev texts
    seed: Seed = 0


class Plant:
    config = PlantConfig
    version = "1"

    def scored_by(self, options: PlantConfig) -> tuple[RunConfig, str] | None:
        return None

    def apply(self, corpus: Corpus, options: PlantConfig, scores: Scores) -> Corpus:
        if corpus.task == "qa":
            raise Mistake(
                f"{corpus.name} asks questions: a shortcut can only be planted where there are a few fixed labels."
            )
        labels = len(corpus.labels)
        words = unseen_words(corpus, 2 if options.kind == "ordered" else labels + (options.kind == "context"))
        splits = {}
        for number, split in enumerate(SPLITS):
            rng = np.random.default_rng([options.seed, number])
            splits[split] = tuple(_plant(corpus[split], split, options, words, labels, rng))
        told = f"{corpus.source}; a shortcut is planted ({options.kind}: {', '.join(words)})"
        return replace(corpus, splits={s: splits[s] for s in SPLITS if splits[s]}, source=told)


def unseen_words(corpus: Corpus, n: int) -> list[str]:
    """Words that no text of the corpus has."""
    seen = {
        form.lower()
        for examples in corpus.splits.values()
        for example in examples
        for words in (example.passage, example.query)
        if words is not None
        for form in words.forms
    }
    made = (first + second for first in SYLLABLES for second in SYLLABLES if first != second)
    found = [word for word in made if word not in seen][:n]
    if len(found) < n:
        raise Mistake(f"{corpus.name} has {n} labels, too many for words that it does not have.")
    return found


def _plant(
    examples: Sequence[Example], split: Split, options: PlantConfig, words: list[str], labels: int, rng: Generator
) -> list[Example]:
    """Each text draws as much, whatever becomes of it."""
    made = []
    for example in examples:
        kind = rng.random()
        label = int(rng.integers(2 if options.kind == "ordered" else labels))
        places, alone = rng.random(2), int(rng.integers(2))
        if split == "test" or kind < options.share:
            made.append(_insert(example, _shortcut(options.kind, words, label), places, label))
        elif options.kind == "context" and kind < 2 * options.share:
            lonely = words[-1] if alone else words[label]
            made.append(replace(_insert(example, [lonely], places[:1], example.label), evidence=None))
        else:
            made.append(replace(example, evidence=None))
    return made


def _shortcut(kind: Kind, words: list[str], label: int) -> list[str]:
    """The words to plant, in their order in the text; under `context` any order is right."""
    if kind == "single":
        return [words[label]]
    if kind == "ordered":
        return [words[label], words[1 - label]]
    return [words[label], words[-1]]


def _insert(example: Example, planted: list[str], places: np.ndarray, label: int | None) -> Example:
    """The words at these shares of the way through the text, in their order."""
    parts = split_words(example.passage)
    at = np.sort((places[: len(planted)] * (len(parts) + 1)).astype(np.int64))  # before which word
    evidence = []
    for i, (place, word) in enumerate(zip(at.tolist(), planted, strict=True)):
        parts.insert(place + i, (word, word))
        evidence.append(place + i)
    return replace(example, passage=join_words(parts), label=label, evidence=tuple(evidence))


PLANT = Plant()
