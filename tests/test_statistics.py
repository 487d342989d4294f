"""Summaries with uncertainty against scipy and against plain loops."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats

from heedful.measure import statistics
from heedful.measure.levels import over_runs
from heedful.measure.paired import paired
from heedful.measure.statistics import FEW, between_seeds, bootstrap, mean_interval, quantile, significant, summarise
from heedful.measure.tests import benjamini_hochberg, minimum_detectable, texts_needed
from simulated import coverage_of

NAN = float("nan")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_undefined_values_are_counted_and_never_averaged_in() -> None:
    values = np.array([0.1, NAN, 0.5, 0.3, NAN, -0.2])
    p = np.array([0.01, NAN, 0.05, 0.051, NAN, 0.9])
    result = summarise(values, p)
    kept = [0.1, 0.5, 0.3, -0.2]
    assert (result.n, result.undefined, result.sig_frac) == (4, 2, 0.5)
    assert result.mean == pytest.approx(sum(kept) / 4)
    assert result.std == pytest.approx(math.sqrt(sum((x - result.mean) ** 2 for x in kept) / 4))
    assert result.low <= result.mean <= result.high


@pytest.mark.parametrize("values", [[], [NAN, NAN]])
def test_nothing_defined_is_nan_not_zero(values: list[float]) -> None:
    result = summarise(values, [NAN] * len(values))
    assert (result.n, result.undefined) == (0, len(values))
    assert result.sig_frac is not None
    assert np.isnan([result.mean, result.std, result.low, result.high, result.sig_frac]).all()
    assert summarise(values).sig_frac is None


def test_one_value_has_no_interval_and_equal_values_an_empty_one() -> None:
    one = summarise([0.5])
    assert (one.mean, one.std) == (0.5, 0.0)
    assert math.isnan(one.low)
    assert math.isnan(one.high)
    assert bootstrap([0.5] * 10) == (0.5, 0.5)


@pytest.mark.parametrize("level", [0.95, 0.5])
def test_bootstrap_is_scipys_percentile_bootstrap(level: float) -> None:
    values = rng().exponential(size=60)
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=2000, confidence_level=level, method="percentile", random_state=rng()
    ).confidence_interval
    assert bootstrap(values, resamples=2000, level=level) == pytest.approx(theirs, abs=0.02)


def test_bootstrap_in_pieces_is_the_bootstrap_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = rng().normal(size=30)
    whole = bootstrap(values, resamples=100)
    drawn = np.random.default_rng(0).integers(0, 30, (100, 30))
    assert whole == pytest.approx(np.quantile(values[drawn].mean(1), [0.025, 0.975]))
    monkeypatch.setattr(statistics, "_CELLS", 70)
    monkeypatch.setattr(statistics, "_REMEMBERED", 0)
    assert bootstrap(values, resamples=100) == pytest.approx(whole)
    assert bootstrap(values, resamples=100) == bootstrap(values, resamples=100)


def test_the_interval_holds_the_true_mean_about_as_often_as_it_says() -> None:
    generator = rng()
    intervals = [bootstrap(generator.normal(size=60), seed=i, resamples=200) for i in range(300)]
    assert 0.89 < np.mean([low < 0 < high for low, high in intervals]) < 0.99


@pytest.mark.parametrize("q", [0.5, 0.9])
def test_quantile_interval_has_the_binomial_coverage_it_promises(q: float) -> None:
    """P(X_(r) <= x_q <= X_(s)) = P(r <= count below <= s - 1), computed from the ranks of the ends."""
    values = rng().permutation(np.arange(1.0, 81.0))  # a value is its own rank
    result = quantile(np.append(values, NAN), q)
    assert result.value == pytest.approx(np.quantile(values, q))
    r, s = int(result.low), int(result.high)
    covered = sum(math.comb(80, k) * q**k * (1 - q) ** (80 - k) for k in range(r, s))
    assert 0.95 <= covered < 0.985


def test_quantile_of_too_few_values_has_no_ends() -> None:
    assert quantile([3.0]).value == 3.0
    assert math.isnan(quantile([3.0]).low)
    assert math.isnan(quantile([NAN]).value)


def test_spread_between_seeds() -> None:
    spread = between_seeds([0.3, 0.4, 0.5])
    assert spread.seeds == 3
    assert [spread.mean, spread.std] == pytest.approx([0.4, 0.1])
    assert math.isnan(between_seeds([0.3]).std)
    assert math.isnan(between_seeds([0.3, NAN]).mean)
    with pytest.raises(ValueError, match="at least one seed"):
        between_seeds([])


def test_paired_comparison_is_the_share_of_all_sign_flips() -> None:
    generator = rng()
    first, second = generator.normal([[0.8], [0.0]], size=(2, 8))
    difference = first - second
    flips = [abs(np.dot(signs, difference)) for signs in product([-1, 1], repeat=8)]
    expected = np.mean([f >= abs(difference.sum()) - 1e-9 for f in flips])
    result = paired(np.append(first, NAN), np.append(second, 1.0))
    assert (result.n, result.undefined) == (8, 1)
    assert result.difference == pytest.approx(difference.mean())
    assert result.p == pytest.approx(expected)


def test_paired_comparison_of_many_texts_is_near_the_t_test() -> None:
    generator = rng()
    first = generator.normal(size=400)
    second = first + generator.normal(0.1, 1.0, size=400)
    assert paired(first, second).p == pytest.approx(stats.ttest_rel(first, second).pvalue, abs=0.02)
    assert math.isnan(paired([1.0], [2.0]).p)
    assert paired([NAN], [2.0]).n == 0


def test_false_discovery_by_hand() -> None:
    adjusted = benjamini_hochberg([[0.01, NAN], [0.04, 0.03]])
    np.testing.assert_allclose(adjusted, [[0.03, NAN], [0.04, 0.04]])
    assert np.isnan(benjamini_hochberg([NAN])).all()


def test_wrong_input_is_shown() -> None:
    with pytest.raises(ValueError, match=r"given \(2, 2\)"):
        summarise(np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"given \(2,\) and \(3,\)"):
        summarise([1.0, 2.0], [0.1, 0.1, 0.1])
    with pytest.raises(ValueError, match="1 of 2 values are undefined"):
        bootstrap([1.0, NAN])
    with pytest.raises(ValueError, match=r"given \(1,\) and \(2,\)"):
        paired([1.0], [1.0, 2.0])


def test_from_a_thousand_values_on_the_interval_is_the_bootstrap_bit_for_bit() -> None:
    values = rng().beta(2, 5, size=FEW)
    assert mean_interval(values) == bootstrap(values)
    assert mean_interval(values[1:]) != bootstrap(values[1:])
    result = summarise(values, resamples=300)
    assert (result.low, result.high) == bootstrap(values, resamples=300)


def test_of_few_symmetric_values_the_interval_is_students_t() -> None:
    values = np.concatenate([x := rng().normal(size=9), -x])  # no skewness at all
    theirs = stats.ttest_1samp(values, 0.0).confidence_interval(0.9)
    assert mean_interval(values, level=0.9) == pytest.approx((theirs.low, theirs.high))
    assert mean_interval([0.5, 0.5, 0.5]) == (0.5, 0.5)
    assert np.isnan(mean_interval([0.5])).all()
    low, high = mean_interval([0.0, 0.0, 0.0, 0.0, 1.0])
    assert low <= 0.2 <= high
    with pytest.raises(ValueError, match="undefined"):
        mean_interval([0.5, NAN, 0.5])


@pytest.mark.parametrize("n", [2, 5, 40])
def test_the_ends_of_a_skewed_interval_are_those_of_halls_equation(n: int) -> None:
    """u(t) is solved by bisection; half of the skewness, as the benchmark chose."""
    values = rng().exponential(size=n)
    error, g = (values.std(ddof=1) / np.sqrt(n), 0.5 * (((values - values.mean()) / values.std(ddof=1)) ** 3).mean())

    def u(mean: float) -> float:
        t = (values.mean() - mean) / error
        return float(t + g * t**2 / (3 * np.sqrt(n)) + g**2 * t**3 / (27 * n) + g / (6 * np.sqrt(n)))

    end = float(stats.t.ppf(0.975, n - 1))
    theirs = [optimize.brentq(lambda mean, at=at: u(mean) - at, -1e4, 1e4) for at in (end, -end)]
    assert mean_interval(values) == pytest.approx(theirs, rel=1e-6, abs=1e-9)


OTHER_SHAPES = (
    "normal",
    "beta(2, 2)",
    "beta(2, 8), skewed",
    "beta(.5, .5), both ends",
    "two groups, 30% about .7",
    "two points, 30% high",
)


@pytest.mark.parametrize(
    "shape", ["beta(.5, 2), very skewed", *(pytest.param(shape, marks=pytest.mark.long) for shape in OTHER_SHAPES)]
)
def test_the_interval_of_twenty_texts_covers_what_it_says(shape: str) -> None:
    """93 to 97%, and three standard errors of the simulation; all sizes: checks/coverage_of_intervals.py."""
    (share,) = coverage_of(f"mean, {shape}", texts=20, repeats=5000).values()
    assert 0.93 - 0.009 <= share <= 0.97 + 0.009


def test_the_percentile_bootstrap_of_twenty_texts_covers_less() -> None:
    generator = rng()
    samples = generator.beta(0.5, 2, (2000, 20))
    ends = np.array([bootstrap(sample, resamples=200) for sample in samples])
    assert ((ends[:, 0] <= 0.2) & (ends[:, 1] >= 0.2)).mean() < 0.925


def test_the_interval_over_runs_holds_both_uncertainties() -> None:
    table = rng().normal(size=(5, 1)) + 0.1 * rng().normal(size=(5, 200))
    found = over_runs(np.column_stack([table, [NAN, 1.0, 1.0, 1.0, 1.0]]))
    assert (found.runs, found.texts, found.undefined) == (5, 200, 1)
    assert found.mean == pytest.approx(table.mean())
    by_runs = stats.ttest_1samp(table.mean(1), 0.0).confidence_interval()
    assert found.high - found.low == pytest.approx(by_runs.high - by_runs.low, rel=0.2)
    assert "5 training runs" in found.contains
    alone = over_runs(table[:1])
    assert alone.high - alone.low < 0.1 * (found.high - found.low)
    assert "another seed could change more" in alone.contains
    assert math.isnan(over_runs(np.full((2, 3), NAN)).mean)
    with pytest.raises(ValueError, match=r"given \(3,\)"):
        over_runs([1.0, 2.0, 3.0])


@pytest.mark.parametrize("between", [0.5, pytest.param(0.0, marks=pytest.mark.long)])
def test_the_interval_over_runs_covers_at_least_what_it_says(between: float) -> None:
    (share,) = coverage_of(f"5 runs, std {between:g} between", texts=100, repeats=600).values()
    assert share >= 0.93


def test_a_paired_comparison_has_the_interval_of_its_differences() -> None:
    first, second = rng().normal([[0.5], [0.0]], size=(2, 80))
    result = paired(np.append(first, NAN), np.append(second, 0.0))
    assert (result.low, result.high) == mean_interval(first - second)
    assert math.isnan(paired([1.0], [2.0]).low)


def test_significance_is_split_by_sign() -> None:
    found = significant([0.5, -0.4, -0.2, 0.1, NAN], [0.01, 0.05, 0.03, 0.5, NAN])
    assert (found.positive, found.negative) == (0.25, 0.5)
    assert math.isnan(significant([NAN], [NAN]).positive)
    with pytest.raises(ValueError, match="one shape"):
        significant([1.0], [0.1, 0.2])


@pytest.mark.parametrize("n", [20, 100, 1000])
def test_the_smallest_detectable_effect_is_detected_with_its_power(n: int) -> None:
    """Power of the t test by the noncentral t distribution."""
    effect = minimum_detectable(2.0, n)
    end, shift = stats.t.ppf(0.975, n - 1), effect / (2.0 / math.sqrt(n))
    power = float(stats.nct.sf(end, n - 1, shift) + stats.nct.cdf(-end, n - 1, shift))
    assert power == pytest.approx(0.8, abs=0.05 if n == 20 else 0.01)
    assert abs(texts_needed(effect, 2.0) - n) <= 1
    assert math.isnan(minimum_detectable(1.0, 1))
    with pytest.raises(ValueError, match="effect of 0"):
        texts_needed(0.0, 1.0)


def test_of_yes_and_no_the_interval_is_that_of_a_share() -> None:
    """Twenty times no says little of a share of 2%; a t interval would be empty."""
    never = summarise(np.zeros(20), yes_or_no=True)
    assert (never.mean, never.low) == (0.0, 0.0)
    assert never.high == pytest.approx(statistics.proportion(0, 20).high)
    some, two_of_three = summarise([1.0, 0.0, np.nan, 1.0], yes_or_no=True), statistics.proportion(2, 3)
    assert (some.n, some.low, some.high) == (3, two_of_three.low, two_of_three.high)
    ties = np.array([1.0, 0.5, 0.0, 1.0])  # not only yes and no
    assert summarise(ties, yes_or_no=True) == summarise(ties)
