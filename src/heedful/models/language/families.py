"""Questions whose texts are each the beginning of the next: one pass over the longest answers them all.

What is said later changes nothing of what was read before. So the steps of a continuation, and the same steps after
one edit of their prompt, are a family: the model reads its longest text, and is asked at the place of each member.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.records import Batch, Tokens

Ints = NDArray[np.int64]
SPLIT = -1  # between the parts of an example, in what is compared


@dataclass(frozen=True, slots=True, eq=False)
class Families:
    """Rows of a batch whose texts begin alike: each of a family is the beginning of its longest, or that itself."""

    longest: Tensor  # (families,) rows
    of: Tensor  # (n,) the family of each row

    @classmethod
    def find(cls, keys: Sequence[bytes], device: torch.device) -> Families:
        """`keys`: what is read of each row. In their order every beginning stands right before what it begins."""
        longest, of = find(keys)
        return cls(torch.from_numpy(longest).to(device), torch.from_numpy(of).to(device))

    def of_one_size(self, lengths: Tensor) -> Iterator[Tensor]:
        """Rows (families, size) of all families that have so many members, the shortest member first."""
        order = torch.argsort(lengths, stable=True)
        order = order[torch.argsort(self.of[order], stable=True)]
        sizes = torch.bincount(self.of, minlength=len(self.longest))
        begins = sizes.cumsum(0) - sizes
        for size in torch.unique(sizes).tolist():
            first = begins[sizes == size].unsqueeze(1)  # (families, 1)
            yield order[first + torch.arange(size, device=order.device)]


def find(keys: Sequence[bytes]) -> tuple[Ints, Ints]:
    """The row of the longest of each family, and the family of each row."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    of, longest = np.empty(len(keys), np.int64), list[int]()
    following: bytes | None = None
    for row in reversed(order):
        if following is None or not following.startswith(keys[row]):
            longest.append(row)
        of[row] = len(longest) - 1
        following = keys[row]
    return np.array(longest, dtype=np.int64), of


def key(*parts: Ints) -> bytes:
    """The parts of one text, in an order in which beginnings stand before what they begin."""
    divided: list[Ints] = []
    for part in parts:
        divided += [np.asarray(part, dtype=np.int64), np.array([SPLIT], dtype=np.int64)]
    return np.concatenate(divided[:-1]).astype(">i8").tobytes()


def keys_of(batch: Batch, passage: Tensor, query: Tensor | None) -> list[bytes]:
    """Of each row, from a number for each of its tokens: (batch, length), (batch, query length)."""
    said = batch.query
    ours, theirs = passage.cpu().numpy(), None if query is None else query.cpu().numpy()
    n = batch.passage.present.sum(1).tolist()
    if said is None or theirs is None:
        return [key(ours[i, :k], ours[i, :0]) for i, k in enumerate(n)]
    m = said.present.sum(1).tolist()
    return [key(ours[i, :k], theirs[i, :j]) for i, (k, j) in enumerate(zip(n, m, strict=True))]


def shares(network: object) -> bool:
    """Whether a network can be asked about families, of which it reads the longest alone."""
    return bool(getattr(network, "share", False)) and hasattr(network, "together")


def alike(batch: Batch) -> Families:
    """Those whose passages are the same, and what has been said so far is the beginning of what others have said."""

    def code(tokens: Tokens) -> Tensor:
        return tokens.ids if tokens.hidden is None else 2 * tokens.ids + tokens.hidden

    query = None if batch.query is None else code(batch.query)
    return Families.find(keys_of(batch, code(batch.passage), query), batch.passage.ids.device)


def lengths_of(batch: Batch) -> Tensor:
    """Tokens of both parts: (batch,)."""
    found = batch.passage.present.sum(1)
    return found if batch.query is None else found + batch.query.present.sum(1)


def cut_families(keys: Sequence[bytes], lengths: Ints, texts: int, budget: int) -> list[Ints]:
    """Rows of each batch, families together: at most so many texts, and tokens of the longest of each family."""
    longest, of = find(keys)
    families = sorted(range(len(longest)), key=lambda f: int(lengths[longest[f]]))
    members: list[list[int]] = [[] for _ in longest]
    for row in np.argsort(lengths, kind="stable").tolist():
        members[of[row]].append(row)
    batches: list[list[int]] = []
    read = 0  # texts that the last batch reads
    for f in families:
        size = int(lengths[longest[f]])
        for start in range(0, len(members[f]), texts):
            some = members[f][start : start + texts]
            if not batches or (len(batches[-1]) + len(some) > texts) or (read + 1) * size > budget:
                batches.append([])
                read = 0
            batches[-1] += some
            read += 1
    return [np.array(rows, dtype=np.int64) for rows in batches]
