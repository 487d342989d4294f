"""The law of chance against all permutations."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from heedful.measure.agreement import overlap_floor, overlap_law, tau_floor, tau_law, top_k_overlap
from heedful.measure.rank import kendall


@pytest.mark.parametrize("tokens", [2, 3, 6])
def test_tau_of_all_permutations_has_the_law(tokens: int) -> None:
    orders = np.array(list(permutations(range(tokens))), dtype=np.float64)
    tau = kendall(orders, np.broadcast_to(np.arange(float(tokens)), orders.shape)).tau
    values, chance = tau_law(tokens)
    counted = [(np.abs(tau - value) < 1e-9).mean() for value in values]
    assert chance == pytest.approx(counted)
    floor = tau_floor([tokens])
    assert floor.std == pytest.approx(tau.std())
    assert (floor.n, floor.expected) == (1, 0.0)


def test_overlap_of_all_permutations_has_the_law() -> None:
    orders = np.array(list(permutations(range(6))), dtype=np.float64)
    fixed = np.broadcast_to(np.arange(6.0), orders.shape)
    overlap = top_k_overlap(orders, fixed, np.ones(orders.shape, bool), 2)
    assert overlap_law(6, 2) == pytest.approx([(overlap == share).mean() for share in (0, 0.5, 1)])
    floor = overlap_floor([6], 2)
    assert [floor.expected, floor.std] == pytest.approx([overlap.mean(), overlap.std()])


def test_the_floor_of_a_corpus_is_that_of_its_texts() -> None:
    lengths = [1, 2, 5, 9, 30]
    floor = tau_floor(lengths)
    by_law = [tau_law(n) for n in lengths if n > 1]
    variances = [float((chance * values**2).sum()) for values, chance in by_law]
    assert floor.n == 4
    assert floor.std == pytest.approx(math.sqrt(sum(variances)) / 4)
    overlap = overlap_floor(lengths, 3)
    assert overlap.n == 5
    assert overlap.expected == pytest.approx(np.mean([1, 1, 3 / 5, 3 / 9, 3 / 30]))
    assert floor.surprise(1.96 * floor.std) == pytest.approx(2 * stats.norm.sf(1.96))
    assert math.isnan(tau_floor([1, 0]).surprise(0.1))
    assert overlap_floor([], 3).n == 0
    with pytest.raises(ValueError, match="two tokens"):
        tau_law(1)
