"""From one number for each text to one line of a table: undefined values are counted, never averaged in.

Which uncertainty an interval contains depends on what was drawn: `mean_interval` and `paired` speak of other
texts for the same trained model, `over_runs` of other texts and other training seeds. How often they hold the true
mean: benchmarks/coverage_of_means.py.
"""

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
FEW = 50  # below so many values an interval of the mean is Johnson's t, from there on a bootstrap
POWER = 0.8  # with which a smallest detectable effect is detected
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
    low: float  # interval of the mean difference: `mean_interval`
    high: float


@dataclass(frozen=True, slots=True)
class OverRuns:
    """A mean over training runs and texts, and a sentence that says what its interval contains."""

    runs: int
    texts: int  # defined in every run
    undefined: int
    mean: float
    low: float
    high: float
    contains: str


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
) -> Summary:
    """Mean, standard deviation and interval of the mean of the values (n,) that are not nan.

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
    low, high = mean_interval(kept, seed=seed, resamples=resamples, level=level)
    mean, std = float(kept.mean()), float(kept.std())
    return Summary(int(kept.size), int((~defined).sum()), mean, std, low, high, share)


def mean_interval(
    values: ArrayLike, *, seed: int = 0, resamples: int = 1000, level: float = 0.95
) -> tuple[float, float]:
    """Interval of the mean over other texts: percentile bootstrap, and for fewer than `FEW` values Johnson's t.

    The percentile bootstrap is too narrow for few values (it knows neither the t distribution nor n - 1). Johnson
    1978 adds to the mean, for skewness, k mu_3 / (6 s^2 n) with k = 1 + 2 t^2 at the ends t of the interval; mu_3
    from few values is uncertain, and half of the second term, k = 1 + t^2, is what comes nearest to `level`.
    """
    values = _flat(values)
    n = values.size
    if n < 2 or n >= FEW or np.isnan(values).any():
        return bootstrap(values, seed=seed, resamples=resamples, level=level)
    mean, variance = float(values.mean()), float(values.var(ddof=1))
    if variance == 0:
        return mean, mean
    from scipy import stats  # late: it takes a second to load

    t = float(stats.t.ppf((1 + level) / 2, n - 1))
    third = float(((values - mean) ** 3).mean())
    middle, half = mean + (1 + t * t) * third / (6 * variance * n), t * float(np.sqrt(variance / n))
    return min(middle - half, mean), max(middle + half, mean)


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
        nan = float("nan")
        return Paired(int(kept.size), lost, float(kept[0]) if kept.size else nan, nan, nan, nan)
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
    return Paired(int(kept.size), lost, float(kept.mean()), float(result.pvalue), *mean_interval(kept))


def over_runs(values: ArrayLike, *, seed: int = 0, resamples: int = 1000, level: float = 0.95) -> OverRuns:
    """Mean and interval of values (runs, texts): the same texts, asked of models trained with several seeds.

    A bootstrap on both levels (crossed, as runs share their texts: Owen 2007): runs are drawn with replacement and
    texts are, and the deviations of both from the mean add up. Few runs drawn from themselves vary too little: their
    deviations are enlarged by sqrt(k / (k - 1)) and by the ratio of the quantiles of t, k - 1 degrees of freedom, and
    of the normal distribution; so are those of the texts.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.shape[0]:
        raise ValueError(f"values for each run and text are needed, shape (runs, texts); given {table.shape}")
    defined = ~np.isnan(table).any(axis=0)
    table = table[:, defined]
    (runs, texts), lost, nan = table.shape, int((~defined).sum()), float("nan")
    many = f"{runs} training runs" if runs > 1 else "one training run"
    contains = (
        f"{level:.0%} interval over {texts} texts and {many}: what other texts and other seeds would change."
        if runs > 1
        else f"{level:.0%} interval over {texts} texts of {many}: what other texts would change; "
        "another seed could change more."
    )
    if not texts:
        return OverRuns(runs, 0, lost, nan, nan, nan, contains)
    mean = float(table.mean())
    if texts < 2:
        return OverRuns(runs, texts, lost, mean, nan, nan, contains)
    moved = _deviations(table.mean(axis=0), seed, resamples, level)
    if runs > 1:
        moved = moved + _deviations(table.mean(axis=1), seed + 1, resamples, level)
    low, high = np.quantile(moved, [(1 - level) / 2, (1 + level) / 2])
    return OverRuns(runs, texts, lost, mean, mean + float(low), mean + float(high), contains)


def _deviations(values: Floats, seed: int, resamples: int, level: float) -> Floats:
    """Bootstrap means of the values less their mean, enlarged for few values: (resamples,)."""
    n = values.size
    means = np.concatenate([some @ values for some in _counts(n, resamples, seed)]) / n
    from scipy import stats  # late: it takes a second to load

    end = (1 + level) / 2
    enlarged = float(np.sqrt(n / (n - 1)) * stats.t.ppf(end, n - 1) / stats.norm.ppf(end))
    return np.asarray(enlarged * (means - values.mean()))


def significant(values: ArrayLike, p: ArrayLike) -> Significant:
    """How many values are significantly positive, and how many significantly negative (p <= .05, uncorrected)."""
    values, p = _flat(values), _flat(p)
    if p.shape != values.shape:
        raise ValueError(f"values and p-values need one shape; given {values.shape} and {p.shape}")
    defined = ~np.isnan(values)
    if not defined.any():
        return Significant(float("nan"), float("nan"))
    low, kept = p[defined] <= SIGNIFICANT, values[defined]
    return Significant(float((low & (kept > 0)).mean()), float((low & (kept < 0)).mean()))


def smallest_detectable(std: float, n: int, *, level: float = 0.95, power: float = POWER) -> float:
    """The smallest true mean (difference) that a test on n texts finds with this power: (z + z') std / sqrt(n).

    By the normal distribution: for 20 texts the power is .76 instead of .8.
    """
    if n < 2:
        return float("nan")
    return _z(level, power) * std / float(np.sqrt(n))


def texts_needed(effect: float, std: float, *, level: float = 0.95, power: float = POWER) -> int:
    """How many texts find a true mean (difference) of this size with this power; the inverse of the above."""
    if not effect:
        raise ValueError("an effect of 0 cannot be found with any number of texts")
    return max(2, int(np.ceil((_z(level, power) * std / effect) ** 2)))


def _z(level: float, power: float) -> float:
    from scipy import stats  # late: it takes a second to load

    return float(stats.norm.ppf((1 + level) / 2) + stats.norm.ppf(power))


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
