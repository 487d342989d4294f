"""Which words make which sentence, for a batch of texts: what a hierarchical model reads.

Words are taken out of their padded texts and put into padded sentences, those of like length together, so that a
long sentence does not make all others long. A sentence without words (all deleted) is not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.records import Tokens


@dataclass(frozen=True, slots=True)
class Group:
    """Sentences of like length."""

    sentence: Tensor  # (sentences,) which of the batch's sentences these are
    at: Tensor  # (sentences, words) where each word is in the flattened batch; 0 for padding
    present: Tensor  # (sentences, words)


@dataclass(frozen=True, slots=True)
class Sentences:
    groups: list[Group]
    place: Tensor  # (all sentences,) where each goes in the flattened (batch, sentences)
    mask: Tensor  # (batch, sentences) True where there is one
    word: Tensor  # (batch, length) True for words of sentences
    number: Tensor  # (batch, length) the sentence of its text that a token belongs to, 0 where it has none

    def spread(self, values: Tensor) -> Tensor:
        """Values of sentences, at each of their words: (..., sentences) by text -> (..., length); 0 elsewhere."""
        return values.gather(-1, self.number) * self.word

    def sums(self, values: Tensor) -> Tensor:
        """Values of words, summed over their sentences: (batch, length) -> (batch, sentences)."""
        return values.new_zeros(self.mask.shape).scatter_add(1, self.number, values * self.word)


def numbers(tokens: Tokens) -> Tensor:
    """The sentence of each word, counted from 0 without gaps: (batch, length), -1 where there is no word."""
    if tokens.sentence_index is None:
        raise Mistake("these texts are not split into sentences: give their text encoder sentences=True.")
    index = tokens.sentence_index.masked_fill(~tokens.mask, -1)  # (batch, length)
    before = torch.nn.functional.pad(index.cummax(1).values[:, :-1], (1, 0), value=-1)  # of the word before
    number = (index > before).cumsum(1) - 1
    return number.masked_fill(index < 0, -1)


def find_sentences(tokens: Tokens) -> Sentences:
    number = numbers(tokens)  # (batch, length)
    word = number >= 0
    batch, length = number.shape
    n = number.amax(1) + 1 if length else number.new_zeros(batch)  # (batch,) sentences of each text
    most = max(1, int(n.max())) if batch else 1
    mask = torch.arange(most, device=n.device) < n.unsqueeze(1)  # (batch, most)
    first = n.cumsum(0) - n  # (batch,) its first sentence among all
    at = word.flatten().nonzero().squeeze(1)  # (words,) in the flattened batch
    sentence = (first.unsqueeze(1) + number).flatten()[at]  # (words,) rising
    counts = torch.bincount(sentence, minlength=int(n.sum()))  # (all sentences,) words of each
    within = torch.arange(len(at), device=at.device) - (counts.cumsum(0) - counts)[sentence]
    return Sentences(
        _groups(at, sentence, within, counts),
        mask.flatten().nonzero().squeeze(1),
        mask,
        word,
        number.clamp(min=0),
    )


def _groups(at: Tensor, sentence: Tensor, within: Tensor, counts: Tensor) -> list[Group]:
    """Lengths 1 to 8, 9 to 16, 17 to 32, ...: padding at most doubles what is read."""
    size = torch.ceil(torch.log2(counts.clamp(min=8).double())).long()  # (all sentences,) 3, 4, 5, ...
    groups = []
    for wanted in torch.unique(size).tolist():
        chosen = (size == wanted).nonzero().squeeze(1)  # (sentences,)
        row = torch.full_like(counts, -1)
        row[chosen] = torch.arange(len(chosen), device=chosen.device)
        mine = row[sentence] >= 0  # (words,)
        lengths = counts[chosen]
        places = at.new_zeros(len(chosen), int(lengths.max()))
        places[row[sentence[mine]], within[mine]] = at[mine]
        present = torch.arange(places.shape[1], device=at.device) < lengths.unsqueeze(1)
        groups.append(Group(chosen, places, present))
    return groups
