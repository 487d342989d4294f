"""TVD, KL and JSD against their sums written out, and their bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon

from heedful.measure.distance import LN2, Floats, jsd, kl, tvd


def slow_kl(p: Floats, q: Floats) -> float:
    total = 0.0
    for x, y in zip(p, q, strict=True):
        if x > 0:
            total += x * math.log(x / y) if y > 0 else math.inf
    return total


def slow_jsd(p: Floats, q: Floats) -> float:
    return 0.5 * slow_kl(p, (p + q) / 2) + 0.5 * slow_kl(q, (p + q) / 2)


def distributions(generator: np.random.Generator, *shape: int) -> Floats:
    """Sparse and dense ones: small concentrations give entries that are 0 or nearly so."""
    size = shape[-1]
    p = np.stack([generator.dirichlet(np.full(size, c), shape[:-1]) for c in (0.01, 0.3, 5.0)])
    p[p < 1e-12] = 0.0
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def test_batched_distances_equal_their_definitions() -> None:
    generator = np.random.default_rng(0)
    p, q = distributions(generator, 40, 7), distributions(generator, 40, 7)[::-1]
    assert tvd(p, q).shape == jsd(p, q).shape == kl(p, q).shape == (3, 40)
    for i in np.ndindex(3, 40):
        assert tvd(p, q)[i] == pytest.approx(sum(abs(x - y) for x, y in zip(p[i], q[i], strict=True)) / 2)
        assert kl(p, q)[i] == pytest.approx(slow_kl(p[i], q[i]))
        assert jsd(p, q)[i] == pytest.approx(slow_jsd(p[i], q[i]), abs=1e-15)


def test_jsd_is_scipys_squared() -> None:
    generator = np.random.default_rng(1)
    p, q = generator.dirichlet(np.ones(30), (2, 100))
    np.testing.assert_allclose(jsd(p, q), jensenshannon(p, q, axis=1) ** 2, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.integers(1, 50))
def test_jsd_is_symmetric_and_between_0_and_ln_2(seed: int, size: int) -> None:
    generator = np.random.default_rng(seed)
    p, q = distributions(generator, size), distributions(generator, size)
    assert (jsd(p, q) >= 0).all()
    assert (jsd(p, q) <= LN2 * (1 + 1e-14)).all()
    np.testing.assert_allclose(jsd(p, q), jsd(q, p), atol=1e-15)
    assert (jsd(p, p) == 0).all()
    near = p * (1 + 1e-9 * generator.normal(size=p.shape))
    assert (jsd(p, near / near.sum(axis=-1, keepdims=True)) >= 0).all()


def test_disjoint_supports_are_as_far_apart_as_can_be() -> None:
    p, q = [0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.25, 0.75]
    assert jsd(p, q) == pytest.approx(LN2, rel=1e-15)
    assert tvd(p, q) == 1.0
    assert kl(p, q) == math.inf


@given(st.floats(0, 1), st.floats(0, 1))
def test_tvd_of_two_classes_is_the_absolute_difference(x: float, y: float) -> None:
    assert float(tvd([x, 1 - x], [y, 1 - y])) == pytest.approx(abs(x - y), abs=1e-15)


def test_masked_entries_do_not_count_whatever_they_hold() -> None:
    generator = np.random.default_rng(2)
    p, q = generator.dirichlet(np.ones(5), (2, 4))
    wide_p, wide_q = (np.hstack([x, np.full((4, 3), np.nan)]) for x in (p, q))
    mask = np.arange(8) < np.full((4, 1), 5)
    np.testing.assert_allclose(jsd(wide_p, wide_q, mask), jsd(p, q), rtol=1e-14)
    np.testing.assert_allclose(kl(wide_p, wide_q, mask), kl(p, q), rtol=1e-14)


def test_tiny_probabilities_neither_warn_nor_vanish() -> None:
    p, q = np.array([1.0, 5e-324]), np.array([5e-324, 1.0])
    assert jsd(p, q) == pytest.approx(LN2)
    assert jsd([1.0, 5e-324], [1.0, 0.0]) == pytest.approx(0, abs=1e-300)
    assert kl(p, q) == pytest.approx(-math.log(5e-324))


def test_wrong_shapes_are_shown() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        tvd([0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match=r"shape \(2,\); given \(3,\)"):
        jsd([0.5, 0.5], [0.5, 0.5], [True, True, False])
    with pytest.raises(ValueError, match=r"given \(\) and \(\)"):
        tvd(0.5, 0.5)
