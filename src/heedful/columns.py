"""Many explained examples as flat columns, so that nothing has to be done text by text.

Four Arrow tables, each row of one owning as many rows of the next as it counts, and the scores:

    examples      one row for each example: it owns `n_texts` texts and `n_attributions` attributions
    texts         one row for each part: the passage, then the query where there is one; it owns `n_words` positions
    positions     one row for each word of each text
    attributions  one row for each example and method: it scores every position of the parts it names
    scores        one number for each attribution and position, passage before query

A slice of examples is a slice of every column: it shares their memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

EXAMPLES = pa.schema(
    {
        "id": pa.string(),
        "labels": pa.int32(),  # place in `label_sets`
        "probabilities": pa.list_(pa.float64()),
        "truth": pa.string(),
        "n_texts": pa.int64(),
        "n_attributions": pa.int64(),
    }
)
TEXTS = pa.schema(
    {
        "text": pa.large_string(),
        "split": pa.bool_(),  # into sub-tokens, whose `word` counts; False: every position is its own word
        "n_words": pa.int64(),
    }
)
POSITIONS = pa.schema(
    {"form": pa.large_string(), "start": pa.int32(), "end": pa.int32(), "word": pa.int32()}
)
ATTRIBUTIONS = pa.schema(
    {
        "method": pa.string(),
        "kind": pa.string(),
        "signed": pa.bool_(),
        "target": pa.string(),
        "removal": pa.string(),
        "options": pa.string(),  # JSON
        "passage": pa.bool_(),  # is it scored?
        "query": pa.bool_(),
        "special": pa.float64(),  # the sum of the scores of special tokens
        "check": pa.string(),  # the name of the method's own check; null: it has none
        "value": pa.float64(),
        "ok": pa.bool_(),
        "relative": pa.float64(),
        "sentence": pa.string(),
        "forward": pa.int64(),
        "backward": pa.int64(),
    }
)


class Begins(NamedTuple):
    """Where the rows of each example begin, and at last where those of the last one end: (examples + 1,) each."""

    texts: Ints
    positions: Ints
    attributions: Ints
    scores: Ints


class Blocks(NamedTuple):
    """The scores that one attribution gives to one text, for each such pair in the order of `scores`."""

    attribution: Ints
    text: Ints
    n_words: Ints


@dataclass(frozen=True, eq=False)
class Columns:
    """See above. `label_sets` are the different tuples of labels of the examples, most often one."""

    label_sets: tuple[tuple[str, ...], ...]
    examples: pa.RecordBatch
    texts: pa.RecordBatch
    positions: pa.RecordBatch
    attributions: pa.RecordBatch
    scores: Floats

    def __post_init__(self) -> None:
        self.scores.flags.writeable = False

    def __len__(self) -> int:
        return int(self.examples.num_rows)

    @cached_property
    def blocks(self) -> Blocks:
        passage, query = flags(self.attributions, "passage"), flags(self.attributions, "query")
        query = query & (self.numbers("n_texts") > 1)[self.example_of_attribution]  # `check_columns` refuses others
        scored = np.stack([passage, query], axis=1)  # (attributions, 2)
        attribution, part = np.nonzero(scored)  # (blocks,) each, passage before query
        text = begins(self.numbers("n_texts"))[self.example_of_attribution[attribution]] + part
        return Blocks(attribution, text, self.n_words[text])

    @cached_property
    def begins(self) -> Begins:
        texts, attributions = begins(self.numbers("n_texts")), begins(self.numbers("n_attributions"))
        return Begins(texts, begins(self.n_words)[texts], attributions, begins(self.n_scores)[attributions])

    @property
    def n_words(self) -> Ints:
        return integers(self.texts, "n_words")  # (texts,)

    @property
    def n_scores(self) -> Ints:
        """Of each attribution: (attributions,)."""
        rows = np.bincount(self.blocks.attribution, self.blocks.n_words, self.attributions.num_rows)
        return rows.astype(np.int64)

    @property
    def example_of_attribution(self) -> Ints:
        return np.repeat(np.arange(len(self)), self.numbers("n_attributions"))

    @property
    def attribution_of_score(self) -> Ints:
        return np.repeat(np.arange(self.attributions.num_rows), self.n_scores)

    @property
    def position_of_score(self) -> Ints:
        """The row in `positions` of each score."""
        return ranges(begins(self.n_words)[self.blocks.text], self.blocks.n_words)

    def numbers(self, name: str) -> Ints:
        return integers(self.examples, name)

    def slice(self, start: int, stop: int) -> Columns:
        """The examples from `start` to before `stop`; nothing is copied."""

        def part(rows: Ints) -> tuple[int, int]:
            return int(rows[start]), int(rows[stop] - rows[start])

        first, n = part(self.begins.scores)
        return Columns(
            self.label_sets,
            self.examples.slice(start, stop - start),
            self.texts.slice(*part(self.begins.texts)),
            self.positions.slice(*part(self.begins.positions)),
            self.attributions.slice(*part(self.begins.attributions)),
            self.scores[first : first + n],
        )

    def take(self, rows: Ints) -> Columns:
        """The examples at `rows`, in that order."""

        def of(begin: Ints) -> Ints:
            return ranges(begin[rows], begin[rows + 1] - begin[rows])

        return Columns(
            self.label_sets,
            self.examples.take(pa.array(rows)),
            self.texts.take(pa.array(of(self.begins.texts))),
            self.positions.take(pa.array(of(self.begins.positions))),
            self.attributions.take(pa.array(of(self.begins.attributions))),
            self.scores[of(self.begins.scores)],
        )

    def keep(self, wanted: NDArray[np.bool_]) -> Columns:
        """Only the wanted attributions, and the examples that have any; `wanted` is (attributions,)."""
        left = np.bincount(self.example_of_attribution[wanted], minlength=len(self))  # (examples,)
        fewer = Columns(
            self.label_sets,
            with_column(self.examples, "n_attributions", left),
            self.texts,
            self.positions,
            self.attributions.filter(pa.array(wanted)),
            self.scores[np.repeat(wanted, self.n_scores)],
        )
        return fewer if left.all() else fewer.take(np.flatnonzero(left))

    def cut(self, rows: int) -> Iterator[Columns]:
        """Pieces of whole examples with at most `rows` scores each (or one example)."""
        start, ends = 0, self.begins.scores[1:]
        while start < len(self):
            stop = int(np.searchsorted(ends, self.begins.scores[start] + rows, side="right"))
            stop = max(stop, start + 1)
            yield self.slice(start, stop)
            start = stop

    def surfaces(self) -> list[str]:
        """Each position as it was written."""
        texts = self.texts["text"].to_pylist()
        spans = (integers(self.positions, name).tolist() for name in ("start", "end"))
        text_of_position = np.repeat(np.arange(len(texts)), self.n_words).tolist()
        return [texts[i][start:end] for i, start, end in zip(text_of_position, *spans, strict=True)]


def begins(counts: Ints) -> Ints:
    """Where each of so many rows begins, and where the last ends: (n + 1,)."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def ranges(first: Ints, counts: Ints) -> Ints:
    """first[0], first[0] + 1, ... (counts[0] of them), first[1], ...: many ranges, one after the other."""
    return np.repeat(first - begins(counts)[:-1], counts) + np.arange(counts.sum())


def integers(table: pa.RecordBatch, name: str) -> Ints:
    found: Ints = table[name].to_numpy()
    return found


def flags(table: pa.RecordBatch, name: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = table[name].to_numpy(zero_copy_only=False)  # Arrow has bits, numpy bytes
    return found


def with_column(table: pa.RecordBatch, name: str, values: pa.Array | NDArray[np.generic]) -> pa.RecordBatch:
    """`table` with other values in one of its columns."""
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    return table.set_column(place, field, values if isinstance(values, pa.Array) else pa.array(values, field.type))
