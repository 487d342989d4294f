"""What is computed from the scores of many examples at once: normalised, summed to words, ranked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from heedful.columns import POSITIONS, Columns, Floats, Ints, begins, flags, integers, with_column


def normalised(columns: Columns) -> Columns:
    """Each attribution scaled to sum |score| = 1, special tokens by the same factor; all zero stays all zero."""
    attribution, first = columns.attribution_of_score, begins(columns.n_scores)[:-1]
    peak = _each(np.maximum, np.abs(columns.scores), first)  # (attributions,)
    peak[peak == 0] = 1.0  # by the peak first: the sum of huge scores would overflow
    scores = columns.scores / peak[attribution]
    total = _each(np.add, np.abs(scores), first)  # (attributions,)
    total[total == 0] = 1.0
    special = columns.attributions["special"].to_numpy(zero_copy_only=False) / peak / total  # NaN: there are none
    return replace(
        columns,
        attributions=with_column(columns.attributions, "special", pa.array(special, from_pandas=True)),
        scores=scores / total[attribution],
    )


def by_word(columns: Columns) -> Columns:
    """Scores of sub-tokens summed to words: a word begins where a text does, or the number of the word changes."""
    split = flags(columns.texts, "split")
    if not split.any():
        return columns
    start, end, word = (integers(columns.positions, name) for name in ("start", "end", "word"))
    new = np.diff(word, prepend=-1) != 0  # (positions,)
    new[begins(columns.n_words)[:-1]] = True
    first = np.flatnonzero(new)  # (words,)
    text = np.repeat(np.arange(len(split)), columns.n_words)[first]  # (words,)
    n_words = np.bincount(text, minlength=len(split))
    number = np.arange(len(text)) - begins(n_words)[text]  # (words,) within its text
    forms = columns.positions["form"].take(pa.array(first))
    made = (forms, pa.array(start[first]), pa.array(np.maximum.reduceat(end, first)), pa.array(number, pa.int32()))
    texts = with_column(columns.texts, "n_words", n_words)
    joined = replace(
        columns,
        texts=with_column(texts, "split", np.zeros(len(split), dtype=np.bool_)),
        positions=pa.record_batch(list(made), POSITIONS),
        scores=_each(np.add, columns.scores, np.flatnonzero(new[columns.position_of_score])),
    )
    surfaces = pa.array(joined.surfaces(), pa.large_string())
    positions = with_column(joined.positions, "form", pc.if_else(pa.array(split[text]), surfaces, forms))
    return replace(joined, positions=positions)


def ranked(columns: Columns, k: int) -> tuple[Ints, Ints]:
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
