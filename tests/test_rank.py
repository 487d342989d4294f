"""Batched rank correlations against scipy, row by row, and against their definitions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from heedful.measure import order
from heedful.measure.rank import kendall, spearman, weighted_kendall

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Measure = Callable[[ArrayLike, ArrayLike, ArrayLike], Floats]


def tau_b(a: ArrayLike, b: ArrayLike, mask: ArrayLike) -> Floats:
    return kendall(a, b, mask).tau


MEASURES: list[Measure] = [tau_b, spearman, weighted_kendall]


def scores(generator: np.random.Generator, n: int, length: int, levels: int) -> tuple[Floats, Floats, Bools]:
    """Two related scores with holes in the mask and nan under it; `levels` values, or no ties for 0."""
    a = generator.normal(size=(n, length))
    b = a * generator.normal(size=(n, 1)) + generator.normal(size=(n, length))
    if levels:
        a, b = np.round(a * levels / 4), np.round(b * levels / 4)
    mask = generator.random((n, length)) < generator.uniform(0, 1.5, (n, 1))
    a[~mask] = np.nan
    return a, b, mask


def by_row(call: Callable[[Floats, Floats], object], a: Floats, b: Floats, mask: Bools) -> Floats:
    """(n, 2) what scipy says of each row: statistic and p-value. It warns of short and constant rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = [call(x[m], y[m]) for x, y, m in zip(a, b, mask, strict=True)]
    return np.array([tuple(r) for r in rows])  # type: ignore[arg-type]


@pytest.mark.parametrize("levels", [0, 2, 5, 60])
@pytest.mark.parametrize(
    ("n", "length"),
    [(20, 1), (100, 2), (200, 3), (300, 6), (300, 33), (300, 40), (80, 180), (20, 257), (12, 700), (4, 3001)],
)
def test_kendall_is_scipys_in_statistic_and_p_value(n: int, length: int, levels: int) -> None:
    a, b, mask = scores(np.random.default_rng(length + levels), n, length, levels)
    ours, theirs = kendall(a, b, mask), by_row(stats.kendalltau, a, b, mask)
    np.testing.assert_allclose(ours.tau, theirs[:, 0], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(ours.p, theirs[:, 1], rtol=1e-10, atol=1e-300)
    np.testing.assert_array_equal(ours.n_tokens, mask.sum(axis=1))


@pytest.mark.parametrize("levels", [0, 3, 60])
@pytest.mark.parametrize(("n", "length"), [(100, 2), (200, 5), (200, 30), (50, 180), (12, 600)])
def test_spearman_and_weighted_kendall_are_scipys(n: int, length: int, levels: int) -> None:
    a, b, mask = scores(np.random.default_rng(length + levels), n, length, levels)
    mask[mask.sum(axis=1) < 2] = False  # scipy's answer to one token differs from version to version
    enough = mask.any(axis=1)
    rho, tau = spearman(a, b, mask), weighted_kendall(a, b, mask)
    a, b, some = a[enough], b[enough], mask[enough]
    np.testing.assert_allclose(rho[enough], by_row(stats.spearmanr, a, b, some)[:, 0], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tau[enough], by_row(stats.weightedtau, a, b, some)[:, 0], rtol=1e-9, atol=1e-12)
    assert np.isnan(rho[~enough]).all()
    assert np.isnan(tau[~enough]).all()


@pytest.mark.parametrize("tokens", [2, 3, 4, 33, 34, 100, 170, 171, 172, 400])
def test_p_values_near_perfect_order(tokens: int) -> None:
    """None, one or two pairs out of order, in both directions: where scipy changes its method."""
    a = np.arange(float(tokens))
    rows = []
    for swaps in range(3):
        b = a.copy()
        for i in range(min(swaps, tokens // 2)):
            b[[2 * i, 2 * i + 1]] = b[[2 * i + 1, 2 * i]]
        rows += [b, -b]
    batch = np.stack(rows)  # (6, tokens)
    ours = kendall(np.broadcast_to(a, batch.shape), batch)
    theirs = by_row(stats.kendalltau, np.broadcast_to(a, batch.shape), batch, np.ones(batch.shape, np.bool_))
    np.testing.assert_allclose(ours.tau, theirs[:, 0], rtol=1e-13)
    np.testing.assert_allclose(ours.p, theirs[:, 1], rtol=1e-10, atol=1e-300)


def test_exact_p_value_is_the_share_of_permutations_at_least_as_extreme() -> None:
    a = np.arange(5.0)
    every = np.array(list(permutations(a)))  # (120, 5)
    result = kendall(np.broadcast_to(a, every.shape), every)
    for tau, p in zip(result.tau, result.p, strict=True):
        assert p == pytest.approx(np.mean(np.abs(result.tau) >= abs(tau) - 1e-12))


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=12))
def test_definitions_written_slowly(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=float).T
    n = len(a)
    order_ab = sorted(range(n), key=lambda i: (-a[i], -b[i]))
    order_ba = sorted(range(n), key=lambda i: (-b[i], -a[i]))

    def correlation(weight: Floats) -> float:
        def product(x: Floats, y: Floats) -> float:
            both = combinations(range(n), 2)
            signs = ((np.sign(x[i] - x[j]) * np.sign(y[i] - y[j]), weight[i] + weight[j]) for i, j in both)
            return float(sum(sign * w for sign, w in signs))

        norm = product(a, a) * product(b, b)
        return float(product(a, b) / np.sqrt(norm)) if norm > 0 else np.nan

    hyperbolic = []
    for ranking in (order_ab, order_ba):
        weight = np.empty(n)
        weight[ranking] = 1 / (1 + np.arange(n))
        hyperbolic.append(correlation(weight))
    assert kendall([a], [b]).tau[0] == pytest.approx(correlation(np.ones(n)), nan_ok=True)
    assert weighted_kendall([a], [b])[0] == pytest.approx(np.mean(hyperbolic), nan_ok=True)


@pytest.mark.parametrize("measure", MEASURES)
def test_undefined_is_nan_and_stays_in_its_row(measure: Measure) -> None:
    a = np.array([[1.0, 2, 3], [1, 1, 1], [1, 2, 3], [1, 2, 3], [1, np.nan, 3], [1, 2, 3]])
    b = np.array([[1.0, 2, 3], [1, 2, 3], [2, 2, 2], [1, 2, 3], [1, 2, 3], [3, 2, 1]])
    mask = np.ones(a.shape, dtype=np.bool_)
    mask[3, 1:] = False
    result = measure(a, b, mask)
    np.testing.assert_allclose(result, [1, np.nan, np.nan, np.nan, np.nan, -1])
    assert np.isnan(measure(a, b, np.zeros_like(mask))).all()
    assert measure(a[:0], b[:0], mask[:0]).shape == (0,)
    assert np.isnan(measure(a[:, :0], b[:, :0], mask[:, :0])).all()


NEAR = 1 + np.arange(6)[::-1] * np.finfo(float).eps


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "row",
    [
        [np.inf, 1, -np.inf, np.inf, 0, 9],  # sorts below padding
        [0.0, -0.0, 1, -1, 0, 2],  # 0.0 ties with -0.0
        NEAR,  # scores that differ in the last bits do not tie
        -NEAR,
        [1e-310, 5e-324, 0, -5e-324, 1, -1],
    ],
)
def test_scores_that_are_hard_to_sort(measure: Measure, row: ArrayLike) -> None:
    a, b = np.array([row, row]), np.array([[2.0, 1, 4, 3, 6, 5], [3.0, 2, 1, 5, 4, 0]])
    mask = np.ones(a.shape, dtype=np.bool_)
    mask[1, 5] = False
    ranks = stats.rankdata(a, axis=1)
    np.testing.assert_array_equal(measure(a, b, mask), measure(ranks, b, mask))


def test_a_text_whose_ranks_need_more_than_16_bits() -> None:
    a, b = np.random.default_rng(5).normal(size=(2, 1, 70_000))
    ours, theirs = kendall(a, a + b), stats.kendalltau(a[0], (a + b)[0])
    assert ours.tau[0] == pytest.approx(theirs.statistic, rel=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_float32_integers_and_views_give_what_float64_gives(measure: Measure) -> None:
    generator = np.random.default_rng(3)
    whole = generator.integers(-50, 50, (2, 30, 40))
    mask = generator.random((30, 40)) < 0.7
    expected = measure(whole[0].astype(float), whole[1].astype(float), mask)
    for kind in (np.float32, np.int16, np.float16):
        a, b = whole.astype(kind)
        before = a.copy()
        np.testing.assert_array_equal(measure(a, b, mask), expected)
        np.testing.assert_array_equal(a, before)
    flipped = measure(whole[0, ::-1, ::-1], whole[1, ::-1, ::-1], mask[::-1, ::-1])
    np.testing.assert_allclose(flipped[::-1], expected, rtol=1e-12)


@pytest.mark.parametrize("cells", [1, 50, 1000])
def test_chunks_do_not_change_the_answer(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, mask = scores(np.random.default_rng(4), 60, 40, 9)
    whole = kendall(a, b, mask), weighted_kendall(a, b, mask)
    monkeypatch.setattr(order, "_CELLS", cells)
    np.testing.assert_array_equal(kendall(a, b, mask).p, whole[0].p)
    # Sums over rows padded to another width round differently.
    np.testing.assert_allclose(weighted_kendall(a, b, mask), whole[1], rtol=1e-13)


@pytest.mark.parametrize("width", [1, 2, 31, 255, 256, 257, 513, 1030])
def test_inversions_of_a_permutation_counted_one_by_one(width: int) -> None:
    generator = np.random.default_rng(width)
    rows = np.stack([generator.permutation(width) for _ in range(3)] + [np.arange(width)[::-1]])
    for row, counted in zip(rows, order.before_and_greater(rows), strict=True):
        np.testing.assert_array_equal(counted, [(row[:j] > row[j]).sum() for j in range(width)])


@given(st.integers(0, 2**32 - 1))
def test_symmetric_and_blind_to_monotone_changes(seed: int) -> None:
    a, b, mask = scores(np.random.default_rng(seed), 8, 15, seed % 7)
    for measure in MEASURES:
        once = measure(a, b, mask)
        np.testing.assert_allclose(measure(b, a, mask), once, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(measure(np.arctan(a) * 3 + 1, b, mask), once, rtol=1e-9, atol=1e-12)


def test_wrong_shapes_are_shown() -> None:
    with pytest.raises(ValueError, match=r"given \(2, 3\), \(2, 4\) and \(2, 3\)"):
        kendall(np.zeros((2, 3)), np.zeros((2, 4)))
    with pytest.raises(ValueError, match=r"given \(3,\)"):
        spearman(np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match=r"and \(3, 2\)"):
        weighted_kendall(np.zeros((2, 3)), np.zeros((2, 3)), np.ones((3, 2)))
