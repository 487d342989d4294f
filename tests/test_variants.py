"""Studies that compare variants of a configuration: what is planned, whose run is whose, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from heedful.api.studies import compare, keep_runs, kept_runs, plan_study
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, Published
from heedful.experiments.framework.comparison import Evidence
from heedful.experiments.framework.description import setting_of
from heedful.measure.levels import CrossedMean, crossed_mean, over_runs
from heedful.measure.tests import below
from heedful.report.findings import read
from heedful.store.run import runs_in
from heedful.studies.comparison import Finished
from heedful.studies.file import read_numbers, read_study
from heedful.studies.part import select
from heedful.studies.study import Study, Variant, VariantQuestion
from heedful.studies.variant_answers import answers, overview_table, published_table, variant_tables, verdict_table
from heedful.studies.variants import Effect, VariantRun, effects, find_measure

STUDY = """
title = "made"
datasets = ["planted-single", "planted-order"]
encoders = ["lstm"]
attentions = ["additive"]
seeds = 2
experiments = ["conicity"]
limits = { permutation = 6 }
model = { embedding_dim = 6, hidden_dim = 8 }
training = { epochs = 1 }
data = { train_rows = 40, dev_rows = 10, test_rows = 12 }

[variants.plain]

[variants.diverse]
training = { objective = "diversity" }
judged_by = ["conicity"]

[variants.sparse]
model = { encoder = "cnn", attention = "additive_sparsemax" }
datasets = ["planted-single"]

[[questions]]
title = "Do weights matter?"
measures = ["permutation"]

[[questions]]
title = "Are states less alike?"
measures = ["conicity"]

[[questions]]
title = "What does it cost?"
measures = ["accuracy"]
cost = true

[on.planted-order]
experiments = ["conicity", "permutation"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "made.toml"
    path.write_text(STUDY)
    return path


def test_variants_are_another_axis_of_the_grid(file: Path) -> None:
    study = read_study(str(file))
    chosen = select(study)
    told = [(c.dataset, c.seed, study.variant_of(c)) for c in chosen.configs]
    assert told == [
        *(("planted-single", seed, name) for seed in range(2) for name in ("plain", "diverse", "sparse")),
        *(("planted-order", seed, name) for seed in range(2) for name in ("plain", "diverse")),
    ]
    sparse = chosen.configs[2]
    assert (sparse.model.encoder, sparse.model.attention, sparse.model.hidden_dim) == ("cnn", "additive_sparsemax", 8)
    assert chosen.configs[1].training.objective_options == {"lambda_": 0.5}
    other = sparse.model_copy(update={"model": sparse.model.model_copy(update={"hidden_dim": 12})})
    assert study.variant_of(other) is None
    assert not study.has(other)
    assert [(one.experiment, one.limit) for one in chosen.asks] == [("conicity", None)]
    asked = [(one.experiment, one.limit) for one in chosen.asks_on["planted-order"]]
    assert asked == [("conicity", None), ("permutation", 6)]
    assert {one.limit for one in select(study, limit=3).asks_on["planted-order"]} == {3}
    some = select(study, variants=["diverse"], seeds=1, experiments=["permutation"])
    assert [study.variant_of(c) for c in some.configs] == ["diverse", "diverse"]
    assert [one.experiment for one in some.asks] == ["permutation"]
    with pytest.raises(Mistake, match=r"there is no variant 'divers'\. Did you mean 'diverse'"):
        select(study, variants=["divers"])


def test_a_study_without_variants_has_one_without_a_name() -> None:
    study = read_study("jain-wallace")
    config = select(study, datasets=["babi1"], encoders=["cnn"], attentions=["dot"]).configs[0]
    assert study.variant_of(config) == ""
    with pytest.raises(Mistake, match="there is no variant 'x'"):
        select(study, variants=["x"])


def test_published_numbers_of_a_variant_stand_beside_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "n.csv"
    path.write_text(
        "source,experiment,statistic,dataset,encoder,attention,variant,value\n"
        "paper,conicity,overall.mean,sst,lstm,additive,diversity,0.2\n"
    )
    row = Published.model_validate(read_numbers(path)[0])
    assert row.setting == ("sst", "lstm", "additive, diversity") == setting_of("sst", "lstm", "additive", "diversity")
    assert setting_of("sst", "lstm", "additive") == ("sst", "lstm", "additive")
    study = Study.parse(
        {
            "title": "t",
            "datasets": ["sst"],
            "encoders": ["lstm"],
            "attentions": ["additive"],
            "experiments": [],
            "sources": [{"name": "paper", "title": "p"}],
        },
        "made",
    )
    ours = [{"overall": {"mean": 0.25}}, {"overall": {"mean": 0.35}}]
    table = published_table(study, {"conicity": Evidence({row.setting: ours}, [row], ("paper",))})
    assert table is not None
    assert table.rows[0][:6] == (*row.setting, "conicity: overall.mean", "0.30 (0.07)", "0.200")
    assert published_table(study, {"conicity": Evidence({row.setting: ours}, (), ("paper",))}) is None


def test_the_error_over_runs_and_texts_is_that_of_both_levels() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(0.3, 1, (3, 20)) + rng.normal(0, 0.5, (3, 1))
    table[1, 4] = np.nan
    kept = np.delete(table, 4, axis=1)
    by_run, by_text = kept.mean(1).var(ddof=1) / 3, kept.mean(0).var(ddof=1) / 19
    freedom = (by_run + by_text) ** 2 / (by_run**2 / 2 + by_text**2 / 18)
    found = crossed_mean(table)
    assert (found.mean, found.error**2, found.freedom) == pytest.approx((kept.mean(), by_run + by_text, freedom))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(kept.mean()) / found.error, freedom))
    assert below(table, 0.0).p == pytest.approx(1 - found.p / 2)  # the same test, one-sided
    assert (CrossedMean(0.0, 0.0, np.nan).p, CrossedMean(0.1, 0.0, np.nan).p) == (1.0, 0.0)
    assert np.isnan(crossed_mean(table[:, :1]).p)


def test_more_of_a_measure_is_better_or_worse_as_the_measure_says() -> None:
    assert find_measure("permutation").experiment == "permutation"
    assert not find_measure("conicity").measure.rising
    assert find_measure("removed_attention").measure.undefined == 1.0
    with pytest.raises(Mistake, match="no measure 'conicty'"):
        find_measure("conicty")
    everywhere = [measure.key for one in EXPERIMENTS.values() for measure in one.measures]
    assert len(set(everywhere)) == len(everywhere)


def made_runs(gain: float, seeds: int = 3) -> list[VariantRun]:
    """Conicity and accuracy are those of `a` but for chance; permutation is larger by `gain` in `b`."""
    rng = np.random.default_rng(1)
    runs: list[VariantRun] = []
    for seed in range(seeds):
        base = rng.random(40) / 2
        for variant, more in (("a", 0.0), ("b", gain)):
            noise = rng.normal(0, 0.02, (2, 40))
            of = {
                "permutation": dict(enumerate(base + more + noise[0])),
                "conicity": dict(enumerate(base + noise[1])),
                "accuracy": dict(enumerate(np.ones(40))),
            }
            runs.append(VariantRun("d", variant, seed, of))
    return runs


KEYS = ("permutation", "conicity", "accuracy")
QUESTIONS = tuple(VariantQuestion(title=key, measures=(key,), cost=key == "accuracy") for key in KEYS)
COMPARED = Study(
    title="made",
    datasets=("d",),
    encoders=("lstm",),
    attentions=("additive",),
    experiments=(),
    variants={"a": Variant(), "b": Variant(judged_by=("permutation",))},
    questions=QUESTIONS,
)


def test_a_difference_is_found_text_by_text_and_over_seeds() -> None:
    runs = made_runs(0.2)
    found = {effect.asked.measure.key: effect for effect in effects(runs, ["a", "b"], KEYS)}
    pairs = [(runs[i + 1].measured["permutation"], runs[i].measured["permutation"]) for i in (0, 2, 4)]
    difference = np.array([[own[t] - first[t] for t in range(40)] for own, first in pairs])
    change = over_runs(difference)
    assert found["permutation"].change == change
    assert found["permutation"].p == crossed_mean(difference).p
    assert [found[key].found for key in KEYS] == ["better", "undecided", "undecided"]
    assert found["accuracy"].change.mean == 0
    assert {effect.found for effect in effects(made_runs(-0.2), ["a", "b"], ["permutation"])} == {"worse"}
    # one seed tells nothing of seeds, texts that not all runs have are left out
    assert [e.found for e in effects(made_runs(0.2, seeds=1), ["a", "b"], KEYS)] == ["undecided"] * 3
    fewer = VariantRun("d", "b", 2, {"permutation": dict.fromkeys(range(10), 1.0)})
    (some,) = effects([*runs[:5], fewer], ["a", "b"], ["permutation"])
    assert (some.change.texts, some.change.runs) == (10, 3)
    assert effects(runs[:1], ["a", "b"], KEYS) == []


def test_what_is_said_is_what_was_found() -> None:
    found = effects(made_runs(0.2), ["a", "b"], KEYS)
    better = next(effect for effect in found if effect.found == "better")
    told = answers(COMPARED, found)
    assert f"- `b`: better in Δŷ shuffled on d {better} (1 test, 0 undecided)." in told
    assert told.count("- `b`: nothing is found (1 test, 1 undecided).") == 2
    only = "- `b`, judged by Δŷ shuffled, moves only that: better in 1 of 1 tests of it; of the 1 tests of other"
    assert any(line.startswith(only) for line in told)
    overview = overview_table(COMPARED, found)
    assert overview is not None
    assert overview.rows == (("b", "1 ✓, 0 ✗ of 1", "0 ✓, 0 ✗ of 1", "0 ✓, 0 ✗ of 1"),)
    (table,) = variant_tables(COMPARED, found)
    assert table.header == ("variant", "Δŷ shuffled", "conicity", "accuracy")
    assert [row[0] for row in table.rows] == ["a", "b"]
    assert table.rows[1][1] == f"{better} ✓"
    assert "Less is better for: conicity." in table.note
    assert "3 seeds" in table.note

    def said(**kinds: str) -> str:
        """The last sentence, were these the findings."""
        signs = {"better": 1.0, "worse": -1.0}
        return answers(COMPARED, [turned(effect, signs.get(kinds[effect.asked.measure.key], 0.0)) for effect in found])[
            -2
        ]

    assert "is not found to move it" in said(permutation="none", conicity="better", accuracy="better")
    assert "moves more than that" in said(permutation="better", conicity="better", accuracy="worse")
    assert "moves only that" in said(permutation="better", conicity="worse", accuracy="better")


def turned(effect: Effect, sign: float) -> Effect:
    """As if it had been found to be better (1), worse (-1), or nothing (0)."""
    mean = sign if effect.asked.measure.rising else -sign
    change = replace(effect.change, mean=mean, low=mean - 0.1, high=mean + 0.1)
    return replace(effect, change=change, q=0.01)


def test_a_study_of_variants_from_plan_to_page(file: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    planned = plan_study(str(file), runs=runs, datasets=["planted-order"])
    assert planned.run(Progress(quiet=True), "local", cores=1).complete
    found = planned.finished()
    page = compare(str(file), found)
    assert "planted-order: what each variant changes" in page
    assert "**What does it cost?**" in page
    assert "additive, diverse" in page
    assert sorted((run.setting[2], run.seed) for run in found) == [
        (f"additive, {name}", seed) for name in ("diverse", "plain") for seed in range(2)
    ]
    kinds = {read(run).setting[2] for run in runs_in(runs)}
    assert kinds == {"additive", "additive, diversity"}  # a page can tell them
    first = found[0].variant
    assert first is not None
    accuracy = found[0].summaries["performance"]["accuracy"]
    assert np.mean(list(first.measured["accuracy"].values())) == pytest.approx(accuracy)
    assert len(first.measured["permutation"]) == 6
    assert "erasure" not in first.measured
    kept = tmp_path / "kept.parquet"  # what the page needs of the runs: added up, in two parts
    half = keep_runs(str(file), kept, found[:3])
    assert len(half) == 3
    assert compare(str(file), keep_runs(str(file), kept, found[2:])) == page
    # what was finished elsewhere is not planned again, unless something else is asked
    left = plan_study(str(file), runs=tmp_path / "new", datasets=["planted-order"], known=half).plan
    assert left.tasks
    assert all(task.config == found[3].config for task in left.tasks.values())
    every = plan_study(str(file), runs=tmp_path / "new", datasets=["planted-order"], known=found)
    assert every.run(Progress(quiet=True), "local", cores=1).complete
    assert not list(runs_in(tmp_path / "new"))
    assert every.known == 4

    def again(known: list[Finished], **part: Any) -> int:
        """How many runs would be made again."""
        planned = plan_study(str(file), runs=tmp_path / "new", datasets=["planted-order"], known=known, **part)
        return len({task.run for task in planned.plan.tasks.values()})

    assert again([replace(run, stored={"performance": run.stored["performance"]}) for run in found]) == 4
    older = {name: ask.model_copy(update={"version": "0"}) for name, ask in found[0].asked.items()}
    mixed = [replace(found[0], asked=older), *found[1:]]
    assert again(mixed) == 0
    assert "permutation: the summaries of 1 of the runs are of version 0 of the" in compare(str(file), mixed)
    assert "of version 0" not in page
    # how runs were asked is known, also of those in a file; one that does not say it has the study's own texts
    stored = kept_runs(str(file), kept)
    assert {run.seed: run.asked for run in stored} == {run.seed: run.asked for run in found}
    assert set(found[0].asked) == set(found[0].stored) - {"performance"}
    for known in (found, stored):
        with pytest.raises(Mistake, match="limit was none and is 3"):
            again(known, limit=3)
    silent = [replace(run, asked={}) for run in found]
    assert again(silent) == 0
    with pytest.raises(Mistake, match="does not say which texts"):
        again(silent, limit=3)
    assert compare(str(file), kept_runs(str(file), kept)) == page
    other = tmp_path / "other.toml"
    other.write_text(file.read_text().replace("hidden_dim = 8", "hidden_dim = 12"))
    with pytest.raises(Mistake, match="with other settings today"):
        kept_runs(str(other), kept)
    table = verdict_table([(run.setting, [run.verdicts, run.verdicts]) for run in found])
    assert table is not None
    assert len(table.rows) == 4
