"""Scores against words that are known to matter: how well does a ranking find them?

Everything takes scores, `real` (which positions are words) and `evidence` (which words matter), (texts, words) each,
and gives one number for each text, nan where it has no evidence. Words of equal score have no order: precision and
rank are the mean over all orders of them, thresholds take all of them or none (as scikit-learn does).

What a random ranking gets is known without drawing one (`..._expected`, `..._floor`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.measure.agreement import Floor

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEAR = 1e-5  # of the largest score of a text: what a float32 model may round differently from batch to batch
IOU = 0.5  # from which on a span counts as found (DeYoung et al. 2020, section 4.1)


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Texts with their words in the order of falling score, words of equal score in groups."""

    found: Bools  # (texts, words) whether the word at this rank is evidence
    hits: Ints  # (texts, words) evidence up to this rank, itself included
    begin: Ints  # (texts, words) the first rank of its group, from 0
    end: Ints  # (texts, words) the last rank of its group
    n: Ints  # (texts,) words
    m: Ints  # (texts,) of which are evidence; 0 where undefined

    @classmethod
    def of(cls, scores: ArrayLike, real: ArrayLike, evidence: ArrayLike) -> Self:
        scores, real = np.asarray(scores, dtype=np.float64), np.asarray(real, dtype=np.bool_)
        known: Bools = np.asarray(evidence, dtype=np.bool_)
        if scores.ndim != 2 or not scores.shape == real.shape == known.shape:
            raise ValueError(
                "scores, real and evidence need one shape (texts, words); "
                f"given {scores.shape}, {real.shape}, {known.shape}"
            )
        known = known & real
        broken = (np.isnan(scores) & real).any(1)
        order = np.lexsort((-scores, ~real), axis=-1)  # padding last, whatever its scores
        found, s = np.take_along_axis(known, order, 1), np.take_along_axis(scores, order, 1)
        n, width = real.sum(1), scores.shape[1]
        place = np.arange(width)
        new = np.ones(s.shape, dtype=np.bool_)  # whether a group begins here
        new[:, 1:] = (s[:, 1:] != s[:, :-1]) | (place[1:] >= n[:, None])
        begin = np.maximum.accumulate(np.where(new, place, 0), axis=1)
        last = np.ones(s.shape, dtype=np.bool_)
        last[:, :-1] = new[:, 1:]
        end = np.minimum.accumulate(np.where(last, place, width)[:, ::-1], axis=1)[:, ::-1]
        m = np.where(broken, 0, known.sum(1))
        return cls(found, found.cumsum(1), begin, end, n, m)


def join_near(scores: Floats, real: Bools, within: float = NEAR) -> Floats:
    """Scores (texts, words) that order words alike, but those with less than `within` of the text's largest between
    one and the next are equal: the same word twice has one score, and rounding is not an order."""
    largest = np.abs(np.where(real, scores, 0.0)).max(1, initial=0.0)[:, None]
    order = np.lexsort((-scores, ~real), axis=-1)
    falling = np.take_along_axis(scores, order, 1)
    apart = np.diff(falling, axis=1, prepend=falling[:, :1]) < -within * largest
    joined = np.empty_like(scores)
    np.put_along_axis(joined, order, -np.cumsum(apart, axis=1).astype(np.float64), axis=1)
    broken: Bools = np.isnan(scores) & real
    return np.where(broken.any(1, keepdims=True), np.nan, joined)


def precision_at(ranked: Ranked, k: Ints) -> Floats:
    """The share of the k first words that are evidence: (texts,)."""
    rank = np.maximum(k - 1, 0)[:, None]
    begin, end = (np.take_along_axis(part, rank, 1)[:, 0] for part in (ranked.begin, ranked.end))
    rows = np.arange(len(k))
    before = np.where(begin > 0, ranked.hits[rows, begin - 1], 0)
    inside = ranked.hits[rows, end] - before
    expected = before + inside * (k - begin) / (end - begin + 1)
    return _where(ranked.m > 0, expected / np.maximum(k, 1))


def precision(ranked: Ranked) -> Floats:
    """Precision at k, k being the number of evidence words: then it is recall and token F1, too."""
    return precision_at(ranked, ranked.m)


def hit(ranked: Ranked) -> Floats:
    """Is the first word evidence? The pointing game: Poerner et al. 2018, section 3."""
    return precision_at(ranked, np.minimum(ranked.n, 1))


def best_f1(ranked: Ranked) -> Floats:
    """Token F1 at the threshold that is best for this text: no method knows it, so this is a bound."""
    size = np.arange(ranked.found.shape[1]) + 1  # words from this score on
    f1 = 2 * ranked.hits / (size + np.maximum(ranked.m, 1)[:, None])
    whole = np.arange(ranked.found.shape[1]) == ranked.end  # a threshold takes all words of one score
    return _where(ranked.m > 0, np.where(whole, f1, 0.0).max(1, initial=0.0))


def average_precision(ranked: Ranked) -> Floats:
    """AUPRC as sum_t (R_t - R_{t-1}) P_t over thresholds t (DeYoung et al. 2020, section 4.1; scikit-learn)."""
    at_end = np.take_along_axis(ranked.hits, ranked.end, 1) / (ranked.end + 1)  # precision at its threshold
    return _where(ranked.m > 0, (ranked.found * at_end).sum(1) / np.maximum(ranked.m, 1))


def mean_rank(ranked: Ranked) -> Floats:
    """The mean rank of the evidence words, from 1; words of equal score share the mean of theirs."""
    rank = (ranked.begin + ranked.end) / 2 + 1
    return _where(ranked.m > 0, (ranked.found * rank).sum(1) / np.maximum(ranked.m, 1))


def roc_auc(ranked: Ranked) -> Floats:
    """How often an evidence word stands above one that is none; nan where every word is evidence."""
    m, rest = ranked.m, ranked.n - ranked.m
    above = (mean_rank(ranked) - (m + 1) / 2) / np.maximum(rest, 1)  # mean share of the rest above an evidence word
    return _where((m > 0) & (rest > 0), 1 - above)


def iou_f1(chosen: ArrayLike, evidence: ArrayLike) -> Floats:
    """F1 of spans (DeYoung et al. 2020, section 4.1): a chosen span is found where its intersection with an evidence
    span is at least half of their union. (texts,), nan without evidence.

    As in the published code the found spans count for both: precision is their share of the chosen spans, recall their
    number over that of the evidence spans. Spans are runs of neighbouring words.
    """
    chosen, evidence = np.asarray(chosen, dtype=np.bool_), np.asarray(evidence, dtype=np.bool_)
    f1 = np.full(len(chosen), np.nan)
    for row, (ours, theirs) in enumerate(zip(map(runs, chosen), map(runs, evidence), strict=True)):
        if not len(theirs):
            continue
        low = np.maximum(ours[:, None, 0], theirs[None, :, 0])
        high = np.minimum(ours[:, None, 1], theirs[None, :, 1])
        shared = np.maximum(high - low, 0)  # (ours, theirs) words
        union = (ours[:, 1] - ours[:, 0])[:, None] + (theirs[:, 1] - theirs[:, 0])[None] - shared
        found = int(((shared / union).max(1, initial=0.0) >= IOU).sum()) if len(ours) else 0
        p, r = found / max(1, len(ours)), found / len(theirs)
        f1[row] = 2 * p * r / (p + r) if found else 0.0
    return f1


def runs(which: Bools) -> Ints:
    """Where runs of True begin and end (exclusive): (runs, 2)."""
    edges = np.diff(which.astype(np.int8), prepend=0, append=0)
    return np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], axis=1)


def first_words(scores: ArrayLike, real: ArrayLike, k: Ints, ties: ArrayLike) -> Bools:
    """The k words of highest score, of equal ones those with the highest `ties`: (texts, words)."""
    scores, real = np.asarray(scores, dtype=np.float64), np.asarray(real, dtype=np.bool_)
    order = np.lexsort((-np.asarray(ties, dtype=np.float64), -scores, ~real), axis=-1)
    chosen = np.zeros(scores.shape, dtype=np.bool_)
    np.put_along_axis(chosen, order, np.arange(scores.shape[1]) < k[:, None], axis=1)
    return np.asarray(chosen & real)


def average_precision_expected(n: ArrayLike, m: ArrayLike) -> Floats:
    """Of a random ranking: (H_n + (m - 1) / (n - 1) (n - H_n)) / n, with H_n = 1 + 1/2 + ... + 1/n.

    The word at rank i is evidence with probability m / n, and precision there is then
    (1 + (i - 1) (m - 1) / (n - 1)) / i.
    """
    n, m = np.asarray(n, dtype=np.int64), np.asarray(m, dtype=np.int64)
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, n.max(initial=0) + 1))])[n]
    value = (harmonic + (m - 1) / np.maximum(n - 1, 1) * (n - harmonic)) / np.maximum(n, 1)
    return _where(m > 0, value)


def hit_floor(n: ArrayLike, m: ArrayLike) -> Floor:
    """The mean of `hit` over these texts under random rankings: m / n each."""
    share = _shares(n, m)
    return _floor(share, share * (1 - share))


def precision_floor(n: ArrayLike, m: ArrayLike) -> Floor:
    """The mean of `precision` under random rankings: hypergeometric, m / n each, variance (1 - m / n)^2 / (n - 1)."""
    share = _shares(n, m)
    words = np.asarray(n, dtype=np.float64)[np.asarray(m) > 0]
    return _floor(share, (1 - share) ** 2 / np.maximum(words - 1, 1))


def _shares(n: ArrayLike, m: ArrayLike) -> Floats:
    n, m = np.asarray(n, dtype=np.float64), np.asarray(m, dtype=np.float64)
    return np.asarray(m[m > 0] / n[m > 0])


def _floor(expected: Floats, variance: Floats) -> Floor:
    n = len(expected)
    if not n:
        return Floor(0, float("nan"), float("nan"))
    return Floor(n, float(expected.mean()), float(np.sqrt(variance.sum()) / n))


def _where(defined: Bools, values: Floats) -> Floats:
    return np.where(defined, values, np.nan)
