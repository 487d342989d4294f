"""Confidence sequences: the law of a random walk that is looked at after every text, and what an audit makes of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from heedful.auditing.outcome import sequences
from heedful.auditing.outcome.decided import in_short, still_open, told
from heedful.auditing.outcome.findings import gain_of
from heedful.auditing.outcome.repeats import repeats, told_of_repeats
from heedful.auditing.outcome.series import Series
from heedful.auditing.outcome.standings import MethodCost, MethodFacts, Standings, rank
from heedful.experiments.framework.description import MethodMeasure
from heedful.measure.statistics import mean_interval

DROP = MethodMeasure("drop", "drop", "More is better.", "drop", condition="way", ranks=True)
KNOWN = {
    "lrp": MethodFacts("saliency", cost=MethodCost(1, 1, 0.01)),
    "shap": MethodFacts("saliency", cost=MethodCost(500, 0, 1.0)),
    "attention": MethodFacts("attention", cost=MethodCost(1, 0, 0.001)),
    "random": MethodFacts("control"),
}


def test_a_random_walk_leaves_its_bounds_as_often_as_is_said() -> None:
    """Standardised sums of normal numbers, looked at after each of LEAST to MOST: the formula is that of a walk that is
    looked at always, so at most as often, and not much less."""
    rng = np.random.default_rng(0)
    n = np.arange(1, sequences.MOST + 1)
    walks = np.cumsum(rng.normal(size=(4000, sequences.MOST)), 1) / np.sqrt(n)
    furthest = np.abs(walks[:, sequences.LEAST - 1 :]).max(1)
    for level in (0.9, 0.95, 0.99):
        c = stats.norm.ppf((1 + sequences.level_of_a_look(level)) / 2)
        assert sequences.chance_of_leaving(c) == pytest.approx(1 - level, rel=1e-3)
        left = float((furthest > c).mean())
        assert 0.5 * (1 - level) <= left <= 1.15 * (1 - level) + 0.002


def test_intervals_hold_at_all_looks_at_once_and_those_for_one_look_do_not() -> None:
    """Skewed gains of a mean of zero, as those of a random order are: few texts in which much is gained."""
    rng, audits = np.random.default_rng(1), 150
    missed = {"sequence": 0, "one look": 0}
    for _ in range(audits):
        values = rng.beta(0.3, 2.0, 200) - 0.3 / 2.3
        looks = [values[:n] for n in range(sequences.LEAST, 200, 4)]
        for name, interval in (("sequence", sequences.sequence), ("one look", mean_interval)):
            ends = [interval(some) for some in looks]
            missed[name] += any(not low <= 0 <= high for low, high in ends)
    assert missed["sequence"] <= 0.05 * audits + 2 * math.sqrt(0.05 * 0.95 * audits)
    assert missed["one look"] > 0.12 * audits


def test_a_share_that_is_whole_in_nearly_every_text_is_not_called_whole() -> None:
    """3 texts of 100 have another share: most audits of some dozens of texts have seen none of them."""
    rng, audits, missed = np.random.default_rng(4), 80, {"with": 0, "without": 0}
    for _ in range(audits):
        values = np.where(rng.random(100) < 0.03, rng.uniform(-1.0, 0.9, 100), 1.0)
        for name, far in (("with", 1.0), ("without", 0.0)):
            looks = (sequences.sequence(sequences.with_one_more(values[:n], far)) for n in range(16, 100, 3))
            missed[name] += any(not low <= 1 - 0.03 * 1.05 <= high for low, high in looks)
    assert missed["with"] <= 0.05 * audits + 2 * math.sqrt(0.05 * 0.95 * audits)
    assert missed["without"] > 0.3 * audits
    values = rng.normal(0.4, 0.2, 30)
    wider = sequences.with_one_more(values, 1.0)
    assert wider.mean() == pytest.approx(values.mean())
    assert ((wider - 0.4) ** 2).sum() == pytest.approx(((values - 0.4) ** 2).sum() + 1.0, rel=0.05)
    assert sequences.with_one_more(values, 0.0) is not None
    assert (sequences.with_one_more(values, 0.0) == values).all()


def test_the_p_value_and_the_interval_agree() -> None:
    rng = np.random.default_rng(2)
    for shift in (0.0, 0.2, 0.3, 0.5):
        values = rng.normal(shift, 0.5, 60)
        low, high = sequences.sequence(values)
        assert (sequences.sequential_p(values) <= 0.05) == (not low <= 0 <= high)
    assert sequences.sequential_p(np.zeros(20)) == 1.0
    assert math.isnan(sequences.sequential_p([0.5]))


def test_before_the_first_look_nothing_was_looked_at() -> None:
    values = np.random.default_rng(3).normal(0.3, 0.3, sequences.LEAST)
    few = gain_of(values[:-1], 1.0, looked=True)
    assert not few.looked
    assert (few.low, few.high) == mean_interval(values[:-1])
    often, once = gain_of(values, 1.0, looked=True), gain_of(values, 1.0)
    assert often.looked
    assert often.low < once.low < once.high < often.high
    assert often.at_most > once.at_most
    assert often.p > once.p


def standings(shares: dict[str, Any], looked: str = "made_up") -> Standings:
    """One way of removing words, chance 0 and room 0.4 in each text: the share of each text, by method."""
    n = max(len(values) for values in shares.values())
    series = []
    for method, values in shares.items():
        known = np.full(n, np.nan)
        known[: len(values)] = 0.4 * np.asarray(values)
        missing = np.where(np.isnan(known), np.nan, 1.0)
        series.append(Series("made_up", DROP, method, "delete", np.arange(n), known, 0 * missing, 0.4 * missing))
    return rank(series, KNOWN, looked=looked)


def scattered(mean: float, n: int, seed: int, sd: float = 0.2) -> Any:
    return mean + sd * stats.zscore(np.random.default_rng(seed).normal(size=n), ddof=1)


def test_who_is_decided_is_asked_no_further() -> None:
    n = 100
    shares = {
        "lrp": scattered(0.8, n, 0),
        "shap": scattered(0.78, n, 1),  # as good, as far as can be told: a rival
        "attention": scattered(0.3, n, 2),  # better than random, and proved to be behind
        "random": scattered(0.0, n, 3),
    }
    found = standings(shares)
    assert found.of("attention").answer == "better"  # type: ignore[union-attr]
    assert found.of("random").answer == "no better"  # type: ignore[union-attr]
    assert set(still_open(found)) == {"lrp", "shap"}
    alone = standings({name: values for name, values in shares.items() if name != "shap"})
    assert still_open(alone) == ()
    few = standings({name: values[:20] for name, values in shares.items()} | {"attention": scattered(0.1, 20, 4, 0.5)})
    assert "attention" in still_open(few)  # neither better nor known to be no better
    earlier = standings(shares | {"attention": shares["attention"][:40]})  # it keeps what it had
    assert earlier.of("attention").share.n == 40  # type: ignore[union-attr]


def test_how_likely_a_repeat_recommends_another_one_is_how_often_it_does() -> None:
    """Two explainers, of which the first is a little better: audits of 40 texts, each with what it says of a repeat."""
    rng, said, chosen = np.random.default_rng(5), [], []
    for _ in range(60):
        base = rng.normal(0.7, 0.2, 40)
        found = standings({"lrp": base + 0.03, "shap": base + rng.normal(0, 0.2, 40)})
        told_of = repeats(found)
        assert sum(told_of.values()) == pytest.approx(1.0)
        said.append(told_of.get("lrp", 0.0))
        chosen.append(next(iter(told_of)))
    right = float(np.mean([one == "lrp" for one in chosen]))
    assert np.mean(said) == pytest.approx(right, abs=0.2)  # a draw of a draw: a little less sure
    sure = standings({"lrp": scattered(0.9, 60, 6, 0.05), "shap": scattered(0.3, 60, 7, 0.05)})
    assert repeats(sure) == {"lrp": 1.0}
    assert "would recommend LRP again (99%)" in told_of_repeats(sure)
    assert repeats(standings({"random": scattered(0.0, 40, 8)})) == {}


def test_what_is_decided_and_what_another_minute_buys_is_said() -> None:
    shares = {"lrp": scattered(0.8, 60, 0), "attention": scattered(0.12, 60, 1, 0.6), "random": scattered(0.0, 60, 2)}
    found = standings(shares)
    assert found.of("attention").answer == "cannot tell"  # type: ignore[union-attr]
    said = told(found, 30.0)
    assert said.startswith(
        "Decided against random: 1 of 2 explainers; of the answers, however often one looks, at most 5%"
    )
    assert "Another minute would ask about 30 more texts" in said
    needed = found.of("attention").needed  # type: ignore[union-attr]
    assert needed is not None
    assert f"about {math.ceil((needed - 60) / 30):,} minutes more" in said
    assert "enough to expect an answer on attention" in told(found, 1e6)
    assert "Another minute" not in told(standings(shares | {"attention": shares["lrp"] - 0.5}), 30.0)


def test_what_was_left_out_is_short() -> None:
    left_out = {
        "lime": "it takes long (1,000 forward): ask for it with --method lime",
        "shap": "it takes long (n^2 forward): ask for it with --method shap",
        "erasure": "8 texts do not fit",
        "uniform": "uniform trains models: give the run",
        "seeds": "seeds trains models: give the run",
    }
    assert list(in_short(left_out)) == [
        "lime and shap: it takes long (ask for one with --method NAME)",
        "erasure: 8 texts do not fit",
        "uniform and seeds: it trains models",
    ]


def test_a_margin_of_half_and_double_keeps_the_looks() -> None:
    found = standings({"lrp": scattered(0.8, 40, 0), "random": scattered(0.0, 40, 1)})
    wider = found.at(replace(found.thresholds, margin=0.1))
    assert [one.share.looked for one in wider.order] == [True, True]
