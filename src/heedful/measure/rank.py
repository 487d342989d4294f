"""Rank correlation of two scores over the tokens of each text, for a whole padded batch at once.

Kendall's tau-b with p-values (Jain & Wallace 2019, Algorithm 1), Spearman's rho, and a top-weighted tau
(Vigna 2015). All three start from the same sorted form of a batch (`Sorted`) and differ only in what
they count. Undefined (fewer than two tokens, constant scores, a nan among the scores) is nan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from math import factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from heedful.measure.order import (
    Bools,
    Floats,
    Ints,
    Sorted,
    before_and_greater,
    checked,
    group_size,
    inverse,
    mean_rank,
    sorted_batches,
)

_EXACT = 33  # scipy's limit of length for the exact p-value


@dataclass(frozen=True, slots=True, eq=False)
class Kendall:
    """tau-b and its two-sided p-value for each text; nan where undefined."""

    tau: Floats  # (n,)
    p: Floats  # (n,)
    n_tokens: Ints  # (n,) real tokens


def kendall(a: ArrayLike, b: ArrayLike, mask: ArrayLike | None = None) -> Kendall:
    """Kendall's tau-b between the scores a and b (n, length) over the real tokens of each row.

    tau_b = (P - Q) / sqrt((N - X) (N - Y)) with P concordant and Q discordant of the N = T(T-1)/2 pairs,
    X of them tied in a, Y tied in b (Kendall 1945). The p-value is that of scipy.stats.kendalltau with
    method="auto": exact without ties for T <= 33 or at most one pair out of order, else normal.
    """
    a, b, mask = checked(a, b, mask)
    tau = np.full(len(a), np.nan)
    p = np.full(len(a), np.nan)
    for rows, batch in sorted_batches(a, b, mask):
        discordant = before_and_greater(batch.crossing()).sum(axis=1, dtype=np.int64)  # (n,)
        tau[rows], p[rows] = _tau_and_p(batch, discordant)
    return Kendall(tau, p, mask.sum(axis=1, dtype=np.int64))


def spearman(a: ArrayLike, b: ArrayLike, mask: ArrayLike | None = None) -> Floats:
    """Spearman's rho: the linear correlation of the ranks, where tied scores share their mean rank."""
    a, b, mask = checked(a, b, mask)
    rho = np.full(len(a), np.nan)
    for rows, batch in sorted_batches(a, b, mask):
        middle = (batch.length[:, None] - 1) / 2
        x = np.where(batch.real, mean_rank(batch.a_rank) - middle, 0.0)  # (n, length)
        y = np.where(batch.real, mean_rank(batch.b_rank) - middle, 0.0)
        rho[rows] = _ratio((x * y).sum(axis=1), (x * x).sum(axis=1), (y * y).sum(axis=1))
    return rho


def weighted_kendall(a: ArrayLike, b: ArrayLike, mask: ArrayLike | None = None) -> Floats:
    """Top-weighted tau: Vigna 2015's additive hyperbolic tau_h, equal to scipy.stats.weightedtau.

    A pair (i, j) weighs w_i + w_j with w = 1 / (rank + 1), rank 0 for the highest score:
    tau_w = sum_{i<j} sgn(a_i - a_j) sgn(b_i - b_j) (w_i + w_j) / (|a|_w |b|_w), where |a|_w^2 is the
    same sum for a with itself. The result is the mean of ranking by (a, b) and by (b, a).
    A sum of weights splits into one term for each token, w_i (concordant_i - discordant_i).
    """
    a, b, mask = checked(a, b, mask)
    tau = np.full(len(a), np.nan)
    for rows, batch in sorted_batches(a, b, mask):
        length, place = batch.length[:, None], np.arange(batch.real.shape[1])
        permutation = inverse(batch.crossing())
        # Discordant with j: the greater before it, and the smaller after it (all smaller - those before).
        discordant = 2 * before_and_greater(permutation).astype(np.int64) + permutation - place
        a_ties, b_ties, both_ties = (group_size(r) for r in (batch.a_rank, batch.b_rank, batch.joint_rank()))
        balance = length - a_ties - b_ties + both_ties - 2 * discordant  # (n, length) concordant - discordant
        taus = []
        for ascending in (place, permutation):
            w = np.where(batch.real, 1.0 / np.maximum(length - ascending, 1), 0.0)  # (n, length)
            norms = [(w * (length - ties)).sum(axis=1) for ties in (a_ties, b_ties)]
            taus.append(_ratio((w * balance).sum(axis=1), *norms))
        tau[rows] = (taus[0] + taus[1]) / 2
    return tau


def _tau_and_p(batch: Sorted, discordant: Ints) -> tuple[Floats, Floats]:
    """tau-b and its p-value for each row, from the number of discordant pairs."""
    t = batch.length
    pairs = t * (t - 1) // 2
    # Ties are rare in attention: count them only in the rows that have any.
    last = np.where(batch.real, batch.b_rank, 0).max(axis=1)
    tied = np.flatnonzero((batch.a_rank[np.arange(len(t)), t - 1] < t - 1) | (last < t - 1))
    a_pairs, b_pairs, both_pairs, a_triples, b_triples = np.zeros((5, len(t)), dtype=np.int64)
    if len(tied):
        some = Sorted(t[tied], batch.real[tied], batch.a_rank[tied], batch.b_rank[tied])
        a_pairs[tied], a_triples[tied] = _tied(some.a_rank, some.real)
        b_pairs[tied], b_triples[tied] = _tied(some.b_rank, some.real)
        both_pairs[tied], _ = _tied(some.joint_rank(), some.real)
    balance = pairs - a_pairs - b_pairs + both_pairs - 2 * discordant  # concordant - discordant
    tau = _ratio(balance, pairs - a_pairs, pairs - b_pairs)

    p = np.full(len(t), np.nan)
    fewer = np.minimum(discordant, pairs - discordant)
    exact = (a_pairs == 0) & (b_pairs == 0) & ((t <= _EXACT) | (fewer <= 1))
    for tokens in np.unique(t[exact]):
        at = exact & (t == tokens)
        p[at] = _exact_p(int(tokens))[fewer[at]]
    normal = ~exact & ~np.isnan(tau)  # three tokens or more: two are either exact or constant
    p[normal] = _normal_p(*(x[normal] for x in (t, balance, a_pairs, b_pairs, a_triples, b_triples)))
    return tau, p


def _tied(rank: NDArray[np.int32], real: Bools) -> tuple[Ints, Ints]:
    """For each row, over its groups of c tied tokens: sum c(c-1)/2 and sum c(c-1)(c-2)."""
    others = np.where(real, group_size(rank) - 1, 0)  # (n, length) c - 1 once for each member
    return others.sum(axis=1) // 2, (others * (others - 1)).sum(axis=1)


def _normal_p(t: Ints, balance: Ints, a2: Ints, b2: Ints, a3: Ints, b3: Ints) -> Floats:
    """Two-sided p-value of P - Q by its normal approximation with ties (Kendall 1970, chapter 4).

    18 var = T(T-1)(2T+5) - sum_a c(c-1)(2c+5) - sum_b ... + products of both; a2 and a3 are the sums of
    `_tied`, and c(c-1)(2c+5) = 2 c(c-1)(c-2) + 9 c(c-1).
    """
    ordered = t * (t - 1.0)
    spread = ordered * (2 * t + 5) - (2 * a3 + 18 * a2) - (2 * b3 + 18 * b2)
    both = 2.0 * a2 * b2 / ordered + a3.astype(np.float64) * b3 / (9 * ordered * (t - 2))
    z = balance / np.sqrt(spread / 18 + both)
    return np.asarray(2 * ndtr(-np.abs(z)), dtype=np.float64)


@lru_cache(maxsize=512)
def _exact_p(tokens: int) -> Floats:
    """Two-sided p-values for 0, 1, ... inverted pairs of a random permutation (Kendall 1970, chapter 5).

    Above scipy's limit for the exact distribution only none and one are ever asked for.
    """
    if tokens > 171:  # 2 / 171! is below the smallest float
        return np.zeros(2)
    most = tokens * (tokens - 1) // 4 if tokens <= _EXACT else 1
    ways = accumulate(inversions(tokens, most))
    return np.array([min(1.0, 2 * w / factorial(tokens)) for w in ways], dtype=np.float64)


def inversions(tokens: int, most: int) -> list[int]:
    """How many permutations of so many tokens have 0, 1, ... `most` pairs out of order.

    Those of j tokens with k inversions are the sum of those of j - 1 with k - j + 1 .. k.
    """
    ways = [1] + [0] * most  # of one token; Python integers, since 33! is beyond 64 bits
    for j in range(2, tokens + 1):
        up_to = list(accumulate(ways))
        ways = up_to[:j] + [more - less for more, less in zip(up_to[j:], up_to, strict=False)]
    return ways


def _ratio(product: NDArray[np.generic], x: NDArray[np.generic], y: NDArray[np.generic]) -> Floats:
    """product / sqrt(x) / sqrt(y) within [-1, 1]; nan where x or y is 0 (constant scores)."""
    scale = np.sqrt(np.asarray(x, dtype=np.float64)) * np.sqrt(np.asarray(y, dtype=np.float64))
    result = np.full(scale.shape, np.nan)
    np.divide(np.asarray(product, dtype=np.float64), scale, out=result, where=scale > 0)
    return np.asarray(np.clip(result, -1.0, 1.0))
