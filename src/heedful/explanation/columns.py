"""Many explained examples as flat columns, so that nothing has to be done text by text.

Five tables, each row of one owning as many rows of the next as it counts, and two columns of numbers:

    examples       one row for each example: it owns `n_texts` texts and `n_attributions` attributions
    texts          one row for each part: the passage, then the query where there is one; it owns `n_words` positions
    positions      one row for each word of each text
    attributions   one row for each example and method: it scores every position of the parts it names, and owns
                   `n_cells` cells where its method says more than one number a position
    cells          one number for two positions, or for a layer and a position; what is not there is 0
    scores         one number for each attribution and position, passage before query
    probabilities  one number for each example and label

What many rows share (labels, facts of a method) is kept once, and rows hold its place. A slice of examples is a slice
of every column: it shares their memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from heedful.records import AnswerKind, Axes, MethodKind

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Strings = NDArray[np.object_]  # of str, or None where there is none


class ColumnTable:
    """A table of columns of the same length."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]

    def __getitem__(self, rows: slice | Ints | Flags) -> Self:
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Examples(ColumnTable):
    id: Strings
    labels: Ints  # place in `label_sets`
    truth: Strings
    n_texts: Ints
    n_attributions: Ints


@dataclass(frozen=True, eq=False)
class TextColumns(ColumnTable):
    text: Strings
    split: Flags  # into sub-tokens, several of which can be one word
    n_words: Ints


@dataclass(frozen=True, eq=False)
class Positions(ColumnTable):
    form: Strings
    start: NDArray[np.int32]
    end: NDArray[np.int32]
    word: NDArray[np.int32]  # the number of its word; where the text is not split, of itself
    unknown: Flags  # the model does not know the word: it reads the same for all such words


@dataclass(frozen=True, eq=False)
class Cells(ColumnTable):
    """Scores with one more axis, sparse and in ascending order of (layer, i, j), -1 where an axis is not there.

    `i` and `j` are places among the scores of the attribution: positions of the passage, then of the query. Of a pair
    of positions there is one cell, i <= j, and what it holds is the pair's, so that cells add up; (i, i) is what a
    position does by itself.
    """

    layer: NDArray[np.int32]
    i: NDArray[np.int32]
    j: NDArray[np.int32]
    score: Floats

    @classmethod
    def of(cls, places: Any, score: Any) -> Self:
        """From layer, i and j, anything like an array; what an int32 cannot hold is an OverflowError."""
        layer, i, j = (np.asarray(each, dtype=np.int64) for each in places)
        if any((each != each.astype(np.int32)).any() for each in (layer, i, j)):
            raise OverflowError("places of cells are outside of any text")
        kept = np.array(score, dtype=np.float64)
        return cls(layer.astype(np.int32), i.astype(np.int32), j.astype(np.int32), kept)

    @classmethod
    def none(cls) -> Self:
        return cls.of(([], [], []), [])


@dataclass(frozen=True, eq=False)
class Attributions(ColumnTable):
    """Numbers that are not defined are NaN. `check` is the name of the method's own check, None: it has none."""

    method: Ints  # place in `methods`
    target: Ints  # place in the example's labels
    passage: Flags  # is it scored?
    query: Flags
    special: Floats  # sum of the scores of special tokens
    rest: Floats  # what fell to no token
    spread: Floats  # standard error of sampled scores, as a share of the largest
    check: Strings
    value: Floats
    ok: Flags
    relative: Floats
    sentence: Strings
    forward: Ints
    backward: Ints
    n_cells: Ints


class Method(NamedTuple):
    """What the attributions of one method have in common."""

    name: str
    kind: MethodKind
    signed: bool
    removal: str | None
    options: str  # JSON
    axes: Axes = ""


class Begins(NamedTuple):
    """Where the rows of each example begin, and at last where those of the last one end: (examples + 1,) each."""

    texts: Ints
    positions: Ints
    attributions: Ints
    scores: Ints
    probabilities: Ints
    cells: Ints


class Blocks(NamedTuple):
    """The scores that one attribution gives to one text, for each such pair in the order of `scores`."""

    attribution: Ints
    text: Ints
    n_words: Ints


@dataclass(frozen=True, eq=False)
class Columns:
    """See above."""

    label_sets: tuple[tuple[str, ...], ...]
    methods: tuple[Method, ...]
    examples: Examples
    texts: TextColumns
    positions: Positions
    attributions: Attributions
    scores: Floats
    probabilities: Floats
    cells: Cells
    answers: tuple[AnswerKind, ...] = ()  # of each set of labels; none: all of them "one label"

    def __post_init__(self) -> None:
        self.scores.flags.writeable = False
        self.probabilities.flags.writeable = False
        for column in vars(self.cells).values():
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def blocks(self) -> Blocks:
        has_query = (self.examples.n_texts > 1)[self.example_of_attribution]  # `check_columns` refuses other queries
        scored = np.stack([self.attributions.passage, self.attributions.query & has_query], axis=1)
        attribution, part = np.nonzero(scored)  # (blocks,) each, passage before query
        text = begins(self.examples.n_texts)[self.example_of_attribution[attribution]] + part
        return Blocks(attribution, text, self.texts.n_words[text])

    @cached_property
    def begins(self) -> Begins:
        texts, attributions = begins(self.examples.n_texts), begins(self.examples.n_attributions)
        return Begins(
            texts,
            begins(self.texts.n_words)[texts],
            attributions,
            begins(self.n_scores)[attributions],
            begins(self.n_labels),
            begins(self.attributions.n_cells)[attributions],
        )

    @cached_property
    def n_scores(self) -> Ints:
        """Of each attribution: (attributions,)."""
        counts = np.bincount(self.blocks.attribution, self.blocks.n_words, len(self.attributions))
        return counts.astype(np.int64)

    @property
    def n_labels(self) -> Ints:
        """Of each example: (examples,)."""
        return np.array([len(labels) for labels in self.label_sets], dtype=np.int64)[self.examples.labels]

    @property
    def signed(self) -> Flags:
        """Of each attribution: (attributions,)."""
        return np.array([method.signed for method in self.methods], dtype=np.bool_)[self.attributions.method]

    @cached_property
    def example_of_attribution(self) -> Ints:
        return np.repeat(np.arange(len(self)), self.examples.n_attributions)

    @property
    def attribution_of_score(self) -> Ints:
        return np.repeat(np.arange(len(self.attributions)), self.n_scores)

    @property
    def attribution_of_cell(self) -> Ints:
        return np.repeat(np.arange(len(self.attributions)), self.attributions.n_cells)

    @cached_property
    def axes(self) -> frozenset[Axes]:
        """The axes beside the position that any attribution has."""
        used = np.unique(self.attributions.method).tolist()
        return frozenset(self.methods[i].axes for i in used) - {""}

    @property
    def text_of_position(self) -> Ints:
        return np.repeat(np.arange(len(self.texts)), self.texts.n_words)

    @property
    def position_of_score(self) -> Ints:
        return ranges(begins(self.texts.n_words)[self.blocks.text], self.blocks.n_words)

    @classmethod
    def joined(cls, parts: Sequence[Columns]) -> Columns:
        """One after the other; they are of the same labels and methods."""
        if any((part.label_sets, part.methods) != (parts[0].label_sets, parts[0].methods) for part in parts):
            raise ValueError("these columns are of different labels or methods")

        def all_rows(kind: str) -> Any:
            rows = [getattr(part, kind) for part in parts]
            columns = {name: np.concatenate([getattr(one, name) for one in rows]) for name in vars(rows[0])}
            return type(rows[0])(**columns)

        examples, texts, positions, attributions, cells = map(
            all_rows, ("examples", "texts", "positions", "attributions", "cells")
        )
        scores, probabilities = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("scores", "probabilities")
        )
        return cls(
            parts[0].label_sets,
            parts[0].methods,
            examples,
            texts,
            positions,
            attributions,
            scores,
            probabilities,
            cells,
            parts[0].answers,
        )

    def between(self, start: int, stop: int) -> Columns:
        """The examples from `start` to before `stop`; nothing is copied."""
        return self._pick(slice(start, stop), *(slice(int(begin[start]), int(begin[stop])) for begin in self.begins))

    def take(self, rows: Ints) -> Columns:
        """The examples at `rows`, in that order."""
        owned = (ranges(begin[rows], begin[rows + 1] - begin[rows]) for begin in self.begins)
        return self._pick(rows, *owned)

    def _pick(
        self,
        examples: slice | Ints,
        texts: slice | Ints,
        positions: slice | Ints,
        attributions: slice | Ints,
        scores: slice | Ints,
        probabilities: slice | Ints,
        cells: slice | Ints,
    ) -> Columns:
        return Columns(
            self.label_sets,
            self.methods,
            self.examples[examples],
            self.texts[texts],
            self.positions[positions],
            self.attributions[attributions],
            self.scores[scores],
            self.probabilities[probabilities],
            self.cells[cells],
            self.answers,
        )

    def answers_of(self, label_set: int) -> AnswerKind:
        return self.answers[label_set] if self.answers else "one label"

    def keep(self, wanted: Flags) -> Columns:
        """Only the wanted attributions, and the examples that have any; `wanted` is (attributions,)."""
        left = np.bincount(self.example_of_attribution[wanted], minlength=len(self))  # (examples,)
        fewer = replace(
            self,
            examples=replace(self.examples, n_attributions=left),
            attributions=self.attributions[wanted],
            scores=self.scores[np.repeat(wanted, self.n_scores)],
            cells=self.cells[np.repeat(wanted, self.attributions.n_cells)],
        )
        return fewer if left.all() else fewer.take(np.flatnonzero(left))

    def cut(self, rows: int) -> Iterator[Columns]:
        """Pieces of whole examples with at most `rows` scores and cells each (or one example)."""
        start, begin = 0, self.begins.scores + self.begins.cells
        while start < len(self):
            stop = int(np.searchsorted(begin, begin[start] + rows, side="right")) - 1
            stop = max(stop, start + 1)
            yield self.between(start, stop)
            start = stop

    def surfaces(self) -> list[str]:
        """Each position as it was written."""
        texts, p = self.texts.text.tolist(), self.positions
        spans = zip(self.text_of_position.tolist(), p.start.tolist(), p.end.tolist(), strict=True)
        return [texts[i][start:end] for i, start, end in spans]


def sum_cells(owner: Ints, cells: Cells) -> tuple[Cells, Ints]:
    """Cells in order, those of equal owner and places summed; and the owner of each that is left."""
    key = np.stack([owner, cells.layer, cells.i, cells.j])
    order = np.lexsort(key[::-1])
    key, score = key[:, order], cells.score[order]
    starts = np.flatnonzero(np.append(True, (np.diff(key) != 0).any(0))) if len(score) else order
    summed = np.add.reduceat(score, starts) if len(score) else score
    return Cells.of(key[1:, starts], summed), key[0, starts]


def begins(counts: Ints) -> Ints:
    """Where each of so many rows begins, and where the last ends: (n + 1,)."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def ranges(first: Ints, counts: Ints) -> Ints:
    """first[0], first[0] + 1, ... (counts[0] of them), first[1], ...: many ranges, one after the other."""
    return np.repeat(first - begins(counts)[:-1], counts) + np.arange(counts.sum())
