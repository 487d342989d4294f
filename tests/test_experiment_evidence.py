"""Experiments with known evidence: rows recomputed text by text, verdicts that say what can and cannot be said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import zoo
from distinct import distinct
from heedful.errors import Mistake
from heedful.experiments import Result, find, to_table
from heedful.experiments.framework.verdict import Verdict, grade_of, headline
from heedful.experiments.ground_truth.evidence import summarise_evidence
from heedful.explainers import EXPLAINERS
from material import evidence_tables_of
from test_evidence import eraser_iou

LENGTHS = [5, 1, 11, 2, 8, 8]
METHODS = ["attention", "gradient_x_input", "omission"]


def rows_of(name: str, **options: Any) -> list[dict[str, Any]]:
    experiment, batch = find(name), distinct(zoo.batch(LENGTHS))
    config = experiment.config.parse({"methods": METHODS, **options}, name)
    given = zoo.beside(experiment, config, batch)
    rng = np.random.default_rng(0)
    table = to_table(experiment.run(zoo.network(), [(np.arange(6), batch)], config, rng, **given))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@pytest.mark.parametrize(("name", "absolute"), [("planted", True), ("rationales", False)])
def test_rows_are_those_of_a_slow_program(name: str, absolute: bool) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    model, whole = zoo.network(), distinct(zoo.batch(LENGTHS))
    seen = 0
    for row in rows_of(name):
        text = zoo.row(whole, row["example"])
        marked = text.targets["evidence"][0, 1:-1].numpy()
        n, m = len(marked), int(marked.sum())
        assert (row["n_words"], row["evidence_words"]) == (n, m)
        if not m:
            assert row["precision"] is row["auprc"] is row["iou_f1"] is row["rank"] is row["chance"] is None
            continue
        assert row["chance"] == m / n
        if row["method"] not in METHODS:
            continue
        with torch.no_grad():
            target = model(text).predicted
        scores = EXPLAINERS[row["method"]].run(model, text, target).passage[0, 1:-1].detach().numpy()
        scores = np.abs(scores) if absolute else scores
        order = np.argsort(-scores)
        chosen = np.isin(np.arange(n), order[:m])
        assert row["hit"] == marked[order[0]]
        assert row["precision"] == pytest.approx(metrics.f1_score(marked, chosen))
        assert row["auprc"] == pytest.approx(metrics.average_precision_score(marked, scores))
        f1 = [metrics.f1_score(marked, scores >= threshold) for threshold in scores]
        assert row["best_f1"] == pytest.approx(max(f1))
        assert row["iou_f1"] == pytest.approx(eraser_iou(chosen, marked))
        assert row["rank"] == pytest.approx(np.mean([1 + order.tolist().index(i) for i in np.flatnonzero(marked)]))
        seen += 1
    assert seen == 5 * len(METHODS)


def test_controls_know_nothing_but_the_place_of_a_word() -> None:
    whole = zoo.batch(LENGTHS)
    for row in rows_of("rationales"):
        marked = zoo.row(whole, row["example"]).targets["evidence"][0, 1:-1].numpy()
        if row["method"] == "uniform" and marked.any():
            assert row["precision"] == pytest.approx(marked.mean())
            assert row["rank"] == (len(marked) + 1) / 2
        if row["method"] == "first_words" and marked.any():
            assert row["precision"] == marked[: marked.sum()].mean()


def test_the_effect_is_that_of_the_text_without_the_words() -> None:
    model, whole = zoo.network(), distinct(zoo.batch(LENGTHS))
    for row in rows_of("planted"):
        text = zoo.row(whole, row["example"])
        marked = text.targets["evidence"][0]
        if not marked.any() or marked[1:-1].all():
            assert row["effect"] is row["effect_random"] is None
            continue
        with torch.no_grad():
            before = model(text).probabilities
            left = replace(
                text.passage,
                **{field: getattr(text.passage, field)[:, ~marked] for field in ("ids", "present", "mask")},
            )
            after = model(replace(text, passage=left)).probabilities
        assert row["effect"] == pytest.approx(0.5 * float((after - before).abs().sum()))
        assert row["effect_random"] is not None
        assert whole.labels is not None
        assert row["correct"] == float(row["predicted"] == whole.labels[row["example"]])


def judge(name: str, table: pa.Table) -> Verdict:
    found = find(name).verdict(Result(name, table, {}))
    assert found is not None
    return found


def test_a_model_that_does_not_use_the_planted_words_is_not_judged() -> None:
    found = judge("planted", evidence_tables_of(100, effect=0.05)["planted"])
    assert found.grade == "unclear"
    assert found.answer == "The model does not use them"
    assert "moves the output by 0.05" in found.sentence
    used = judge("planted", evidence_tables_of(100, effect=0.5)["planted"])
    assert used.grade == "mixed"
    assert "it uses them" in used.sentence


@pytest.mark.parametrize(("found", "grade"), [(0.95, "for"), (0.7, "mixed"), (0.4, "against")])
def test_planted_is_graded_by_the_way_from_chance_to_all(found: float, grade: str) -> None:
    table = evidence_tables_of(300, found=found)["planted"]
    verdict = judge("planted", table)
    right = np.array(table["correct"])[:300] > 0
    chance, value = np.array(table["chance"])[:300][right], np.array(table["precision"])[:300][right]
    assert verdict.grade == grade
    assert verdict.value == pytest.approx((value.mean() - chance.mean()) / (1 - chance.mean()))
    assert "leave-one-out 100%" in verdict.sentence
    others, _, controls = verdict.sentence.partition(" Controls: ")
    assert "random order" not in others.partition(" Others: ")[2]
    assert "random order" in controls


def test_an_order_by_chance_is_no_better_than_chance() -> None:
    """The random control in the place of attention: "no better" but for about 1 in 40 tables."""
    said = []
    for seed in range(20):
        table = evidence_tables_of(100, seed=seed)["rationales"]
        method = ["attention" if name == "random" else f"not {name}" for name in table["method"].to_pylist()]
        table = table.set_column(table.schema.get_field_index("method"), "method", pa.array(method))
        found = judge("rationales", table)
        assert found.grade == "against"
        said.append(found.answer == "No better than chance")
        p = summarise_evidence(table)["against_chance"]["precision"]["attention"]["p"]
        assert p > 0.001
    assert np.mean(said) >= 0.9


def test_plausibility_has_no_say_in_the_headline() -> None:
    plausible = judge("rationales", evidence_tables_of(100, found=0.9)["rationales"])
    assert (plausible.grade, plausible.counts) == ("for", False)
    against = Verdict("?", "against", "", "", "", "does that")
    assert grade_of([against, against, plausible]) == "against"
    assert plausible.clause not in headline([against, against, plausible])


def test_a_model_without_attention_is_told_by_its_other_methods() -> None:
    table = evidence_tables_of(50)["rationales"].filter(pa.compute.field("method") != "attention")
    found = judge("rationales", table)
    assert found.grade == "unclear"
    assert "leave-one-out 100%" in found.sentence


def test_texts_without_evidence_and_wrong_methods_are_refused() -> None:
    experiment, batch = find("rationales"), replace(zoo.batch([4, 5]), targets={})
    with pytest.raises(Mistake, match="rationales needs texts whose evidence is known"):
        list(experiment.run(zoo.network(), [(np.arange(2), batch)], experiment.config(), np.random.default_rng(0)))
    with pytest.raises(Mistake, match="Did you mean 'omission'"):
        experiment.config.parse({"methods": ["omision"]}, "--set")
    with pytest.raises(Mistake, match="each method is given once"):
        experiment.config.parse({"methods": ["lrp", "lrp"]}, "--set")
