"""Edited texts, planned as small arrays and made a few at a time.

Edits are made on token ids, never on decoded text. Markers always stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import Mistake
from heedful.records import Tokens

Operator = Literal["delete", "replace", "zero", "pad"]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Edits:
    """n edits: edit e changes the words at `positions[begins[e]:begins[e + 1]]` of text `rows[e]`."""

    rows: Ints  # (n,)
    begins: Ints  # (n + 1,)
    positions: Ints  # (all changed words,)

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def each_word(cls, tokens: Tokens) -> Edits:
        """Every word of every text by itself, with all its pieces, in the order of its first token."""
        rows, positions = tokens.mask.cpu().numpy().nonzero()
        if tokens.word_index is None:
            return cls(rows, np.arange(len(rows) + 1), positions)
        words = tokens.word_index.cpu().numpy()[rows, positions]
        first = np.flatnonzero((np.diff(rows, prepend=-1) != 0) | (np.diff(words, prepend=-1) != 0))
        return cls(rows[first], np.append(first, len(rows)), positions)

    @classmethod
    def keeping(cls, tokens: Tokens, rows: Ints, keep: NDArray[np.bool_]) -> Edits:
        """Edit e changes the words of text rows[e] where keep[e] (n, length) is False. Markers stay."""
        if keep.shape != (len(rows), tokens.ids.shape[1]):
            raise ValueError(f"keep is {keep.shape}, and should be {(len(rows), tokens.ids.shape[1])}")
        edits, positions = (~keep & tokens.mask.cpu().numpy()[rows]).nonzero()
        return cls(np.asarray(rows, np.int64), np.searchsorted(edits, np.arange(len(rows) + 1)), positions)

    def changed(self, which: Ints, length: int) -> NDArray[np.bool_]:
        """Where some of the edits change words: (len(which), length)."""
        counts = self.begins[which + 1] - self.begins[which]  # (len(which),)
        offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        changed = np.zeros((len(which), length), dtype=np.bool_)
        at = self.positions[np.repeat(self.begins[which], counts) + offset]
        changed[np.repeat(np.arange(len(which)), counts), at] = True
        return changed


@dataclass(frozen=True, slots=True, eq=False)
class Edited:
    """Some edited texts: where `zero` is True, the embedding is to be 0 instead of the word's."""

    rows: Tensor  # (n,) the texts they were made from
    tokens: Tokens
    zero: Tensor | None  # (n, length) bool


def edit(tokens: Tokens, edits: Edits, which: Ints, operator: Operator, token: int | None = None) -> Edited:
    """The edited texts `which`, cut to the longest of them; `token` None is the one that hides a word."""
    device = tokens.ids.device
    rows = torch.from_numpy(edits.rows[which]).to(device)
    changed = torch.from_numpy(edits.changed(which, tokens.ids.shape[1])).to(device)  # (n, length)
    if operator == "delete":
        return Edited(rows, _without(tokens.rows(rows, tokens.ids.shape[1]), changed), None)
    some = tokens.rows(rows)  # (n, length)
    changed = changed[:, : some.ids.shape[1]]
    if operator == "zero":
        return Edited(rows, some, changed)
    if operator == "pad":
        return Edited(rows, replace(some, mask=some.mask & ~changed, hidden=changed), None)
    return Edited(rows, replace(some, ids=some.ids.masked_fill(changed, hiding(tokens, token))), None)


def hiding(tokens: Tokens, token: int | None) -> int:
    """The id that words are replaced by: the one given, else the mask, else the unknown word."""
    found = tokens.reserved.replacement if token is None else token
    if found is None:
        raise Mistake("this model has neither a mask nor an unknown word to replace words by: give token=ID.")
    return found


def _without(tokens: Tokens, gone: Tensor) -> Tokens:
    """Only the tokens that stay, moved together. Those that go are written to one last column, then cut."""
    n, length = tokens.ids.shape
    ids = tokens.ids
    if tokens.places is not None:  # what is asked about cannot go: it is hidden
        asked = gone & (tokens.places != 0)
        hidden = tokens.reserved.replacement
        ids = ids.masked_fill(asked, tokens.reserved.filler if hidden is None else hidden)
        gone = gone & ~asked
    stay = tokens.present & ~gone  # (n, length)
    lengths = stay.sum(1, keepdim=True)  # (n, 1)
    longest = max(1, int(lengths.max()))
    to = torch.where(stay, stay.cumsum(1) - 1, length)  # (n, length) the new place of each token

    def moved(values: Tensor, empty: int) -> Tensor:
        return values.new_full((n, length + 1), empty).scatter_(1, to, values)[:, :longest]

    word, sentence = (
        None if index is None else moved(index, -1) for index in (tokens.word_index, tokens.sentence_index)
    )
    present = torch.arange(longest, device=gone.device) < lengths
    ids, mask = moved(ids, tokens.reserved.filler), moved(tokens.mask, 0)
    places = None if tokens.places is None else moved(tokens.places, 0)
    return Tokens(ids, present, mask, word, tokens.reserved, sentence, None, places)
