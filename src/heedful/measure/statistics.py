"""From one number for each text to one line of a table: undefined values are counted, never averaged in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

Floats = NDArray[np.float64]

SIGNIFICANT = 0.05  # p <= .05, uncorrected, as published (Jain & Wallace 2019, table 2)
_CELLS = 1 << 20  # resampled values held at once
_REMEMBERED = 1 << 22  # at most so many, of each of the last few sizes: a table has many columns of one size


@dataclass(frozen=True, slots=True)
class Summary:
    """Some values in one line. `std` divides by n, like the published tables; nan where n is 0."""

    n: int  # defined values
    undefined: int
    mean: float
    std: float
    low: float  # bootstrap interval of the mean
    high: float
    sig_frac: float | None = None  # of the defined ones, the share with p <= .05; None without p-values


@dataclass(frozen=True, slots=True)
class Interval:
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Spread:
    """One number from several seeds. `std` divides by seeds - 1; nan for one seed."""

    seeds: int
    mean: float
    std: float

    def distance(self, published: float) -> float:
        """(ours - published) in units of our between-seed spread; nan where there is no spread."""
        return (self.mean - published) / self.std if self.std > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class Paired:
    """Is the mean of first - second different from zero? Over the texts where both are defined."""

    n: int
    undefined: int
    difference: float
    p: float


def summarise(
    values: ArrayLike,
    p: ArrayLike | None = None,
    *,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
) -> Summary:
    """Mean, standard deviation and bootstrap interval of the values (n,) that are not nan.

    With p-values of the same shape, also the share that is significant.
    """
    values = _flat(values)
    defined = ~np.isnan(values)
    kept = values[defined]
    share = None
    if p is not None:
        p = _flat(p)
        if p.shape != values.shape:
            raise ValueError(f"values and p-values need one shape; given {values.shape} and {p.shape}")
        share = float((p[defined] <= SIGNIFICANT).mean()) if kept.size else float("nan")
    if not kept.size:
        nan = float("nan")
        return Summary(0, int(values.size), nan, nan, nan, nan, share)
    low, high = bootstrap(kept, seed=seed, resamples=resamples, level=level)
    mean, std = float(kept.mean()), float(kept.std())
    return Summary(int(kept.size), int((~defined).sum()), mean, std, low, high, share)


def bootstrap(
    values: ArrayLike, *, seed: int = 0, resamples: int = 1000, level: float = 0.95
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean: the middle `level` of the means of samples with replacement.

    The same for the same values: it has a generator of its own. One value alone says nothing about its spread:
    the interval is then nan.
    """
    values = _flat(values)
    if np.isnan(values).any():
        raise ValueError(
            f"{int(np.isnan(values).sum())} of {values.size} values are undefined; leave them out"
        )
    if values.size < 2:
        return float("nan"), float("nan")
    remembered = values.size * resamples <= _REMEMBERED
    counts = (_known_counts if remembered else _counts)(values.size, resamples, seed)
    means = np.concatenate([some @ values for some in counts]) / values.size
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _counts(n: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each of n values is drawn: (some of the resamples, n), until there are all."""
    generator, at_once = np.random.default_rng(seed), max(1, _CELLS // n)
    for done in range(0, resamples, at_once):
        rows = min(at_once, resamples - done)
        drawn = generator.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


@lru_cache(maxsize=4)
def _known_counts(n: int, resamples: int, seed: int) -> tuple[Floats, ...]:
    return tuple(_counts(n, resamples, seed))


def quantile(values: ArrayLike, q: float = 0.5, *, level: float = 0.95) -> Interval:
    """A quantile (the median) with its order-statistic interval, ignoring nan.

    The number of values below the true quantile is binomial (n, q), whatever the distribution, so the
    ranks that bound it with at least `level` are known without resampling (Conover 1999, section 3.2).
    Where the values are too few for that, an end is nan.
    """
    values = _flat(values)
    values = values[~np.isnan(values)]
    if not values.size:
        return Interval(float("nan"), float("nan"), float("nan"))
    from scipy import stats  # late: it takes a second to load

    # scipy-stubs say that this is a float; it is a pair.
    ends: Any = stats.quantile_test(values, q=0, p=q).confidence_interval(level)
    return Interval(float(np.quantile(values, q)), float(ends.low), float(ends.high))


def between_seeds(values: Sequence[float]) -> Spread:
    """Mean and spread of one number over seeds. Every seed has to have it: nan stays nan."""
    given = _flat(values)
    if not given.size:
        raise ValueError("at least one seed is needed to speak of a spread between seeds")
    std = float(given.std(ddof=1)) if given.size > 1 else float("nan")
    return Spread(int(given.size), float(given.mean()), std)


def paired(
    first: ArrayLike, second: ArrayLike, generator: np.random.Generator, *, resamples: int = 9999
) -> Paired:
    """Permutation test of the mean difference: under the null hypothesis each pair could be swapped.

    Two-sided; exact where there are no more than `resamples` ways of swapping; nan for fewer than two pairs.
    """
    first, second = _flat(first), _flat(second)
    if first.shape != second.shape:
        raise ValueError(f"a paired comparison needs one shape; given {first.shape} and {second.shape}")
    difference = first - second
    kept = difference[~np.isnan(difference)]
    lost = int(difference.size - kept.size)
    if kept.size < 2:
        return Paired(int(kept.size), lost, float(kept[0]) if kept.size else float("nan"), float("nan"))
    from scipy import stats  # late: it takes a second to load

    # Swapping a pair flips the sign of its difference, which is how scipy permutes a single sample.
    result = stats.permutation_test(
        (kept,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, _CELLS // kept.size),
        random_state=generator,
    )
    return Paired(int(kept.size), lost, float(kept.mean()), float(result.pvalue))


def proportion(count: int, n: int, *, level: float = 0.95) -> Interval:
    """count of n, with the interval of Wilson 1927, which stays inside [0, 1] and is not empty at 0 or n."""
    if n == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    z2 = float(ndtri((1 + level) / 2)) ** 2
    middle = (count + z2 / 2) / (n + z2)
    half = math.sqrt(z2 * (count * (n - count) / n + z2 / 4)) / (n + z2)
    return Interval(count / n, max(0.0, middle - half), min(1.0, middle + half))


def mcnemar(only_first: int, only_second: int) -> float:
    """Two-sided exact p-value of McNemar 1947: of the texts in which only one of two things happened, is it the
    first as often as the second? nan without such texts."""
    from scipy import stats  # late: it takes a second to load

    n = only_first + only_second
    return float(stats.binomtest(only_first, n).pvalue) if n else float("nan")


def effect_size(first: ArrayLike, second: ArrayLike) -> float:
    """Matched-pairs rank-biserial correlation (Kerby 2014): the share of the rank sum of |first - second| in which
    first is greater, minus the share in which it is smaller. -1 to 1; nan where no pair differs."""
    difference = _flat(first) - _flat(second)
    difference = difference[~np.isnan(difference) & (difference != 0)]
    if not difference.size:
        return float("nan")
    from scipy import stats  # late: it takes a second to load

    ranks = stats.rankdata(np.abs(difference))
    return float((ranks * np.sign(difference)).sum() / ranks.sum())


def false_discovery(p: ArrayLike) -> Floats:
    """Benjamini & Hochberg 1995 adjusted p-values; nan stays nan and does not count as a test."""
    p = np.asarray(p, dtype=np.float64)
    adjusted = np.full(p.shape, np.nan)
    defined = ~np.isnan(p)
    if defined.any():
        from scipy import stats  # late: it takes a second to load

        adjusted[defined] = stats.false_discovery_control(p[defined], method="bh")
    return adjusted


def _flat(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"one value for each text is needed, shape (n,); given {array.shape}")
    return array
