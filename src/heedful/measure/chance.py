"""What a random ranking gets, without drawing any: the law of tau and of the overlap of the k highest.

The floor of an agreement experiment is usually measured by ranking the words at random. Without ties its law is
known, so the mean over a corpus and how far it may stray can be written down (Kendall 1970, chapter 5; the overlap is
hypergeometric).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from heedful.measure.agreement import how_many
from heedful.measure.rank import inversions

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Floor:
    """The mean over n texts under random rankings: what to expect, and its standard deviation."""

    n: int  # texts where the measure is defined
    expected: float
    std: float

    def surprise(self, mean: float) -> float:
        """Two-sided p-value of a mean over the same texts, if the ranking were random (many texts: normal)."""
        if not self.std > 0:
            return float("nan")
        return float(2 * ndtr(-abs(mean - self.expected) / self.std))


def tau_law(tokens: int) -> tuple[Floats, Floats]:
    """The values that tau takes for random rankings of so many tokens without ties, and their probabilities."""
    if tokens < 2:
        raise ValueError(f"tau needs at least two tokens; given {tokens}")
    ways = inversions(tokens, tokens * (tokens - 1) // 2)
    total, pairs = sum(ways), len(ways) - 1
    return 1 - 2 * np.arange(pairs + 1) / pairs, np.array([w / total for w in ways])


def tau_floor(n_tokens: ArrayLike) -> Floor:
    """The mean of tau over texts of these lengths: expected 0, var tau = 2 (2T + 5) / (9 T (T - 1)) for each."""
    t = np.asarray(n_tokens, dtype=np.float64)
    t = t[t >= 2]
    variance = 2 * (2 * t + 5) / (9 * t * (t - 1))
    return Floor(len(t), 0.0, float(np.sqrt(variance.sum()) / len(t))) if len(t) else _NONE


def overlap_law(tokens: int, k: int | float) -> Floats:
    """P(|A & B| = 0, 1, ... k) for the k highest of two rankings, one of them random: hypergeometric."""
    from scipy import stats  # late: it takes a second to load

    size = int(how_many(np.array([tokens]), k)[0])
    return np.asarray(stats.hypergeom(tokens, size, size).pmf(np.arange(size + 1)))


def overlap_floor(n_tokens: ArrayLike, k: int | float) -> Floor:
    """The mean of `top_k_overlap` over texts of these lengths: expected k / T for each."""
    t = np.asarray(n_tokens, dtype=np.int64)
    t = t[t >= 1]
    share = how_many(t, k) / np.maximum(t, 1)  # expected
    variance = (1 - share) ** 2 / np.maximum(t - 1, 1)  # of a hypergeometric count over k
    return Floor(len(t), float(share.mean()), float(np.sqrt(variance.sum()) / len(t))) if len(t) else _NONE


_NONE = Floor(0, float("nan"), float("nan"))
