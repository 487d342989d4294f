"""uniform, seeds, frozen, imitation: rows by the papers' formulas, what they train, and what survives a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy import stats
from scipy.spatial.distance import jensenshannon

import zoo
from distinct import distinct
from heedful.config import EvaluationConfig, RunConfig, SourceConfig
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.sources.data import DataSource
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import Plan, ask, plan, plan_for_run
from heedful.errors import Mistake
from heedful.experiments import Result, find, to_table
from heedful.experiments.adversarial.exact import exact_adversary
from heedful.experiments.edited_attention.observe import observer
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.experiments.framework.beside import seed_floor
from heedful.experiments.framework.caveats import not_made, warnings_of
from heedful.experiments.other_training.frozen import FrozenConfig
from heedful.experiments.other_training.imitation import ImitationConfig
from heedful.experiments.other_training.seeds import SeedsConfig
from heedful.experiments.other_training.uniform import MARGIN
from heedful.figures.charts import violin_rows
from heedful.measure.columns import EDGES
from heedful.measure.tests import below
from heedful.models.attentive.classifier import AttentiveOutput
from heedful.report.findings import Illustrated, read
from heedful.report.page import page
from heedful.store.run import Run
from heedful.studies.file import read_study
from heedful.studies.part import select
from material import compared_tables_of, findings_of, tables_of, trial_of
from planted_reviews import reviews

QUIET = Progress(quiet=True)
LENGTHS = [5, 1, 11, 2, 8, 8]
ALL = ("uniform", "seeds", "frozen", "imitation")
OPTIONS: dict[str, dict[str, Any]] = {
    "uniform": {"seeds": [1]},
    "seeds": {"seeds": [1, 2]},
    "frozen": {"seeds": [], "epochs": 2, "hidden_dim": 8},
    "imitation": {"lambdas": [0.0, 0.01], "epochs": 2},
}


# ---- measures ----------------------------------------------------------------------------------------------


def test_below_is_the_one_sided_t_test_for_one_run() -> None:
    values = np.random.default_rng(0).normal(0.01, 0.2, 50)
    found = below(values[None], 0.05)
    slow = stats.ttest_1samp(values, 0.05, alternative="less")
    assert found.p == pytest.approx(float(slow.pvalue))
    assert found.freedom == pytest.approx(49)
    assert below(values[None], found.at_most).p == pytest.approx(0.05)  # what is not exceeded at 5%


def test_below_adds_the_variance_of_runs_and_of_texts() -> None:
    values = np.random.default_rng(1).normal(0, 1, (4, 30)) + np.array([[0.5], [0.1], [-0.2], [0.3]])
    found = below(values, 1.0)
    by_text, by_run = values.mean(0).var(ddof=1) / 30, values.mean(1).var(ddof=1) / 4
    assert found.error == pytest.approx(np.sqrt(by_text + by_run))
    assert found.freedom == pytest.approx((by_text + by_run) ** 2 / (by_text**2 / 29 + by_run**2 / 3))
    assert below(values[:1], 1.0).freedom == pytest.approx(29)
    same = below(np.zeros((2, 5)), 0.02)
    assert (same.p, same.at_most) == (0.0, 0.0)
    assert np.isnan(below(np.zeros((2, 1)), 0.02).p)


def test_a_violin_holds_every_value_of_its_bin() -> None:
    trial = trial_of("seeds", compared_tables_of()["seeds"])
    frame = trial.frame("jsd")
    slices, medians = violin_rows(frame, (0.0, 0.7))
    assert sum(row["values"] for row in slices) == len(frame)
    for low, high, median in zip(EDGES[:-1], EDGES[1:], medians, strict=True):
        inside = (frame.max_attention >= low) & (frame.max_attention < high)
        assert median["median"] == pytest.approx(np.median(frame.value[inside]), abs=1e-4)


# ---- rows, by slow formulas --------------------------------------------------------------------------------


def rows_of(name: str, options: dict[str, Any] | None = None) -> tuple[pa.Table, dict[str, Any]]:
    experiment, batch = find(name), distinct(zoo.batch(LENGTHS))
    config = experiment.config.parse(options or OPTIONS[name], name)
    others = zoo.beside(experiment, config, batch)["others"]
    table = to_table(
        experiment.run(zoo.network(), [(np.arange(6), batch)], config, np.random.default_rng(0), others=others)
    )
    return table, others


@torch.no_grad()
def outputs(others: Mapping[str, Any]) -> dict[str, AttentiveOutput]:
    batch = distinct(zoo.batch(LENGTHS))
    return {"own": zoo.network()(batch)} | {name: other.network(batch) for name, other in others.items()}


def weights(output: AttentiveOutput, text: int) -> np.ndarray:
    mask = distinct(zoo.batch(LENGTHS)).passage.mask[text]
    return output.alpha[text][mask].numpy()


def test_seeds_are_compared_text_by_text() -> None:
    table, others = rows_of("seeds")
    said = outputs(others)
    assert set(others) == {"1", "2"}
    for row in table.to_pylist():
        i, own, other = row["example"], said["own"], said[row["seed"]]
        a, b = weights(own, i), weights(other, i)
        assert row["jsd"] == pytest.approx(jensenshannon(a, b) ** 2, abs=1e-12)
        if len(a) > 1:
            assert row["tau"] == pytest.approx(stats.kendalltau(a, b).statistic)
        else:
            assert row["tau"] is None
        assert row["tvd"] == pytest.approx(float((own.probabilities[i, 1] - other.probabilities[i, 1]).abs()))
        assert row["same"] == float(own.predicted[i] == other.predicted[i])
    summary = find("seeds").summarise(table)
    means = [np.mean([r["jsd"] for r in table.to_pylist() if r["seed"] == seed]) for seed in "12"]
    assert [line["jsd"] for line in summary["by_seed"].values()] == pytest.approx(means)
    assert summary["overall"]["mean"] == pytest.approx(np.mean(means))
    assert summary["overall"]["runs"] == 2


def test_uniform_counts_what_only_one_of_two_models_gets_right() -> None:
    table, others = rows_of("uniform")
    said, labels = outputs(others), zoo.batch(LENGTHS).labels
    assert set(others) == {"uniform 0", "uniform 1", "trained 1"}
    assert labels is not None
    for row in table.to_pylist():
        trained = said["own" if row["seed"] == "0" else "trained 1"].predicted[row["example"]]
        uniform = said[f"uniform {row['seed']}"].predicted[row["example"]]
        right, other = float(trained == labels[row["example"]]), float(uniform == labels[row["example"]])
        assert (row["right"], row["right_uniform"], row["loss"]) == (right, other, right - other)
    overall = find("uniform").summarise(table)["overall"]
    rows = table.to_pylist()
    for kind, name in (("trained", "right"), ("uniform", "right_uniform")):
        means = [np.mean([row[name] for row in rows if row["seed"] == seed]) for seed in "01"]
        assert overall[kind]["accuracy"]["by_seed"] == pytest.approx(means)
    assert overall["loss"]["mean"] == pytest.approx(np.mean([row["loss"] for row in rows]))


def test_imitators_are_held_against_the_exact_optimum_of_each_text() -> None:
    table, others = rows_of("imitation")
    said = outputs(others)
    seen = observer(zoo.network())(np.arange(6), distinct(zoo.batch(LENGTHS)))
    assert isinstance(seen, PooledStates)
    assert seen.decoder.theta is not None
    bias, s = seen.decoder.theta.bias.item(), seen.projected.squeeze(-1).numpy()
    alone = exact_adversary(seen.alpha.numpy(), s, bias, seen.real.numpy(), 0.01)
    for row in table.to_pylist():
        i, own, other = row["example"], said["own"], said[row["lambda"]]
        a, b = weights(own, i), weights(other, i)
        assert row["jsd"] == pytest.approx(jensenshannon(a, b) ** 2, abs=1e-12)
        assert row["kl"] == pytest.approx(float(stats.entropy(b, a)), abs=1e-9)  # KL(imitator || base)
        assert row["tvd"] == pytest.approx(float((own.probabilities[i, 1] - other.probabilities[i, 1]).abs()))
        assert row["adversary"] == pytest.approx(alone.jsd[i])
        one = slice(i, i + 1)
        best = exact_adversary(seen.alpha[one].numpy(), s[one], bias, seen.real[one].numpy(), row["tvd"])
        assert row["optimum"] == pytest.approx(best.jsd[0])
    several = find("imitation")
    batch = distinct(zoo.batch(LENGTHS, "several"))
    config = several.config.parse(OPTIONS["imitation"], "imitation")
    given = zoo.beside(several, config, batch, "several")
    texts = [(np.arange(6), batch)]
    made = to_table(several.run(zoo.network(task="several"), texts, config, np.random.default_rng(0), **given))
    assert made["optimum"].null_count == len(made)  # known exactly for two labels alone


# ---- what is trained ---------------------------------------------------------------------------------------


def test_the_runs_beside_differ_in_what_is_asked_and_in_nothing_else() -> None:
    own = configure("planted", seed=5)
    uniform = find("uniform").takes.runs(find("uniform").config(), own)
    assert set(uniform) == {"uniform 5", "uniform 1", "uniform 2", "trained 1", "trained 2"}
    flat = own.model_copy(update={"model": own.model.model_copy(update={"attention": "uniform"})})
    assert uniform["uniform 5"] == flat
    assert uniform["trained 2"] == own.model_copy(update={"seed": 2})
    seeds = find("seeds").takes.runs(SeedsConfig(seeds=(5, 7, 7)), own)
    assert seeds == {"7": own.model_copy(update={"seed": 7})}
    assert len(find("seeds").takes.runs(find("seeds").config(), own)) == 8
    frozen = find("frozen").takes.runs(FrozenConfig(seeds=()), own)
    assert set(frozen) == {"uniform 5", "trained 5", "base 5", "adversary 5"}
    assert {run.model.encoder for run in frozen.values()} == {"average"}
    assert {run.model.attention_name for run in frozen.values()} == {"uniform", "additive", "imposed"}
    imitation = find("imitation").takes.runs(ImitationConfig(lambdas=(0.0, 0.01)), own)
    driven = imitation["0.01"]
    assert (driven.seed, driven.training.metric, driven.training.epochs) == (6, "loss", 80)
    assert RunConfig.model_validate(driven.training.objective_options["base"]) == own
    guided = frozen["adversary 5"].training.objective_options["base"]
    assert RunConfig.model_validate(guided) == driven  # the adversary is one of the imitators: trained once


@pytest.mark.parametrize("name", ALL)
def test_what_cannot_be_compared_is_refused_by_name(name: str) -> None:
    experiment, own = find(name), configure("planted")
    trial = EvaluationConfig(source=SourceConfig(place="x", name="bert", fingerprint="f"), dataset="sst")
    with pytest.raises(Mistake, match=f"{name} trains models like the given one"):
        experiment.takes.runs(experiment.config(), trial)
    with pytest.raises(Mistake, match="not a model in memory"):
        list(experiment.run(zoo.network(), [], experiment.config(), np.random.default_rng(0), others={}))
    if name != "seeds":
        flat = configure("planted", model={"attention": "uniform"})
        with pytest.raises(Mistake, match="an attention that was trained for a task"):
            experiment.takes.runs(experiment.config(), flat)
        begun = own.model_copy(update={"start": trial.source})
        with pytest.raises(Mistake, match="this run began with bert"):
            experiment.takes.runs(experiment.config(), begun)


def small(file: str) -> RunConfig:
    return configure(
        file,
        data={"tokenizer": "whitespace"},
        model={"embedding_dim": 6, "hidden_dim": 8},
        training={"epochs": 2, "batch_size": 16},
    )


def planned(file: str) -> Plan:
    return plan([small(file)], [ask(name, OPTIONS[name]) for name in ALL])


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Plan, Workspace]:
    folder = tmp_path_factory.mktemp("finished")
    file = reviews(folder / "reviews.csv", 120)
    made, place = planned(file), Workspace(folder / "runs")
    assert execute(made, place, QUIET, "here", cores=1).complete
    return file, made, place


def base_of(made: Plan, place: Workspace) -> Run:
    return place.run(made.of("train")[0].run)


def test_all_four_share_what_they_train_and_leave_the_base_as_it_is(
    finished: tuple[str, Plan, Workspace], tmp_path: Path
) -> None:
    file, made, place = finished
    kinds = [(t.config.training.objective, t.config.model.attention_name) for t in made.of("train")]  # type: ignore[union-attr]
    assert kinds.count(("cross_entropy", "additive")) == 3 + 1  # seeds 0, 1, 2, and a token-wise one
    assert kinds.count(("imitation", "additive")) == 2  # one of them is the frozen experiment's adversary
    assert kinds.count(("imposed", "imposed")) == 2
    alone = Workspace(tmp_path)
    assert execute(plan([small(file)]), alone, QUIET, "here", cores=1).complete
    weights = "model.safetensors"
    base = base_of(made, place)
    assert base.check()[weights] == alone.run(base.name).check()[weights]  # not a bit has changed
    for name in ALL:
        summary = base.summary(name)
        assert summary["verdict"]["question"] == find(name).question
        json.dumps(summary, allow_nan=False)


def test_a_run_whose_folder_was_renamed_is_still_the_base(
    finished: tuple[str, Plan, Workspace], tmp_path: Path
) -> None:
    file, made, place = finished
    base = base_of(made, place)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "renamed").symlink_to(base.path)
    again = plan_for_run(Run(tmp_path / "runs" / "renamed"), [ask("imitation", OPTIONS["imitation"])])
    first, *imitators = again.of("train")
    assert first.run == "renamed"
    assert {folder for task in imitators for _, folder in task.inputs} == {"renamed"}
    assert file


KILLED = """
import sys
from pathlib import Path
from test_wiegreffe_pinter import QUIET, planned
from heedful.engine.running.execute import execute
from heedful.engine.running.workspace import Workspace
execute(planned(sys.argv[1]), Workspace(Path(sys.argv[2])), QUIET, "here", cores=1)
"""


@pytest.mark.long
def test_what_was_killed_goes_on_and_ends_with_the_same_rows(
    finished: tuple[str, Plan, Workspace], tmp_path: Path
) -> None:
    """Killed twice without a word: once among the trainings, once later; then finished by the same command."""
    file, made, place = finished
    other, n_runs = Workspace(tmp_path / "runs"), len(made.of("train"))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    for folders in (2, n_runs):
        process = subprocess.Popen([sys.executable, "-c", KILLED, file, str(other.runs)], env=environment, cwd=tmp_path)
        while process.poll() is None and len(list(other.runs.glob("reviews-*"))) < folders:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert execute(made, other, QUIET, "here", cores=1).complete
    for task in made.of("train"):
        sums = [where.run(task.run).check()["model.safetensors"] for where in (place, other)]
        assert sums[0] == sums[1], task.run
    for task in made.of("experiment"):
        assert task.ask is not None
        rows = [where.run(task.run).results.rows(task.ask.experiment, task.key) for where in (place, other)]
        assert rows[0].equals(rows[1]), task.name
    assert not execute(made, other, QUIET, "here", cores=1).done


# ---- what other results are held against -------------------------------------------------------------------


def test_the_seed_floor_stands_in_figures_of_other_experiments_where_it_is_known() -> None:
    known = compared_tables_of()
    floor = find("seeds").summarise(known["seeds"])
    for name, table in tables_of().items():
        if name not in ("adversarial", "correlation"):
            continue
        plain = trial_of(name, table)
        held = replace(plain, beside={"seeds": floor})
        assert "between seeds" not in json.dumps([f.spec for f in find(name).figures(plain)])
        assert "between seeds" in json.dumps([f.spec for f in find(name).figures(held)])
    found = seed_floor(Result("x", known["seeds"], {}, beside={"seeds": floor}))
    assert found is not None
    assert found.jsd == floor["overall"]["mean"]
    assert f"{0.6 / found.jsd:.1f} times as far" in found.sentence(0.6)
    curve = find("imitation").figures(replace(trial_of("imitation", known["imitation"]), beside={"seeds": floor}))
    assert "other seeds" in json.dumps(curve[0].spec)
    assert seed_floor(trial_of("seeds", known["seeds"])) is None


@pytest.mark.parametrize(("lost", "grade"), [(0.2, "for"), (0.0, "against")])
def test_a_task_that_does_not_need_attention_is_a_statement_with_a_p_value(lost: float, grade: str) -> None:
    table = compared_tables_of(3000, lost=lost)["uniform"]
    trial = trial_of("uniform", table)
    verdict = find("uniform").verdict(trial)
    assert verdict is not None
    assert verdict.grade == grade
    assert "p " in verdict.sentence
    assert f"{MARGIN} or more" in verdict.sentence
    warned = warnings_of({"uniform": trial.summary})
    assert bool(warned) == (grade == "against")
    assert find("uniform").verdict(trial_of("uniform", table.slice(0, 1))).grade == "unclear"  # type: ignore[union-attr]


def test_few_texts_do_not_tell_whether_attention_is_needed() -> None:
    trial = trial_of("uniform", compared_tables_of(40, lost=0.0)["uniform"])
    verdict = find("uniform").verdict(trial)
    assert verdict is not None
    assert verdict.grade == "undecided"
    assert warnings_of({"uniform": trial.summary}) == []


def test_a_page_warns_and_says_which_tests_its_headline_does_not_rest_on() -> None:
    needless = {"uniform": compared_tables_of(3000, lost=0.0)["uniform"]}
    tables = tables_of() | needless
    told = findings_of(tables)
    told = replace(told, warnings=warnings_of(told.summaries))
    html = page([Illustrated(told)])
    assert "This task does not need attention" in html
    missing = not_made(tables, other_data=False)
    assert {"seeds", "frozen", "imitation", "erasure"} <= set(missing)
    assert f"Not made: {', '.join(missing)}" in html
    made = [name for name in tables if find(name).counts]
    assert f"It rests on {len(made)} of {len(made) + len(missing)} tests" in html
    assert not set(not_made(tables, other_data=True)) & set(ALL)  # nobody can train beside a model on other data


def test_the_warning_of_one_run_is_on_the_page_of_another_on_the_same_data(
    finished: tuple[str, Plan, Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, made, place = finished
    base = base_of(made, place)
    (second,) = [t for t in made.of("train") if t.config.seed == 2]
    other = place.run(second.run)
    assert execute(
        plan([second.config], [ask("permutation", {"permutations": 3})]),  # type: ignore[list-item]
        place,
        QUIET,
        "here",
        cores=1,
    ).complete
    told = base.summary("uniform")
    needless = {**told, "overall": {**told["overall"], "p_needless": 0.001}}
    monkeypatch.setattr("heedful.store.results.Results.summary", lambda self, name: _stored(self, name, base, needless))
    warned = read(other).warnings
    assert len(warned) == 1
    assert f"(Found of {base.name}.)" in warned[0]
    assert file


def _stored(results: Any, name: str, base: Run, needless: dict[str, Any]) -> dict[str, Any] | None:
    if name == "uniform":
        return needless if results.path == base.results.path else None
    path = results.path / f"{name}.summary.json"
    return json.loads(path.read_text()) if path.exists() else None


def test_the_study_has_the_published_numbers_and_its_own_settings() -> None:
    study = read_study("wiegreffe-pinter")
    assert set(study.experiments) >= set(ALL)
    for name, options in study.options.items():
        find(name).config.parse(options, name)
    chosen = select(study, datasets=["sst", "agnews"], also_missing=True)
    few = {one.experiment: one.options for one in chosen.asks_on["agnews"]}
    assert few["uniform"]["seeds"] == []
    many = {one.experiment: one.options for one in chosen.asks}
    assert many["uniform"]["seeds"] == [1, 2]
    assert few["imitation"] == many["imitation"]  # what is not said of a dataset is the study's
    sources = {name: DataSource("x", 0, "x") for name in ("sst", "agnews")}
    made = plan(chosen.configs, chosen.asks, sources=sources, asks_on=chosen.asks_on)
    pairs = {t.config.dataset: len(t.others) for t in made.of("experiment") if t.ask and t.ask.experiment == "uniform"}
    assert pairs == {"sst": 5, "agnews": 1}
    f1 = {(row.dataset, row.statistic): row.value for row in study.numbers if row.experiment == "uniform"}
    for dataset, trained, uniform in (  # reproduction-facts: trained / uniform
        ("imdb", 0.902, 0.879),
        ("sst", 0.831, 0.822),
        ("agnews", 0.964, 0.960),
        ("20news", 0.942, 0.934),
    ):
        assert f1[dataset, "overall.trained.f1.mean"] == trained
        assert f1[dataset, "overall.uniform.f1.mean"] == uniform
