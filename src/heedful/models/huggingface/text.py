"""The text encoder of a fast tokenizer: pieces with their place in the text as it was written.

Words are what a person sees; a piece belongs to the word that holds its first visible character. Special tokens that
the tokenizer puts around a text belong to no word, and neither do pieces of nothing but white space.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.text.batching import Ints, Texts
from heedful.data.text.tokenise import Tokenizer, form, tokenizer
from heedful.errors import Mistake
from heedful.models.sequence import SpecialTokens
from heedful.records import Part, Reserved, Words

Spans = NDArray[np.int32]  # (pieces, 2)
# Scripts that put no blanks between words (Thai, Lao, Myanmar, Khmer, Kana, Han): there, pieces are the words.
WITHOUT_BLANKS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
SPACE = re.compile(r"\s")
SAMPLE = ("one", "one two three, four five")


class PieceEncoder:
    """`given` is copied: setting up padding and truncation would change the user's own."""

    def __init__(self, given: Any, n_words: int | None = None, has_query: bool = False) -> None:
        if not getattr(given, "is_fast", False):
            raise Mistake(
                f"{type(given).__name__} is a tokenizer without offsets (written in Python), so its pieces cannot be "
                "found in the text: give a fast one (AutoTokenizer.from_pretrained, a folder with tokenizer.json)."
            )
        self._tokenizer = copy.deepcopy(given)
        self.n_words = n_words  # ids that the model has embeddings for
        self.has_query = has_query
        self._find_special()
        self.frame = SpecialTokens(*map(len, self._around["passage"]))
        self._check_sample()

    @cached_property
    def reserved(self) -> Reserved:
        """Ids that the model has no embedding for are as good as none: nothing is ever resized."""
        return Reserved(
            pad=self._known(self._tokenizer.pad_token_id),
            unknown=self._known(self._tokenizer.unk_token_id),
            mask=self._known(self._tokenizer.mask_token_id),
        )

    def _known(self, token: int | None) -> int | None:
        return None if token is None or (self.n_words is not None and token >= self.n_words) else token

    @property
    def with_types(self) -> bool:
        """Whether the tokenizer tells models which of two texts a token belongs to."""
        return "token_type_ids" in self._tokenizer.model_input_names

    @property
    def limit(self) -> int | None:
        """Tokens that the tokenizer says its model reads; it says a huge number where nobody told it."""
        most = self._tokenizer.model_max_length
        return None if most is None or most > 10**9 else int(most)

    @cached_property
    def _words(self) -> Tokenizer:
        return tokenizer("spacy")

    def split(self, text: str) -> Words:
        words = self._words(text)
        if not WITHOUT_BLANKS.search(text):
            return words
        starts = np.unique(_visible(text, self._pieces([text])[0][1])[:, 0])  # where pieces begin
        spans: list[tuple[int, int]] = []
        for start, end in words.offsets.tolist():
            inside = starts[(starts > start) & (starts < end)] if WITHOUT_BLANKS.search(text, start, end) else []
            edges = [start, *inside, end]
            spans += [(int(a), int(b)) for a, b in pairwise(edges)]
        return Words(text, tuple(form(text[a:b]) for a, b in spans), np.array(spans, np.int32).reshape(-1, 2))

    def encode(self, texts: Sequence[Words], part: Part) -> Texts:
        before, after = self._around[part]
        ids: list[Ints] = []
        index: list[Ints] = []
        for words, (pieces, spans) in zip(texts, self._pieces([words.text for words in texts]), strict=True):
            word = word_of(words, spans)
            if not (word >= 0).any():
                raise Mistake(f"the tokenizer leaves nothing of the text {words.text[:60]!r}: it has no pieces.")
            ids.append(np.array([*before, *pieces, *after], dtype=np.int64))
            index.append(np.concatenate([np.full(len(before), -1), word, np.full(len(after), -1)]))
        flat = np.concatenate(ids) if ids else np.zeros(0, np.int64)
        self._check_ids(flat)
        words_of = np.concatenate(index) if index else np.zeros(0, np.int64)
        lengths = np.array([len(each) for each in ids], dtype=np.int64)
        return Texts(flat, lengths, np.cumsum(lengths) - lengths, words_of >= 0, words_of, self.reserved)

    @property
    def n_special(self) -> int:
        """How many special tokens stand around what a model reads at once."""
        return sum(len(before) + len(after) for before, after in self._around.values())

    def texts_of(self, pieces: Sequence[Sequence[int]], part: Part) -> Texts:
        """Texts made of ids instead of words, with the special tokens around them. Every piece is a word."""
        before, after = self._around[part]
        flat = np.array([i for some in pieces for i in (*before, *some, *after)], dtype=np.int64)
        index = [[-1] * len(before) + [*range(len(some))] + [-1] * len(after) for some in pieces]
        words_of = np.array([i for some in index for i in some], dtype=np.int64)
        lengths = np.array([len(some) for some in index], dtype=np.int64)
        return Texts(flat, lengths, np.cumsum(lengths) - lengths, words_of >= 0, words_of, self.reserved)

    def ordinary(self, n: int) -> list[int]:
        """At most `n` ids of pieces that are not special tokens, spread over the vocabulary.

        Without a table of embeddings nobody knows which ids a model reads: then those of a text come first.
        """
        special = {self.reserved.filler, *self._tokenizer.all_special_ids}
        known = sorted(
            i for i in self._tokenizer.get_vocab().values() if i not in special and self._known(i) is not None
        )
        if self.n_words is None:
            seen = [i for i in dict.fromkeys(self._pieces([SAMPLE[1]])[0][0]) if i not in special]
            return (seen + [i for i in known if i not in seen])[:n]
        some = known[:: max(1, len(known) // n)][:n]
        return some or [self.reserved.filler]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Every piece, in the order of the ids."""
        return tuple(sorted(self._tokenizer.get_vocab(), key=self._tokenizer.get_vocab().get))

    def save(self, folder: str) -> None:
        """The tokenizer's files."""
        self._tokenizer.save_pretrained(folder)

    def pieces(self, words: Words, part: Part) -> Words:
        ids, spans = self._pieces([words.text])[0]
        at = np.flatnonzero(word_of(words, spans) >= 0)
        names = self._tokenizer.convert_ids_to_tokens([ids[i] for i in at])
        return Words(words.text, tuple(names), _visible(words.text, spans)[at])

    def knows(self, words: Words) -> list[bool]:
        """Words that have pieces, none of them unknown."""
        ids, spans = self._pieces([words.text])[0]
        word = word_of(words, spans)
        strange = {w for w, token in zip(word.tolist(), ids, strict=True) if token == self.reserved.unknown}
        return [i not in strange and bool((word == i).any()) for i in range(len(words))]

    def names(self, ids: Sequence[int]) -> list[str]:
        found: list[str] = self._tokenizer.convert_ids_to_tokens(list(ids))
        return found

    def _pieces(self, texts: Sequence[str]) -> list[tuple[list[int], Spans]]:
        """Ids and spans of the texts themselves, whole, without special tokens."""
        if not texts:
            return []
        found = self._tokenizer(
            list(texts),
            add_special_tokens=False,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            truncation=False,
            padding=False,
            verbose=False,
        )
        return [
            (ids, np.array(spans, dtype=np.int32).reshape(-1, 2))
            for ids, spans in zip(found["input_ids"], found["offset_mapping"], strict=True)
        ]

    def _find_special(self) -> None:
        """Which special tokens stand around a text, and the type of its tokens.

        What stands between two texts belongs to the first as far as it would stand after it alone.
        """
        ids, types, whose = self._told(SAMPLE[0])
        first = [i for i, of in enumerate(whose) if of == 0]
        after = len(ids) - 1 - first[-1]
        self._around: dict[Part, tuple[list[int], list[int]]] = {"passage": (ids[: first[0]], ids[first[-1] + 1 :])}
        self.types = types[first[0]], types[first[0]]
        if self.has_query:
            ids, types, whose = self._told(*SAMPLE)
            first, second = ([i for i, of in enumerate(whose) if of == which] for which in (0, 1))
            between = ids[first[-1] + 1 : second[0]]
            self._around = {
                "passage": (ids[: first[0]], between[:after]),
                "query": (between[after:], ids[second[-1] + 1 :]),
            }
            self.types = types[first[0]], types[second[0]]

    def _told(self, *texts: str) -> tuple[list[int], list[int], list[int | None]]:
        """What the tokenizer makes of a text or a pair: ids, types, and which text a token is of (None: neither)."""
        found = self._tokenizer(*texts, return_token_type_ids=True, truncation=False, padding=False, verbose=False)
        return found["input_ids"], found["token_type_ids"], found.sequence_ids(0)

    def _check_sample(self) -> None:
        """Ours is what the tokenizer itself would hand to its model."""
        texts = [self.split(text) for text in (SAMPLE if self.has_query else SAMPLE[:1])]
        ours = [*self.encode(texts[:1], "passage").flat]
        if self.has_query:
            ours += [*self.encode(texts[1:], "query").flat]
        theirs, types, _ = self._told(*(words.text for words in texts))
        if [int(i) for i in ours] != list(theirs):
            raise Mistake(
                f"{type(self._tokenizer).__name__} puts texts together in a way that is not understood: "
                f"{theirs}, not {ours}."
            )
        n = len(self.encode(texts[:1], "passage").flat)
        if self.with_types and types != [self.types[0]] * n + [self.types[1]] * (len(ours) - n):
            raise Mistake(
                f"{type(self._tokenizer).__name__} gives special tokens a type of their own ({types}): "
                "such models are not supported."
            )

    def _check_ids(self, ids: Ints) -> None:
        if self.n_words is not None and len(ids) and int(ids.max()) >= self.n_words:
            token = self._tokenizer.convert_ids_to_tokens(int(ids.max()))
            raise Mistake(
                f"the tokenizer makes the piece {token!r} with number {int(ids.max())}, and the model has embeddings "
                f"for {self.n_words}: tokenizer and model do not belong together."
            )


def _visible(text: str, spans: Spans) -> Spans:
    """Spans without the white space around them: some tokenizers count a leading blank as part of a piece."""
    n = len(text)
    seen = np.ones(n + 1, dtype=np.bool_)  # characters that can be seen, and the end
    seen[[match.start() for match in SPACE.finditer(text)]] = False
    place = np.arange(n + 1)
    following = np.minimum.accumulate(np.where(seen, place, n)[::-1])[::-1]  # the next that can be seen, from here on
    before = np.maximum.accumulate(np.where(seen, place, -1))  # the last one, up to here
    start = np.minimum(following[spans[:, 0]], spans[:, 1])
    end = np.where(spans[:, 1] > 0, before[np.maximum(spans[:, 1] - 1, 0)] + 1, 0)
    return np.stack([start, np.maximum(start, end)], axis=1).astype(np.int32)


def word_of(words: Words, spans: Spans) -> Ints:
    """The word of each piece, -1 where it has no visible character or that is in no word: (pieces,)."""
    visible = _visible(words.text, spans)
    first = visible[:, 0].astype(np.int64)
    if not len(words):
        return np.full(len(spans), -1, dtype=np.int64)
    word = np.searchsorted(words.offsets[:, 0], first, side="right") - 1  # the last that begins there or before
    inside = (word >= 0) & (first < words.offsets[word.clip(0), 1]) & (visible[:, 1] > visible[:, 0])
    return np.where(inside, word, -1).astype(np.int64)
