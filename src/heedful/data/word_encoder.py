"""The text encoder of our own models: `<s> words </s>`, each word looked up in a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heedful.data.batching import Texts
from heedful.data.sentences import sentence_numbers
from heedful.data.tokenise import Tokenizer, tokenizer
from heedful.data.vocabulary import END, PAD, START, UNK, Vocabulary
from heedful.records import Part, Reserved, TokenizerName, Words

NONE = np.array([-1])  # the sentence of a marker
RESERVED = Reserved(pad=PAD, unknown=UNK)


@dataclass(frozen=True)
class WordEncoder:
    """Every word is one token. A vocabulary has no mask: the unknown word stands for a hidden one."""

    vocabulary: Vocabulary
    tokenizer: TokenizerName = "spacy"
    sentences: bool = False  # whether batches say which sentence a word belongs to

    @property
    def reserved(self) -> Reserved:
        return RESERVED

    @cached_property
    def _split(self) -> Tokenizer:
        return tokenizer(self.tokenizer)

    def split(self, text: str) -> Words:
        return self._split(text)

    def encode(self, texts: Sequence[Words], part: Part = "passage") -> Texts:
        flat: list[int] = []
        for text in texts:
            flat += (START, *self.vocabulary.ids(text), END)
        lengths = np.array([len(text) + 2 for text in texts], dtype=np.int64)
        begins = np.cumsum(lengths) - lengths
        index = mark_sentences(texts) if self.sentences else None
        return Texts(np.array(flat, dtype=np.int64), lengths, begins, reserved=RESERVED, sentence_index=index)

    def pieces(self, words: Words, part: Part = "passage") -> Words:
        return words

    def knows(self, words: Words) -> list[bool]:
        return [form in self.vocabulary for form in words.forms]

    def names(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.words[i] for i in ids]


def mark_sentences(texts: Sequence[Words]) -> NDArray[np.int64]:
    """The sentence of every token, texts one after the other: -1 for the markers around each."""
    parts = [part for text in texts for part in (NONE, sentence_numbers(text), NONE)]
    return np.concatenate([*parts, NONE[:0]])
