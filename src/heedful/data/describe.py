"""A corpus in numbers: what was read, and the row of Table 1 of Jain & Wallace 2019, ours beside the published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from heedful.data.labels import count_labels
from heedful.data.registry import CORPORA, Published
from heedful.data.vocabulary import MARKERS, Vocabulary
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
        return "\n".join([told, *(f"warning: {warning}." for warning in self.warnings)])


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
    published: Published | None
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


def _differences(train: tuple[int, ...], test: tuple[int, ...], published: Published) -> tuple[str, ...]:
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
