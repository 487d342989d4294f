"""What stands before an edited word is read once: its keys and values are kept, and shared by all edited texts.

    trunk:   A B C D E F G      read once, with its keys and values
    texts:   A C D E F G        from C on, after the keys and values of A
             A B C E F G        from E on, after those of A B C

Nothing that is said later changes the states before it, so the answers are those of whole texts but for rounding.
Found out for each module when it is loaded (`keeps`), because caches are a matter of each architecture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.models.huggingface.abilities import agree
from heedful.models.huggingface.forward import Inputs
from heedful.models.language.places import PlacesForward

WORTH = 0.85  # of the tokens of all texts: where more than that have to be read all the same, texts are read whole
COMPARED = 64  # texts, of which the trunk is one
WASTE = 8  # tokens that a text may read again, because others of its pass begin earlier


@dataclass(frozen=True, slots=True, eq=False)
class Trunk:
    """A text whose keys and values serve others."""

    row: int
    shared: NDArray[np.int64]  # (texts,) tokens at the beginning of each that it shares with the trunk

    @classmethod
    def find(cls, codes: list[NDArray[np.int64]], most: NDArray[np.int64]) -> Trunk | None:
        """The text that shares most with all. `codes`: a number for each token of each text; `most` (texts,): so many
        tokens of a text can be taken over, because what comes after them is asked about. None: it is not worth it."""
        n, lengths = len(codes), np.array([len(code) for code in codes])
        if n < 2:
            return None
        width = int(lengths.max())
        padded = np.full((n, width), -1, dtype=np.int64)
        for row, code in zip(padded, codes, strict=True):
            row[: len(code)] = code
        place, best, found = np.arange(width), -1, None
        for row in np.unique(np.linspace(0, n - 1, min(n, COMPARED)).astype(int)).tolist():
            same = (padded == padded[row]) & (place < lengths[:, None]) & (place < lengths[row])
            shared = np.minimum(np.where(same.all(1), same.sum(1), np.argmin(same, axis=1)), most)
            if int(shared.sum()) > best:
                best, found = int(shared.sum()), cls(row, shared)
        assert found is not None
        read = int(found.shared.max()) + int((lengths - found.shared).sum())
        return found if read < WORTH * int(lengths.sum()) else None

    def groups(self, lengths: NDArray[np.int64], tokens: int) -> list[NDArray[np.int64]]:
        """Texts that are read together: they part from the trunk at about the same place."""
        order = np.lexsort((lengths, self.shared))
        made: list[list[int]] = []
        for i in order.tolist():
            if made:
                first = int(self.shared[made[-1][0]])
                width = max(int(lengths[j]) for j in (*made[-1], i)) - first
                if int(self.shared[i]) - first <= WASTE and (len(made[-1]) + 1) * width <= tokens:
                    made[-1].append(i)
                    continue
            made.append([i])
        return [np.array(rows, dtype=np.int64) for rows in made]


def read_after(
    forward: PlacesForward, inputs: Inputs, trunk: Trunk, rows: Tensor, places: Tensor, tokens: int, states: bool
) -> Tensor:
    """What is read at `places` (m, k) of the texts `rows` (m,), padded at the right: (m, k, dim or vocabulary)."""
    lengths = inputs.present.sum(1).cpu().numpy()
    kept = _keys_and_values(forward, inputs, trunk)
    parts, order = [], []
    for group in trunk.groups(lengths, tokens):
        which = torch.from_numpy(group).to(rows.device)
        first, width = int(trunk.shared[group].min()), int(lengths[group].max())
        member = (rows.unsqueeze(1) == which).nonzero()  # (members, 2) of this group
        some = inputs.rows(which, width, "right")
        after = Inputs(
            some.present[:, first:],
            some.types[:, first:],
            None if some.x is None else some.x[:, first:],
            None if some.ids is None else some.ids[:, first:],
            attended=some.present if some.attended is None else some.attended,
        )
        with forward.after(_cache([(k[:, :, :first], v[:, :, :first]) for k, v in kept], len(group))):
            found = forward.at(after, "right", member[:, 1], places[member[:, 0]] - first, states=states)
        parts.append(found)
        order.append(member[:, 0])
    return torch.cat(parts)[torch.cat(order).argsort()]


def _keys_and_values(forward: PlacesForward, inputs: Inputs, trunk: Trunk) -> list[tuple[Tensor, Tensor]]:
    """Of each layer (1, heads, length, dim)."""
    longest = max(1, int(trunk.shared.max()))
    which = torch.tensor([trunk.row], device=inputs.present.device)
    one, nothing = inputs.rows(which, longest, "right"), torch.zeros_like(which)
    cache = _cache([], 1)
    with forward.after(cache):
        forward.at(one, "right", nothing, nothing.unsqueeze(1), states=True)
    return [(layer.keys, layer.values) for layer in cache.layers]


def _cache(layers: list[tuple[Tensor, Tensor]], texts: int) -> Any:
    """A cache of transformers that holds the same for all texts; of sliding windows, too, everything."""
    from transformers import DynamicCache

    made = DynamicCache()
    for i, (keys, values) in enumerate(layers):
        made.update(keys.expand(texts, -1, -1, -1), values.expand(texts, -1, -1, -1), i)
    return made


@torch.no_grad()
def keeps(forward: PlacesForward, inputs: Inputs, whole: Tensor) -> bool:
    """Whether a module says the same after kept keys and values. `inputs`: texts, padded at the right, of which
    `whole` (texts, vocabulary) are the answers when they are read whole."""
    n = len(inputs.present)
    lengths = inputs.present.sum(1)
    rows = torch.arange(n, device=lengths.device)
    last = (lengths - 1).unsqueeze(1)
    try:
        for row in range(n):  # each text after its own beginning, alone; then all of them after that of the last
            trunk = Trunk(0, np.array([max(1, int(lengths[row]) // 2)]))
            alone = inputs.rows(rows[row : row + 1], int(lengths[row]), "right")
            found = read_after(forward, alone, trunk, rows[:1], last[row : row + 1], 2**20, states=False)[:, 0]
            if not agree(found, whole[row : row + 1], whole):
                return False
        repeated = inputs.rows(torch.full_like(rows, n - 1), int(lengths[-1]), "right")
        trunk = Trunk(0, np.arange(1, n + 1).clip(max=int(lengths[-1]) - 1))
        found = read_after(forward, repeated, trunk, rows, last[-1:].expand(n, 1), 2**20, states=False)[:, 0]
        return agree(found, whole[-1:].expand(n, -1), whole)
    except (AttributeError, ImportError, IndexError, KeyError, TypeError, ValueError, RuntimeError):
        return False
