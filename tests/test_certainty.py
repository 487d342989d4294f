"""How sure verdicts are: undecided, other bars, texts needed, false discovery over a report, several seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.experiments.edited_attention.choice import KNOWN, PlantedRange, beside_bars
from heedful.experiments.framework.certainty import control, grades_of, other_bars, over_seeds, settle, texts_to_decide
from heedful.experiments.framework.verdict import (
    HEADLINES,
    Grade,
    Verdict,
    from_json,
    grade_at,
    grade_of,
    headline,
    reasons,
    to_json,
)
from heedful.measure.statistics import Interval, mean_interval
from heedful.measure.tests import benjamini_hochberg
from heedful.studies.seeds import verdicts_by_configuration

BARS = (0.4, 0.8)
SETTING = ("sst", "bilstm", "additive")


def made(
    value: float, low: float | None, high: float | None, *, rising: bool = True, p: float | None = None
) -> Verdict:
    grade = grade_at(value, *BARS, rising)
    return Verdict(
        "?", grade, "Yes", "It is.", "", f"clause {grade}", value, low, high, BARS, rising=rising, claim="c", p=p
    )


def test_an_interval_that_holds_a_bar_decides_nothing() -> None:
    found = settle(made(0.45, 0.35, 0.55), 100)
    assert (found.grade, found.could_be) == ("undecided", ("against", "mixed"))
    assert "These 100 texts are too few to tell; about" in found.sentence
    assert "against it or mixed" in found.answer
    assert "100 texts of one training run" in found.contains
    wide = settle(made(0.6, 0.3, 0.9), 20)
    assert wide.could_be == ("against", "mixed", "for")
    assert settle(made(0.6, 0.3, 0.9, rising=False), 20).could_be == ("for", "mixed", "against")
    assert settle(made(0.6, 0.5, 0.7), 100).grade == "mixed"
    assert settle(made(0.9, None, None), 1).grade == "undecided"  # one text has no interval
    assert from_json(to_json(found)) == found


def test_what_follows_another_rule_stays_as_it_is() -> None:
    for verdict in (
        Verdict("?", "unclear", "", "", "", ""),
        replace(made(0.2, 0.1, 0.5), grade="unclear"),
        replace(made(0.2, 0.1, 0.5), grade="mixed"),  # not the grade of its bars
        replace(made(0.2, 0.1, 0.5), bars=()),
    ):
        assert settle(verdict, 50) == verdict


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.booleans())
@settings(deadline=None)
def test_the_grades_of_an_interval_are_those_of_its_points(a: float, b: float, c: float, rising: bool) -> None:
    low, value, high = sorted((a, b, c))
    points = [low, *np.linspace(low, high, 200), high, *(bar for bar in BARS if low <= bar <= high)]
    expected = {grade_at(float(point), *BARS, rising) for point in points}
    assert set(grades_of(Interval(value, low, high), BARS, rising)) == expected


def test_about_so_many_texts_would_decide() -> None:
    """With so many, an interval of such values excludes the bar in about 80% of the samples."""
    rng, n, mean = np.random.default_rng(0), 100, 0.43
    low, high = mean_interval(rng.normal(mean, 0.3, n))
    needed = texts_to_decide(Interval(mean, low, high), BARS, n)
    assert needed is not None
    assert needed == pytest.approx((2.8 * 0.3 / 0.03) ** 2, rel=0.35)
    clear = [mean_interval(rng.normal(mean, 0.3, needed), resamples=300)[0] > 0.4 for _ in range(200)]
    assert 0.65 <= np.mean(clear) <= 0.95
    assert texts_to_decide(Interval(0.4, 0.3, 0.5), BARS, n) is None  # at the bar itself
    assert "more than 1,000,000" in settle(made(0.4, 0.3, 0.5), 100).sentence


def test_half_and_twice_the_bars() -> None:
    half, twice = other_bars((0.05, 0.2))
    assert half == pytest.approx((0.025, 0.1))
    assert twice == pytest.approx((0.1, 0.4))
    half, twice = other_bars((0.5, 0.8))  # 1 to 1, and 4 to 1
    assert half == pytest.approx((1 / 3, 2 / 3))
    assert twice == pytest.approx((2 / 3, 8 / 9))
    assert other_bars((1.5, 3.0))[1] == (3.0, 6.0)
    found = settle(made(0.75, 0.72, 0.78), 500).sensitivity
    assert "at half the bars (0.25 and 0.667) “for the attention”" in found
    assert "at twice the bars (0.571 and 0.889) the same" in found
    assert "undecided" in settle(made(0.65, 0.6, 0.7), 500).sensitivity


def test_the_headline_is_undecided_where_it_could_be_another() -> None:
    good, bad = made(0.9, 0.85, 0.95), made(0.1, 0.05, 0.2)
    open_ = settle(made(0.8, 0.7, 0.9), 50)  # mixed or for
    assert grade_of([good, open_]) == "undecided"
    assert headline([good, open_]).startswith(HEADLINES["undecided"])
    assert grade_of([good, good, open_]) == "for"  # whichever it is
    assert grade_of([good, bad, open_]) == "mixed"
    assert grade_of([open_]) == "undecided"
    assert grade_of([open_, Verdict("?", "unclear", "", "", "", "")]) == "undecided"
    assert reasons([good, open_]) == "clause for"  # what is undecided is not a finding


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
@settings(deadline=None)
def test_q_is_controlled_over_all_runs_of_a_report(p: list[float]) -> None:
    reports = [{"one": made(0.9, 0.85, 0.95, p=value), "two": made(0.1, 0.0, 0.2)} for value in p]
    found = control(reports)
    q = benjamini_hochberg(p)
    assert [report["one"].q for report in found] == pytest.approx(list(q))
    assert [report["one"].grade for report in found] == ["for" if one <= 0.05 else "undecided" for one in q]
    assert all(report["two"] == reports[0]["two"] for report in found)


def test_a_finding_alone_is_none_among_many() -> None:
    one = {"a": made(0.9, 0.85, 0.95, p=0.03)}
    assert control([one])[0]["a"].grade == "for"
    many = one | {str(i): made(0.1, 0.0, 0.2, p=0.6) for i in range(10)}
    found = control([many])[0]
    assert found["a"].grade == "undecided"
    assert "could be chance among the 11 tested statements" in found["a"].sentence
    assert found["0"].grade == "against"  # it claims nothing


def test_seeds_widen_what_is_decided() -> None:
    runs = [settle(made(value, value - 0.02, value + 0.02), 200) for value in (0.60, 0.75, 0.90)]
    found = over_seeds(runs)
    assert found is not None
    assert found.value == pytest.approx(0.75)
    assert found.grade == "undecided"
    assert "200 texts and 3 training runs" in found.contains
    same = over_seeds([runs[0]] * 3)
    assert same is not None
    assert same.grade == "mixed"
    assert same.high is not None
    assert same.low is not None
    assert same.high - same.low == pytest.approx(0.04, rel=0.05)
    assert over_seeds(runs[:1]) is None
    assert over_seeds([runs[0], Verdict("?", "unclear", "", "", "", "")]) is None


def test_a_configuration_with_several_seeds_is_one_line() -> None:
    runs = [
        ("a", seed, SETTING, {"permutation": settle(made(0.5, 0.45, 0.55, rising=False), 80)}) for seed in (0, 1, 1)
    ]
    table = verdicts_by_configuration([*runs, ("b", 0, SETTING, runs[0][3])])
    assert table is not None
    (row,) = table.rows
    assert row[3:6] == ("?", "2", "~ Mixed")
    assert verdicts_by_configuration(runs[1:]) is None


def test_every_grade_has_its_words() -> None:
    from typing import get_args

    from heedful.experiments.framework.verdict import BELIEVE, MARKS

    assert set(MARKS) == set(BELIEVE) == set(HEADLINES) == set(get_args(Grade))


def test_what_cannot_tell_right_from_irrelevant_attention_has_no_say() -> None:
    """A right model reaches every bar but that of the adversary, who is as free with right attention as with any."""
    assert {name for name, known in KNOWN.items() if not known.tells} == {"adversarial"}
    assert PlantedRange((0.2, 0.4), (0.5, 0.6)).tells  # also where less is better
    assert "does not count in the headline" in beside_bars("adversarial")
    assert "does not count" not in beside_bars("correlation")
    assert beside_bars("conicity") == ""
    free, others = made(0.1, 0.05, 0.15), [made(0.9, 0.88, 0.92), made(0.95, 0.9, 1.0)]
    assert grade_of([*others, free]) == "mixed"
    assert grade_of([*others, replace(free, counts=False)]) == "for"
