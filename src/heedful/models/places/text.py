"""Text encoders of models that answer at places: gaps are no words, and a question stands before its passage."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from heedful.data.text.batching import Ints, Texts
from heedful.errors import Mistake, short
from heedful.models.huggingface.text import PieceEncoder
from heedful.records import Part, Words

OTHER_GAPS = re.compile(r"\[MASK\]|<mask>|_{3,}|\[BLANK\]", re.IGNORECASE)  # how people and other models write a gap


class GapEncoder(PieceEncoder):
    """The mask token that a person writes is a gap: one token, and no word that could be explained or deleted."""

    def __init__(self, given: Any, n_words: int | None = None) -> None:
        super().__init__(given, n_words)
        if self.reserved.mask is None:
            raise Mistake("the tokenizer has no mask token: it does not belong to a masked language model.")

    @property
    def gap(self) -> str:
        """How a gap is written."""
        return str(self._tokenizer.mask_token)

    def split(self, text: str) -> Words:
        words = super().split(text)
        spans = [match.span() for match in re.finditer(re.escape(self.gap), text)]
        if not spans:
            return words
        kept = [i for i, (a, b) in enumerate(words.offsets.tolist()) if all(b <= s or a >= e for s, e in spans)]
        return Words(text, tuple(words.forms[i] for i in kept), words.offsets[kept])

    def gaps(self, words: Words) -> list[int]:
        """The tokens of a text that are gaps."""
        found: list[int] = np.flatnonzero(self.encode([words], "passage").flat == self.reserved.mask).tolist()
        if not found:
            other = OTHER_GAPS.search(words.text)
            said = f"; this model does not know {other.group()!r}" if other else ""
            raise Mistake(f"{short(words.text)} has no gap: write {self.gap} where a word is to be found{said}.")
        return found

    def tokens_of(self, word: str) -> list[int]:
        """The tokens that can stand in a gap for a word: inside a text, or where a text begins."""
        (first, _), (after, _), (alone, _) = self._pieces(["a", f"a {word}", word])
        inside = [after[len(first) :] if after[: len(first)] == first else after, alone]
        single = [ids[0] for ids in inside if len(ids) == 1 and ids[0] != self.reserved.unknown]
        if not single:
            pieces = self.names(min(inside, key=len)) if inside else []
            why = "does not know" if len(pieces) < 2 else f"splits into {' '.join(pieces)}"
            raise Mistake(f"{word!r} is a word that this model {why}, and a gap holds one piece: give another word.")
        return sorted(set(single))


class SpanEncoder(PieceEncoder):
    """Of pairs whose first text is the question: `passage` is the second text of the tokenizer, `query` the first."""

    def __init__(self, given: Any, n_words: int | None = None) -> None:
        self._turned = False
        super().__init__(given, n_words, has_query=True)
        self._turned = True

    def encode(self, texts: Sequence[Words], part: Part) -> Texts:
        return super().encode(texts, self._other(part))

    def texts_of(self, pieces: Sequence[Sequence[int]], part: Part) -> Texts:
        return super().texts_of(pieces, self._other(part))

    def _other(self, part: Part) -> Part:
        if not self._turned:
            return part
        return "query" if part == "passage" else "passage"


def first_tokens(encoded: Texts, n_words: int) -> list[int | None]:
    """Of one text, the first token of each word; None where the tokenizer leaves nothing of it."""
    return _tokens(encoded.word_index, n_words, range(len(encoded.flat))[::-1])


def last_tokens(encoded: Texts, n_words: int) -> list[int | None]:
    return _tokens(encoded.word_index, n_words, range(len(encoded.flat)))


def _tokens(word_index: Ints | None, n_words: int, order: Sequence[int]) -> list[int | None]:
    assert word_index is not None
    found: list[int | None] = [None] * n_words
    for token in order:  # the last that is written stays
        if word_index[token] >= 0:
            found[int(word_index[token])] = token
    return found
