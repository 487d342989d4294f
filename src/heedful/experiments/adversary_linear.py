"""Successive linear programs for adversarial attention: a step to where derivatives say that the most can be gained.

At a distribution p with outputs y(p), J = dy / dp, the next one is the solution of

    min_p' s . p'    where    sum_k |y_k(p) + J_k . (p' - p) - y^_k| <= 2 epsilon,  sum_t p'_t = 1,  p' >= 0

with the slope s of the cost sum_t phi(alpha^_t, p_t) at p; of words without weight that of the chord up to a `width`,
because phi is concave and so steep at 0 that its derivative would let no word in. Outputs are not linear, so p' may
not be feasible: then the outputs are linearised at p' and the program is solved again, which is a step of Newton back
to the feasible set, and ends at few words where a mixture of p and p' would have many. Of the ways to all p' the
farthest feasible point is taken, if it is farther than p (Frank & Wolfe 1956, who linearise the objective alone).
Several words come in at a time, which an exchange of one word (adversary_exchange) cannot do.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from heedful.experiments.adversary_bound import Readout, outputs
from heedful.experiments.adversary_exact import Bools, Floats, phi

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
