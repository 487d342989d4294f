"""What is computed from the scores of many examples at once: normalised, summed to words, ranked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.explanation.columns import Columns, Flags, Floats, Ints, Positions, TextColumns, begins, sum_cells


def normalise(columns: Columns) -> Columns:
    """Each attribution scaled to sum |score| = 1, what is not a word by the same factor; all zero stays all zero."""
    attribution, first = columns.attribution_of_score, begins(columns.n_scores)[:-1]
    peak = _each(np.maximum, np.abs(columns.scores), first)  # (attributions,)
    peak[peak == 0] = 1.0  # by the peak first: the sum of huge scores would overflow
    scores = columns.scores / peak[attribution]
    total = _each(np.add, np.abs(scores), first)  # (attributions,)
    total[total == 0] = 1.0
    given = columns.attributions
    scaled = replace(given, special=given.special / peak / total, rest=given.rest / peak / total)
    of_cell = columns.attribution_of_cell
    cells = replace(columns.cells, score=columns.cells.score / peak[of_cell] / total[of_cell])
    return replace(columns, attributions=scaled, scores=scores / total[attribution], cells=cells)


def sum_by_word(columns: Columns) -> Columns:
    """Scores of sub-tokens summed to words: a word begins where a text does, or the number of the word changes."""
    texts, positions = columns.texts, columns.positions
    if not texts.split.any():
        return columns
    new = np.diff(positions.word, prepend=-1) != 0  # (positions,)
    new[begins(texts.n_words)[:-1]] = True
    first = np.flatnonzero(new)  # (words,)
    text = columns.text_of_position[first]  # (words,)
    n_words = np.bincount(text, minlength=len(texts))
    begins_word = new[columns.position_of_score]  # (scores,)
    joined = replace(
        columns,
        texts=TextColumns(texts.text, np.zeros(len(texts), dtype=np.bool_), n_words),
        positions=Positions(
            positions.form[first],
            positions.start[first],
            np.maximum.reduceat(positions.end, first),
            (np.arange(len(first)) - begins(n_words)[text]).astype(np.int32),
            np.logical_or.reduceat(positions.unknown, first),
        ),
        scores=_each(np.add, columns.scores, np.flatnonzero(begins_word)),
        **_cells_by_word(columns, begins_word),
    )
    forms = np.where(texts.split[text], np.array(joined.surfaces(), dtype=np.object_), joined.positions.form)
    return replace(joined, positions=replace(joined.positions, form=forms))


def _cells_by_word(columns: Columns, begins_word: Flags) -> dict[str, Any]:
    """Cells of the same words and layer summed; what two pieces of a word do together is the word's own."""
    if not len(columns.cells):
        return {}
    cells, attribution = columns.cells, columns.attribution_of_cell
    first = begins(columns.n_scores)[:-1]  # (attributions,)
    word = np.cumsum(begins_word) - 1  # (scores,) of all
    word_of_first = np.append(word, 0)[first]

    def numbered(places: NDArray[np.int32]) -> NDArray[np.int32]:
        of_attribution = word[first[attribution] + np.maximum(places, 0)] - word_of_first[attribution]
        return np.where(places < 0, -1, of_attribution).astype(np.int32)

    moved = replace(cells, i=numbered(cells.i), j=numbered(cells.j))
    summed, owner = sum_cells(attribution, moved)
    counts = np.bincount(owner, minlength=len(columns.attributions)).astype(np.int64)
    return {"cells": summed, "attributions": replace(columns.attributions, n_cells=counts)}


def rank_scores(columns: Columns, k: int) -> tuple[Ints, Ints]:
    """The rows of the `k` largest |score| of each attribution, strongest first, and their ranks from 1.

    Of equals the earlier comes first.
    """
    order = np.lexsort((-np.abs(columns.scores), columns.attribution_of_score))  # stable
    n = columns.n_scores
    rank = np.arange(len(order)) - np.repeat(begins(n)[:-1], n) + 1
    return order[rank <= k], rank[rank <= k]


def _each(reduce: np.ufunc, values: Floats, first: Ints) -> Floats:
    """`reduce` of the values from each of `first` to before the next."""
    found: Floats = reduce.reduceat(values, first) if len(first) else np.empty(0)
    return found
