"""Edited texts, planned as small arrays and made a few at a time.

Edits are made on token ids, never on decoded text. Markers always stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.vocabulary import PAD, UNK
from heedful.records import Tokens

Operator = Literal["delete", "replace", "zero"]
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
        """Every word of every text by itself, in the order of `tokens.mask.nonzero()`."""
        rows, positions = tokens.mask.cpu().numpy().nonzero()
        return cls(rows, np.arange(len(rows) + 1), positions)

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


def edit(tokens: Tokens, edits: Edits, which: Ints, operator: Operator, token: int = UNK) -> Edited:
    """The edited texts `which`, cut to the longest of them."""
    device = tokens.ids.device
    rows = torch.from_numpy(edits.rows[which]).to(device)
    changed = torch.from_numpy(edits.changed(which, tokens.ids.shape[1])).to(device)  # (n, length)
    ids, present, mask = tokens.ids[rows], tokens.present[rows], tokens.mask[rows]  # (n, length) each
    if operator == "delete":
        return Edited(rows, _without(ids, present & ~changed, mask), None)
    longest = max(1, int(present.sum(1).max()))
    ids, present, mask, changed = (each[:, :longest] for each in (ids, present, mask, changed))
    if operator == "replace":
        return Edited(rows, Tokens(ids.masked_fill(changed, token), present, mask), None)
    return Edited(rows, Tokens(ids, present, mask), changed)


def _without(ids: Tensor, stay: Tensor, mask: Tensor) -> Tokens:
    """Only the tokens that stay, moved together. Those that go are written to one last column, then cut."""
    n, length = ids.shape
    lengths = stay.sum(1, keepdim=True)  # (n, 1)
    longest = max(1, int(lengths.max()))
    to = torch.where(stay, stay.cumsum(1) - 1, length)  # (n, length) the new place of each token
    moved = ids.new_full((n, length + 1), PAD).scatter_(1, to, ids)[:, :longest]
    words = mask.new_zeros(n, length + 1).scatter_(1, to, mask)[:, :longest]
    return Tokens(moved, torch.arange(longest, device=ids.device) < lengths, words)
