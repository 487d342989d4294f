"""The engine at work: the same results by every road, nothing twice, failures reported and contained."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import heedful
from digests import digests
from heedful.cli import app
from heedful.data.corpora.registry import CORPORA
from heedful.data.generated.planted import generate
from heedful.engine.running.execute import execute, run_here, train_one
from heedful.engine.running.progress import Progress
from heedful.engine.running.schedule import Schedule
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.estimate import estimate
from heedful.engine.tasks.kinds import run_config
from heedful.engine.tasks.plan import Plan, ask, plan
from heedful.errors import Mistake
from heedful.experiments import Result, find, without_verdict
from heedful.store.run import Run
from planted_reviews import reviews

QUIET = Progress(quiet=True)


def small(dataset: str, seeds: int = 2, **asked: int) -> Plan:
    configs = [
        configure(
            dataset,
            data={"tokenizer": "whitespace"},
            model={"encoder": encoder, "embedding_dim": 4, "hidden_dim": 4},
            training={"epochs": 2, "batch_size": 16},
            seed=seed,
        )
        for encoder in ("bilstm", "average")
        for seed in range(seeds)
    ]
    return plan(configs, [ask("correlation", limit=6), ask("permutation", asked, limit=6)])


def test_workers_and_this_process_give_the_same_bits_and_failures_stay_alone(tmp_path: Path) -> None:
    good, bad = reviews(tmp_path / "good.csv", 120), reviews(tmp_path / "bad.csv", 60)
    made = small(good)
    broken = small(bad, seeds=1)
    both = Plan({**made.tasks, **broken.tasks}, {**made.sources, **broken.sources})
    reviews(tmp_path / "bad.csv", 61)  # changed after it was planned with
    report = execute(both, Workspace(tmp_path / "local"), QUIET, "local", cores=2)
    assert {task.key for task in report.done} == set(made.tasks)
    assert [failure.task.kind for failure in report.failed] == ["train", "train"]
    assert "have changed since this was planned" in report.failed[0].error
    assert {task.key for task in report.blocked} == {t.key for t in broken.tasks.values() if t.kind != "train"}
    here = execute(made, Workspace(tmp_path / "here"), QUIET, "here", cores=2)
    assert here.complete
    assert digests(tmp_path / "here") == digests(tmp_path / "local")
    again = execute(made, Workspace(tmp_path / "local"), QUIET, "local", cores=2)
    assert not again.done
    assert len(again.kept) == len(made)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Workspace]:
    folder = tmp_path_factory.mktemp("trained")
    made, place = small(reviews(folder / "reviews.csv", 120), seeds=1), Workspace(folder / "runs")
    assert execute(made, place, QUIET, "here", cores=1).complete
    return made, place


def test_other_options_do_not_cost_what_was_computed(trained: tuple[Plan, Workspace]) -> None:
    made, place = trained
    other = small(made.of("train")[0].config.dataset, seeds=1, permutations=3)
    run = Run(place.runs / made.of("train")[0].run)
    before = run.results.rows("permutation")
    report = execute(other, place, QUIET, "here", cores=1)
    assert {task.kind for task in report.done} == {"experiment", "summarise"}
    assert {task.ask.experiment for task in report.done if task.ask} == {"permutation"}
    assert not run.results.rows("permutation").equals(before)
    report = execute(made, place, QUIET, "here", cores=1)
    assert not report.done
    assert run.results.rows("permutation").equals(before)  # under its plain name again


@pytest.mark.parametrize(("name", "kept"), [("adr", False), ("sst", True)])
def test_texts_that_may_not_be_passed_on_are_not_kept(tmp_path: Path, name: str, kept: bool) -> None:
    texts, labels = list(generate("single", 90, seed=0)), CORPORA[name].recipe.labels or ()
    for split, some in (("train", texts[:60]), ("dev", texts[60:75]), ("test", texts[75:])):
        path = tmp_path / "data" / name / f"{split}.jsonl.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(path, "wt") as file:
            rows = [{"text": one.text, "label": labels[i % 2]} for i, one in enumerate(some)]
            file.writelines(json.dumps(row) + "\n" for row in rows)
    small_model = {"encoder": "average", "embedding_dim": 4, "hidden_dim": 4}
    config = configure(name, model=small_model, training={"epochs": 1}, data={"tokenizer": "whitespace"})
    made = plan([config], [ask("permutation")], data_dirs=[tmp_path / "data"])
    place = Workspace(tmp_path / "runs", (tmp_path / "data",))
    assert execute(made, place, QUIET, "here", cores=1).complete
    run = place.runs / made.of("train")[0].run
    assert (run / "results" / "permutation.parquet").is_file()
    assert (run / "texts").is_dir() == kept


def test_rows_say_what_they_are(trained: tuple[Plan, Workspace]) -> None:
    made, place = trained
    task = made.of("experiment")[0]
    table = Run(place.runs / task.run).results.rows("correlation", task.key)
    said = json.loads(table.schema.metadata[b"heedful"])
    assert said["key"] == task.key
    assert said["limit"] == 6
    assert len(set(table["example"].to_pylist())) == 6
    assert max(table["example"].to_pylist()) > 6  # evenly spread over the split


def test_a_summary_is_stored_with_its_verdict(trained: tuple[Plan, Workspace]) -> None:
    made, place = trained
    task = made.of("experiment")[1]
    assert task.ask is not None
    run = Run(place.runs / task.run)
    experiment, table = find(task.ask.experiment), run.results.rows(task.ask.experiment, task.key)
    summary, verdict = without_verdict(run.summary(experiment.name))
    trial = Result(experiment.name, table, summary, task.ask.options, run.labels, run.info["task"])
    assert summary == experiment.summarise(table)
    assert verdict == experiment.verdict(trial)
    assert verdict is not None


def test_a_stale_result_is_made_again(trained: tuple[Plan, Workspace], tmp_path: Path) -> None:
    """Rows of other weights do not count, even under the right key."""
    made, place = trained
    task = made.of("experiment")[0]
    results = Run(place.runs / task.run).results
    table = results.rows("correlation", task.key)
    results.write_rows("correlation", task.key, table.slice(0, 3), {"options": {}}, "weights of long ago", 0.0)
    report = execute(made, place, QUIET, "here", cores=1)
    assert [t.name for t in report.done] == [task.name, f"summary of {task.name}"] or len(report.done) == 1
    assert results.rows("correlation", task.key).equals(table)


def test_an_estimate_reads_what_was_measured(trained: tuple[Plan, Workspace]) -> None:
    made, place = trained
    larger = small(made.of("train")[0].config.dataset, seeds=3)
    found = estimate(larger, place, cores=2)
    assert found.tasks == {"train": 6, "experiment": 12, "summarise": 12}
    assert found.left == {"train": 4, "experiment": 8, "summarise": 8}
    (row,) = found.datasets.values()
    assert sum(row["texts"].values()) == 120
    assert found.forward_passes > 0
    assert found.seconds > 0
    assert found.memory > 2 * 4e8
    said = found.describe()
    assert "each run: train ─► correlation (6 test texts) ─► its summary\n" in said
    assert "─► permutation (6 test texts) ─► its summary\n" in said
    assert "time left: about" in said
    several = [found.asks[0], found.asks[0].model_copy(update={"limit": None}), *found.asks[1:]]
    assert "correlation (6 or all test texts)" in replace(found, asks=several).describe()
    assert estimate(larger, place, cores=1000).seconds == found.chain  # a run is not faster than its tasks
    done = estimate(made, place, cores=2)
    assert (done.left, done.forward_passes, done.seconds) == ({}, 0, 0.0)


def test_python_runs_stored_and_given_texts(trained: tuple[Plan, Workspace]) -> None:
    made, place = trained
    run = Run(place.runs / made.of("train")[0].run)
    stored = heedful.run("permutation", run, limit=6)
    assert len(stored) == 6
    assert stored.summary["overall"]["n"] == 6
    given = heedful.run("permutation", heedful.load(run), ["a film that moves", "so dull"], permutations=5)
    assert given.to_pandas()["example"].tolist() == [0, 1]
    with pytest.raises(Mistake, match="give examples"):
        heedful.run("permutation", heedful.load(run))
    with pytest.raises(Mistake, match="no setting 'permutation'"):
        heedful.run("permutation", run, permutation=5)


def test_the_command_run(trained: tuple[Plan, Workspace]) -> None:
    made, place = trained
    folder = str(place.runs / made.of("train")[0].run)
    done = CliRunner().invoke(
        app, ["run", "permutation", "--model", folder, "--limit", "4", "--set", "permutations=2", "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["summaries"]["permutation"]["overall"]["n"] == 4
    for wrong, said in (
        (["--set", "permutation=2"], "none of the experiments has this setting"),
        (["--set", "permutations"], "KEY=VALUE"),
        (["--set", "permutations=x"], "the options of permutation: permutations"),
        (["--split", "tset"], "the splits are"),
        (["--limit", "0"], "at least one text"),
    ):
        bad = CliRunner().invoke(app, ["run", "permutation", "--model", folder, *wrong])
        assert isinstance(bad.exception, Mistake)
        assert said in str(bad.exception)


def test_what_dead_workers_left_is_gone_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only when the next command begins."""
    made = small(reviews(tmp_path / "reviews.csv", 60), seeds=1)
    left = tmp_path / "runs" / f".{made.of('train')[0].run}.12345678.part"

    def leaves_something(schedule: Schedule, *given: Any) -> None:
        left.mkdir()
        run_here(schedule, *given)
        assert left.exists()

    monkeypatch.setattr("heedful.engine.running.execute.run_here", leaves_something)
    assert execute(made, Workspace(tmp_path / "runs"), QUIET, "here", cores=1).complete
    assert not left.exists()


def test_a_corpus_too_small_to_have_dev_texts(tmp_path: Path) -> None:
    (config, *_) = (run_config(task) for task in small(reviews(tmp_path / "reviews.csv", 3)).of("train"))
    with pytest.raises(Mistake, match=r"reviews\.csv has no dev texts|has no dev texts \(.*reviews\.csv\)"):
        train_one(config, Workspace(tmp_path / "runs"), QUIET)


def test_changed_data_are_refused(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.csv", 60)
    config = run_config(small(file, seeds=1).of("train")[1])
    run = train_one(config, Workspace(tmp_path / "runs"), QUIET)
    reviews(tmp_path / "reviews.csv", 61)
    with pytest.raises(Mistake, match="was trained on other data"):
        heedful.run("permutation", run)
