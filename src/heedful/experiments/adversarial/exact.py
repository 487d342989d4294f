"""The attention that differs most from the model's and leaves the prediction where it was: exactly.

Problem (Jain & Wallace 2019, equation 1, one distribution): maximise JSD(alpha, alpha^) over distributions
alpha on T words, subject to TVD[y(alpha), y(alpha^)] <= epsilon. For two labels and a linear decoder the
published search (Adam, a lower bound) can be replaced by the answer itself.

1. With s_t = theta . h_t the logit is z(alpha) = sum_t alpha_t s_t + b, and TVD of two labels is
   |sigmoid(z) - y|. As the sigmoid increases, the constraint is a slab: lower <= alpha . s <= upper,
   where a bound is infinite if y - epsilon or y + epsilon leaves (0, 1).
2. JSD(., alpha^) is convex, because KL is jointly convex and (alpha + alpha^) / 2 is linear in alpha.
   The feasible set, the simplex cut by a slab, is a polytope, and it is not empty: alpha^ is in
   it. A convex function on a polytope takes its maximum at a vertex.
3. A vertex of {alpha >= 0, sum alpha = 1, lower <= alpha . s <= upper} has T linearly independent active
   constraints. One is sum alpha = 1, at most one more comes from the slab (its two faces are parallel), so
   at least T - 2 are alpha_t = 0: at most two words have weight. The vertices are
     e_t                    with lower <= s_t <= upper, and
     w e_t + (1 - w) e_u    with s_t < bound < s_u, w = (s_u - bound) / (s_u - s_t), bound lower or upper.
4. Only words with weight matter: where p_i = 0 the term of JSD(p, a) is a_i/2 ln 2. So
     JSD(p, a) = ln 2 - sum_{i: p_i > 0} phi(a_i, p_i),
     phi(a, p) = [(a + p) ln(a + p) - a ln a - p ln p] / 2 >= 0,
   and the vertex of least cost phi(a_t, w) + phi(a_u, 1 - w) is the answer.
5. Most pairs need not be looked at. phi(a, .) is concave and phi(a, 0) = 0, hence phi(a, p) >= p c(a) with
   c(a) = phi(a, 1), the cost of the one-hot, which increases with a. The cost of a pair is therefore at
   least w c(a_t) + (1 - w) c(a_u) >= min(c(a_t), c(a_u)). Words are taken in order of attention, least
   first, each with the words after it, until c of the next is no better than the best vertex so far.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from heedful.measure.distance import jsd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LN2 = float(np.log(2.0))
PROVED = 0.01  # an answer counts as proved if nothing is farther by more than this
_CELLS = 1 << 20  # (text, word, bound, word) looked at together: some MB, whatever the length of the texts
_MARGIN = 1e-12  # a vertex is passed over only if it is worse by more than rounding
_INSET = 1e-10  # share of epsilon kept back, so that the answer still satisfies the constraint when rounded


@dataclass(frozen=True, slots=True, eq=False)
class Adversary:
    """For each text the distribution that was found, and how far it is from the model's."""

    alpha: Floats  # (B, T)
    jsd: Floats  # (B,) JSD(alpha, alpha^) in nats
    delta_y: Floats  # (B,) TVD of the outputs, at most epsilon
    bound: Floats  # (B,) no feasible distribution is farther away than this
    feasible: Bools  # (B,) False: nothing was found, and alpha is the model's own

    @property
    def exact(self) -> Bools:
        """Whether nothing can be missing."""
        return self.jsd >= self.bound - 1e-9


def concatenate(parts: list[Adversary]) -> Adversary:
    """Answers for parts of a batch as one."""
    names = [field.name for field in fields(Adversary)]
    return Adversary(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True, slots=True, eq=False)
class Vertices:
    """w e_t + (1 - w) e_u for each text (t = u for a one-hot), and its cost ln 2 - JSD."""

    t: Ints  # (B,)
    u: Ints
    w: Floats
    cost: Floats

    def dense(self, words: int) -> Floats:
        """(B, words)"""
        alpha = np.zeros((len(self.t), words))
        rows = np.arange(len(self.t))
        alpha[rows, self.u] = 1 - self.w
        alpha[rows, self.t] += self.w
        return alpha


def exact_adversary(alpha: Floats, s: Floats, bias: float, real: Bools, epsilon: float | Floats) -> Adversary:
    """alpha (B, T) the model's attention, s (B, T) = theta . h_t, real (B, T) -> the exact epsilon-max JSD.

    A text without words keeps its empty attention: JSD 0.
    """
    z = (alpha * s).sum(1) + bias  # (B,)
    lower, upper = slab(z, epsilon * (1 - _INSET))
    found = farthest_vertex(alpha, s, real, lower - bias, upper - bias)
    moved = (found * s).sum(1) + bias
    delta_y = 0.5 * (np.abs(expit(moved) - expit(z)) + np.abs(expit(-moved) - expit(-z)))
    return _exact(found, alpha, delta_y, real)


def exact_mixture_adversary(alpha: Floats, p: Floats, real: Bools, epsilon: float | Floats) -> Adversary:
    """The same where the probability itself is linear in attention, y = sum_t alpha_t p_t with p (B, T) = P(1 | h_t)
    (models/attentive/latent.py). The slab is y - epsilon <= alpha . p <= y + epsilon, and the rest of the proof
    stands."""
    y, room = (alpha * p).sum(1), epsilon * (1 - _INSET)
    found = farthest_vertex(alpha, p, real, y - room, y + room)
    return _exact(found, alpha, np.abs((found * p).sum(1) - y), real)


def farthest_vertex(alpha: Floats, s: Floats, real: Bools, lower: Floats, upper: Floats) -> Floats:
    """`farthest_in_slab` as distributions (B, T); zeros for a text without words."""
    some, found = np.asarray(real.any(1)), np.zeros_like(alpha)
    if some.any():
        best = farthest_in_slab(alpha[some], s[some], real[some], lower[some], upper[some])
        found[some] = best.dense(alpha.shape[1])
    return found


def _exact(found: Floats, alpha: Floats, delta_y: Floats, real: Bools) -> Adversary:
    some, distance = np.asarray(real.any(1)), jsd(found, alpha)
    return Adversary(found, distance, np.where(some, delta_y, 0.0), distance, some)


def slab(z: Floats, epsilon: float | Floats) -> tuple[Floats, Floats]:
    """The logits between which |sigmoid(.) - sigmoid(z)| <= epsilon.

    logit(y + epsilon) = ln (y + epsilon) / (1 - y - epsilon), with 1 - y as sigmoid(-z): no digit is lost
    when y is close to 1.
    """
    return log_ratio(expit(z), expit(-z), -epsilon), log_ratio(expit(z), expit(-z), epsilon)


def log_ratio(p: Floats, q: Floats, moved: float | Floats) -> Floats:
    """ln (p + moved) / (q - moved), infinite where moving that much leaves [0, 1]."""
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(p + moved, 0.0)) - np.log(np.maximum(q - moved, 0.0))


def farthest_in_slab(alpha: Floats, s: Floats, real: Bools, lower: Floats, upper: Floats) -> Vertices:
    """The vertex of {simplex, lower <= p . s <= upper} with the greatest JSD(p, alpha), for each text."""
    order = np.argsort(np.where(real, alpha, np.inf), axis=1, kind="stable")  # least attended first
    a, s = np.take_along_axis(alpha, order, axis=1), np.take_along_axis(s, order, axis=1)
    real = np.take_along_axis(real, order, axis=1)
    rows = np.arange(len(a))
    c = np.where(real, phi(a, 1.0), np.inf)  # (B, T) rising
    bounds = np.stack([lower, upper], axis=1)  # (B, 2)

    inside = real & (lower[:, None] <= s) & (s <= upper[:, None])
    t = inside.argmax(1)  # the least attended one-hot that is feasible
    u, w, cost = t.copy(), np.ones(len(a)), np.where(inside.any(1), c[rows, t], np.inf)

    below = (s[:, None, :] < bounds[:, :, None]) & real[:, None, :]  # (B, 2, T)
    above = (s[:, None, :] > bounds[:, :, None]) & real[:, None, :]
    start, words = 0, a.shape[1]
    while start < words:
        active = np.flatnonzero(c[:, start] < cost + _MARGIN)
        if not len(active):
            break
        stop = start + max(1, _CELLS // (2 * words * len(active)))
        near = slice(start, min(stop, words))
        lo, hi = below[active], above[active]  # (R, 2, T)
        cross = lo[:, :, near, None] & hi[:, :, None, :] | hi[:, :, near, None] & lo[:, :, None, :]
        later = np.arange(words) > np.arange(near.start, near.stop)[:, None]  # (A, T) each pair once
        row, i, side, j = np.nonzero((cross & later).transpose(0, 2, 1, 3))  # in the order (text, word, ...)
        row, i = active[row], i + start
        share = (s[row, j] - bounds[row, side]) / (s[row, j] - s[row, i])  # weight of word i
        keep = share * c[row, i] + (1 - share) * c[row, j] < cost[row] + _MARGIN
        row, i, j, share = row[keep], i[keep], j[keep], share[keep]
        price = phi(a[row, i], share) + phi(a[row, j], 1 - share)
        best = first_least(row, price)
        best = best[price[best] < cost[row[best]]]
        at = row[best]
        t[at], u[at], w[at], cost[at] = i[best], j[best], share[best], price[best]
        start = stop
    return Vertices(order[rows, t], order[rows, u], w, cost)


def phi(a: Floats, p: Floats | float) -> Floats:
    """What JSD loses to a word that has weight in both: [(a + p) ln(a + p) - a ln a - p ln p] / 2."""
    return 0.5 * (_x_ln_x(a + p) - _x_ln_x(a) - _x_ln_x(np.asarray(p, dtype=np.float64)))


def _x_ln_x(x: Floats) -> Floats:
    return x * np.log(np.maximum(x, 1e-300))


def first_least(row: Ints, value: Floats) -> Ints:
    """For rising row numbers, the place of the least value of each row (the first one of equals)."""
    if not len(row):
        return np.zeros(0, dtype=np.int64)
    begins = np.flatnonzero(np.diff(row, prepend=-1))
    least = np.repeat(np.minimum.reduceat(value, begins), np.diff(begins, append=len(row)))
    ties = np.flatnonzero(value == least)
    return ties[np.flatnonzero(np.diff(row[ties], prepend=-1))]
