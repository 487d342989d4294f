"""Hybrid documents (Poerner et al. 2018, section 4): sentences of texts with several labels, shuffled into one.

Which label a sentence speaks for is known, because its text's label is. A document is put together from tokens, so any
model's batches will do: special tokens stand around it as around the texts. Each document is drawn from the generator
of its own text, over all texts that were asked about in the order of their places: batches do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.text.batching import SENTENCE_BEGINS
from heedful.errors import Mistake
from heedful.records import Batch, Tokens

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A text that documents are made of: its tokens on the CPU, and where its sentences begin and end."""

    ids: Ints  # (tokens,)
    word: Ints  # (tokens,) the word a token belongs to; special tokens -1
    bounds: list[tuple[int, int]]  # of each sentence, in tokens
    label: int

    @property
    def frame(self) -> tuple[Ints, Ints]:
        """The special tokens before and after the words."""
        return self.ids[: self.bounds[0][0]], self.ids[self.bounds[-1][1] :]


@dataclass(frozen=True, slots=True, eq=False)
class Hybrid:
    """A document: its tokens, and of each token the sentence and that sentence's label (-1: special)."""

    ids: Ints
    word: Ints
    sentence: Ints
    label: Ints


def read_sources(batch: Batch) -> list[Source]:
    """The texts of a batch; each needs a label and its sentences."""
    begins = batch.targets.get(SENTENCE_BEGINS)
    if batch.labels is None:
        raise Mistake("hybrid documents need labelled texts, and these have no labels.")
    if begins is None:
        raise ValueError("the batch does not say where sentences begin: encode(..., sentences=True)")
    tokens, made = batch.passage, []
    index = tokens.mask.long().cumsum(1) - 1 if tokens.word_index is None else tokens.word_index
    for row, label in enumerate(batch.labels.tolist()):
        n = int(tokens.present[row].sum())
        mask = tokens.mask[row, :n].cpu().numpy()
        word = np.where(mask, index[row, :n].cpu().numpy(), -1)
        at = np.flatnonzero(mask)
        first = np.flatnonzero(begins[row, :n].cpu().numpy() & (np.diff(word, prepend=-1) != 0))
        ends = [*first[1:].tolist(), int(at[-1]) + 1]
        made.append(
            Source(tokens.ids[row, :n].cpu().numpy(), word, list(zip(first.tolist(), ends, strict=True)), label)
        )
    return made


def mix(sources: Sequence[Source], of: int, sentences: int, rng: Generator) -> Hybrid:
    """One sentence of text `of` and one each of other texts, shuffled."""
    others = rng.permutation(np.delete(np.arange(len(sources)), of))[: sentences - 1]
    chosen = rng.permutation([of, *others.tolist()])
    before, after = sources[of].frame
    parts, words, numbers, labels = (
        [before],
        [np.full(len(before), -1)],
        [np.full(len(before), -1)],
        [np.full(len(before), -1)],
    )
    seen = 0
    for number, source in enumerate(sources[int(i)] for i in chosen):
        begin, end = source.bounds[int(rng.integers(len(source.bounds)))]
        word = source.word[begin:end]
        parts.append(source.ids[begin:end])
        words.append(word - word.min() + seen)
        numbers.append(np.full(end - begin, number))
        labels.append(np.full(end - begin, source.label))
        seen = int(words[-1].max()) + 1
    for some in (words, numbers, labels):
        some.append(np.full(len(after), -1))
    return Hybrid(np.concatenate([*parts, after]), *(np.concatenate(some) for some in (words, numbers, labels)))


def as_batch(documents: Iterable[Hybrid], like: Tokens) -> tuple[Batch, Tensor]:
    """Documents as a batch for the model that reads `like`, and of each token the label of its sentence (-1: none)."""
    made = list(documents)
    width = max(len(one.ids) for one in made)
    device = like.ids.device

    def padded(values: Iterable[Ints], empty: int) -> Tensor:
        rows = [np.pad(row, (0, width - len(row)), constant_values=empty) for row in values]
        return torch.from_numpy(np.stack(rows)).to(device)

    word, label = padded((d.word for d in made), -1), padded((d.label for d in made), -1)
    present = padded((np.ones(len(d.ids), dtype=np.int64) for d in made), 0) > 0
    tokens = Tokens(
        padded((d.ids for d in made), like.reserved.filler),
        present,
        word >= 0,
        None if like.word_index is None else word,
        like.reserved,
        None if like.sentence_index is None else padded((d.sentence for d in made), -1),
    )
    return Batch(tokens), label
