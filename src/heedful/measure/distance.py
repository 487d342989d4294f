"""Distances between distributions over the last axis: outputs (TVD) and attention (JSD).

Jain & Wallace 2019, section 3: TVD compares what the model says, JSD compares what it attends to.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import rel_entr

Floats = NDArray[np.float64]

LN2 = float(np.log(2.0))


def tvd(p: ArrayLike, q: ArrayLike) -> Floats:
    """Total variation distance, TVD(p, q) = 1/2 sum_i |p_i - q_i|.

    Jain & Wallace 2019, section 3. For two classes it is |p_1 - q_1|. In [0, 1].
    """
    p, q = _pair(p, q)
    return np.asarray(0.5 * np.abs(p - q).sum(axis=-1))


def kl(p: ArrayLike, q: ArrayLike, mask: ArrayLike | None = None) -> Floats:
    """Kullback-Leibler divergence KL(p || q) = sum_i p_i ln(p_i / q_i) in nats.

    0 ln 0 = 0, and it is infinite where q_i = 0 < p_i. Entries where `mask` is False count as 0 in both.
    """
    p, q = _pair(p, q, mask)
    return np.asarray(rel_entr(p, q).sum(axis=-1))


def jsd(p: ArrayLike, q: ArrayLike, mask: ArrayLike | None = None) -> Floats:
    """Jensen-Shannon divergence in nats: JSD(p, q) = KL(p || m) / 2 + KL(q || m) / 2, m = (p + q) / 2.

    Jain & Wallace 2019, section 3. In [0, ln 2]; ln 2 exactly where p and q share no support.
    Entries where `mask` is False count as 0 in both.
    """
    p, q = _pair(p, q, mask)
    # With 2p and p + q = 2m: half of the smallest float would be 0, and the logarithm infinite.
    value = 0.25 * (rel_entr(2 * p, p + q) + rel_entr(2 * q, p + q)).sum(axis=-1)
    # Rounding can leave -1e-17 for p = q. The upper end is left alone: inputs that do not sum to one
    # should be seen, not hidden.
    return np.asarray(np.maximum(value, 0.0))


def _pair(p: ArrayLike, q: ArrayLike, mask: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Both as float64 arrays of one shape, zero where the mask is False."""
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    if p.ndim == 0 or p.shape != q.shape:
        raise ValueError(f"two distributions need one shape (..., size); given {p.shape} and {q.shape}")
    if mask is not None:
        mask = np.asarray(mask, dtype=bool)
        if mask.shape != p.shape:
            raise ValueError(f"the mask needs the distributions' shape {p.shape}; given {mask.shape}")
        p, q = np.where(mask, p, 0.0), np.where(mask, q, 0.0)
    return p, q
