"""Sentences by punctuation alone: the rule of spaCy's sentencizer, on words that are there already.

A sentence ends with a word that is a sentence-final mark (spaCy's list: . ! ? and those of other scripts) and with
all punctuation that follows it: the next word that is not punctuation begins another (Serrano & Smith 2019 split
documents with spaCy). A test holds this against `spacy.blank("en")` with the pipe "sentencizer".
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from heedful.records import Words

OTHER, PUNCTUATION, FINAL = 0, 1, 2


def sentence_numbers(words: Words) -> NDArray[np.int64]:
    """Which sentence each word belongs to, from 0: (length,)."""
    kinds = np.array([_kind(form) for form in words.forms], dtype=np.int64)
    finals = np.cumsum(kinds == FINAL)  # (length,) final marks so far
    at = np.flatnonzero(kinds == OTHER)  # the words that can begin a sentence
    begins = np.zeros(len(kinds), dtype=np.int64)
    begins[at] = np.diff(finals[at], prepend=0) > 0  # a final mark since the word before
    return np.cumsum(begins)


def sentence_begins(words: Words) -> list[int]:
    """The first word of each sentence."""
    return np.flatnonzero(np.diff(sentence_numbers(words), prepend=-1)).tolist()


@lru_cache(maxsize=2**16)
def _kind(form: str) -> int:
    from spacy.lang.lex_attrs import is_punct
    from spacy.pipeline import Sentencizer

    if form in Sentencizer.default_punct_chars:
        return FINAL
    return PUNCTUATION if is_punct(form) else OTHER
