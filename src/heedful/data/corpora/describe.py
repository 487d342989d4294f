"""A corpus in numbers: what was read, and the row of Table 1 of Jain & Wallace 2019, ours beside the published."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from itertools import combinations
from typing import Any

from heedful.data.corpora.labels import Spelling, count_labels, label_value, name_classes
from heedful.data.corpora.recipe import Recipe
from heedful.data.corpora.registry import CORPORA, Table1Row
from heedful.data.text.vocabulary import MARKERS, Vocabulary
from heedful.errors import escape
from heedful.records import SPLITS, Corpus, Example, Split

EXAMPLE_WORDS = 60  # of the text that is shown
MOST_LABELS = 12  # whose counts are shown


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a corpus: to be said before anything is computed from it."""

    name: str
    task: str
    source: str
    counts: Mapping[Split, Mapping[str, int]]  # texts by split and label
    skipped: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        """One paragraph, then a line for each warning."""
        total = sum(sum(counts.values()) for counts in self.counts.values())
        splits = ", ".join(f"{split} {show_counts(counts)}" for split, counts in self.counts.items())
        skipped = f" Skipped: {len(self.skipped)} rows." if self.skipped else ""
        told = f"{self.name} ({self.task}), {total} texts: {splits}. From {self.source}.{skipped}"
        return "\n".join(map(escape, [told, *(f"warning: {warning}." for warning in self.warnings)]))


def show_counts(counts: Mapping[str, int]) -> str:
    """75 (spam 50, ham 25); the most frequent first where there are many."""
    items = list(counts.items())
    if len(items) > MOST_LABELS:
        items = sorted(items, key=lambda item: -item[1])[:MOST_LABELS]
    shown = ", ".join(f"{label} {n}" for label, n in items)
    return f"{sum(counts.values())} ({shown}{', ...' if len(counts) > len(items) else ''})"


def describe_reading(corpus: Corpus) -> Reading:
    """Rows, labels, what was skipped, what is doubtful."""
    counts = {
        split: count_labels((example.label for example in corpus[split]), corpus.labels)
        for split in SPLITS
        if corpus[split]
    }
    return Reading(corpus.name, corpus.task, corpus.source, counts, corpus.skipped, corpus.warnings)


@dataclass(frozen=True, slots=True)
class Description(Reading):
    """`train` and `test` count the examples per label; mean length and vocabulary are of train."""

    labels: tuple[str, ...]
    sizes: dict[Split, int]
    train: tuple[int, ...]
    test: tuple[int, ...]
    vocabulary: int
    min_df: int
    mean_length: float
    with_evidence: int
    example: dict[str, Any]
    published: Table1Row | None
    differences: tuple[str, ...]  # of our counts from the published: scores compare only as far as they agree


def describe(corpus: Corpus, min_df: int | None = None) -> Description:
    """`min_df` is that of the known corpus, or 1. The vocabulary counts the markers, as in the paper."""
    name = corpus.name.removesuffix("-simulated")
    entry = CORPORA.get(name)
    df = min_df if min_df is not None else entry.min_df if entry else 1
    learnt = corpus["train"] or next(iter(corpus.splits.values()))
    texts = [words for e in learnt for words in (e.passage, e.query) if words is not None]
    texts += corpus.only_words
    everyone = [example for split in SPLITS for example in corpus[split]]
    published = entry.published if entry else None
    train, test = _per_label(corpus, "train"), _per_label(corpus, "test")
    return Description(
        **asdict(describe_reading(corpus)),
        labels=corpus.labels,
        sizes={split: len(corpus[split]) for split in SPLITS},
        train=train,
        test=test,
        vocabulary=len(Vocabulary.build(texts, df)) if texts else len(MARKERS),
        min_df=df,
        mean_length=sum(len(e.passage) for e in learnt) / max(len(learnt), 1),
        with_evidence=sum(e.evidence is not None for e in everyone),
        example=_show_example(learnt[0], corpus.labels),
        published=published,
        differences=() if published is None else _differences(train, test, published),
    )


def _differences(train: tuple[int, ...], test: tuple[int, ...], published: Table1Row) -> tuple[str, ...]:
    """Where the counts are not those of Table 1 (of the classes, where it has classes)."""
    found = []
    for split, ours, theirs in (("train", train, published.train), ("test", test, published.test)):
        if sum(ours) != sum(theirs):
            found.append(f"{split} has {sum(ours)} texts here and {sum(theirs)} in Table 1")
        elif len(theirs) > 1 and ours != theirs:
            found.append(f"{split} has other counts per class than Table 1")
    return tuple(found)


def _per_label(corpus: Corpus, split: Split) -> tuple[int, ...]:
    counts = [0] * len(corpus.labels)
    for example in corpus[split]:
        if example.label is not None:
            counts[example.label] += 1
    return tuple(counts)


def _show_example(example: Example, labels: tuple[str, ...]) -> dict[str, Any]:
    words = [example.passage.surface(i) for i in range(min(len(example.passage), EXAMPLE_WORDS))]
    shown: dict[str, Any] = {
        "id": example.id,
        "words": words + (["..."] if len(example.passage) > EXAMPLE_WORDS else []),
        "label": None if example.label is None else labels[example.label],
    }
    if example.query is not None:
        shown["query"] = example.query.text
    if example.evidence is not None:
        shown["evidence"] = [example.passage.surface(i) for i in example.evidence[:EXAMPLE_WORDS]]
    return shown


# What is doubtful about a corpus that could be read: nothing that stops, everything that should be known.


FEW = 5  # training texts of a label; with fewer nothing can be learnt of it
SHOWN = 5  # labels named in one warning
COPIES = 0.05  # of the texts: fewer do not change a digit
Content = tuple[str, str]  # of a text and its query


def find_warnings(corpus: Corpus, recipe: Recipe, spellings: Sequence[Spelling]) -> tuple[str, ...]:
    """One sentence each: about labels first, then about texts that stand in two splits."""
    found = [*_merged_spellings(spellings)]
    if recipe.labels is None and recipe.labels_from == "rows":
        found += _alike_labels(corpus.labels)
    if recipe.labels_from == "rows":  # where any word can be an answer most labels have no text
        found += _rare_labels(corpus)
    return (*found, *repeated_texts(corpus))


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


def repeated_texts(corpus: Corpus) -> Iterator[str]:
    """Texts that stand in two splits, and copies within one."""
    texts = {split: [_content(example) for example in corpus[split]] for split in SPLITS}
    for split, some in texts.items():
        yield from tell_copies(split, some)
    for one, other in combinations([split for split in SPLITS if texts[split]], 2):
        if texts[one] == texts[other]:
            yield f"{other} is {one}: the same {len(texts[one])} texts in the same order"
            continue
        known = set(texts[one])
        places = [i for i, text in enumerate(texts[other]) if text in known]
        if places:
            first = corpus[other][places[0]].id
            yield f"{len(places)} of the {len(texts[other])} texts of {other} stand in {one}, too (the first: {first})"


def tell_copies(split: str, texts: Sequence[Content]) -> Iterator[str]:
    """A sentence where so many texts are copies of others that answers look surer than they are."""
    copies = len(texts) - len(set(texts))
    if copies > COPIES * len(texts):
        yield (
            f"{copies:,} of the {len(texts):,} texts of {split} are copies of others: each counts as a new one, so "
            "intervals are too narrow"
        )


def tell_trained_on(split: str, texts: Sequence[Content], training: Collection[Content], model: str) -> Iterator[str]:
    """A sentence where a model is asked about texts that it was trained on."""
    known = sum(text in training for text in texts)
    if known:
        share = "all" if known == len(texts) else f"{known:,} of the"
        yield (
            f"{share} {len(texts):,} texts of {split} stand in the data that {model} was trained on: what it makes of "
            "them says little about new texts"
        )


def content_of(text: str, query: str | None) -> Content:
    """What two rows share that are one text: all but white space."""
    return " ".join(text.split()), " ".join((query or "").split())


def _content(example: Example) -> Content:
    return content_of(example.passage.text, example.query.text if example.query is not None else None)
