"""From one number for each text to one line of a table: undefined values are counted, never averaged in.

An interval here contains what other texts would change, for the same trained model; with several training runs,
measure/levels.py adds what other seeds would. Differences between two measures: measure/paired.py. How often intervals
hold the true value: checks/coverage_of_intervals.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

Floats = NDArray[np.float64]
Range = tuple[float, float]

SIGNIFICANT = 0.05  # p <= .05, uncorrected, as published (Jain & Wallace 2019, table 2)
FEW = 1000  # below so many values an interval of the mean is a t interval, from there on a bootstrap
SKEWNESS = 0.5  # of a sample's skewness, what its interval counts with: checks/choose_interval.py
_CELLS = 1 << 20  # resampled values held at once
_REMEMBERED = 1 << 22  # at most so many, of each of the last few sizes: a table has many columns of one size


@dataclass(frozen=True, slots=True)
class Summary:
    """Some values in one line. `std` divides by n, like the published tables; nan where n is 0."""

    n: int  # defined values
    undefined: int
    mean: float
    std: float
    low: float  # interval of the mean: `mean_interval`
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


@dataclass(frozen=True, slots=True)
class Significant:
    """Shares of the defined values with p <= .05, by their sign; nan where nothing is defined."""

    positive: float
    negative: float


def summarise(
    values: ArrayLike,
    p: ArrayLike | None = None,
    *,
    seed: int = 0,
    resamples: int = 1000,
    level: float = 0.95,
    within: Range | None = None,
    yes_or_no: bool = False,
) -> Summary:
    """Mean, standard deviation and interval of the mean of the values (n,) that are not nan.

    With p-values of the same shape, also the share that is significant; `within` as in `mean_interval`. `yes_or_no`:
    the values are 1 and 0, so their mean is a share, and the interval that of `proportion`.
    """
    values = flat(values)
    defined = ~np.isnan(values)
    kept = values[defined]
    share = None
    if p is not None:
        p = flat(p)
        if p.shape != values.shape:
            raise ValueError(f"values and p-values need one shape; given {values.shape} and {p.shape}")
        share = float((p[defined] <= SIGNIFICANT).mean()) if kept.size else float("nan")
    if not kept.size:
        nan = float("nan")
        return Summary(0, int(values.size), nan, nan, nan, nan, share)
    if yes_or_no and np.isin(kept, (0.0, 1.0)).all():
        share_of = proportion(int(kept.sum()), kept.size, level=level)
        low, high = share_of.low, share_of.high
    else:
        low, high = mean_interval(kept, seed=seed, resamples=resamples, level=level, within=within)
    mean, std = float(kept.mean()), float(kept.std())
    return Summary(int(kept.size), int((~defined).sum()), mean, std, low, high, share)


def mean_interval(
    values: ArrayLike, *, seed: int = 0, resamples: int = 1000, level: float = 0.95, within: Range | None = None
) -> Range:
    """Interval of the mean over other texts: percentile bootstrap, and for fewer than `FEW` values a t interval that
    knows of skewness.

    The percentile bootstrap is too narrow for few values (it knows neither the t distribution nor n - 1), and a plain
    t interval misses the long tail. Hall 1992 takes the skewness g out of t = (mean - mu) sqrt(n) / s by

        u(t) = t + g t^2 / (3 sqrt(n)) + g^2 t^3 / (27 n) + g / (6 sqrt(n))

    which rises, so the ends of u go back to ends of mu. Of few values g is uncertain, and SKEWNESS of it is taken.

    `within`: the values that the measure can take, (-1, 1) for tau. The t interval of very few values can leave it,
    where no mean can be; cutting it off there gives away no coverage.
    """
    values = flat(values)
    n = values.size
    if n < 2 or n >= FEW or np.isnan(values).any():
        return bootstrap(values, seed=seed, resamples=resamples, level=level)
    mean, std = float(values.mean()), float(values.std(ddof=1))
    if std == 0:
        return mean, mean
    u = float(stdtrit(n - 1, (1 + level) / 2))
    g = SKEWNESS * float((((values - mean) / std) ** 3).mean())
    low, high = (mean - std / math.sqrt(n) * without_skewness(end, g, n) for end in (u, -u))
    least, most = within or (-math.inf, math.inf)
    return max(min(low, mean), least), min(max(high, mean), most)


def without_skewness(u: float, g: float, n: int) -> float:
    """The t whose u(t) is this (Hall 1992): 3 sqrt(n) / g ((1 + g (u / sqrt(n) - g / (6 n)))^(1/3) - 1)."""
    if abs(g) < 1e-6:
        return u
    return 3 * math.sqrt(n) / g * (float(np.cbrt(1 + g * (u / math.sqrt(n) - g / (6 * n)))) - 1)


def bootstrap(values: ArrayLike, *, seed: int = 0, resamples: int = 1000, level: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean: the middle `level` of the means of samples with replacement.

    The same for the same values: it has a generator of its own. One value alone says nothing about its spread:
    the interval is then nan.
    """
    values = flat(values)
    if np.isnan(values).any():
        raise ValueError(f"{int(np.isnan(values).sum())} of {values.size} values are undefined; leave them out")
    if values.size < 2:
        return float("nan"), float("nan")
    means = bootstrap_means(values, seed=seed, resamples=resamples)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def resampled_means(values: Floats, draws: int) -> Floats:
    """Means of samples with replacement, the same texts for all of values (k, n): (k, draws).

    For intervals of what is made of several means: a ratio, a share of the way from one to another.
    """
    rng, n = np.random.default_rng(0), values.shape[1]
    return np.stack([values @ rng.multinomial(n, np.full(n, 1 / n)) / n for _ in range(draws)], 1)


def bootstrap_means(values: Floats, *, seed: int, resamples: int) -> Floats:
    """Means of samples with replacement of values (n,): (resamples,)."""
    remembered = values.size * resamples <= _REMEMBERED
    counts = (_known_counts if remembered else _counts)(values.size, resamples, seed)
    return np.asarray(np.concatenate([some @ values for some in counts]) / values.size)


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
    values = flat(values)
    values = values[~np.isnan(values)]
    if not values.size:
        return Interval(float("nan"), float("nan"), float("nan"))
    from scipy import stats  # late: it takes a second to load

    # scipy-stubs say that this is a float; it is a pair.
    ends: Any = stats.quantile_test(values, q=0, p=q).confidence_interval(level)
    return Interval(float(np.quantile(values, q)), float(ends.low), float(ends.high))


def between_seeds(values: Sequence[float]) -> Spread:
    """Mean and spread of one number over seeds. Every seed has to have it: nan stays nan."""
    given = flat(values)
    if not given.size:
        raise ValueError("at least one seed is needed to speak of a spread between seeds")
    std = float(given.std(ddof=1)) if given.size > 1 else float("nan")
    return Spread(int(given.size), float(given.mean()), std)


def significant(values: ArrayLike, p: ArrayLike) -> Significant:
    """How many values are significantly positive, and how many significantly negative (p <= .05, uncorrected)."""
    values, p = flat(values), flat(p)
    if p.shape != values.shape:
        raise ValueError(f"values and p-values need one shape; given {values.shape} and {p.shape}")
    defined = ~np.isnan(values)
    if not defined.any():
        return Significant(float("nan"), float("nan"))
    low, kept = p[defined] <= SIGNIFICANT, values[defined]
    return Significant(float((low & (kept > 0)).mean()), float((low & (kept < 0)).mean()))


def proportion(count: int, n: int, *, level: float = 0.95) -> Interval:
    """count of n, with the interval of Wilson 1927, which stays inside [0, 1] and is not empty at 0 or n."""
    if n == 0:
        return Interval(float("nan"), float("nan"), float("nan"))
    z2 = float(ndtri((1 + level) / 2)) ** 2
    middle = (count + z2 / 2) / (n + z2)
    half = math.sqrt(z2 * (count * (n - count) / n + z2 / 4)) / (n + z2)
    return Interval(count / n, max(0.0, middle - half), min(1.0, middle + half))


def flat(values: ArrayLike) -> Floats:
    """As floats (n,)."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"one value for each text is needed, shape (n,); given {array.shape}")
    return array
