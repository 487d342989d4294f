"""What a number of texts can show: the smallest effect that would be found, and how many texts find a given one.

By the power of the two-sided t test of a mean, or of a mean difference (Cohen 1988, chapter 2): with a true mean
`effect`, the statistic has a noncentral t distribution, n - 1 degrees of freedom, shifted by effect sqrt(n) / sd.
"""

from __future__ import annotations

import math
from functools import lru_cache

from heedful.measure.statistics import SIGNIFICANT

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
    wrong_side = (
        stats.nct.cdf(-end, n - 1, shift) if shift < 5 else 0.0
    )  # far off it is nothing, and SciPy's is nan
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
