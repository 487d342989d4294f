"""The words a model knows, numbered."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heedful.config import ModelConfig
from heedful.data.text.batching import Texts
from heedful.data.text.sentences import sentence_numbers
from heedful.data.text.tokenise import Tokenizer, tokenizer
from heedful.data.text.units import Units
from heedful.errors import Mistake
from heedful.records import Part, Reserved, TokenizerName, Words

PAD, UNK, START, END = 0, 1, 2, 3
MARKERS = ("<pad>", "<unk>", "<s>", "</s>")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`words[i]` is the word with id i; the first four are markers, which no word of a text can be.

    A text that holds "<pad>" itself gets the id of an unknown word for it.
    """

    words: tuple[str, ...]
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.words[: len(MARKERS)] != MARKERS:
            raise Mistake(f"a vocabulary begins with {', '.join(MARKERS)}, not {list(self.words[:4])}.")
        index = {word: i for i, word in enumerate(self.words)}
        if len(index) != len(self.words):
            twice = next(word for i, word in enumerate(self.words) if index[word] != i)
            raise Mistake(f"a vocabulary has each word once, and this one has {twice!r} twice.")
        for marker in MARKERS:
            del index[marker]
        object.__setattr__(self, "_index", index)

    @classmethod
    def build(cls, texts: Iterable[Words], min_df: int = 1) -> Vocabulary:
        """The words that occur in at least `min_df` texts: the most frequent first, ties by alphabet."""
        df: Counter[str] = Counter()
        for text in texts:
            df.update(set(text.forms))
        for marker in MARKERS:
            df.pop(marker, None)
        kept = sorted((-n, word) for word, n in df.items() if n >= min_df)
        return cls((*MARKERS, *(word for _, word in kept)))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    def ids(self, words: Words | Iterable[str]) -> list[int]:
        """The id of each word; UNK where it is not known. Markers are not added."""
        get = self._index.get
        return [get(form, UNK) for form in (words.forms if isinstance(words, Words) else words)]

    def to_json(self) -> str:
        """A plain list of words, one on a line."""
        return json.dumps(list(self.words), ensure_ascii=False, indent=0)

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """The vocabulary that `to_json` wrote."""
        try:
            words = json.loads(text)
        except json.JSONDecodeError as error:
            raise Mistake(f"a vocabulary is a JSON list of words, and this is not JSON: {error}.") from None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise Mistake("a vocabulary is a JSON list of words, and this is something else.")
        return cls(tuple(words))


# The text encoder of our own models: `<s> words </s>`, each word looked up in a vocabulary.


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
        return cls(vocabulary, tokenizer, model.hierarchical, model.as_published.separate_embeddings)

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
        grouped = [text if isinstance(text, Units) else None for text in texts]
        texts = [text.words if isinstance(text, Units) else text for text in texts]
        for text in texts:
            flat += (START, *self.vocabulary.ids(text), END)
        lengths = np.array([len(text) + 2 for text in texts], dtype=np.int64)
        begins = np.cumsum(lengths) - lengths
        index = mark_sentences(texts) if self.sentences else None
        first = len(self.vocabulary) if self.separate and part == "query" else 0
        reserved = Reserved(pad=first + PAD, unknown=first + UNK)
        ids = np.array(flat, dtype=np.int64) + first
        if all(group is None for group in grouped):
            return Texts(ids, lengths, begins, reserved=reserved, sentence_index=index)
        whose = [
            np.arange(len(text)) if group is None else group.whole() for text, group in zip(texts, grouped, strict=True)
        ]
        word = np.concatenate([part for one in whose for part in (NONE, one, NONE)])
        return Texts(ids, lengths, begins, word >= 0, word, reserved, index)

    def pieces(self, words: Words, part: Part = "passage") -> Words:
        if not isinstance(words, Units):
            return words
        at = np.flatnonzero(words.of >= 0)
        forms = words.words.forms
        return Words(words.text, tuple(forms[i] for i in at), words.words.offsets[at])

    def knows(self, words: Words) -> list[bool]:
        return [form in self.vocabulary for form in words.forms]

    def names(self, ids: Sequence[int]) -> list[str]:
        return [self.vocabulary.words[i % len(self.vocabulary)] for i in ids]


def mark_sentences(texts: Sequence[Words]) -> NDArray[np.int64]:
    """The sentence of every token, texts one after the other: -1 for the markers around each."""
    parts = [part for text in texts for part in (NONE, sentence_numbers(text), NONE)]
    return np.concatenate([*parts, NONE[:0]])
