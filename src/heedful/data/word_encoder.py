"""The text encoder of our own models: `<s> words </s>`, each word looked up in a vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heedful.data.batching import Texts
from heedful.data.tokenise import Tokenizer, tokenizer
from heedful.data.vocabulary import END, PAD, START, UNK, Vocabulary
from heedful.records import Part, Reserved, TokenizerName, Words

RESERVED = Reserved(pad=PAD, unknown=UNK)


@dataclass(frozen=True)
class WordEncoder:
    """Every word is one token. A vocabulary has no mask: the unknown word stands for a hidden one."""

    vocabulary: Vocabulary
    tokenizer: TokenizerName = "spacy"

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
        return Texts(np.array(flat, dtype=np.int64), lengths, np.cumsum(lengths) - lengths, reserved=RESERVED)

    def pieces(self, words: Words, part: Part = "passage") -> Words:
        return words

    def knows(self, words: Words) -> list[bool]:
        return [form in self.vocabulary for form in words.forms]
