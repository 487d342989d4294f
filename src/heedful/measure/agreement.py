"""Do two scores point at the same tokens? The overlap of the k highest: unimportant ones have no say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def top_k_overlap(a: ArrayLike, b: ArrayLike, mask: ArrayLike, k: int | float) -> Floats:
    """|A & B| / k, where A and B are the k tokens with the highest a and b. (n,), nan where undefined.

    k as in `how_many`. Undefined: no token, or a nan among the scores.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    mask = np.asarray(mask, dtype=np.bool_)
    shared = (top_k(a, mask, k) & top_k(b, mask, k)).sum(axis=1)
    broken = ((np.isnan(a) | np.isnan(b)) & mask).any(axis=1)
    return _divide(shared, np.where(broken, 0, how_many(mask.sum(axis=1), k)))


def expected_overlap(n_tokens: ArrayLike, k: int | float) -> Floats:
    """What `top_k_overlap` is on average when one of the rankings is random: k / T (hypergeometric mean)."""
    n_tokens = np.asarray(n_tokens)
    return _divide(how_many(n_tokens, k), n_tokens)


def top_k(scores: ArrayLike, mask: ArrayLike, k: int | float) -> Bools:
    """(n, length) True for the k highest scores of each row; equal scores are taken from the left."""
    scores, mask = np.asarray(scores, dtype=np.float64), np.asarray(mask, dtype=np.bool_)
    if scores.ndim != 2 or scores.shape != mask.shape:
        raise ValueError(f"scores and mask need one shape (texts, tokens); given {scores.shape} and {mask.shape}")
    order = np.lexsort((-scores, ~mask), axis=-1)  # stable; padding last, whatever its scores
    chosen = np.zeros(scores.shape, dtype=np.bool_)
    first = np.arange(scores.shape[1]) < how_many(mask.sum(axis=1), k)[:, None]  # (n, length)
    np.put_along_axis(chosen, order, first, axis=1)
    return chosen


def how_many(n_tokens: ArrayLike, k: int | float) -> NDArray[np.int64]:
    """k for texts of these lengths: an int is a number of tokens (at most all), a float in (0, 1] a share.

    A share is rounded up, so that a text with tokens has at least one. `1` is one token, `1.0` all.
    """
    n_tokens = np.asarray(n_tokens, dtype=np.int64)
    if isinstance(k, float) and 0 < k <= 1:
        # 0.07 * 100 is 7.000000000000001 in floats: rounding up must not make that 8.
        return np.asarray(np.ceil(np.round(k * n_tokens, 9)), dtype=np.int64)
    if isinstance(k, int | np.integer) and not isinstance(k, bool) and k >= 1:
        return np.asarray(np.minimum(n_tokens, int(k)))
    raise ValueError(f"k needs to be a whole number of at least 1 or a share in (0, 1]; given {k!r}")


def undefined(values: ArrayLike) -> int:
    """How many of the values are nan."""
    return int(np.isnan(np.asarray(values, dtype=np.float64)).sum())


def _divide(part: NDArray[np.int64], whole: NDArray[np.int64]) -> Floats:
    """part / whole, nan where whole is not positive."""
    result = np.full(whole.shape, np.nan)
    np.divide(part, whole, out=result, where=whole > 0)
    return result


# What a random ranking gets, without drawing any. Without ties the law of tau is known, so the mean over a corpus and
# how far it may stray can be written down (Kendall 1970, chapter 5).


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


def tau_floor(n_tokens: ArrayLike) -> Floor:
    """The mean of tau over texts of these lengths: expected 0, var tau = 2 (2T + 5) / (9 T (T - 1)) for each."""
    t = np.asarray(n_tokens, dtype=np.float64)
    t = t[t >= 2]
    variance = 2 * (2 * t + 5) / (9 * t * (t - 1))
    return Floor(len(t), 0.0, float(np.sqrt(variance.sum()) / len(t))) if len(t) else _NONE


_NONE = Floor(0, float("nan"), float("nan"))
