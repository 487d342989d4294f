"""The words of rows, made when they are needed, and the filter by their number.

How many words a text has can often be told without a tokenizer. It splits at white space and then further, so
the pieces between white space are the fewest. And spaCy's English rules cut nothing within a run of letters
but the special cases that it lists ("cannot" is "can", "not"): each word is such a run, or a part of a special
case, or has a character that is not a letter. That gives the most. Only texts in between are tokenised to know.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heedful.data.corpora.recipe import Lengths, Recipe
from heedful.data.formats.rows import Ledger, Raw
from heedful.data.text.tokenise import most_words, tokenise_all, tokenizer
from heedful.records import Words


@dataclass(slots=True)
class RowWords:
    """A row, and its words once they have been made."""

    row: Raw
    passage: Words | None = None
    query: Words | None = None

    def words(self) -> Words:
        assert self.passage is not None
        return self.passage


class RowTokenizer:
    """Makes the words of rows, as a corpus's recipe says."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.split = tokenizer(recipe.tokenizer)

    def text(self, row: Raw) -> str:
        # Keras reads "<br />" as the word br.
        blank = "" if self.recipe.tokenizer == "keras" else self.recipe.blank
        return row.text.replace(blank, " " * len(blank)) if blank else row.text

    def has_words(self, text: str) -> bool:
        """Whether there would be any: a letter, digit or underscore for most, any sign for `spacy` and `whitespace`."""
        if self.recipe.tokenizer in ("spacy", "whitespace"):
            return not text.isspace() and text != ""
        if self.recipe.tokenizer in ("keras", "words_and_signs"):
            return len(self.split(text)) > 0
        return bool(re.search(r"\w", text))

    def tokenise(self, rows: Sequence[RowWords]) -> None:
        """Fill in the words of those that have none yet, all together, which is faster than one by one."""
        new = [r for r in rows if r.passage is None]
        asking = [r for r in new if r.row.query is not None]
        passages = tokenise_all(self.split, (self.text(r.row) for r in new))
        for r, words in zip(new, passages, strict=True):
            r.passage = with_entities(words) if self.recipe.keep_entities else words
        queries = tokenise_all(self.split, (r.row.query or "" for r in asking))
        for r, words in zip(asking, queries, strict=True):
            r.query = with_entities(words) if self.recipe.keep_entities else words

    def bounds(self, text: str) -> tuple[int, int]:
        """The fewest and the most words that a text can have."""
        if self.recipe.tokenizer == "spacy":
            return len(text.split()), most_words()(text)
        if self.recipe.tokenizer in ("words", "words_and_digits"):
            return len(re.findall(r"\w+", text)), most_words()(text)
        return (n := len(self.split(text))), n


def with_entities(words: Words) -> Words:
    """@entity12 has a digit, but it is a name and must not become "qqq"."""
    forms = tuple(
        words.surface(i) if words.surface(i).startswith("@entity") else form for i, form in enumerate(words.forms)
    )
    return replace(words, forms=forms)


def keep_right_lengths(
    rows: Sequence[RowWords], lengths: Lengths, words: RowTokenizer, ledger: Ledger
) -> list[RowWords]:
    """Those with more than `above` words, and fewer than `below` and than the longest if it is so asked."""
    if lengths == Lengths() or not rows:
        return list(rows)
    known = [(len(r.passage),) * 2 if r.passage is not None else words.bounds(words.text(r.row)) for r in rows]
    counts = np.array(known, dtype=np.int64)  # (rows, 2) fewest and most words

    def count(doubtful: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        places = np.flatnonzero(doubtful & (counts[:, 0] != counts[:, 1])).tolist()
        words.tokenise([rows[i] for i in places])
        for i in places:
            counts[i] = len(rows[i].words())

    limit = lengths.below if lengths.below is not None else np.iinfo(np.int64).max
    if lengths.below_longest:
        count(counts[:, 1] >= counts[:, 0].max())  # the longest is among these
        limit = min(limit, int(counts[:, 0].max()))
    count((counts[:, 0] <= lengths.above) & (lengths.above < counts[:, 1]))
    count((counts[:, 0] < limit) & (limit <= counts[:, 1]))
    short = counts[:, 1] <= lengths.above  # (rows,)
    long = ~short & (counts[:, 0] >= limit)  # (rows,)
    for what, which in (("too short", short), ("too long", long)):
        if which.any():
            ledger.left_out[what] += int(which.sum())
    return [rows[i] for i in np.flatnonzero(~short & ~long).tolist()]
