"""Many means from few values each: which of them are large, and which were only lucky?

The largest of many means is too large: it was chosen for its luck. Empirical Bayes (James & Stein 1961; Efron & Morris
1975) takes each mean part of the way back to the mean of all, the further the less it is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from heedful.measure.statistics import Floats, Interval


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
    kept = np.divide(
        tau2, tau2 + v, out=np.ones_like(v), where=tau2 + v > 0
    )  # B; nothing varies: nothing to draw
    shrunk = centre + kept * (means - centre)
    half = float(ndtri((1 + level) / 2)) * np.sqrt(kept * v)
    return [Interval(float(m), float(m - h), float(m + h)) for m, h in zip(shrunk, half, strict=True)]
