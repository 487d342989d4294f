"""Archipelago (Tsang, Rambhatla & Liu 2020): which words interact (ArchDetect), what their islands do (ArchAttribute).

ArchDetect takes the second difference in two contexts, among all other words and among none,

    d_ij(C) = f(C i j) - f(C i) - f(C j) + f(C),   C = all others, C = none,       omega_ij = 1/2 sum_C d_ij(C)^2

with a word's absence for their baseline, and steps of 1. A pair holds the root of omega_ij, with the sign of the sum of
both differences: its size orders pairs as omega does. ArchAttribute is phi(I) = f(I alone) - f(none) for an island I:
the words of the `n_pairs` strongest pairs, joined where they share a word; every other word is an island by itself.
Words of an island share its phi; the diagonal is phi of the word alone.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.explainers.explainer import Scores
from heedful.explainers.gradients.gradient import Parts
from heedful.explainers.interactions.words import Asking, Floats, Missing, Together, WordGame, each_text, without
from heedful.models.link import Of
from heedful.models.network import Network
from heedful.records import Batch


def archipelago(
    model: Network,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    n_pairs: int = 3,
    operator: Missing = "delete",
    token: int | None = None,
    parts: Parts = "both",
    internal_batch_size: int | None = None,
) -> Scores:
    """ArchDetect for every two words, of passage and query together; ArchAttribute for islands of the strongest."""
    if n_pairs < 0:
        raise Mistake(f"n_pairs must be 0 (each word by itself) or more, not {n_pairs}.")

    def find(game: WordGame, row: int) -> Together:
        n = game.n_words
        i, j = np.triu_indices(n, 1)
        keep = without(n)
        among_all, among_none = game(keep), game(~keep)
        nothing = among_none[0]
        all_others = among_all[0] - among_all[1 + i] - among_all[1 + j] + among_all[1 + n :]
        no_others = among_none[1 + n :] - among_none[1 + i] - among_none[1 + j] + nothing
        strength = np.sqrt((all_others**2 + no_others**2) / 2)
        pairs = np.diag(among_none[1 : 1 + n] - nothing)
        pairs[i, j] = np.where(all_others + no_others < 0, -strength, strength)
        alone = np.zeros(n)
        for island in islands(pairs, n_pairs):
            if len(island) > 2:
                there = np.zeros((1, n), dtype=np.bool_)
                there[0, list(island)] = True
                phi = float(game(there)[0] - nothing)
            else:  # asked already: of all that go but these
                which = (
                    1 + island[0]
                    if len(island) == 1
                    else 1 + n + int(np.flatnonzero((i == island[0]) & (j == island[1]))[0])
                )
                phi = float(among_none[which] - nothing)
            alone[list(island)] = phi / len(island)
        return Together(alone, pairs)

    with torch.no_grad():
        return each_text(Asking(model, batch, target, of, operator, token, internal_batch_size), parts, find)


def islands(pairs: Floats, n_pairs: int) -> list[tuple[int, ...]]:
    """The words, joined by the strongest pairs (i < j) that are not 0: each word is in one island."""
    i, j = np.triu_indices(len(pairs), 1)
    order = np.argsort(-np.abs(pairs[i, j]), kind="stable")[:n_pairs]
    island = np.arange(len(pairs))  # by its first word
    for one, other in zip(i[order], j[order], strict=True):
        if pairs[one, other]:
            first, second = sorted((island[one], island[other]))
            island[island == second] = first
    return [tuple(np.flatnonzero(island == name).tolist()) for name in np.unique(island)]
