"""Is a difference small enough not to matter? The question that a large p-value does not answer.

A test of equality that finds nothing has not shown that there is nothing. Here the null hypothesis is that the mean is
at least a margin (Schuirmann 1987): rejecting it shows, with a p-value, that it is below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike
from scipy.special import stdtr, stdtrit

from heedful.measure.levels import crossed_mean


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
