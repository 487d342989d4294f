"""What TVD <= epsilon implies for attention weights: linear inequalities that every feasible alpha satisfies.

1. In log-probabilities. For a direction v with sum_k v_k = 0 the logits z satisfy v . (z - z^) =
   sum_k v_k ln(q_k / y_k), and over all outputs q with TVD(q, y) <= epsilon this is at most some h(v): at most
   epsilon of probability is won by some labels, and at most epsilon lost by others. The most that is won by
   labels with v_k > 0, max sum v_k ln(1 + r_k / y_k) over r >= 0, sum r = epsilon, is concave (water-filling). The
   most that is lost by labels with v_k < 0, the sum of |v_k| ln 1 / (1 - r_k / y_k), is convex, so all is lost by
   one label; it is infinite where y_k <= epsilon. Directions in use: all ordered pairs of labels (the
   log-odds), all sets A of labels (the gradient of P(A)), and, while a proof goes on, the sets by which a
   distribution that is not feasible was seen to be so. Labels that are not candidates have no part.
2. In attention weights. Logits without a query are linear in alpha: v . z is one row. With a query they are
   W2 tanh(u + q), u = sum_t alpha_t Wp h_t. On the interval that u_f can be in, tanh lies between its convex
   and its concave envelope; a variable x_f in its place lies between a line below and a line above, and the
   row is v . W2 x.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from heedful.experiments.adversarial.exact import Bools, Floats
from heedful.experiments.edited_attention.pooled import PooledStates

_ALL_SETS = 5  # up to so many labels all their sets are looked at, beyond single labels and all but one
_SLACK = 1e-6  # by which inequalities are loosened: a linear program is solved to 1e-7


@dataclass(frozen=True, slots=True, eq=False)
class HalfSpaces:
    """matrix @ (p, x) <= right, x of as many entries as the readout has features that are not linear."""

    matrix: Floats  # (rows, words + features)
    right: Floats
    low: Floats  # (features,) of x
    high: Floats


class Readout(Protocol):
    """How one text's attention becomes logits."""

    def logits(self, p: Floats) -> Floats:
        """p (words,) -> (labels,)"""

    def slopes(self, p: Floats) -> Floats:
        """dz_k / dp_t: (labels, words)"""

    def rows(self, v: Floats, h: Floats, low: Floats, high: Floats, near: Floats) -> HalfSpaces:
        """The inequalities v . (z - z^) <= h (directions, labels), where low <= p <= high, tight about `near`."""

    def blame(self, p: Floats, x: Floats, low: Floats, high: Floats) -> Floats:
        """For each word, how much of the error x - tanh(u) its interval [low, high] is the cause of."""


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """z = sum_t p_t z_t."""

    of_words: Floats  # (words, labels)
    own: Floats  # (words,) the model's attention: a distribution

    def logits(self, p: Floats) -> Floats:
        return np.asarray(p @ self.of_words)

    def slopes(self, p: Floats) -> Floats:
        return self.of_words.T

    def rows(self, v: Floats, h: Floats, low: Floats, high: Floats, near: Floats) -> HalfSpaces:
        centred = self.of_words - self.own @ self.of_words
        return HalfSpaces(v @ centred.T, h, np.zeros(0), np.zeros(0))

    def blame(self, p: Floats, x: Floats, low: Floats, high: Floats) -> Floats:
        return np.zeros(len(p))


@dataclass(frozen=True, slots=True, eq=False)
class Tanh:
    """z = W tanh(u + q) + b, u = sum_t p_t u_t."""

    of_words: Floats  # (words, features)
    q: Floats  # (features,)
    weight: Floats  # (labels, features)
    bias: Floats  # (labels,)
    own: Floats  # (words,)

    def logits(self, p: Floats) -> Floats:
        return np.asarray(np.tanh(p @ self.of_words + self.q) @ self.weight.T + self.bias)

    def slopes(self, p: Floats) -> Floats:
        return np.asarray((self.weight * _slope(p @ self.of_words + self.q)) @ self.of_words.T)

    def rows(self, v: Floats, h: Floats, low: Floats, high: Floats, near: Floats) -> HalfSpaces:
        words, features = self.of_words.shape
        least, most = self.interval(low, high)
        matrix, right = [], []
        at = np.clip(near @ self.of_words + self.q, least, most)
        for sign in (1.0, -1.0):  # sign (slope (u + q) + intercept - x) <= 0
            slope, intercept = line_below(sign, least, most, at)
            matrix.append(np.hstack([sign * (slope * self.of_words).T, -sign * np.eye(features)]))
            right.append(-sign * (intercept + slope * self.q))
        of_x = v @ self.weight  # (directions, features)
        matrix.append(np.hstack([np.zeros((len(v), words)), of_x]))
        right.append(h + of_x @ np.tanh(self.own @ self.of_words + self.q))
        return HalfSpaces(np.vstack(matrix), np.concatenate(right), np.tanh(least), np.tanh(most))

    def interval(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The least and the most of each u + q over distributions between low and high: (features,) each.

        What low leaves of the sum goes to the words with the least (or most) u first.
        """
        order = np.argsort(self.of_words, axis=0)  # (words, features)
        u, room = np.take_along_axis(self.of_words, order, axis=0), (high - low)[order]
        base, rest = low @ self.of_words + self.q, 1 - low.sum()
        rising = (np.clip(rest - (np.cumsum(room, axis=0) - room), 0, room) * u).sum(0)
        u, room = u[::-1], room[::-1]
        falling = (np.clip(rest - (np.cumsum(room, axis=0) - room), 0, room) * u).sum(0)
        return base + rising, base + falling

    def blame(self, p: Floats, x: Floats, low: Floats, high: Floats) -> Floats:
        u = p @ self.of_words
        error = np.abs(x - np.tanh(u + self.q)) * np.ptp(self.weight, axis=0)  # (features,)
        least, most = self.interval(low, high)
        share = np.abs(self.of_words - u) / np.maximum(most - least, 1e-9)  # (words, features)
        return np.asarray((share @ error) * (high - low) * (p > low + 1e-6))


def line_below(sign: float, low: Floats, high: Floats, at: Floats) -> tuple[Floats, Floats]:
    """Slope and intercept of a line below tanh on [low, high] (sign 1) or above it (sign -1), tight at `at`.

    tanh is convex up to 0 and concave beyond. Its convex envelope on [low, high] is tanh itself up to a point t,
    and from there the straight line to (high, tanh high), which touches tanh at t: tanh'(t) (high - t) =
    tanh(high) - tanh(t). Above, everything is turned about the origin.
    """
    if sign < 0:
        slope, intercept = line_below(1.0, -high, -low, -at)
        return slope, -intercept
    t = touching(low, high)
    width = high - t
    chord = np.where(width > 1e-6, (np.tanh(high) - np.tanh(t)) / np.where(width > 1e-6, width, 1.0), _slope(high))
    curved = at < t
    slope = np.where(curved, _slope(at), chord)
    intercept = np.where(curved, np.tanh(at) - slope * at, np.tanh(t) - slope * t)
    return slope, intercept


def touching(low: Floats, high: Floats) -> Floats:
    """The point t of `line_below` within [low, high]: low where all is chord, high where all is curve."""
    left, right = np.minimum(low, 0.0), np.minimum(high, 0.0)
    top = np.maximum(high, 0.0)
    for _ in range(40):
        t = (left + right) / 2
        flat = _slope(t) * (top - t) < np.tanh(top) - np.tanh(t)  # the tangent at t ends below the curve
        left, right = np.where(flat, t, left), np.where(flat, right, t)
    return np.where(high <= 0, high, np.maximum(left, low))


def _slope(x: Floats) -> Floats:
    return np.asarray(1 - np.tanh(x) ** 2)


def support(v: Floats, y: Floats, epsilon: float) -> Floats:
    """h(v): sum_k v_k ln(q_k / y_k) is at most this where TVD(q, y) <= epsilon; v (directions, labels), sum 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        falls = np.where(y > epsilon, -np.log1p(-epsilon / y), np.inf)
        lost = np.where(v < 0, -v * falls, 0.0).max(1)
        up = np.maximum(v, 0.0)
        order = np.argsort(-np.where(up > 0, up / y, 0.0), axis=1, kind="stable")
        up, of = (np.take_along_axis(up, order, axis=1), np.take_along_axis(np.tile(y, (len(v), 1)), order, axis=1))
        level = np.cumsum(up, axis=1) / (epsilon + np.cumsum(of, axis=1))  # (directions, labels that share)
        won = np.cumsum(np.where(up > 0, up * np.log(up / of), 0.0), axis=1) - np.cumsum(up, axis=1) * np.log(level)
        valid = (up > 0) & (up >= of * level * (1 - 1e-12))
        won = np.where(valid, won, 0.0).max(1)
    return np.where(np.isnan(won + lost), np.inf, won + lost)


def directions(y: Floats, candidates: Bools, epsilon: float) -> tuple[Floats, Floats]:
    """Directions v (directions, labels) and h(v) to begin with: the log-odds, and sets of labels."""
    labels = np.flatnonzero(candidates)
    eye = np.eye(len(y))
    found = [eye[i] - eye[j] for i in labels for j in labels if i != j and y[j] > epsilon]
    sizes = range(1, len(labels)) if len(labels) <= _ALL_SETS else (1, len(labels) - 1)
    found += [normal(y, members, y, candidates, epsilon) for n in sizes for members in combinations(labels, n)]
    return bounded(np.array(found).reshape(-1, len(y)), y, epsilon)


def violated(q: Floats, y: Floats, candidates: Bools, epsilon: float) -> tuple[Floats, Floats]:
    """The direction by which outputs q that are not within epsilon are seen to be so, as above; maybe none."""
    rising = np.flatnonzero(candidates & (q > y))
    return bounded(normal(q, rising, y, candidates, epsilon)[None], y, epsilon)


def normal(q: Floats, members: object, y: Floats, candidates: Bools, epsilon: float) -> Floats:
    """d ln P(A)/(1 - P(A)) at the outputs q, A = members, but nothing of labels that may vanish: (labels,)."""
    inside = np.zeros(len(y), dtype=np.bool_)
    inside[np.asarray(members, dtype=np.int64)] = True
    up, down = np.where(inside & candidates, q, 0.0), np.where(~inside & candidates & (y > epsilon), q, 0.0)
    if up.sum() <= 0 or down.sum() <= 0:
        return np.zeros(len(y))
    return np.asarray(up / up.sum() - down / down.sum())


def bounded(v: Floats, y: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """Of the directions those that say something."""
    h = support(v, y, epsilon) + _SLACK
    says = np.isfinite(h) & (np.abs(v).max(1, initial=0.0) > 0)
    return v[says], h[says]


def logits_of_words(seen: PooledStates) -> Floats | None:
    """Where logits are linear in attention, those of all weight on one word (B, T, labels); None elsewhere."""
    theta = seen.theta
    if theta is None:
        return None
    z = (seen.projected + theta.bias).numpy()
    return z if z.shape[2] > 1 else np.concatenate([np.zeros_like(z), z], axis=2)  # one logit: two labels


def readouts(seen: PooledStates) -> list[Readout]:
    """How each text's attention becomes logits."""
    n_words, own, logits = seen.n_words, seen.words(seen.own), logits_of_words(seen)
    texts = range(len(own))
    if logits is not None:
        return [Linear(logits[i, : n_words[i]], own[i]) for i in texts]
    decoder, states = seen.decoder, seen.projected.numpy()
    assert decoder.Wp is not None
    assert decoder.Wq is not None
    assert decoder.W2 is not None
    q = (decoder.Wp.bias + decoder.Wq(seen.query)).numpy()
    weight, bias = decoder.W2.weight.numpy(), decoder.W2.bias.numpy()
    return [Tanh(states[i, : n_words[i]], q[i], weight, bias, own[i]) for i in texts]


def outputs(readout: Readout, p: Floats, candidates: Bools) -> Floats:
    """The probabilities under attention p: (labels,)."""
    probabilities: NDArray[np.float64] = softmax(np.where(candidates, readout.logits(p), -np.inf))
    return probabilities
