"""Shapley interactions: what two words do together, averaged over all sets of the other words.

    I_ij = sum_{S without i, j} |S|! (n - |S| - 2)! / (n - 1)!  (f(S i j) - f(S i) - f(S j) + f(S))

(Grabisch & Roubens 1999). The diagonal is what a word does by itself, phi_i - 1/2 sum_j I_ij with phi_i its Shapley
value, so that all pairs and the diagonal sum to f(x) - f(no word): the n-Shapley values of order 2, k-SII (Bordt & von
Luxburg 2023). A word's score is its Shapley value.

Exact from all 2^n subsets of up to 12 words. Beyond: sampled by the library shapiq (extra `interactions`), which fits
them by weighted least squares (KernelSHAP-IQ, Fumagalli et al. 2024), in independent halves until what they say differs
by little.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import Mistake
from heedful.explainers.controls import text_rng
from heedful.explainers.explainer import Passes, Scores, Size
from heedful.explainers.gradients.gradient import Parts
from heedful.explainers.interactions.words import Asking, Flags, Floats, Missing, Together, WordGame, each_text
from heedful.explainers.options import Samples
from heedful.models.link import Of
from heedful.models.network import Network
from heedful.records import Batch

EXACT = 12  # words, of which all subsets are read
N_SAMPLES = 2000
MORE = 4  # times as much as asked for is sampled at most


def shapley_interactions(
    model: Network,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    n_samples: Samples = N_SAMPLES,
    tolerance: float = 0.1,
    max_samples: Samples | None = None,
    operator: Missing = "delete",
    token: int | None = None,
    seed: int = 0,
    parts: Parts = "both",
    internal_batch_size: int | None = None,
) -> Scores:
    """I_ij of every two words, of passage and query together, and the Shapley value of each word.

    n_samples: subsets that are read first, of texts with more than 12 words; more until the standard error of the
    number that is known least well is below `tolerance` of the largest, or max_samples are read (None: four times as
    many). gap is that standard error; scale the largest |number|.
    """
    if n_samples < 10:
        raise Mistake(f"n_samples must be at least 10, not {n_samples}.")
    if max_samples is not None and max_samples < n_samples:
        raise Mistake(f"max_samples must be at least n_samples ({n_samples}), not {max_samples}.")
    if not 0 < tolerance < 1:
        raise Mistake(f"tolerance is a share of the largest value, between 0 and 1, not {tolerance}.")
    most = MORE * n_samples if max_samples is None else max_samples

    def find(game: WordGame, row: int) -> Together:
        n = game.n_words
        if n <= EXACT:
            value = game(subsets(n))
            pairs = exact_interactions(value, n)
            return _together(exact_values(value, n), pairs, 0.0)
        rng, rounds = text_rng(batch, row, seed), []
        # of fewer subsets than there are numbers to find nothing can be told
        half = max(-(-n_samples // 2), n * (n + 1))
        while True:
            rounds.append(_sampled(game, n, half, int(rng.integers(2**31))))
            if len(rounds) < 2:
                continue
            mean, error = np.mean(rounds, axis=0), np.std(rounds, axis=0, ddof=1).max() / np.sqrt(len(rounds))
            if error <= tolerance * np.abs(mean).max() or (len(rounds) + 1) * half > most:
                diagonal = np.diag(mean).copy()
                np.fill_diagonal(mean, 0.0)
                return _together(diagonal + (mean + mean.T).sum(1) / 2, mean, float(error))

    asking = Asking(model, batch, target, of, operator, token, internal_batch_size)
    return each_text(asking, parts, find, sampled=True)


def _together(values: Floats, pairs: Floats, error: float) -> Together:
    """From Shapley values (words,) and I_ij at i < j (words, words)."""
    whole = pairs + np.diag(values - (pairs + pairs.T).sum(1) / 2)
    scale = float(np.abs(whole).max())
    return Together(values, whole, error, scale, error / scale if scale else 0.0)


def subsets(n: int) -> Flags:
    """All subsets of n words, (2^n, n): word i is in subset s where bit i of s is 1."""
    found: Flags = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.bool_)
    return found


def exact_values(value: Floats, n: int) -> Floats:
    """Shapley values (n,) from f of all subsets."""
    size = subsets(n).sum(1)
    weight = np.array([1 / (n * comb(n - 1, k)) for k in range(n)])
    found = np.empty(n)
    for i in range(n):
        without = _without(n, i)
        found[i] = weight[size[without]] @ (value[without | 1 << i] - value[without])
    return found


def exact_interactions(value: Floats, n: int) -> Floats:
    """I_ij at i < j, (n, n), from f of all subsets."""
    size = subsets(n).sum(1)
    weight = np.array([1 / ((n - 1) * comb(n - 2, k)) for k in range(n - 1)])
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            s = _without(n, i, j)
            found[i, j] = weight[size[s]] @ (
                value[s | 1 << i | 1 << j] - value[s | 1 << i] - value[s | 1 << j] + value[s]
            )
    return found


def _without(n: int, *words: int) -> NDArray[np.int64]:
    """The subsets in which none of these words is."""
    gone = sum(1 << i for i in words)
    every: NDArray[np.int64] = np.arange(2**n)
    found: NDArray[np.int64] = every[every & gone == 0]
    return found


def _sampled(game: WordGame, n: int, budget: int, seed: int) -> Floats:
    """The library's k-SII of order 2 from so many subsets: i < j, and on the diagonal each word by itself."""
    library = _library()
    approximator = library.KernelSHAPIQ(n=n, max_order=2, index="k-SII", random_state=seed)
    nothing = float(game(np.zeros((1, n), dtype=np.bool_))[0])
    found = approximator.approximate(
        budget=budget, game=lambda there: game(np.asarray(there, dtype=np.bool_)) - nothing
    )
    pairs = np.zeros((n, n))
    for words, score in found.dict_values.items():
        if words:
            pairs[min(words), max(words)] = score
    return pairs


def _library() -> Any:
    try:
        import shapiq
    except ImportError:
        raise Mistake(
            "Shapley interactions of more than 12 words are sampled by the package 'shapiq': pip install "
            "'heedful[interactions]', or ask for removal_interactions."
        ) from None
    return shapiq


def passes_of(size: Size) -> Passes:
    n = sum(size.words)
    return Passes(2**n) if n <= EXACT else Passes(2 * max(N_SAMPLES // 2, n * (n + 1)), times=MORE)
