"""A corpus in numbers: the row of Table 1 of Jain & Wallace 2019, ours beside the published one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from heedful.data.registry import CORPORA, Published
from heedful.data.vocabulary import MARKERS, Vocabulary
from heedful.records import SPLITS, Corpus, Example, Split

EXAMPLE_WORDS = 60  # of the text that is shown


@dataclass(frozen=True, slots=True)
class Description:
    """`train` and `test` count the examples per label; mean length and vocabulary are of train."""

    name: str
    task: str
    source: str
    labels: tuple[str, ...]
    sizes: dict[Split, int]
    train: tuple[int, ...]
    test: tuple[int, ...]
    vocabulary: int
    min_df: int
    mean_length: float
    with_evidence: int
    example: dict[str, Any]
    skipped: tuple[str, ...]
    published: Published | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def describe(corpus: Corpus, min_df: int | None = None) -> Description:
    """`min_df` is that of the known corpus, or 1. The vocabulary counts the markers, as in the paper."""
    name = corpus.name.removesuffix("-simulated")
    entry = CORPORA.get(name)
    df = min_df if min_df is not None else entry.min_df if entry else 1
    learnt = corpus["train"] or next(iter(corpus.splits.values()))
    texts = [words for e in learnt for words in (e.passage, e.query) if words is not None]
    everyone = [example for split in SPLITS for example in corpus[split]]
    return Description(
        name=corpus.name,
        task=corpus.task,
        source=corpus.source,
        labels=corpus.labels,
        sizes={split: len(corpus[split]) for split in SPLITS},
        train=_per_label(corpus, "train"),
        test=_per_label(corpus, "test"),
        vocabulary=len(Vocabulary.build(texts, df)) if texts else len(MARKERS),
        min_df=df,
        mean_length=sum(len(e.passage) for e in learnt) / max(len(learnt), 1),
        with_evidence=sum(e.evidence is not None for e in everyone),
        example=_shown(learnt[0], corpus.labels),
        skipped=corpus.skipped,
        published=entry.published if entry else None,
    )


def _per_label(corpus: Corpus, split: Split) -> tuple[int, ...]:
    counts = [0] * len(corpus.labels)
    for example in corpus[split]:
        if example.label is not None:
            counts[example.label] += 1
    return tuple(counts)


def _shown(example: Example, labels: tuple[str, ...]) -> dict[str, Any]:
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
