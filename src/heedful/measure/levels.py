"""Several training runs, each asked about the same texts: an interval that contains both, and says so.

A single run's interval holds what other texts would change. Another seed can change more, and only several runs can
tell how much.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr, stdtrit

from heedful.measure.statistics import Floats, Interval, bootstrap_means


@dataclass(frozen=True, slots=True)
class Sources:
    """What was drawn, and so what an interval contains: other texts, and other training seeds where runs > 1."""

    texts: int
    runs: int = 1

    def sentence(self, level: float = 0.95) -> str:
        if self.runs > 1:
            return (
                f"{level:.0%} interval over {self.texts:,} texts and {self.runs} training runs: what other texts and "
                "other seeds would change."
            )
        return (
            f"{level:.0%} interval over {self.texts:,} texts of one training run: what other texts would change; "
            "another seed could change more."
        )


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


def over_runs(values: ArrayLike, *, seed: int = 0, resamples: int = 2000, level: float = 0.95) -> OverRuns:
    """Mean and interval of values (runs, texts): the same texts, asked of models trained with several seeds.

    A bootstrap on two levels (crossed, as runs share their texts: Owen 2007): the deviations of the runs from the mean
    and those of the texts are drawn apart and add up. Texts are drawn with replacement. Of three runs there are only
    27 samples with replacement, so theirs are drawn from t, k - 1 degrees of freedom.
    The variance of the run means holds that of texts within runs, which is in the text means, too, so it is taken off;
    not from two runs, whose variance is known too badly to take anything off: their interval is too wide instead.
    """
    table, (runs, texts) = _defined(values)
    lost, nan = np.shape(values)[1] - texts, float("nan")
    contains = Sources(texts, runs).sentence(level)
    if not texts:
        return OverRuns(runs, 0, lost, nan, nan, nan, contains)
    mean = float(table.mean())
    if texts < 2:
        return OverRuns(runs, texts, lost, mean, nan, nan, contains)
    moved = _by_texts(table.mean(axis=0), seed, resamples, level)
    if runs > 1:
        moved = moved + _by_runs(table, seed + 1, resamples)
    low, high = np.quantile(moved, [(1 - level) / 2, (1 + level) / 2])
    return OverRuns(runs, texts, lost, mean, mean + float(low), mean + float(high), contains)


@dataclass(frozen=True, slots=True)
class CrossedMean:
    """A mean over runs and texts, its standard error and degrees of freedom; nan where nothing varies it."""

    mean: float
    error: float
    freedom: float

    @property
    def p(self) -> float:
        """Two-sided p-value of the null hypothesis that the true mean is 0, by t."""
        if self.error == 0:
            return float(self.mean == 0)
        return float(2 * stdtr(self.freedom, -abs(self.mean) / self.error))


def crossed_mean(values: ArrayLike) -> CrossedMean:
    """Of values (runs, texts): runs and texts are both drawn, so the variance of the mean is s_r^2 / k + s_t^2 / n.

    s_r^2 is that of the k means of runs and s_t^2 that of the n means of texts (crossed effects; Owen 2007); for one
    run it is that of texts alone. Degrees of freedom: Satterthwaite 1946.
    """
    table, (runs, texts) = _defined(values)
    nan = float("nan")
    if texts < 2:
        return CrossedMean(float(table.mean()) if table.size else nan, nan, nan)
    parts = [(float(table.mean(axis=0).var(ddof=1)) / texts, texts - 1)]
    if runs > 1:
        parts.append((float(table.mean(axis=1).var(ddof=1)) / runs, runs - 1))
    variance, mean = sum(part for part, _ in parts), float(table.mean())
    freedom = variance**2 / sum(part**2 / n for part, n in parts) if variance > 0 else nan
    return CrossedMean(mean, float(np.sqrt(variance)), float(freedom))


def _defined(values: ArrayLike) -> tuple[Floats, tuple[int, int]]:
    """Values (runs, texts) of the texts that are defined in every run, and how many there are."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.shape[0]:
        raise ValueError(f"values for each run and text are needed, shape (runs, texts); given {table.shape}")
    kept = table[:, ~np.isnan(table).any(axis=0)]
    return kept, (kept.shape[0], kept.shape[1])


def over_intervals(found: Sequence[Interval], *, resamples: int = 2000, level: float = 0.95) -> Interval:
    """The intervals of several runs as one, where the number (a median, a ratio) is not a mean over texts.

    As `over_runs`: the runs' numbers vary by t, k - 1 degrees of freedom, the texts by the mean width of the intervals.
    What texts do within runs is in both and cannot be taken off, so it is a little too wide.
    """
    runs, end = len(found), (1 + level) / 2
    values = np.array([one.value for one in found])
    if runs < 2:
        raise ValueError(f"intervals of at least two runs are needed; given {runs}")
    width = float(np.mean([one.high - one.low for one in found])) / 2 / stdtrit(np.inf, end)
    spaced = (np.arange(resamples) + 0.5) / resamples
    by_run = np.sqrt(values.var(ddof=1) / runs) * stdtrit(runs - 1, spaced)
    by_text = width * np.random.default_rng(0).permutation(stdtrit(np.inf, spaced))
    low, high = np.quantile(by_run + by_text, [(1 - level) / 2, end])
    mean = float(values.mean())
    return Interval(mean, mean + float(low), mean + float(high))


def _by_texts(values: Floats, seed: int, resamples: int, level: float) -> Floats:
    """Bootstrap means of the values (n,) less their mean, enlarged as t is for few values: (resamples,)."""
    n, end = values.size, (1 + level) / 2
    enlarged = np.sqrt(n / (n - 1)) * stdtrit(n - 1, end) / stdtrit(np.inf, end)
    return np.asarray(enlarged * (bootstrap_means(values, seed=seed, resamples=resamples) - values.mean()))


def _by_runs(table: Floats, seed: int, resamples: int) -> Floats:
    """How far other seeds would move the mean, by t: (resamples,). Evenly spaced quantiles in random order."""
    runs, texts = table.shape
    variance = float(table.mean(axis=1).var(ddof=1)) / runs
    if runs > 2:
        rest = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
        variance -= float((rest**2).sum()) / ((runs - 1) * (texts - 1)) / (runs * texts)
    drawn = stdtrit(runs - 1, (np.arange(resamples) + 0.5) / resamples)
    return np.asarray(np.sqrt(max(variance, 0.0)) * np.random.default_rng(seed).permutation(drawn))


# Many means from few values each: which of them are large, and which were only lucky?
#
# The largest of many means is too large: it was chosen for its luck. Empirical Bayes (James & Stein 1961; Efron &
# Morris 1975) takes each mean part of the way back to the mean of all, the further the less it is known.


def shrink_means(groups: Sequence[Floats], *, level: float = 0.95) -> list[Interval]:
    """The mean of each group (values (n_g,), at least two), drawn to the mean of all groups; with an interval.

        m_g = mu + B_g (x_g - mu),   B_g = tau^2 / (tau^2 + v_g),   interval m_g +- z sqrt(B_g v_g)

    x_g is the mean of the group, mu the mean of all x_g, v_g = s_g^2 / n_g the variance of x_g, and tau^2 how much the
    true means vary: the variance of the x_g less the mean of the v_g, and at least 0 (method of moments). The variance
    of few values is itself uncertain (three equal values have none): s_g^2 = ((n_g - 1) s^2 + s_0^2) / n_g counts the
    mean variance of all groups, s_0^2, as one value more.
    """
    if not groups:
        return []
    if min(len(values) for values in groups) < 2:
        raise ValueError("a group of one value does not say how much its mean is worth: give two or more")
    n = np.array([len(values) for values in groups], dtype=np.float64)
    means = np.array([values.mean() for values in groups])
    own = np.array([values.var(ddof=1) for values in groups])
    v = ((n - 1) * own + own.mean()) / n / n
    centre = float(means.mean())
    tau2 = max(0.0, float(means.var(ddof=1)) - float(v.mean())) if len(groups) > 1 else 0.0
    kept = np.divide(tau2, tau2 + v, out=np.ones_like(v), where=tau2 + v > 0)  # B; nothing varies: nothing to draw
    shrunk = centre + kept * (means - centre)
    half = float(ndtri((1 + level) / 2)) * np.sqrt(kept * v)
    return [Interval(float(m), float(m - h), float(m + h)) for m, h in zip(shrunk, half, strict=True)]
