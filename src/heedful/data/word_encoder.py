"""The text encoder of our own models: `<s> words </s>`, each word looked up in a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heedful.config import ModelConfig
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
    separate: bool = False  # whether passages and queries have ids, and so embeddings, of their own

    @classmethod
    def of(cls, vocabulary: Vocabulary, tokenizer: TokenizerName, model: ModelConfig) -> WordEncoder:
        """As a model of this configuration reads."""
        return cls(vocabulary, tokenizer, model.hierarchical, model.separate_embeddings)

    @property
    def reserved(self) -> Reserved:
        return RESERVED

    @property
    def n_ids(self) -> int:
        """Rows of the table of embeddings: those of queries follow those of passages."""
        return len(self.vocabulary) * (2 if self.separate else 1)

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
        first = len(self.vocabulary) if self.separate and part == "query" else 0
        reserved = Reserved(pad=first + PAD, unknown=first + UNK)
        ids = np.array(flat, dtype=np.int64) + first
        return Texts(ids, lengths, begins, reserved=reserved, sentence_index=index)

    def pieces(self, words: Words, part: Part = "passage") -> Words:
        return words

    def knows(self, words: Words) -> list[bool]:
        return [form in self.vocabulary for form in words.forms]

    def names(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.words[i % len(self.vocabulary)] for i in ids]


def mark_sentences(texts: Sequence[Words]) -> NDArray[np.int64]:
    """The sentence of every token, texts one after the other: -1 for the markers around each."""
    parts = [part for text in texts for part in (NONE, sentence_numbers(text), NONE)]
    return np.concatenate([*parts, NONE[:0]])
