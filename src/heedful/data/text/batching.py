"""Examples as padded tensors, texts of like length together.

`encode` looks every word up once, through a `TextEncoder`; `Encoded.batches` can then be called for every epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.text.sentences import sentence_begins
from heedful.errors import Mistake
from heedful.records import Asked, AtPlaces, Batch, Example, NextToken, Part, Reserved, Tokens, Words

Ints = NDArray[np.int64]
CPU = torch.device("cpu")
EVIDENCE = "evidence"  # the target that is True at the words that decide, where every text says which they are
SOME_EVIDENCE = "some_evidence"  # the same where only some do; of the others it is False
SENTENCE_BEGINS = "sentence_begins"  # the target that is True at the first word of every sentence
NOTHING = Words("", (), np.zeros((0, 2), np.int32))  # what has been said so far, at the beginning
POOL = 100  # batches that are sorted by length together when shuffled: long enough for little padding


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Token ids of many texts, one after the other: text i is `flat[begins[i]:begins[i] + lengths[i]]`."""

    flat: Ints  # (all tokens,)
    lengths: Ints  # (texts,)
    begins: Ints  # (texts,)
    word: NDArray[np.bool_] | None = None  # (all tokens,) those of words; None: all but the first and the last
    word_index: Ints | None = None  # (all tokens,) the word a token belongs to, -1: none; None: see `Tokens`
    reserved: Reserved = field(default_factory=Reserved)
    sentence_index: Ints | None = None  # (all tokens,) the sentence a token belongs to, -1: none; None: not known
    places: Ints | None = None  # (all tokens,) which places of a question stand there: see `Tokens`

    def tokens(self, indices: Ints) -> Tokens:
        """The chosen texts, padded to the longest of them."""
        lengths = self.lengths[indices]  # (batch,)
        place = np.arange(lengths.max(initial=0))  # (length,)
        present = place < lengths[:, None]  # (batch, length)
        at = self.begins[indices][:, None] + place  # (batch, length) into `flat`
        ids = np.where(present, self.flat.take(at, mode="clip"), self.reserved.filler)  # (batch, length)
        if self.word is None:
            mask = (place > 0) & (place < lengths[:, None] - 1)  # (batch, length) neither marker
        else:
            mask = present & self.word.take(at, mode="clip")
        word, sentence = (
            None if index is None else torch.from_numpy(np.where(mask, index.take(at, mode="clip"), -1))
            for index in (self.word_index, self.sentence_index)
        )
        places = None
        if self.places is not None:
            places = torch.from_numpy(np.where(present, self.places.take(at, mode="clip"), 0))
        padded = [torch.from_numpy(part) for part in (ids, present, mask)]
        return Tokens(padded[0], padded[1], padded[2], word, self.reserved, sentence, None, places)

    def of(self, i: int) -> Ints:
        """The token ids of one text."""
        return self.flat[self.begins[i] : self.begins[i] + self.lengths[i]]

    def padded(self, values: NDArray[np.bool_], indices: Ints) -> Tensor:
        """One value for each token, (all tokens,), of the chosen texts: (batch, length), False on padding."""
        lengths = self.lengths[indices]
        place = np.arange(lengths.max(initial=0))  # (length,)
        at = self.begins[indices][:, None] + place
        return torch.from_numpy((place < lengths[:, None]) & values.take(at, mode="clip"))

    def mark_words(self, positions: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
        """True at the tokens of the words at these positions of each text: (all tokens,)."""
        marked = np.zeros(len(self.flat), dtype=np.bool_)
        for begin, length, words in zip(self.begins.tolist(), self.lengths.tolist(), positions, strict=True):
            if self.word_index is not None:
                marked[begin : begin + length] = np.isin(self.word_index[begin : begin + length], words)
            elif self.word is not None:
                marked[begin + np.flatnonzero(self.word[begin : begin + length])[list(words)]] = True
            else:
                marked[[begin + 1 + word for word in words]] = True
        return marked


class TextEncoder(Protocol):
    """From texts to what a network reads: it owns the tokenizer and every token id that is not a word."""

    @property
    def reserved(self) -> Reserved: ...

    def split(self, text: str) -> Words:
        """A text as words, as a person sees them."""
        ...

    def encode(self, texts: Sequence[Words], part: Part) -> Texts:
        """Ids of texts, markers and other special tokens included."""
        ...

    def pieces(self, words: Words, part: Part) -> Words:
        """What stands at the tokens that are words: the words themselves, or the pieces they are split into."""
        ...

    def knows(self, words: Words) -> list[bool]:
        """Which words are more to it than the unknown word."""
        ...

    def names(self, ids: Sequence[int]) -> list[str]:
        """What tokens are called, special ones too: `[CLS]`, `<s>`."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Examples whose words have been looked up, ready to be cut into batches again and again."""

    passages: Texts
    queries: Texts | None
    candidates: NDArray[np.bool_] | None  # (examples, classes)
    labels: Ints | None  # (examples,)
    device: torch.device = CPU  # where batches are made
    targets: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)  # by name (all tokens of passages,)
    asked: tuple[Ints, Ints, Ints] | None = None  # (examples, most) each: see records.Asked

    def __len__(self) -> int:
        return len(self.passages.lengths)

    @property
    def lengths(self) -> Ints:
        """Tokens that an example takes: passage, query and their markers."""
        return self.passages.lengths if self.queries is None else self.passages.lengths + self.queries.lengths

    def batch(self, indices: Ints | Sequence[int]) -> Batch:
        """The chosen examples, in that order."""
        chosen = np.asarray(indices, dtype=np.int64)
        return Batch(
            passage=self.passages.tokens(chosen),
            query=None
            if self.queries is None or not self.queries.lengths[chosen].any()
            else self.queries.tokens(chosen),
            candidates=None if self.candidates is None else torch.from_numpy(self.candidates[chosen]),
            labels=None if self.labels is None else torch.from_numpy(self.labels[chosen]),
            targets={name: self.passages.padded(values, chosen) for name, values in self.targets.items()},
            asked=None if self.asked is None else self._asked(chosen),
        ).to(self.device)

    def _asked(self, chosen: Ints) -> Asked:
        assert self.asked is not None
        this, that, phrase = (torch.from_numpy(ids[chosen]) for ids in self.asked)
        return Asked(this, that, phrase if (phrase >= 0).any() else None)

    def batches(
        self, batch_size: int, rng: np.random.Generator | None = None, token_budget: int | None = None
    ) -> Iterator[tuple[Ints, Batch]]:
        """Every example once, in batches of like length, each with the indices of its examples.

        With `rng` both the batches and their order are shuffled; without it they come in order of length. With
        `token_budget` a batch has at most that many tokens, padding included (or one example).
        """
        for indices in cut(self.lengths, batch_size, rng, token_budget):
            yield indices, self.batch(indices)


def encode(
    examples: Sequence[Example], text: TextEncoder, n_labels: int, device: torch.device = CPU, sentences: bool = False
) -> Encoded:
    """Look up the words of all examples, once; batches will be on `device`.

    `sentences`: batches say where sentences begin (the target SENTENCE_BEGINS).
    """
    _check(examples, n_labels)
    queries = [example.query for example in examples if example.query is not None]
    if any(isinstance(example.asked, NextToken) for example in examples):  # nothing may have been said so far
        queries = [NOTHING if example.query is None else example.query for example in examples]
    labels = [example.label for example in examples if example.label is not None]
    evidence = [example.evidence for example in examples if example.evidence is not None]
    passages = _with_places(text.encode([example.passage for example in examples], "passage"), examples, "passage")
    targets = {}
    if evidence:
        name = EVIDENCE if len(evidence) == len(examples) else SOME_EVIDENCE
        targets[name] = passages.mark_words([example.evidence or () for example in examples])
    for name in dict.fromkeys(name for example in examples for name, _ in example.marks):
        targets[name] = passages.mark_words([dict(example.marks).get(name, ()) for example in examples])
    if sentences:
        targets[SENTENCE_BEGINS] = passages.mark_words([sentence_begins(e.passage) for e in examples])
    return Encoded(
        passages=passages,
        queries=_with_places(text.encode(queries, "query"), examples, "query") if queries else None,
        candidates=_candidates(examples, n_labels),
        labels=np.array(labels, dtype=np.int64) if len(labels) == len(examples) else None,
        device=device,
        targets=targets,
        asked=_asked(examples),
    )


def _with_places(texts: Texts, examples: Sequence[Example], part: Part) -> Texts:
    """Texts that know which of their tokens are asked about."""
    asked = [example.asked.places if isinstance(example.asked, AtPlaces) else () for example in examples]
    if not any(asked):
        return texts
    marks = np.zeros(len(texts.flat), dtype=np.int64)
    for begin, places in zip(texts.begins.tolist(), asked, strict=True):
        for number, (of, token) in enumerate(places):
            if of == part:
                marks[begin + token] |= 1 << number
    return replace(texts, places=marks)


def _asked(examples: Sequence[Example]) -> tuple[Ints, Ints, Ints] | None:
    """The questions that examples ask, filled up with -1."""
    asked = [example.asked for example in examples if example.asked is not None]
    if not asked:
        return None

    def filled(ids: Sequence[Sequence[int]], at_end: bool = False) -> Ints:
        made = np.full((len(ids), max(1, *map(len, ids))), -1, dtype=np.int64)
        for row, some in zip(made, ids, strict=True):
            row[len(row) - len(some) if at_end else 0 :][: len(some)] = some
        return made

    phrases = filled([one.phrase if isinstance(one, NextToken) else () for one in asked], at_end=True)
    return filled([one.this for one in asked]), filled([one.that or () for one in asked]), phrases


def cut(
    lengths: Ints, batch_size: int, rng: np.random.Generator | None = None, token_budget: int | None = None
) -> list[Ints]:
    """Indices of the examples of each batch.

    Shuffled batches are cut from pools of `POOL` batches sorted by length: chance decides which texts
    meet, and padding stays small. (Where all texts are fewer than a pool, only texts of equal length change places.)
    """
    if batch_size < 1:
        raise Mistake(f"the batch size must be at least 1, not {batch_size}.")
    n = len(lengths)
    if rng is None:
        return _slices(np.argsort(lengths, kind="stable"), lengths, batch_size, token_budget)
    order = rng.permutation(n)
    pools = [order[start : start + POOL * batch_size] for start in range(0, n, POOL * batch_size)]
    cuts = [
        piece
        for pool in pools
        for piece in _slices(pool[np.argsort(lengths[pool], kind="stable")], lengths, batch_size, token_budget)
    ]
    return [cuts[i] for i in rng.permutation(len(cuts))]


def cut_sorted(lengths: Ints, batch_size: int, rng: np.random.Generator) -> list[Ints]:
    """Batches of all texts sorted by length, each give or take a tenth of it, in an order of chance.

    As in the code of Jain & Wallace 2019: n becomes a whole number from n - ceil(n / 10) to n + ceil(n / 10) - 1. Texts
    that are then equal come by chance: corpora are often sorted by label, and in the order of the file whole batches
    would have one label. (The quicksort of that code mixes them, too.)
    """
    spread = -(-lengths // 10)
    noisy = rng.integers(lengths - spread, lengths + spread)
    order = rng.permutation(len(lengths))
    cuts = _slices(order[np.argsort(noisy[order], kind="stable")], lengths, batch_size, None)
    return [cuts[i] for i in rng.permutation(len(cuts))]


def _slices(order: Ints, lengths: Ints, batch_size: int, token_budget: int | None) -> list[Ints]:
    """Cut an order of rising length into batches."""
    if token_budget is None:
        return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    starts = [0] if len(order) else []
    for i in range(len(order)):
        size = i - starts[-1] + 1
        if size > 1 and (size > batch_size or size * lengths[order[i]] > token_budget):
            starts.append(i)
    return [order[start:end] for start, end in pairwise([*starts, len(order)])]


def _check(examples: Sequence[Example], n_labels: int) -> None:
    """What no model could read: texts without words, labels that do not exist, a query here but not there."""
    for example in examples:
        if len(example.passage) == 0:
            raise Mistake(f"{example.id} has no words.")
        speaks = isinstance(example.asked, NextToken)
        if example.query is not None and len(example.query) == 0 and not speaks:
            raise Mistake(f"{example.id} has no words in its query.")
        if not speaks and (example.query is None) != (examples[0].query is None):
            raise Mistake(f"{example.id} and {examples[0].id} differ: either all examples have a query or none.")
        for label in (example.label, *(example.candidates or ())):
            if label is not None and not 0 <= label < n_labels:
                raise Mistake(f"{example.id} has label {label}, but the labels are 0 to {n_labels - 1}.")


def _candidates(examples: Sequence[Example], n_labels: int) -> NDArray[np.bool_] | None:
    """Which labels can be answers, (examples, classes); None when every label always can."""
    if all(example.candidates is None for example in examples):
        return None
    allowed = np.zeros((len(examples), n_labels), dtype=np.bool_)
    for row, example in zip(allowed, examples, strict=True):
        row[slice(None) if example.candidates is None else list(example.candidates)] = True
    return allowed
