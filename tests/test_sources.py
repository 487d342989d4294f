"""A model has a source: it is found by what it is, and can be asked about data that it was not trained on."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import heedful
from heedful.api import write_report
from heedful.api.experiments import ask_subject
from heedful.cli import app
from heedful.config import DataOptions
from heedful.data.corpora.labels import match_labels
from heedful.data.generated.planted import generate
from heedful.engine.running.progress import Progress
from heedful.engine.sources.models import RUN_FOLDERS, MemorySource, RunSource, find_source
from heedful.engine.sources.other_data import read_as
from heedful.engine.sources.subject import Subject, SubjectOptions
from heedful.engine.tasks.plan import ask, plan_for_run
from heedful.errors import Mistake
from heedful.registry import MODEL_FAMILIES
from heedful.server.app import create_app
from heedful.server.stored.library import Library
from heedful.store.checks import write_sums
from heedful.store.run import SEALED, Run
from heedful.store.texts import read_texts

QUIET = Progress(quiet=True)
SMALL: dict[str, Any] = {"encoder": "average", "embedding_dim": 6, "hidden_dim": 8, "epochs": 2, "batch_size": 16}


def write_table(path: Path, rows: Sequence[Sequence[str]], columns: Sequence[str]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    return str(path)


def reviews(path: Path, texts: int, seed: int = 0, **names: str) -> str:
    rows = [(one.text, names.get(one.label, one.label)) for one in generate("single", texts, seed=seed)]
    return write_table(path, rows, ("review", "verdict"))


COLUMNS = {"text_column": "review", "label_column": "verdict"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("sources")
    data = {**COLUMNS, "tokenizer": "whitespace"}
    file = reviews(folder / "train.csv", 120)
    return heedful.train(file, data=data, runs=folder / "runs", progress=QUIET, **SMALL)


@pytest.fixture
def run(trained: Run, tmp_path: Path) -> Run:
    """A copy, so that what a test leaves beside it is its own."""
    shutil.copytree(trained.path, tmp_path / "runs" / trained.name)
    return Run(tmp_path / "runs" / trained.name)


def trials(run: Run) -> list[Run]:
    return [Run(path) for path in sorted(run.path.parent.iterdir()) if "-on-" in path.name]


def test_a_source_by_folder_run_model_and_source(run: Run, tmp_path: Path) -> None:
    by_path = find_source(str(run.path))
    assert isinstance(by_path, RunSource)
    assert (by_path.name, by_path.labels) == (run.name, ("negative", "positive"))
    assert by_path.fingerprint == find_source(run).fingerprint == run.fingerprint()
    in_memory = find_source(heedful.load(run))
    assert isinstance(in_memory, MemorySource)
    assert in_memory.fingerprint is None
    assert find_source(in_memory) is in_memory


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (None, "there is no run folder"),
        ({}, "it has no config.json"),
        ({"config.json": '{"model_type": "bert"}'}, "has no weights: there is no model.safetensors"),
        ({"config.json": "[]"}, "is damaged"),
        ({"config.json": "{}"}, "it has no vocabulary.json"),
    ],
)
def test_what_cannot_be_read_is_named(files: dict[str, str] | None, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    if files is not None:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).write_text(text)
    with pytest.raises(Mistake, match=said):
        find_source(folder)
    with pytest.raises(Mistake, match=r"a int is not a model: give .*a run folder"):
        find_source(3)


def test_another_family_is_one_object(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a package adds through the entry point heedful.models."""

    class Zoo:
        title = "an animal"

        def claims(self, what: str | Path) -> bool:
            return str(what).startswith("zoo:")

        def source(self, what: str | Path, **options: Any) -> RunSource:
            return RunSource(run)

    monkeypatch.setattr(MODEL_FAMILIES, "places", {"zoo": Zoo(), "run": RUN_FOLDERS})
    monkeypatch.setattr(MODEL_FAMILIES, "_loaded", {})
    assert find_source("zoo:otter").name == run.name
    assert heedful.load("zoo:otter").labels == ("negative", "positive")
    with pytest.raises(Mistake, match="a model is an animal or a run folder"):
        find_source(run.path / "config.json")


def test_the_fingerprint_is_of_what_decides_answers(run: Run) -> None:
    before = run.fingerprint()
    moved = Run(run.path.with_name("elsewhere"))
    shutil.copytree(run.path, moved.path)
    info = json.loads((moved.path / "config.json").read_text())
    info["versions"] = {}
    info["config"]["training"]["epochs"] = 99
    (moved.path / "config.json").write_text(json.dumps(info))
    write_sums(moved.path, SEALED)
    assert Run(moved.path).fingerprint() == before
    info["tokenizer"] = "spacy"
    (moved.path / "config.json").write_text(json.dumps(info))
    write_sums(moved.path, SEALED)
    assert Run(moved.path).fingerprint() != before


def test_other_data_are_asked_about_kept_and_not_computed_again(run: Run, tmp_path: Path) -> None:
    file = reviews(tmp_path / "other.csv", 40, seed=7)
    rows = heedful.run("permutation", run, data=file, data_options=COLUMNS, permutations=3)
    assert rows.table["example"].to_pylist() == list(range(40))  # the file is taken whole
    (trial,) = trials(run)
    assert trial.name.startswith(f"{run.name}-on-other-")
    assert trial.trial is not None
    assert (trial.dataset, trial.architecture, trial.attention, trial.seed) == ("other.csv", "average", "additive", 0)
    assert trial.labels == run.labels
    assert trial.finished
    texts = read_texts(trial.path, "test", range(40))
    assert texts is not None
    labels = [run.labels[texts[i].label or 0] for i in range(40)]
    assert labels == [one.label for one in generate("single", 40, seed=7)]
    assert trial.summary("performance")["examples"] == 40
    given = heedful.run("permutation", heedful.load(run), list(texts.values()), permutations=3)
    assert given.table.equals(rows.table.replace_schema_metadata(None))
    stamp = trial.results.rows_path("permutation", plan_key(trial)).stat().st_mtime_ns
    again = heedful.run("permutation", run.path, file, data_options=COLUMNS, permutations=3)
    assert again.table.equals(rows.table)
    assert trial.results.rows_path("permutation", plan_key(trial)).stat().st_mtime_ns == stamp
    assert not (run.path / "results" / "permutation.parquet").exists()  # nothing of it in the run's own folder


def plan_key(trial: Run) -> str:
    (seal,) = trial.results.seals()
    return str(seal["key"])


def test_the_folder_of_a_trial_can_be_asked_again(run: Run, tmp_path: Path) -> None:
    file = reviews(tmp_path / "other.csv", 30, seed=7)
    heedful.run("permutation", run, data=file, data_options=COLUMNS, permutations=2)
    (trial,) = trials(run)
    rows = heedful.run("adversarial", trial.path, limit=5)
    assert rows.table["example"].to_pylist() == [0, 6, 12, 18, 24]
    assert [one.name for one in trials(run)] == [trial.name]
    assert heedful.load(trial).labels == run.labels
    with pytest.raises(Mistake, match="was not trained"):
        _ = trial.config
    reviews(tmp_path / "other.csv", 31, seed=7)
    other = plan_for_run(trial, [ask("permutation")])
    assert {task.run for task in other.tasks.values()} != {trial.name}  # other data, another folder


def test_labels_are_matched_by_name(run: Run, tmp_path: Path) -> None:
    file = reviews(tmp_path / "loud.csv", 20, seed=3, positive="POSITIVE", negative="Negative")
    heedful.run("permutation", run, data=file, data_options=COLUMNS, permutations=2)
    some = [(one.text, one.label) for one in generate("single", 60, seed=3) if one.label == "positive"]
    write_table(tmp_path / "one.csv", some, ("review", "verdict"))
    heedful.run("permutation", run, data=tmp_path / "one.csv", data_options=COLUMNS, permutations=2)
    loud, one = trials(run)
    for trial, texts in ((loud, 20), (one, len(some))):
        assert trial.summary("performance")["examples"] == texts
    kept = read_texts(one.path, "test", range(len(some)))
    assert kept is not None
    assert {example.label for example in kept.values()} == {1}


def test_labels_that_do_not_match_are_refused_with_both_lists(run: Run, tmp_path: Path) -> None:
    file = reviews(tmp_path / "stars.csv", 20, positive="five", negative="one")
    with pytest.raises(Mistake, match=r"negative.*positive.*five.*one"):
        heedful.run("permutation", run, data=file, data_options=COLUMNS)
    assert trials(run) == []  # nothing was kept of it
    assert match_labels(run.labels, ["positive"]) == (1,)
    with pytest.raises(Mistake, match="two of the data are one of the model's"):
        match_labels(run.labels, ["positive", "POSITIVE"])


def test_texts_without_labels(run: Run, tmp_path: Path) -> None:
    file = write_table(tmp_path / "texts.csv", [(one.text,) for one in generate("single", 12, seed=1)], ("text",))
    rows = heedful.run("permutation", run, data=file, permutations=2)
    assert len(rows) == 12
    (trial,) = trials(run)
    assert trial.summary("performance") == {"split": "test", "examples": 12}
    written = write_report([trial], tmp_path / "report.html")
    assert "the texts have no labels" in written.page.read_text(encoding="utf-8")


def test_a_model_in_memory_is_asked_and_nothing_is_kept(run: Run, tmp_path: Path) -> None:
    file = reviews(tmp_path / "other.csv", 20, seed=7)
    kept = heedful.run("permutation", run, data=file, data_options=COLUMNS, limit=6, permutations=2)
    (trial,) = trials(run)
    shutil.rmtree(trial.path)
    told = heedful.run("permutation", heedful.load(run), data=file, data_options=COLUMNS, limit=6, permutations=2)
    assert told.table.equals(kept.table.replace_schema_metadata(None))
    assert trials(run) == []


def test_splits_of_a_file(run: Run, tmp_path: Path) -> None:
    source = find_source(run)
    file = reviews(tmp_path / "a.csv", 10)
    plain = DataOptions(text_column="review", label_column="verdict")
    assert read_as(source, file, plain, "dev").only == "dev"
    assert read_as(source, file, plain, "dev").tokenizer == "whitespace"  # the model's
    drawn = DataOptions(text_column="review", label_column="verdict", test_fraction=0.2)
    assert read_as(source, file, drawn, "dev").only is None
    rows = [(one.text, one.label, "dev") for one in generate("single", 10, seed=0)]
    split = write_table(tmp_path / "b.csv", rows, ("review", "verdict", "Split"))
    assert read_as(source, split, plain, "dev").only is None
    with pytest.raises(Mistake, match="no test split"):
        heedful.run("permutation", run, data=split, data_options=COLUMNS)
    assert len(heedful.run("permutation", run, data=split, data_options=COLUMNS, split="dev", permutations=2)) == 10


def test_a_runs_own_data_stay_its_own(run: Run) -> None:
    """The training file, given again, is not taken whole: that would test on what was learnt."""
    own = heedful.run("permutation", run, permutations=2)
    named = heedful.run("permutation", run, data=run.config.dataset, permutations=2)
    assert named.table.equals(own.table)
    assert trials(run) == []


def test_damage_is_seen_and_mended(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = reviews(tmp_path / "other.csv", 20, seed=7)
    first = heedful.run("permutation", run, data=file, data_options=COLUMNS, permutations=2)
    (trial,) = trials(run)
    config = trial.path / "config.json"
    whole = config.read_bytes()
    config.write_bytes(whole.replace(b'"average"', b'"averagf"', 1))
    asks = [ask("permutation", {"permutations": 2})]
    answers = ask_subject(asks, Subject.resolve(run, file, SubjectOptions(COLUMNS)), progress=Progress())
    assert str(config) in capsys.readouterr().err.replace("\n", "")
    assert answers.report.complete
    assert json.loads(config.read_bytes()) == json.loads(whole)
    rows = trial.results.rows_path("permutation", plan_key(trial))
    rows.write_bytes(rows.read_bytes()[:-9])
    again = heedful.run("permutation", run, data=file, data_options=COLUMNS, permutations=2)
    assert again.table.equals(first.table)


def test_a_model_that_has_changed_is_not_asked_under_its_old_name(run: Run, tmp_path: Path) -> None:
    file = reviews(tmp_path / "other.csv", 20, seed=7)
    heedful.run("permutation", run, data=file, data_options=COLUMNS, permutations=2)
    (trial,) = trials(run)
    info = json.loads((run.path / "config.json").read_text())
    info["tokenizer"] = "spacy"
    (run.path / "config.json").write_text(json.dumps(info))
    write_sums(run.path, SEALED)
    with pytest.raises(Mistake, match="has changed since"):
        heedful.load(trial)


def test_a_report_of_a_model_on_other_data(run: Run, tmp_path: Path) -> None:
    """The texts are in the folder and the model beside it: the data themselves are not needed."""
    file = Path(reviews(tmp_path / "other.csv", 20, seed=7))
    for experiment in ("permutation", "correlation"):
        heedful.run(experiment, run, data=file, data_options=COLUMNS, limit=12)
    (trial,) = trials(run)
    file.unlink()
    written = write_report([trial], tmp_path / "report.html")
    page = written.page.read_text(encoding="utf-8")
    assert "tested on" in page
    assert f"--data {file}" in page
    assert set(written.verdicts[trial.name])


def test_the_command_line(run: Run, tmp_path: Path) -> None:
    file = reviews(tmp_path / "other.csv", 20, seed=7)
    columns = ["--text-column", "review", "--label-column", "verdict"]
    words = ["run", "permutation", "correlation", "--model", str(run.path), "--data", file, "--limit", "6"]
    done = CliRunner().invoke(app, [*words, *columns, "--set", "permutations=2", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["summaries"]["permutation"]["overall"]["n"] == 6
    assert Run(Path(told["run"])).trial is not None
    for wrong, said in (
        (["--data", "nothing.csv"], "nothing.csv"),
        (["--data", file, "--text-column", "reviw"], "no text column 'reviw'"),
        (["--set", "tokenizer=spacy"], "give --data, too"),
        (["--data", file, "--set", "tokenizer=spacey"], "tokenizer"),
        (["--data", file, "--set", "colour=red"], "none of the experiments has this setting"),
    ):
        bad = CliRunner().invoke(app, ["run", "permutation", "--model", str(run.path), *wrong])
        assert isinstance(bad.exception, Mistake), bad.output
        assert said in str(bad.exception)


def test_a_model_on_other_data_is_browsed_like_a_run(run: Run, tmp_path: Path) -> None:
    file = reviews(tmp_path / "other.csv", 12, seed=7)
    heedful.run("permutation", run, data=file, data_options=COLUMNS, permutations=2)
    (trial,) = trials(run)
    client = TestClient(create_app(Library(run.path.parent)), base_url="http://localhost")
    for page in ("", "/permutation", "/examples/2"):
        assert client.get(f"/runs/{trial.name}{page}").status_code == 200, page
