"""Paired comparisons, false discovery, power and levels against scipy, hand formulas and plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from heedful.measure.levels import Sources, over_runs
from heedful.measure.paired import dz, paired, rank_biserial, sign_flip_test
from heedful.measure.statistics import mean_interval, summarise
from heedful.measure.tests import Statement, benjamini_hochberg, discoveries, minimum_detectable, power_of, texts_needed
from simulated import coverage_of

NAN = float("nan")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("n", [2, 5, 12])
def test_all_sign_flips_are_scipys_exact_permutation_test(n: int) -> None:
    values = rng().normal(0.5, 1.0, n).round(1)  # rounded: some flips are ties
    theirs = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=2**n)
    assert sign_flip_test(values) == pytest.approx(theirs.pvalue, abs=1e-12)


def test_drawn_sign_flips_are_near_scipys_and_never_zero() -> None:
    values = rng().normal(0.2, 1.0, 80)
    theirs = stats.permutation_test((values,), np.mean, permutation_type="samples", n_resamples=9999, rng=rng())
    assert sign_flip_test(values) == pytest.approx(theirs.pvalue, abs=0.01)
    assert sign_flip_test(values) == sign_flip_test(values)
    assert sign_flip_test(values + 10, resamples=99) == 1 / 100  # the +1 rule
    assert sign_flip_test(np.zeros(50)) == 1.0
    assert math.isnan(sign_flip_test([0.3]))
    with pytest.raises(ValueError, match="1 of 2 differences"):
        sign_flip_test([0.3, NAN])


def test_sign_flips_in_pieces_are_the_sign_flips_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.measure import paired as module

    values = rng().normal(0.5, 1.0, 10)
    whole = sign_flip_test(values)
    monkeypatch.setattr(module, "_CELLS", 70)
    assert sign_flip_test(values) == whole


def test_the_interval_of_a_difference_is_near_bca() -> None:
    """Of skewed differences both move the same way from the plain percentile interval."""
    first, second = rng().beta(2, 8, (2, 40))
    first = first + rng().exponential(0.2, 40)
    found = paired(first, second)
    bca = stats.bootstrap((first - second,), np.mean, method="BCa", n_resamples=9999, rng=rng())
    width = found.high - found.low
    assert (found.low, found.high) == pytest.approx(tuple(bca.confidence_interval), abs=0.1 * width)
    assert found.difference == pytest.approx((first - second).mean())


def test_effect_sizes_by_hand() -> None:
    first, second = np.array([3.0, 1.0, 5.0, 2.0]), np.array([1.0, 2.0, 5.0, 9.0])
    found = paired(first, second)
    assert found.dz == pytest.approx(np.mean([2, -1, 0, -7]) / np.std([2, -1, 0, -7], ddof=1))
    assert found.dz * 2 == pytest.approx(stats.ttest_rel(first, second).statistic)  # t = dz sqrt(n)
    assert found.rank_biserial == pytest.approx((2 - 1 - 3) / 6)
    assert paired(first, 1.0) == paired(first, np.ones(4))
    assert math.isnan(dz([0.5]))
    assert math.isnan(dz([0.5, 0.5]))
    assert rank_biserial([0.1, NAN, 3.0]) == 1.0


def test_one_pair_has_a_difference_and_nothing_else() -> None:
    found = paired([0.5, NAN], [0.2, 1.0])
    assert (found.n, found.undefined) == (1, 1)
    assert found.difference == pytest.approx(0.3)
    assert np.isnan([found.p, found.low, found.high, found.dz]).all()
    assert math.isnan(paired([NAN], [1.0]).difference)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
@settings(deadline=None, max_examples=60)
def test_q_values_are_scipys(p: list[float]) -> None:
    np.testing.assert_allclose(benjamini_hochberg(p), stats.false_discovery_control(p), rtol=1e-12)


def test_statements_are_findings_only_together() -> None:
    found = discoveries([Statement("a", 0.03), Statement("b", 0.2), Statement("c", NAN), Statement("d", 0.001)])
    assert [one.name for one in found] == ["a", "b", "c", "d"]
    assert [one.q for one in found] == pytest.approx([0.045, 0.2, NAN, 0.003], nan_ok=True)
    assert [one.found for one in found] == [True, False, False, True]
    # The same p-value among twenty others that find nothing is not a finding.
    many = discoveries([Statement("a", 0.03), *(Statement(str(i), 0.5) for i in range(20))])
    assert not many[0].found
    assert discoveries([]) == ()
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg([0.5, 1.5])


def test_false_discoveries_are_as_few_as_promised() -> None:
    """Of 40 statements 10 are true: the mean share of wrong ones among the findings is at most 5%."""
    generator, wrong = rng(), []
    for _ in range(400):
        p = np.concatenate([generator.random(30), stats.norm.sf(generator.normal(3.0, 1.0, 10))])
        found = benjamini_hochberg(p) <= 0.05
        wrong.append(found[:30].sum() / max(1, found.sum()))
    assert np.mean(wrong) <= 0.05


@pytest.mark.parametrize("n", [2, 3, 20, 200, 20_000])
def test_the_minimum_detectable_effect_has_exactly_its_power(n: int) -> None:
    effect = minimum_detectable(0.5, n)
    assert power_of(effect, 0.5, n) == pytest.approx(0.8, abs=1e-6)
    assert abs(texts_needed(effect * (1 + 1e-6), 0.5) - n) <= 1


def test_power_by_simulation() -> None:
    samples = rng().normal(0.4, 1.0, (20_000, 30))
    found = np.mean(stats.ttest_1samp(samples, 0.0, axis=1).pvalue <= 0.05)
    assert power_of(0.4, 1.0, 30) == pytest.approx(found, abs=0.012)
    assert power_of(0.4, 1.0, texts_needed(0.4, 1.0)) >= 0.8 > power_of(0.4, 1.0, texts_needed(0.4, 1.0) - 1)
    assert texts_needed(-0.4, 1.0) == texts_needed(0.4, 1.0)
    assert texts_needed(0.4, 0.0) == 2
    assert minimum_detectable(0.0, 10) == 0.0
    assert math.isnan(power_of(0.4, 1.0, 1))


def test_the_sentence_of_an_interval_says_what_was_drawn() -> None:
    assert "1,200 texts of one training run" in Sources(1200).sentence()
    assert "another seed could change more" in Sources(1200).sentence()
    assert "50 texts and 3 training runs" in Sources(50, 3).sentence()
    assert over_runs(rng().normal(size=(3, 50))).contains == Sources(50, 3).sentence()


def test_runs_that_do_not_differ_add_nothing_to_the_texts() -> None:
    texts = rng().normal(size=200)
    found, alone = over_runs(np.tile(texts, (5, 1))), over_runs(texts[None])
    assert (found.low, found.high) == pytest.approx((alone.low, alone.high))
    assert (alone.low, alone.high) == pytest.approx(mean_interval(texts), abs=0.03)


def test_two_runs_are_no_surer_than_their_difference_allows() -> None:
    """By t with one degree of freedom: half the difference of two means, 12.7 times."""
    table = np.array([[0.0], [1.0]]) + 1e-3 * rng().normal(size=(2, 500))
    found = over_runs(table)
    assert found.high - found.low == pytest.approx(2 * stats.t.ppf(0.975, 1) * 0.5, rel=0.02)


def test_an_interval_of_tau_stays_where_tau_can_be() -> None:
    values = [1.0, 0.2, 1.0]
    assert mean_interval(values)[1] > 1
    low, high = mean_interval(values, within=(-1.0, 1.0))
    assert low == mean_interval(values)[0]
    assert high == 1.0
    assert summarise(values, within=(-1.0, 1.0)).high == 1.0
    low, high = mean_interval([-1.0, 0.9], within=(-1.0, 1.0))
    assert (low, high) == (-1.0, 1.0)


@pytest.mark.parametrize("n", [20, pytest.param(100, marks=pytest.mark.long)])
def test_every_kind_of_interval_covers_what_it_says(n: int) -> None:
    """93 to 97%, and three standard errors of so small a simulation; larger: checks/coverage_of_intervals.py."""
    repeats, slack = 1000, 3 * math.sqrt(0.05 * 0.95 / 1000)
    kinds = ("mean of tau, about 0.41", "paired difference", "share, 30%", "median", "3 runs, std 0.5 between")
    found = coverage_of(*kinds, texts=n, repeats=repeats)
    assert len(found) == len(kinds)
    assert all(0.93 - slack <= share <= 0.97 + slack for share in found.values()), found


def test_a_random_ranking_is_seldom_called_better_than_random() -> None:
    (share,) = coverage_of("a random ranking", texts=50, repeats=200).values()
    assert share <= 0.05


def test_calibration_counts() -> None:
    held, claimed = coverage_of("an interval that holds half", "a claim of a quarter", texts=50, repeats=400).values()
    assert held == pytest.approx(0.5, abs=0.1)
    assert claimed == pytest.approx(0.25, abs=0.1)
