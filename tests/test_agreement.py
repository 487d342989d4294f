"""Top-k overlap against sets of positions built by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.measure.agreement import expected_overlap, how_many, top_k, top_k_overlap, undefined


@pytest.mark.parametrize("k", [1, 3, 50, 0.1, 0.25, 1.0])
def test_overlap_equals_sets_built_by_hand(k: int | float) -> None:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 8, (2, 200, 12)).astype(float)  # many ties
    mask = generator.random((200, 12)) < generator.random((200, 1))
    overlap = top_k_overlap(a, b, mask, k)
    for i in range(200):
        real = [int(t) for t in np.flatnonzero(mask[i])]
        if not real:
            assert np.isnan(overlap[i])
            continue
        size = min(k, len(real)) if isinstance(k, int) else math.ceil(round(k * len(real), 9))
        first, second = (set(sorted(real, key=lambda t: -x[t])[:size]) for x in (a[i], b[i]))
        assert overlap[i] == pytest.approx(len(first & second) / size)


def test_ties_are_taken_from_the_left_and_padding_never() -> None:
    scores = np.array([[1.0, 2, 2, 2, 9], [-np.inf, -np.inf, -np.inf, np.inf, np.nan]])
    mask = np.array([[True, True, True, True, False], [True, True, True, False, False]])
    chosen = top_k(scores, mask, 2)
    np.testing.assert_array_equal(chosen, [[False, True, True, False, False], [True, True, False, False, False]])


def test_a_nan_score_is_undefined_and_counted() -> None:
    a = np.array([[1.0, np.nan], [1.0, 2.0]])
    b = np.array([[1.0, 2.0], [1.0, 2.0]])
    result = top_k_overlap(a, b, np.ones((2, 2)), 1)
    np.testing.assert_array_equal(result, [np.nan, 1.0])
    assert undefined(result) == 1


@pytest.mark.parametrize("k", [1, 4, 0.3])
def test_expected_overlap_is_what_random_rankings_give(k: int | float) -> None:
    generator = np.random.default_rng(1)
    a, b = generator.random((2, 20_000, 9))
    mask = np.ones(a.shape, dtype=np.bool_)
    expected = expected_overlap(mask.sum(axis=1), k)
    assert top_k_overlap(a, b, mask, k).mean() == pytest.approx(expected[0], abs=0.01)
    assert np.isnan(expected_overlap([0], k)).all()


def test_shares_round_up_but_not_for_a_rounding_error() -> None:
    np.testing.assert_array_equal(how_many([0, 1, 10, 11, 30], 0.1), [0, 1, 1, 2, 3])
    assert how_many(100, 0.07) == 7
    np.testing.assert_array_equal(how_many([0, 1, 10], 5), [0, 1, 5])
    np.testing.assert_array_equal(how_many([0, 1, 10], 1.0), [0, 1, 10])


@pytest.mark.parametrize("k", [0, -1, 0.0, 1.5, True, float("nan")])
def test_a_k_that_makes_no_sense_is_refused(k: int | float) -> None:
    with pytest.raises(ValueError, match="given"):
        how_many([3], k)


def test_wrong_shapes_are_shown() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(3, 2\)"):
        top_k(np.zeros((2, 3)), np.ones((3, 2)), 1)
