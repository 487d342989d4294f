"""The law of chance against all permutations."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from heedful.measure.agreement import tau_floor
from heedful.measure.rank import kendall


@pytest.mark.parametrize("tokens", [2, 3, 6])
def test_the_floor_of_tau_is_that_of_all_permutations(tokens: int) -> None:
    orders = np.array(list(permutations(range(tokens))), dtype=np.float64)
    tau = kendall(orders, np.broadcast_to(np.arange(float(tokens)), orders.shape)).tau
    floor = tau_floor([tokens])
    assert floor.std == pytest.approx(tau.std())
    assert (floor.n, floor.expected) == (1, 0.0)


def test_the_floor_of_a_corpus_is_that_of_its_texts() -> None:
    lengths = [1, 2, 5, 9, 30]
    floor = tau_floor(lengths)
    by_text = [tau_floor([n]) for n in lengths if n > 1]
    assert floor.n == 4
    assert floor.std == pytest.approx(math.sqrt(sum(one.std**2 for one in by_text)) / 4)
    assert floor.surprise(1.96 * floor.std) == pytest.approx(2 * stats.norm.sf(1.96))
    assert math.isnan(tau_floor([1, 0]).surprise(0.1))
