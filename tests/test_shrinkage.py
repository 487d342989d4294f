"""Means drawn together, beside the formula written out and beside simulated truth."""

from __future__ import annotations

import math
from statistics import fmean, variance

import numpy as np
import pytest

from heedful.measure.levels import shrink_means


def simulated(seed: int, groups: int = 300) -> tuple[np.ndarray, list[np.ndarray]]:
    """True means, and a few noisy values of each."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(0.1, 0.2, groups)
    return truth, [rng.normal(mean, 0.4, rng.integers(3, 12)) for mean in truth]


def test_it_is_the_formula() -> None:
    _, groups = simulated(0, 7)
    s = [variance(g.tolist()) for g in groups]
    v = [((len(g) - 1) * one + fmean(s)) / len(g) / len(g) for g, one in zip(groups, s, strict=True)]
    x = [fmean(g) for g in groups]
    tau2 = max(0.0, variance(x) - fmean(v))
    assert tau2 > 0
    for one, mean, error in zip(shrink_means(groups), x, v, strict=True):
        kept = tau2 / (tau2 + error)
        assert one.value == pytest.approx(fmean(x) + kept * (mean - fmean(x)))
        assert one.high - one.value == pytest.approx(1.959964 * math.sqrt(kept * error), rel=1e-5)
        assert one.value - one.low == pytest.approx(one.high - one.value)


def test_it_is_nearer_to_the_truth_than_the_means_and_its_intervals_hold_it() -> None:
    errors, plain, held = [], [], []
    for seed in range(5):
        truth, groups = simulated(seed)
        found = shrink_means(groups)
        errors += [(one.value - t) ** 2 for one, t in zip(found, truth, strict=True)]
        plain += [(g.mean() - t) ** 2 for g, t in zip(groups, truth, strict=True)]
        held += [one.low <= t <= one.high for one, t in zip(found, truth, strict=True)]
    assert fmean(errors) < 0.85 * fmean(plain)
    assert 0.92 < fmean(held) < 0.98


def test_the_lucky_one_of_three_does_not_stand_above_the_sure_one_of_a_hundred() -> None:
    rng = np.random.default_rng(0)
    usual = [rng.normal(0, 0.3, 20) for _ in range(50)]
    few, many = np.array([0.2, 0.9, 0.7]), rng.normal(0.55, 0.3, 100)
    assert few.mean() > many.mean()
    *_, lucky, sure = shrink_means([*usual, few, many])
    assert lucky.value < sure.value
    assert lucky.high - lucky.low > sure.high - sure.low


def test_what_does_not_vary_is_one_mean() -> None:
    assert [one.value for one in shrink_means([np.ones(2), np.ones(5)])] == [1.0, 1.0]
    noise = [np.random.default_rng(i).normal(0, 1, 3) for i in range(4)]
    assert shrink_means([]) == []
    assert len({round(one.value, 9) for one in shrink_means(noise[:1])}) == 1
    with pytest.raises(ValueError, match="two or more"):
        shrink_means([np.ones(1)])
