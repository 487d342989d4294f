"""How good links between words are, beside links that people made (Och & Ney 2003, section 4).

    precision = |A & P| / |A|      recall = |A & S| / |S|      AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)

A are the links, S those that are sure, P those that are possible, sure ones included. The numbers add up over sentences
before they are divided; intervals come from drawing sentences with replacement.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]  # (sentences, 4): |A|, |A & S|, |A & P|, |S|
RESAMPLES = 1000


@dataclass(frozen=True, slots=True)
class Alignment:
    """nan where nothing is linked, or nothing should be."""

    precision: float
    recall: float
    f1: float
    aer: float
    low: float  # of AER, 95%
    high: float


def count_links(chosen: NDArray[np.bool_], sure: NDArray[np.bool_], possible: NDArray[np.bool_]) -> Counts:
    """One row for each (.., words) of links: (rows, 4). What is sure is possible, too."""
    both = possible | sure
    return np.stack([chosen.sum(-1), (chosen & sure).sum(-1), (chosen & both).sum(-1), sure.sum(-1)], -1).astype(
        np.float64
    )


def error_rate(counts: Counts) -> NDArray[np.float64]:
    """AER of summed counts (.., 4)."""
    below = counts[..., 0] + counts[..., 3]
    above = counts[..., 1] + counts[..., 2]
    rate: NDArray[np.float64] = np.where(below > 0, 1 - above / np.where(below > 0, below, 1), np.nan)
    return rate


def alignment(counts: Counts) -> Alignment:
    """Of sentences: (sentences, 4)."""
    a, with_sure, with_possible, s = counts.sum(0).tolist()
    nan = float("nan")
    precision = with_possible / a if a else nan
    recall = with_sure / s if s else nan
    f1 = 2 * precision * recall / (precision + recall) if precision + recall > 0 else (0.0 if a and s else nan)
    rng, n = np.random.default_rng(0), len(counts)
    drawn = [float(error_rate(counts[rng.integers(n, size=n)].sum(0))) for _ in range(RESAMPLES if n > 1 else 0)]
    known = [rate for rate in drawn if not np.isnan(rate)]
    low, high = np.quantile(known, [0.025, 0.975]).tolist() if known else (nan, nan)
    return Alignment(precision, recall, f1, float(error_rate(counts.sum(0))), low, high)


def best_threshold(counts: NDArray[np.float64]) -> int:
    """Which of several thresholds has the least AER: (sentences, thresholds, 4)."""
    rates = error_rate(counts.sum(0))
    return int(np.nanargmin(rates)) if np.isfinite(rates).any() else 0


def with_chosen_threshold(counts: NDArray[np.float64]) -> Counts:
    """Of each sentence the counts at a threshold that was chosen on others: each half of the sentences by the other.

    (sentences, thresholds, 4) -> (sentences, 4).
    """
    found = np.empty((len(counts), 4))
    half = np.arange(len(counts)) % 2 == 0
    for some in (half, ~half):
        found[some] = counts[some, best_threshold(counts[~some] if (~some).any() else counts[some])]
    return found
