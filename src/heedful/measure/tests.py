"""Many statements on one page: of those that are called findings, how many are expected to be chance?

Twenty tests at the 5% level find one thing where there is nothing. Benjamini & Hochberg 1995 adjust the p-values of
all statements together: those with q <= .05 are findings, and at most 5% of these are expected to be wrong. It holds
for independent and for positively dependent tests, as tests on the same texts are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from heedful.measure.levels import crossed_mean
from heedful.measure.statistics import SIGNIFICANT, Floats


@dataclass(frozen=True, slots=True)
class Statement:
    """What is claimed, by name, and its p-value; nan: it could not be tested."""

    name: str
    p: float


@dataclass(frozen=True, slots=True)
class Discovery:
    """A statement among all of its report: `q` is the share of wrong ones among those at least as sure as this."""

    name: str
    p: float
    q: float
    found: bool  # q <= level: may be said as a finding


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """q-values of p-values of any shape: q_(i) = min over j >= i of m p_(j) / j, for the i-th smallest of m.

    nan stays nan and does not count as a test.
    """
    p = np.asarray(p, dtype=np.float64)
    q = np.full(p.shape, np.nan)
    defined = ~np.isnan(p)
    tested = p[defined]
    if ((tested < 0) | (tested > 1)).any():
        raise ValueError(f"p-values are between 0 and 1; given {tested.min():g} to {tested.max():g}")
    order, m = np.argsort(tested), tested.size
    scaled = tested[order] * m / np.arange(1, m + 1)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(1, np.minimum.accumulate(scaled[::-1])[::-1])
    q[defined] = adjusted
    return q


def discoveries(statements: Sequence[Statement], *, level: float = SIGNIFICANT) -> tuple[Discovery, ...]:
    """Each statement with its q-value among all that are given, in their order."""
    q = benjamini_hochberg([statement.p for statement in statements])
    return tuple(Discovery(s.name, s.p, float(at), bool(at <= level)) for s, at in zip(statements, q, strict=True))


# What a number of texts can show: the smallest effect that would be found, and how many texts find a given one.
#
# By the power of the two-sided t test of a mean, or of a mean difference (Cohen 1988, chapter 2): with a true mean
# `effect`, the statistic has a noncentral t distribution, n - 1 degrees of freedom, shifted by effect sqrt(n) / sd.


POWER = 0.8  # how often what is there should be found: Cohen's convention
_MOST = 10**9  # texts: more is "never"


def power_of(effect: float, sd: float, n: int, *, level: float = SIGNIFICANT) -> float:
    """How often n texts find a true mean (difference) of this size at this level of error."""
    from scipy import stats  # late: it takes a second to load

    if n < 2 or not sd > 0:
        return float("nan")
    end, shift = float(stats.t.ppf(1 - level / 2, n - 1)), abs(effect) * math.sqrt(n) / sd
    if n > 10_000:  # t is normal, and SciPy's noncentral t loses its digits
        return float(stats.norm.sf(end - shift) + stats.norm.cdf(-end - shift))
    wrong_side = stats.nct.cdf(-end, n - 1, shift) if shift < 5 else 0.0  # far off it is nothing, and SciPy's is nan
    return float(stats.nct.sf(end, n - 1, shift) + wrong_side)


def minimum_detectable(sd: float, n: int, *, level: float = SIGNIFICANT, power: float = POWER) -> float:
    """The smallest true mean (difference) that n texts find with this power; nan for fewer than two texts."""
    if n < 2 or math.isnan(sd):
        return float("nan")
    return 0.0 if sd == 0 else sd * _detectable(n, level, power)


@lru_cache(maxsize=64)  # a summary asks for one number of texts hundreds of times
def _detectable(n: int, level: float, power: float) -> float:
    """In units of the standard deviation."""
    from scipy.optimize import brentq

    def missing(effect: float) -> float:
        return power_of(effect, 1.0, n, level=level) - power

    rough = _z(level, power) / math.sqrt(n)
    high = 2 * rough
    while missing(high) < 0:  # of two or three texts t is far from normal
        high *= 2
    return float(brentq(missing, rough / 2, high, xtol=1e-9))


def texts_needed(effect: float, sd: float, *, level: float = SIGNIFICANT, power: float = POWER) -> int:
    """How many texts find a true mean (difference) of this size with this power; the inverse of the above."""
    if not effect:
        raise ValueError("an effect of 0 cannot be found with any number of texts")
    if sd == 0:
        return 2
    n = max(2, math.ceil(min(_MOST, (_z(level, power) * sd / effect) ** 2)))
    while n < _MOST and power_of(effect, sd, n, level=level) < power:
        n += 1  # t has heavier tails than the normal distribution: two or three texts more
    return n


def _z(level: float, power: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(1 - level / 2) + ndtri(power))


# Is a difference small enough not to matter? The question that a large p-value does not answer.
#
# A test of equality that finds nothing has not shown that there is nothing. Here the null hypothesis is that the
# mean is at least a margin (Schuirmann 1987): rejecting it shows, with a p-value, that it is below.


@dataclass(frozen=True, slots=True)
class Below:
    """A mean over runs and texts, and what is known of it being below a margin. nan where nothing varies it."""

    mean: float
    error: float  # standard error of the mean
    freedom: float  # degrees of freedom (Satterthwaite 1946)
    at_most: float  # upper end of the one-sided interval
    p: float  # of the null hypothesis that the true mean is the margin or more


def below(values: ArrayLike, margin: float, *, level: float = 0.95) -> Below:
    """Of values (runs, texts), the same texts in models trained with several seeds, is the mean below the margin?

    One-sided t test with the error of the mean over both (`levels.crossed_mean`).
    """
    found = crossed_mean(values)
    mean, error, freedom, nan = found.mean, found.error, found.freedom, float("nan")
    if math.isnan(error):
        return Below(mean, nan, nan, nan, nan)
    if error == 0:
        return Below(mean, 0.0, nan, mean, 0.0 if mean < margin else 1.0)
    at_most = mean + float(stdtrit(freedom, level)) * error
    return Below(mean, error, freedom, at_most, float(stdtr(freedom, (mean - margin) / error)))
