"""Confidence sequences: intervals that hold at every number of texts at once, so that looking costs no promise.

An interval for n texts is right in 95 of 100 cases if one looks once, at a number of texts that was fixed before. Who
looks after every text, and stops where it pleases, finds something sooner or later. So an end is put further out: at

    |t_n| <= c   for all n from LEAST to MOST at once,   t_n = sqrt(n) mean_n / s_n

With z_n in place of t_n this is a Brownian motion that must stay within c sqrt(n), and it leaves with probability

    p(c) = phi(c) ((c - 1 / c) log(MOST / LEAST) + 4 / c)            Miller & Siegmund 1982; Pocock's bounds (1977)
                                                                     with a look after every text

for the c in use. Of few texts t_n is no normal number: its own tail (Student's, without the skewness that the sample
shows: Hall 1992) is set to what a single look may err, 2 Phi(-c). `checks/audit_sequences.py` counts how often the
intervals fail to hold on stored shares of real and planted models.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtr

from heedful.measure.statistics import SKEWNESS, Floats, Range, flat, mean_interval

LEAST = 16  # texts of the first look: of fewer nothing is decided
MOST = 1000  # texts of the last one


def chance_of_leaving(c: float) -> float:
    """The probability that the mean of nothing at all is c standard errors from zero at any look."""
    if c <= 1:
        return 1.0
    density = math.exp(-c * c / 2) / math.sqrt(2 * math.pi)
    return min(1.0, density * ((c - 1 / c) * math.log(MOST / LEAST) + 4 / c))


@lru_cache(maxsize=64)
def level_of_a_look(level: float) -> float:
    """What an interval must promise at each look, for all looks together to keep `level`."""
    low, high = 1.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance_of_leaving(middle) > 1 - level else (low, middle)
    return float(1 - 2 * ndtr(-high))


def with_one_more(values: ArrayLike, far: float) -> Floats:
    """The values, spread as if one more text were so `far` from their mean.

    Of a share that is 1 in nearly every text the first dozens of texts show no spread at all, and an interval without
    width misses the truth at the first look. With this its ends are at least c far / n away: the rule of three.
    """
    values = flat(values)
    if not values.size or not far > 0:
        return values
    mean = values.mean()
    off = values - mean
    squares = float(off @ off)
    if squares <= 1e-18 * far**2:
        return np.asarray(mean + far / math.sqrt(values.size) * np.where(np.arange(values.size) % 2, 1.0, -1.0))
    return np.asarray(mean + off * math.sqrt((squares + far**2) / squares))


def sequence(values: ArrayLike, *, level: float = 0.95, within: Range | None = None) -> Range:
    """Interval of the mean of values (n,), in the order in which texts were drawn; it holds whenever one looks."""
    return mean_interval(values, level=level_of_a_look(level), within=within)


def sequential_p(values: ArrayLike) -> float:
    """Two-sided p-value of a mean of zero, at any time of looking; nan of fewer than two values."""
    values = flat(values)
    n = values.size
    if n < 2:
        return float("nan")
    mean, std = float(values.mean()), float(values.std(ddof=1))
    if std == 0:
        return 1.0 if mean == 0 else 0.0
    t = math.sqrt(n) * mean / std
    g = SKEWNESS * float((((values - mean) / std) ** 3).mean())
    known = t + g * t * t / (3 * math.sqrt(n)) + g * g * t**3 / (27 * n) + g / (6 * math.sqrt(n))  # Hall's u(t)
    tail = 2 * float(max(stdtr(n - 1, -abs(t)), stdtr(n - 1, -abs(known))))
    return max(tail, chance_of_leaving(-float(ndtri(max(tail, 1e-300) / 2))))
