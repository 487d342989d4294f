"""Scores against known evidence: fast arrays beside formulas written out, scikit-learn, and all orders tried."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heedful.measure import evidence as measure
from heedful.measure.evidence import Ranked

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@st.composite
def texts(draw: st.DrawFn, most: int = 6) -> tuple[Floats, Bools]:
    """Scores with many ties, and at least one word of evidence."""
    n = draw(st.integers(1, most))
    scores = draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=n, max_size=n))
    marked = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any))
    return np.array(scores), np.array(marked)


def orders(scores: Floats) -> list[tuple[int, ...]]:
    """Every order of the words by falling score."""
    n = len(scores)
    return [o for o in permutations(range(n)) if all(scores[o[i]] >= scores[o[i + 1]] for i in range(n - 1))]


def ranked(scores: Floats, marked: Bools, padding: int = 3) -> Ranked:
    """Between paddings that have scores of their own."""
    pad = np.full(padding, 9.0)
    real = np.concatenate([np.zeros(1, bool), np.ones(len(scores), bool), np.zeros(padding, bool)])
    return Ranked.of(
        np.concatenate([[7.0], scores, pad])[None], real[None], np.concatenate([[True], marked, pad > 0])[None]
    )


@settings(deadline=None)
@given(texts())
def test_equal_scores_count_as_the_mean_over_all_their_orders(text: tuple[Floats, Bools]) -> None:
    scores, marked = text
    found, m = ranked(scores, marked), int(marked.sum())
    precision, hits, rank, auc = (list[float]() for _ in range(4))
    for order in orders(scores):
        by_rank = marked[list(order)]
        precision.append(float(by_rank[:m].mean()))
        hits.append(by_rank[0])
        rank.append(float(np.flatnonzero(by_rank).mean()) + 1)
        pairs = [(i, j) for i in np.flatnonzero(by_rank) for j in np.flatnonzero(~by_rank)]
        auc.append(float(np.mean([i < j for i, j in pairs])) if pairs else np.nan)
    assert measure.precision(found)[0] == pytest.approx(np.mean(precision))
    assert measure.hit(found)[0] == pytest.approx(np.mean(hits))
    assert measure.mean_rank(found)[0] == pytest.approx(np.mean(rank))
    assert measure.roc_auc(found)[0] == pytest.approx(np.mean(auc), nan_ok=True)


@settings(deadline=None)
@given(texts(12))
def test_thresholds_are_those_of_scikit_learn(text: tuple[Floats, Bools]) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    scores, marked = text
    found = ranked(scores, marked)
    assert measure.average_precision(found)[0] == pytest.approx(sklearn.average_precision_score(marked, scores))
    f1 = [sklearn.f1_score(marked, scores >= threshold) for threshold in np.unique(scores)]
    assert measure.best_f1(found)[0] == pytest.approx(max(f1))
    if not marked.all():
        assert measure.roc_auc(found)[0] == pytest.approx(sklearn.roc_auc_score(marked, scores))


def eraser_iou(chosen: Bools, marked: Bools) -> float:
    """The published definition on sets of positions."""

    def spans(which: Bools) -> list[set[int]]:
        made: list[set[int]] = []
        for i in np.flatnonzero(which).tolist():
            if made and i - 1 in made[-1]:
                made[-1].add(i)
            else:
                made.append({i})
        return made

    ours, theirs = spans(chosen), spans(marked)
    best = [max((len(a & b) / len(a | b) for b in theirs), default=0.0) for a in ours]
    found = sum(value >= 0.5 for value in best)
    p, r = (found / len(ours) if ours else 0.0), found / len(theirs)
    return 2 * p * r / (p + r) if found else 0.0


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=15).filter(lambda w: any(b for _, b in w))
)
def test_spans_are_compared_as_in_eraser(words: list[tuple[bool, bool]]) -> None:
    chosen, marked = (np.array(part, dtype=bool) for part in zip(*words, strict=True))
    assert measure.iou_f1(chosen[None], marked[None])[0] == pytest.approx(eraser_iou(chosen, marked))


def test_a_span_is_found_from_half_of_the_union_on() -> None:
    marked = np.array([[0, 1, 1, 0, 0, 1, 0]], dtype=bool)
    for chosen, f1 in (
        ([0, 1, 1, 0, 0, 1, 0], 1.0),
        ([0, 1, 0, 0, 0, 0, 0], 2 / 3),  # one of two spans, with half of its words
        ([1, 1, 0, 0, 0, 0, 0], 0.0),  # one of three
        ([0, 0, 0, 1, 1, 0, 0], 0.0),
    ):
        assert measure.iou_f1(np.array([chosen], dtype=bool), marked)[0] == pytest.approx(f1)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (4, 1), (5, 2), (5, 5), (6, 3)])
def test_the_law_of_a_random_ranking_is_that_of_all_rankings(n: int, m: int) -> None:
    found = [ranked(np.array(order, dtype=float), np.arange(n) < m) for order in permutations(range(n))]
    for law, of in ((measure.precision_floor, measure.precision), (measure.hit_floor, measure.hit)):
        values = np.array([of(one)[0] for one in found])
        floor = law([n], [m])
        assert floor.expected == pytest.approx(values.mean()) == pytest.approx(m / n)
        assert floor.std == pytest.approx(values.std())
    mean = np.mean([measure.average_precision(one)[0] for one in found])
    assert measure.average_precision_expected([n], [m])[0] == pytest.approx(mean)
    assert np.mean([measure.mean_rank(one)[0] for one in found]) == pytest.approx((n + 1) / 2)


def test_without_evidence_or_with_a_nan_nothing_is_defined() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [np.nan, 2.0, 3.0], [1.0, 2.0, np.nan]])
    real = np.array([[True, True, True], [True, True, True], [True, True, False]])
    marked = np.array([[False] * 3, [True, False, False], [True, False, False]])
    found = Ranked.of(scores, real, marked)
    for of in (
        *(measure.precision, measure.hit, measure.best_f1, measure.average_precision, measure.mean_rank),
        measure.roc_auc,
    ):
        assert np.isnan(of(found)).tolist() == [True, True, False]
    assert np.isnan(measure.iou_f1(real, marked)).tolist() == [True, False, False]
    assert measure.precision_floor([3], [0]).n == 0
    with pytest.raises(ValueError, match="one shape"):
        Ranked.of(scores, real[:2], marked)


def test_scores_that_differ_by_rounding_are_equal() -> None:
    scores = np.array([[0.5, 1.0, 0.5 + 1e-7, 0.2, 9.0], [0.0, 0.0, 0.0, 0.0, 0.0], [1.0, np.nan, 0.0, 0.0, 0.0]])
    real = np.array([[True, True, True, True, False]] * 3)
    joined = measure.join_near(scores, real)
    assert joined[0, :4].tolist() == [-1.0, 0.0, -1.0, -2.0]
    assert len(set(joined[1, :4].tolist())) == 1
    assert np.isnan(joined[2, :4]).all()


def test_equal_scores_are_chosen_by_their_ties() -> None:
    scores, real = np.array([[1.0, 1.0, 1.0, 0.0, 5.0]]), np.array([[True, True, True, True, False]])
    chosen = measure.first_words(scores, real, np.array([2]), np.array([[0.1, 0.9, 0.5, 0.0, 0.0]]))
    assert chosen.tolist() == [[False, True, True, False, False]]
