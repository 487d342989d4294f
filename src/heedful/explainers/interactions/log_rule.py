"""The Gauss rule for the weight -ln t on (0, 1): sum_k w_k g(t_k) = int_0^1 (-ln t) g(t) dt for polynomials g of degree
2 m - 1.

Moments are int_0^1 (-ln t) t^k dt = 1 / (k + 1)^2, but a recurrence made of moments loses all digits by m = 12.
Here the recurrence of the orthogonal polynomials comes from the discretised Stieltjes procedure (Gautschi 2004): the
weight is replaced by many points, t = u^4 with u from Gauss-Legendre, for which -ln t dt = -16 u^3 ln u du has a
singularity so weak that 1,000 points hold 12 digits (tests/test_interactions.py); eigenvalues and first components of
the tridiagonal matrix are then points and weights (Golub & Welsch 1969).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

from heedful.errors import Mistake

Floats = NDArray[np.float64]
MOST = 200  # points that are made: far beyond any use
DENSE = 1000  # points that stand for the weight


@cache
def log_rule(m: int) -> tuple[Floats, Floats]:
    """Points in (0, 1), ascending, and weights, which sum to 1: (m,) each."""
    if not 1 <= m <= MOST:
        raise Mistake(f"the rule for integrated Hessians has 1 to {MOST} points, not {m}.")
    u, weight = np.polynomial.legendre.leggauss(DENSE)
    u = (1 + u) / 2
    t, weight = u**4, -16 * u**3 * np.log(u) * weight / 2
    diagonal, beside = np.empty(m), np.empty(m)
    before, now, norm_before = np.zeros(DENSE), np.ones(DENSE), 1.0
    for k in range(m):
        norm = float(weight @ now**2)
        diagonal[k] = weight @ (t * now**2) / norm
        beside[k] = norm / norm_before  # beside[0] is the whole weight, which is 1
        before, now, norm_before = now, (t - diagonal[k]) * now - (beside[k] if k else 0.0) * before, norm
        # polynomials of degree k fall like 4^-k: brought back to size 1, or they would be lost
        size = float(np.abs(now).max())
        before, now, norm_before = before / size, now / size, norm_before / size**2
    points, vectors = eigh_tridiagonal(diagonal, np.sqrt(beside[1:]))
    weights = np.asarray(vectors[0] ** 2, dtype=np.float64)
    return np.asarray(points, dtype=np.float64), weights / weights.sum()
