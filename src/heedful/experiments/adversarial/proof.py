"""Successive linear programs for adversarial attention: a step to where derivatives say that the most can be gained.

At a distribution p with outputs y(p), J = dy / dp, the next one is the solution of

    min_p' s . p'    where    sum_k |y_k(p) + J_k . (p' - p) - y^_k| <= 2 epsilon,  sum_t p'_t = 1,  p' >= 0

with the slope s of the cost sum_t phi(alpha^_t, p_t) at p; of words without weight that of the chord up to a `width`,
because phi is concave and so steep at 0 that its derivative would let no word in. Outputs are not linear, so p' may
not be feasible: then the outputs are linearised at p' and the program is solved again, which is a step of Newton back
to the feasible set, and ends at few words where a mixture of p and p' would have many. Of the ways to all p' the
farthest feasible point is taken, if it is farther than p (Frank & Wolfe 1956, who linearise the objective alone).
Several words come in at a time, which an exchange of one word (exchange.py) cannot do.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import linprog

from heedful.experiments.adversarial.bound import HalfSpaces, Readout, directions, outputs, violated
from heedful.experiments.adversarial.exact import LN2, PROVED, Bools, Floats, phi

_WAY = (1.0, 0.99, 0.95, 0.8, 0.5, 0.2, 0.05)  # parts of the way that are tried
_AIMS = 4  # linear programs for one step
_LEAST_GAIN = 1e-6
_SEEN = 1e-3  # below this weight the slope is that of a chord


class LinearSteps:
    """One text: its attention `alpha` (of words alike that of the one that is kept), outputs `y` among `candidates`."""

    def __init__(self, readout: Readout, alpha: Floats, y: Floats, candidates: Bools, epsilon: float) -> None:
        self.readout, self.alpha, self.y = readout, alpha, y
        self.candidates, self.epsilon = candidates, epsilon

    def farther(self, p: Floats, width: float, steps: int, first: Floats | None = None) -> Floats:
        """From a feasible p to a feasible one that is at least as far. `first`: the slope of the first step."""
        slope = self.slope(p, width) if first is None else first
        cost = float(phi(self.alpha, p).sum())
        for _ in range(steps):
            tried = [p + part * (aim - p) for aim in self.aims(p, slope) for part in _WAY]
            feasible = [q for q in tried if self.change(q) <= self.epsilon]
            costs = [float(phi(self.alpha, q).sum()) for q in feasible]
            if not costs or min(costs) > cost - _LEAST_GAIN:
                break
            p, cost = feasible[int(np.argmin(costs))], min(costs)
            slope = self.slope(p, width)
        return p

    def aims(self, p: Floats, slope: Floats) -> list[Floats]:
        """Solutions of the linear program at p and then, while they are not feasible, at the last of them."""
        found: list[Floats] = []
        for _ in range(_AIMS):
            aim = self.solve(found[-1] if found else p, slope)
            if aim is None:
                break
            found.append(aim)
            if self.change(aim) <= self.epsilon:
                break
        return found

    def change(self, p: Floats) -> float:
        """TVD of the outputs."""
        return 0.5 * float(np.abs(outputs(self.readout, p, self.candidates) - self.y).sum())

    def chords(self, width: float) -> Floats:
        """Slopes of phi between 0 and a width: (words,)."""
        return phi(self.alpha, width) / width

    def slope(self, p: Floats, width: float) -> Floats:
        """d phi / dp_t = ln((alpha^_t + p_t) / p_t) / 2, and of words that are not there that of their chords."""
        at = np.maximum(p, _SEEN)
        return np.where(p > _SEEN, 0.5 * np.log((self.alpha + at) / at), self.chords(width))

    def solve(self, p: Floats, slope: Floats) -> Floats | None:
        """p' of the linear program; None where there is none."""
        q, J = outputs(self.readout, p, self.candidates), self.jacobian(p)  # (labels,), (labels, words)
        some = self.candidates
        J, off = J[some], (q - self.y - J @ p)[some]
        labels, words = J.shape
        eye = np.eye(labels)  # |off + J p'| <= r, sum r <= 2 epsilon
        solved = linprog(
            np.concatenate([slope, np.zeros(labels)]),
            A_ub=np.block([[J, -eye], [-J, -eye], [np.zeros((1, words)), np.ones((1, labels))]]),
            b_ub=np.concatenate([-off, off, [2 * self.epsilon * (1 - 1e-6)]]),
            A_eq=np.concatenate([np.ones(words), np.zeros(labels)])[None],
            b_eq=[1.0],
            method="highs-ds",
        )
        if solved.x is None:
            return None
        aim = np.maximum(solved.x[:words], 0.0)
        return np.asarray(aim / aim.sum())

    def jacobian(self, p: Floats) -> Floats:
        """dy_k / dp_t = y_k (dz_k / dp_t - sum_l y_l dz_l / dp_t): (labels, words)."""
        q, dz = outputs(self.readout, p, self.candidates), self.readout.slopes(p)
        return np.asarray(q[:, None] * (dz - q @ dz))


# A proof that hardly anything is farther than what was found: branch and bound (Falk & Soland 1969).
#
# JSD(p, alpha^) = ln 2 - sum_t phi(alpha^_t, p_t), and phi is concave in p_t (exact.py). On a box low <= p <=
# high the chord of phi lies below it, so the least sum of chords, a linear program under the inequalities of
# adversary_bound, is a lower bound of the cost in the box. The box with the least bound is halved at the word whose
# chord (or whose share in the error of tanh) is farthest from the truth, until no box is left that could hold a
# distribution farther than the one that was found by more than `PROVED`, or the linear programs are used up. No word
# can have more weight than the cost it may have; this makes the first box small.


_WORK = 1 << 21  # numbers in the linear programs of one text: long ones get fewer


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Distributions between low and high: none costs less than `cost`, which is the relaxed cost of p."""

    low: Floats
    high: Floats
    cost: float
    p: Floats
    x: Floats  # for tanh of the features


class Proof:
    """One text: its attention `alpha` (of words alike that of the one that is kept), outputs `y` among `candidates`,
    and what was found, JSD `found`."""

    def __init__(
        self, readout: Readout, alpha: Floats, y: Floats, candidates: Bools, epsilon: float, found: float
    ) -> None:
        self.readout, self.alpha, self.y = readout, alpha, y
        self.candidates, self.epsilon = candidates, epsilon
        self.budget = LN2 - found - PROVED  # what costs less would be farther
        self.v, self.h = directions(y, candidates, epsilon)
        self.programs = self.size = 0

    def bound(self, programs: int) -> float:
        """No feasible distribution is farther than this; at most so many linear programs."""
        number = count()  # orders boxes of equal cost
        high = np.where(phi(self.alpha, 1.0) <= self.budget, 1.0, most_weight(self.alpha, self.budget))
        boxes: list[tuple[float, int, Box]] = []

        def add(low: Floats, high: Floats, near: Floats, at_least: float) -> None:
            box = self.relaxed(low, high, near)
            if box is not None and box.cost < self.budget:
                heapq.heappush(boxes, (max(box.cost, at_least), next(number), box))

        add(np.zeros_like(high), high, self.alpha, 0.0)
        while boxes and self.programs + 2 <= min(programs, _WORK // max(1, self.size)):
            cost, _, box = heapq.heappop(boxes)
            word = self.widest_error(box)
            width = box.high[word] - box.low[word]
            at = np.clip(box.p[word], box.low[word] + 0.2 * width, box.high[word] - 0.2 * width)
            for lower in (True, False):
                low, high = box.low.copy(), box.high.copy()
                (high if lower else low)[word] = at
                add(low, high, box.p, cost)
        return LN2 - max(0.0, boxes[0][0] if boxes else self.budget)

    def relaxed(self, low: Floats, high: Floats, near: Floats) -> Box | None:
        """The least relaxed cost in a box; None if nothing in it is feasible."""
        if low.sum() > 1 or high.sum() < 1:
            return None
        slope, fixed = chord(self.alpha, low, high)
        rows = self.readout.rows(self.v, self.h, low, high, near)
        self.programs, self.size = self.programs + 1, rows.matrix.size
        solved = _solve(slope, rows, low, high)
        if solved.status == 2:  # infeasible
            return None
        if solved.x is None or solved.fun is None:  # given up: nothing was learned about this box
            return Box(low, high, -np.inf, np.clip(near, low, high), rows.low)
        words = len(low)
        return Box(low, high, solved.fun + fixed.sum() - 1e-7, solved.x[:words], solved.x[words:])

    def widest_error(self, box: Box) -> int:
        """The word to halve the box at. What is seen to be infeasible is cut off from now on."""
        q = outputs(self.readout, box.p, self.candidates)
        beyond = 0.5 * np.abs(q - self.y).sum() / self.epsilon - 1
        if beyond > 0.02:
            v, h = violated(q, self.y, self.candidates, self.epsilon)
            self.v, self.h = np.concatenate([self.v, v]), np.concatenate([self.h, h])
        slope, fixed = chord(self.alpha, box.low, box.high)
        missed = np.maximum(phi(self.alpha, box.p) - slope * box.p - fixed, 0.0)  # (words,)
        blame = self.readout.blame(box.p, box.x, box.low, box.high)
        score = missed / max(missed.sum(), PROVED) + min(max(beyond, 0.0), 1.0) * blame / max(blame.sum(), 1e-12)
        width = box.high - box.low
        return int(np.where(width > 1e-6, score + 1e-9 * width, -1.0).argmax())


def chord(a: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Slope and intercept of the chord of phi(a, .) on [low, high]: (words,) each."""
    at_low, width = phi(a, low), high - low
    slope = np.where(width > 1e-12, (phi(a, high) - at_low) / np.where(width > 1e-12, width, 1.0), 0.0)
    return slope, at_low - slope * low


def most_weight(a: Floats, cost: float) -> Floats:
    """The greatest p with phi(a, p) <= cost, from above."""
    low, high = np.zeros_like(a), np.ones_like(a)
    for _ in range(40):
        middle = (low + high) / 2
        cheap = phi(a, middle) <= cost
        low, high = np.where(cheap, middle, low), np.where(cheap, high, middle)
    return high


def _solve(slope: Floats, rows: HalfSpaces, low: Floats, high: Floats) -> Any:
    """min slope . p over distributions in the box that satisfy the rows, by HiGHS."""
    features = len(rows.low)
    lows, highs = np.concatenate([low, rows.low]).tolist(), np.concatenate([high, rows.high]).tolist()
    return linprog(
        np.concatenate([slope, np.zeros(features)]),
        A_ub=rows.matrix,
        b_ub=rows.right,
        A_eq=np.concatenate([np.ones(len(slope)), np.zeros(features)])[None],
        b_eq=[1.0],
        bounds=list(zip(lows, highs, strict=True)),
        method="highs-ds",
    )
