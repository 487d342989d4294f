"""Verdicts: true grades for made-up numbers, thresholds on both sides, sentences that carry them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from heedful import Explanation
from heedful.experiments import EXPERIMENTS, Result, find
from heedful.experiments.correlation import verdict as correlation_verdict
from heedful.experiments.framework import verdict
from heedful.experiments.framework.caveats import not_made, not_made_sentence
from heedful.experiments.framework.verdict import Verdict
from heedful.measure.statistics import Interval, quantile
from heedful.report.sample import evidence, evidence_verdict
from material import PAIRS, tables_of

GRADES = ("for", "mixed", "against", "unclear")


def judge(experiment: str, table: pa.Table, **options: float) -> Verdict:
    """The verdict of an experiment needs the rows alone."""
    found = find(experiment).verdict(Result(experiment, table, {}, options))
    assert found is not None
    if found.value is not None:
        assert found.low is not None
        assert found.high is not None
        assert found.low <= found.value <= found.high
    return found


@pytest.mark.parametrize(
    ("gradient", "omission", "grade"),
    [(0.58, 0.56, "for"), (0.4, 0.38, "mixed"), (0.15, 0.1, "against"), (0.0, 0.0, "against")],
)
def test_agreement_is_graded_by_the_way_to_the_ceiling(gradient: float, omission: float, grade: str) -> None:
    taus = PAIRS | {"attention/gradient_x_input": gradient, "attention/omission": omission}
    found = judge("correlation", tables_of(400, taus=taus)["correlation"])
    assert found.grade == grade
    share = ((gradient + omission) / 2) / PAIRS["gradient_x_input/omission"]
    assert found.value == pytest.approx(share, abs=0.05)
    assert "95% CI" in found.sentence
    assert (found.answer == "No") == (gradient == 0)


def test_attention_may_agree_better_than_the_others_with_each_other() -> None:
    taus = PAIRS | {"attention/gradient_x_input": 0.75, "attention/omission": 0.7}
    found = judge("correlation", tables_of(200, taus=taus)["correlation"])
    assert found.grade == "for"
    assert "at least as well" in found.sentence
    assert "%" not in found.sentence.split("Kendall")[0]


def test_the_interval_of_the_share_is_that_of_a_plain_bootstrap() -> None:
    rng = np.random.default_rng(3)
    taus = rng.normal([[0.4], [0.3], [0.6], [0.0]], 0.2, (4, 150))
    found = correlation_verdict.share_of_the_way(taus)
    plain = []
    for _ in range(2000):
        a, b, ceiling, floor = taus[:, rng.integers(0, 150, 150)].mean(1)
        plain.append(((a + b) / 2 - floor) / (ceiling - floor))
    assert [found.low, found.high] == pytest.approx(list(np.quantile(plain, [0.025, 0.975])), abs=0.02)


def test_agreement_has_no_answer_without_a_ceiling_or_without_variation() -> None:
    flat = judge("correlation", tables_of(300, taus=dict.fromkeys(PAIRS, 0.02))["correlation"])
    assert (flat.grade, flat.value) == ("unclear", None)
    table = tables_of(20)["correlation"]
    empty = table.set_column(table.schema.get_field_index("tau"), "tau", pa.nulls(len(table), pa.float64()))
    assert judge("correlation", empty).grade == "unclear"
    only = table.filter(pa.array(np.array(table["pair"]) == "attention/omission"))
    assert judge("correlation", only).answer == "Not asked"


@pytest.mark.parametrize(("change", "grade"), [(0.02, "against"), (0.1, "mixed"), (0.4, "for")])
def test_permutation_is_graded_by_the_median_change(change: float, grade: str) -> None:
    table = tables_of(200, change=change)["permutation"]
    found = judge("permutation", table)
    median = quantile(np.array(table["median"]))
    assert found.grade == grade
    assert found.value == median.value
    assert verdict.interval(median, 3 if median.value < 0.1 else 2) in found.sentence
    assert ("are not what decides" in found.sentence) == (grade == "against")


@pytest.mark.parametrize(("share", "grade"), [(0.2, "for"), (0.6, "mixed"), (0.95, "against")])
def test_adversarial_is_graded_by_the_share_of_what_is_possible(share: float, grade: str) -> None:
    table = tables_of(200, share=share)["adversarial"]
    found = judge("adversarial", table, epsilon=0.01)
    assert found.grade == grade
    assert found.value == pytest.approx(share, abs=0.02)
    assert "at most 0.01" in found.sentence
    assert "at least" not in found.sentence


def test_a_search_that_proves_nothing_never_speaks_for_the_attention() -> None:
    for share, grade in ((0.2, "unclear"), (0.6, "mixed"), (0.95, "against")):
        table = tables_of(100, share=share)["adversarial"]
        lower = table.set_column(table.schema.get_field_index("exact"), "exact", pa.array([False] * 100))
        found = judge("adversarial", lower)
        assert found.grade == grade
        assert "at least" in found.sentence


def test_evidence_has_the_wilson_interval_and_names_the_other_methods() -> None:
    found = evidence_verdict([True] * 45 + [False] * 5, 0.1, {"omission": 0.96})
    ends = binomtest(45, 50).proportion_ci(method="wilson")
    assert found.grade == "undecided"  # the interval holds the bar of 80%
    assert found.could_be == ("mixed", "for")
    assert evidence_verdict([True] * 98 + [False] * 2, 0.1, {}).grade == "for"
    assert f"90% (95% CI {ends.low:.0%} to {ends.high:.0%})" in found.sentence
    assert "leave-one-out 96%" in found.sentence
    assert evidence_verdict([False] * 20, 0.1, {}).grade == "against"
    assert evidence(Explanation(()), []) is None  # nothing is known to decide


@given(st.floats(0, 1), st.booleans())
def test_bars_belong_to_the_better_side(value: float, rising: bool) -> None:
    grade = verdict.grade_at(value, 0.4, 0.8, rising)
    order = ["against", "mixed", "for"] if rising else ["for", "mixed", "against"]
    assert grade == order[(value >= 0.4) + (value >= 0.8)]


def test_an_interval_across_a_bar_is_said() -> None:
    assert "0.05" in verdict.border(Interval(0.048, 0.045, 0.052), 0.05, 0.2)
    assert verdict.border(Interval(0.03, 0.02, 0.04), 0.05, 0.2) == ""


def _of(grade: str, clause: str = "does this") -> Verdict:
    return Verdict("?", grade, "", "", "", clause)  # type: ignore[arg-type]


@given(st.lists(st.sampled_from(GRADES), max_size=5))
def test_the_headline_follows_its_stated_rule(grades: list[str]) -> None:
    found = [_of(grade, f"clause {i}") for i, grade in enumerate(grades)]
    good, bad = grades.count("for"), grades.count("against")
    expected: verdict.Grade = "mixed"
    if all(grade == "unclear" for grade in grades):
        expected = "unclear"
    elif good >= 2 and not bad:
        expected = "for"
    elif bad >= 2 and not good:
        expected = "against"
    assert verdict.grade_of(found) == expected
    said = verdict.headline(found)
    assert said.startswith(verdict.HEADLINES[expected])
    assert said.endswith(".")
    assert all((f"clause {i}" in said) == (grade != "unclear") for i, grade in enumerate(grades))


def test_the_strongest_word_has_a_say_beside_the_order_of_all() -> None:
    """The grade is by the mean of both shares."""
    table = tables_of(400, taus=PAIRS | {"attention/gradient_x_input": 0.2, "attention/omission": 0.2})["correlation"]
    always = table.set_column(table.schema.get_field_index("same_first"), "same_first", pa.array(np.ones(len(table))))
    found = judge("correlation", always)
    tau = np.array([np.array(table.filter(pa.array(np.array(table["pair"]) == pair))["tau"]) for pair in PAIRS])
    by_tau = tau[:2].mean() / tau[2].mean()
    assert found.value == pytest.approx((by_tau + 1) / 2)
    assert found.grade == "mixed"
    assert "in 100% of the texts" in found.sentence


def test_a_page_counts_the_tests_that_its_headline_rests_on_and_no_others() -> None:
    """`adversarial` has no say, so it is not a test that was made; that the deciding words are found is one."""
    told = {name: judge(name, tables_of()[name]) for name in ("correlation", "permutation", "adversarial")}
    missing = not_made(told, other_data=False)
    without_say = {"adversarial", "conicity", "masked_twin", "rationales"}
    assert not without_say & set(missing)
    assert set(missing) == {name for name, one in EXPERIMENTS.items() if one.counts} - set(told)
    assert f"It rests on 2 of {2 + len(missing)} tests." in not_made_sentence(told, False, "RUN")
    known = told | {"evidence": evidence_verdict([True] * 98 + [False] * 2, 0.1, {})}
    assert f"It rests on 3 of {3 + len(missing)} tests." in not_made_sentence(known, False, "RUN")
    everything = {name: told["permutation"] for name, one in EXPERIMENTS.items() if one.counts}
    assert not_made_sentence(everything, False, "RUN") == "It rests on all tests there are."
