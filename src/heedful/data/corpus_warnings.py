"""What is doubtful about a corpus that could be read: nothing that stops, everything that should be known."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations

from heedful.data.labels import Spelling, count_labels, label_value, name_classes
from heedful.data.recipe import Recipe
from heedful.records import SPLITS, Corpus, Example

FEW = 5  # training texts of a label; with fewer nothing can be learnt of it
SHOWN = 5  # labels named in one warning


def find_warnings(corpus: Corpus, recipe: Recipe, spellings: Sequence[Spelling]) -> tuple[str, ...]:
    """One sentence each: about labels first, then about texts that stand in two splits."""
    found = [*_merged_spellings(spellings)]
    if recipe.labels is None and recipe.labels_from == "rows":
        found += _alike_labels(corpus.labels)
    if recipe.labels_from == "rows":  # where any word can be an answer most labels have no text
        found += _rare_labels(corpus)
    return (*found, *_repeated_texts(corpus))


def _merged_spellings(spellings: Sequence[Spelling]) -> Iterator[str]:
    classes = name_classes(spellings)
    for name in dict.fromkeys(classes.values()):
        alike = [spelling for spelling in spellings if classes[spelling.label] == name]
        if len(alike) > 1:
            yield f"{' and '.join(map(str, alike))} were read as one label"


def _alike_labels(labels: Sequence[str]) -> Iterator[str]:
    """Names with the same letters and digits: "very good", "very-good"."""
    by_letters: dict[str, list[str]] = {}
    for label in labels:
        if not isinstance(label_value(label), Decimal):
            by_letters.setdefault(re.sub(r"[\W_]+", "", label.casefold()), []).append(label)
    for letters, alike in by_letters.items():
        if letters and len(alike) > 1:
            names = " and ".join(map(repr, alike))
            yield f"the labels {names} are almost equal and were read as {len(alike)} classes"


def _rare_labels(corpus: Corpus) -> Iterator[str]:
    counts = {s: count_labels((e.label for e in corpus[s]), corpus.labels) for s in SPLITS if corpus[s]}
    for split, of in counts.items():
        present = [label for label, n in of.items() if n]
        absent = [label for label, n in of.items() if not n]
        if len(present) == 1 and split == "dev":
            yield (
                f"all {len(corpus[split])} texts of dev have the label {present[0]!r}: ROC-AUC is undefined there, "
                "so it cannot tell which epoch is best"
            )
        elif absent:
            yield f"{split} has no text with the label {_some(absent)}"
    few = [label for label, n in counts.get("train", {}).items() if 0 < n < FEW]
    if few:
        yield f"train has fewer than {FEW} texts with the label {_some(few)}"


def _some(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - SHOWN} others" if len(labels) > SHOWN else ""
    return ", ".join(map(repr, labels[:SHOWN])) + more


def _repeated_texts(corpus: Corpus) -> Iterator[str]:
    texts = {split: [_content(example) for example in corpus[split]] for split in SPLITS}
    for one, other in combinations([split for split in SPLITS if texts[split]], 2):
        if texts[one] == texts[other]:
            yield f"{other} is {one}: the same {len(texts[one])} texts in the same order"
            continue
        known = set(texts[one])
        places = [i for i, text in enumerate(texts[other]) if text in known]
        if places:
            first = corpus[other][places[0]].id
            yield f"{len(places)} of the {len(texts[other])} texts of {other} stand in {one}, too (the first: {first})"


def _content(example: Example) -> tuple[str, str]:
    return example.passage.text, example.query.text if example.query is not None else ""
