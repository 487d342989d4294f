"""Texts that a module is asked about when it is wrapped, made of pieces that it can tell apart.

Words will not do: a small vocabulary may know none of them, and a text of one token repeated has, with relative
positions, one and the same state at every place, wherever it is read. So these texts are made of ids, and what stands
at padding is an id that is in none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from heedful.models.huggingface.text import PieceEncoder
from heedful.records import Batch

LENGTHS = (3, 5, 8)  # pieces of the passages
OF_QUERY = 2  # pieces of each query
CANDIDATES = 256  # pieces of the vocabulary that are looked at
UNUSUAL = 2  # as far from the mean as so many times the median


@dataclass(frozen=True, slots=True)
class Probe:
    batch: Batch  # texts, each longer than the one before
    strange: int  # an id that is in none of them, and has another embedding than all of theirs


def make_probe(
    text: PieceEncoder, has_query: bool, table: nn.Embedding | None = None, limit: int | None = None
) -> Probe:
    """`table`: the embeddings of the model, where it has any. `limit`: tokens that it reads at once."""
    wanted = max(LENGTHS) + (OF_QUERY * len(LENGTHS) if has_query else 0)
    found = _apart(text.ordinary(CANDIDATES), wanted + 1, table)
    strange, pieces = found[-1], found[:-1] or found
    room = max(LENGTHS)
    if limit is not None:
        room = min(room, limit - text.n_special - (OF_QUERY if has_query else 0))
    lengths = [max(1, min(n, room - len(LENGTHS) + 1 + i)) for i, n in enumerate(LENGTHS)]
    every = np.arange(len(lengths))
    # each text starts one piece later, so that no two begin or end with the same one
    some = [[pieces[(i + j) % len(pieces)] for j in range(n)] for i, n in enumerate(lengths)]
    passage = text.texts_of(some, "passage").tokens(every)
    if not has_query:
        return Probe(Batch(passage), strange)
    rest = pieces[max(LENGTHS) :] or pieces
    asked = [[rest[(OF_QUERY * i + j) % len(rest)] for j in range(OF_QUERY)] for i in every.tolist()]
    return Probe(Batch(passage, text.texts_of(asked, "query").tokens(every)), strange)


@torch.no_grad()
def _apart(ids: list[int], n: int, table: nn.Embedding | None) -> list[int]:
    """At most `n` of the ids whose embeddings are far apart: each is the one farthest from all before it.

    Embeddings far from all others are left out: a model may say nothing sensible of a piece like that.
    """
    if table is None:
        return ids[:n]
    x = table(torch.tensor(ids, device=table.weight.device)).double()  # (candidates, dim)
    far = (x - x.mean(0)).norm(dim=1)  # (candidates,) from what has been chosen
    usual = far <= UNUSUAL * far.median()
    x, far, ids = x[usual], far[usual], [i for i, keep in zip(ids, usual.tolist(), strict=True) if keep]
    chosen: list[int] = []
    while len(chosen) < min(n, len(ids)):
        best = int(far.argmax())
        chosen.append(best)
        from_it = (x - x[best]).norm(dim=1)
        far = from_it if len(chosen) == 1 else far.minimum(from_it)
    return [ids[i] for i in chosen]
