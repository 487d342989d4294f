"""A sparse linear surrogate of f over random ablations of many units: ContextCite (Cohen-Wang et al. 2024).

    f(S) is near b + sum_i w_i [i in S]        w = argmin 1/2n ||f - b - X w||^2 + lambda ||w||_1

X is standardised, each unit is kept with probability 1/2, and f is the logit of the probability of what is said. Its
own error is the rank correlation of what it predicts and what the model says of ablations that it was not fitted to
(the linear datamodelling score, Park et al. 2023): of each fold, by a surrogate of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.measure.rank import spearman

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
LAMBDA = 0.01  # ContextCite's, of f for each token that is said
FOLDS = 4
CLOSE = 1e-7
ROUNDS = 2_000


@dataclass(frozen=True, slots=True, eq=False)
class LinearSurrogate:
    """f of a subset is near `bias` + the sum of the `weights` of the units that it keeps."""

    weights: Floats  # (units,)
    bias: float
    lds: float  # rank correlation with f on ablations that it was not fitted to; nan where either is constant

    def predict(self, keep: Bools) -> Floats:
        """(n, units) -> (n,)"""
        found: Floats = keep @ self.weights + self.bias
        return found


def draw(n: int, units: int, keep: float, rng: np.random.Generator) -> Bools:
    """Random ablations (n, units), in pairs: of two, each keeps what the other leaves out where `keep` is 1/2.

    Each unit is then kept in just half of them, so that the mean of f is not mistaken for what a unit does.
    """
    if keep != 0.5:
        return rng.random((n, units)) < keep
    half = rng.random((-(-n // 2), units)) < keep
    return np.stack([half, ~half], 1).reshape(-1, units)[:n]


def fit_surrogate(keep: Bools, f: Floats, tokens: int = 1, penalty: float = LAMBDA) -> LinearSurrogate:
    """From ablations (n, units) and their answers (n,), of which those to `tokens` tokens are added up."""
    weights, bias = linear(keep, f, tokens, penalty)
    fold = np.arange(len(f)) // 2 % FOLDS  # those of a pair are held out together
    guessed = np.empty(len(f))
    for k in range(FOLDS):
        held = fold == k
        if held.all() or not held.any():
            return LinearSurrogate(weights, bias, float("nan"))
        w, b = linear(keep[~held], f[~held], tokens, penalty)
        guessed[held] = keep[held] @ w + b
    return LinearSurrogate(weights, bias, float(spearman(guessed[None], f[None])[0]))


def linear(keep: Bools, f: Floats, tokens: int = 1, penalty: float = LAMBDA) -> tuple[Floats, float]:
    """The weights and the bias of ContextCite's LASSO."""
    X = keep.astype(np.float64)
    mean, scale = X.mean(0), X.std(0)
    scale = np.where(scale == 0, 1.0, scale)
    w = lasso((X - mean) / scale, f / tokens, penalty) / scale * tokens
    return w, float(f.mean() - mean @ w)


def lasso(X: Floats, y: Floats, penalty: float) -> Floats:
    """argmin_w 1/2n ||y - mean(y) - X w||^2 + penalty ||w||_1, by descent along each coordinate; X has means of 0."""
    n = len(y)
    square = (X**2).sum(0) / n  # (features,)
    gram, w = X.T @ X / n, np.zeros(X.shape[1])
    slope = X.T @ (y - y.mean()) / n  # of the residual
    for _ in range(ROUNDS):
        largest = 0.0
        for i in np.flatnonzero(square):
            at = slope[i] + square[i] * w[i]
            new = np.sign(at) * max(abs(at) - penalty, 0.0) / square[i]
            if (change := new - w[i]) != 0.0:
                slope -= gram[i] * change
                w[i] = new
                largest = max(largest, abs(change))
        if largest <= CLOSE * max(1.0, float(np.abs(w).max())):
            break
    return w


def ablate(
    f: Callable[[Bools], Floats],
    units: int,
    n: int,
    rng: np.random.Generator,
    keep: float = 0.5,
    tokens: int = 1,
    penalty: float = LAMBDA,
) -> LinearSurrogate:
    """Ask about n random ablations, and fit."""
    asked = draw(n, units, keep, rng)
    return fit_surrogate(asked, f(asked), tokens, penalty)
