"""Words that are alike: to an adversary the same state twice is one word.

Where an encoder reads each word by itself, a word that stands in a text ten times has the same state ten times, and
the outputs depend on the sum of their weights alone. Of all ways to share out the sum the cheapest is to give it to
the one that is least attended: phi(a, .) is concave with phi(a, 0) = 0 (adversary_exact), hence subadditive, and
it increases with a, so

    phi(a, p) + phi(b, q) >= phi(a, p) + phi(a, q) >= phi(a, p + q)    where a <= b.

Only that word is kept. No feasible distribution is lost that is farther than what is left, and what is proved of the
words that are kept is proved of all. A story of bAbI 3 has 262 words and 32 of them are different.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from heedful.experiments.pooled import PooledStates

_DIGITS = 12  # states are alike that agree so far


@dataclass(frozen=True, slots=True, eq=False)
class Different:
    """Texts with their different words alone, and the way there and back."""

    seen: PooledStates  # of D words; `merged` is the model's attention on them
    kept: Tensor  # (B, D) where each of them stands in the text
    to: Tensor  # (B, T) which of them each word of the text is

    @classmethod
    def of(cls, seen: PooledStates) -> Self:
        """Of words that are alike the least attended."""
        kept, to = [], torch.zeros_like(seen.real, dtype=torch.int64)
        for i, (alpha, n) in enumerate(zip(seen.words(seen.alpha), seen.n_words, strict=True)):
            least_first = np.argsort(alpha, kind="stable")
            states = seen.projected[i, :n].numpy().round(_DIGITS)[least_first]
            _, first, group = np.unique(states, axis=0, return_index=True, return_inverse=True)
            places = least_first[first]  # (D,)
            rank = np.argsort(np.argsort(places))  # in the order of the text
            to[i, torch.from_numpy(least_first)] = torch.from_numpy(rank[group.reshape(-1)])
            kept.append(torch.from_numpy(np.sort(places)))
        at = torch.nn.utils.rnn.pad_sequence(kept, batch_first=True)
        real = torch.arange(at.shape[1]) < torch.tensor([len(one) for one in kept]).unsqueeze(1)
        spread = at.unsqueeze(-1).expand(-1, -1, seen.projected.shape[-1])
        fewer = replace(
            seen,
            alpha=seen.alpha.gather(1, at) * real,
            real=real,
            projected=seen.projected.gather(1, spread) * real.unsqueeze(-1),
            merged=torch.zeros_like(at, dtype=seen.alpha.dtype).scatter_add_(1, to, seen.alpha),
        )
        return cls(fewer, at, to)

    def gather(self, p: Tensor) -> Tensor:
        """Distributions on all words -> on the different ones: (B, n, T) -> (B, n, D)."""
        to = self.to.unsqueeze(1).expand_as(p)
        return p.new_zeros(*p.shape[:2], self.kept.shape[1]).scatter_add_(2, to, p)

    def spread(self, p: Tensor) -> Tensor:
        """Distributions on the different words -> on all: (B, n, D) -> (B, n, T)."""
        kept = self.kept.unsqueeze(1).expand_as(p)
        return p.new_zeros(*p.shape[:2], self.to.shape[1]).scatter_add_(2, kept, p)
