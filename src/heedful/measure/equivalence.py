"""Is a difference small enough not to matter? The question that a large p-value does not answer.

A test of equality that finds nothing has not shown that there is nothing. Here the null hypothesis is that the mean is
at least a margin (Schuirmann 1987): rejecting it shows, with a p-value, that it is below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


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

    Runs and texts are both drawn, so the variance of the mean is s_r^2 / k + s_t^2 / n, with s_r^2 that of the k
    means of runs and s_t^2 that of the n means of texts (crossed effects; Owen 2007); for one run it is that of texts
    alone. One-sided t test with the degrees of freedom of Satterthwaite 1946.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not table.shape[0]:
        raise ValueError(f"values for each run and text are needed, shape (runs, texts); given {table.shape}")
    table = table[:, ~np.isnan(table).any(axis=0)]
    (runs, texts), nan = table.shape, float("nan")
    if texts < 2:
        return Below(float(table.mean()) if table.size else nan, nan, nan, nan, nan)
    parts = [(float(table.mean(axis=0).var(ddof=1)) / texts, texts - 1)]
    if runs > 1:
        parts.append((float(table.mean(axis=1).var(ddof=1)) / runs, runs - 1))
    variance, mean = sum(part for part, _ in parts), float(table.mean())
    if variance == 0:
        return Below(mean, 0.0, nan, mean, 0.0 if mean < margin else 1.0)
    freedom = variance**2 / sum(part**2 / n for part, n in parts)
    from scipy import stats  # late: it takes a second to load

    error = float(np.sqrt(variance))
    at_most = mean + float(stats.t.ppf(level, freedom)) * error
    return Below(mean, error, float(freedom), at_most, float(stats.t.sf((margin - mean) / error, freedom)))
