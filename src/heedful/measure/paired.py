"""Two measures of the same texts: how much one exceeds the other, how sure that is, and how large it is.

A difference is taken text by text, so what makes one text harder than another drops out. Its interval contains what
other texts would change, for the same trained model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.measure.statistics import Floats, flat, mean_interval

LEAST, MOST = 999, 9999  # sign flips drawn where all of them would be more: fewer of many texts
_DRAWN = 20_000_000  # signs
_CELLS = 1 << 22  # sign flips held at once


@dataclass(frozen=True, slots=True)
class Paired:
    """Is the mean of first - second different from zero? Over the texts where both are defined."""

    n: int
    undefined: int
    difference: float
    p: float  # two-sided, `sign_flip_test`
    low: float  # interval of the mean difference: `mean_interval`
    high: float
    dz: float
    rank_biserial: float


def paired(first: ArrayLike, second: ArrayLike | float = 0.0, *, seed: int = 0, resamples: int | None = None) -> Paired:
    """The mean of first - second (n,) with interval, test and effect sizes; nan for what too few texts cannot say."""
    first = flat(first)
    second = np.full(first.shape, second) if isinstance(second, int | float) else flat(second)
    if first.shape != second.shape:
        raise ValueError(f"a paired comparison needs one shape; given {first.shape} and {second.shape}")
    difference = first - second
    kept = difference[~np.isnan(difference)]
    lost = int(difference.size - kept.size)
    if not kept.size:
        nan = float("nan")
        return Paired(0, lost, nan, nan, nan, nan, nan, nan)
    low, high = mean_interval(kept, seed=seed)
    p = sign_flip_test(kept, seed=seed, resamples=resamples)
    return Paired(int(kept.size), lost, float(kept.mean()), p, low, high, dz(kept), rank_biserial(kept))


def sign_flip_test(differences: ArrayLike, *, seed: int = 0, resamples: int | None = None) -> float:
    """p-value of the mean of the differences: if both measures were alike, each pair could be swapped (Fisher 1935).

    Two-sided: the share of the sign flips whose mean is at least as far from zero. All 2^n of them where they are no
    more than `resamples`; else so many are drawn, and the observed signs count as one more, so that p is never 0 and
    the test keeps its level (Phipson & Smyth 2010). nan for fewer than two pairs.
    """
    values = flat(differences)
    if np.isnan(values).any():
        raise ValueError(f"{int(np.isnan(values).sum())} of {values.size} differences are undefined")
    n, total = values.size, float(values.sum())
    if n < 2:
        return float("nan")
    if resamples is None:
        resamples = int(np.clip(_DRAWN // n, LEAST, MOST))
    observed = abs(total) - 1e-12 * float(np.abs(values).sum())  # equal but for rounding is as far
    every = n < 63 and 2**n <= resamples
    generator, many = np.random.default_rng(seed), 2**n if every else resamples
    as_far, at_once = 0, max(1, _CELLS // n)
    for done in range(0, many, at_once):
        rows = min(at_once, many - done)
        flips: NDArray[np.integer[Any]]  # (rows, n): 1 where a pair is swapped
        if every:
            flips = np.arange(done, done + rows)[:, None] >> np.arange(n) & 1
        else:
            bits = np.frombuffer(generator.bytes(-(-rows * n // 8)), dtype=np.uint8)
            flips = np.unpackbits(bits, count=rows * n).reshape(rows, n)
        as_far += int((np.abs(total - 2 * (flips @ values)) >= observed).sum())
    return as_far / many if every else (as_far + 1) / (many + 1)


def dz(differences: ArrayLike) -> float:
    """Mean of the differences in units of their standard deviation (Cohen 1988, d_z); nan where it is 0."""
    values = flat(differences)
    values = values[~np.isnan(values)]
    std = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return float(values.mean()) / std if std > 0 else float("nan")


def rank_biserial(differences: ArrayLike) -> float:
    """Matched-pairs rank-biserial correlation (Kerby 2014): the share of the rank sum of |difference| in which it is
    positive, minus the share in which it is negative. -1 to 1; nan where no pair differs."""
    values = flat(differences)
    values = values[~np.isnan(values) & (values != 0)]
    if not values.size:
        return float("nan")
    from scipy import stats  # late: it takes a second to load

    ranks: Floats = stats.rankdata(np.abs(values))
    return float((ranks * np.sign(values)).sum() / ranks.sum())


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value of McNemar 1947: of the texts in which only one of two things happened, is it the
    first as often as the second? nan without such texts."""
    from scipy import stats  # late: it takes a second to load

    n = only_first + only_second
    return float(stats.binomtest(only_first, n).pvalue) if n else float("nan")
