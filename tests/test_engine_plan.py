"""Plans: keys change with everything that decides a result and with nothing else; ten thousand tasks at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from heedful.cli import app
from heedful.config import DataOptions, ModelAsPublished, RunConfig, TrainingConfig
from heedful.engine.running.workspace import Workspace
from heedful.engine.sources.data import find_data, source_fingerprint
from heedful.engine.tasks.commands import command, train_words
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import ask, kinds_of, plan
from heedful.engine.tasks.task import Task
from heedful.errors import Mistake
from heedful.studies.file import read_study
from heedful.studies.part import select
from heedful.studies.study import Study


def csv_file(path: Path, text: str = "good") -> str:
    rows = [f"{text} number {i},{i % 2}" for i in range(20)]
    path.write_text("\n".join(["text,label", *rows]))
    return str(path)


def keys(config: RunConfig, **asked: int) -> list[str]:
    return list(plan([config], [ask("permutation", asked)]).tasks)


def test_a_run_becomes_a_chain_of_tasks() -> None:
    tasks = list(plan([configure("planted")], [ask("permutation"), ask("adversarial")]).tasks.values())
    assert kinds_of(tasks) == {"train": 1, "experiment": 2, "summarise": 2}
    by_key = {task.key: task for task in tasks}
    for task in tasks[1:]:
        (need,) = task.needs
        assert by_key[need].kind == ("train" if task.kind == "experiment" else "experiment")
    assert tasks[0].run.startswith("planted-bilstm-additive-s0-")
    assert tasks[0].key.startswith(tasks[0].run[-8:])
    assert [task.name.split(" of ")[0] for task in tasks[1:3]] == ["permutation", "summary"]


def test_keys_change_with_what_decides_and_only_then(tmp_path: Path) -> None:
    file = csv_file(tmp_path / "a.csv")
    first = keys(configure(file))
    assert keys(configure(file)) == first
    assert keys(configure(file, seed=1))[0] != first[0]
    assert keys(configure(file, training={"epochs": 3}))[0] != first[0]
    assert keys(configure(file, model={"attention": "dot"}))[0] != first[0]
    assert keys(configure(file, data={"tokenizer": "whitespace"}))[0] != first[0]
    asked = keys(configure(file), permutations=7)
    assert asked[0] == first[0]
    assert not set(asked[1:]) & set(first[1:])
    (tmp_path / "moved").mkdir()
    assert keys(configure(csv_file(tmp_path / "moved" / "a.csv"))) == first  # the same file elsewhere
    csv_file(tmp_path / "a.csv", "bad")
    assert keys(configure(file))[0] != first[0]


def test_keys_are_the_same_in_every_process_and_stay(tmp_path: Path) -> None:
    """Results are found by key, for years: if this fails, what people have computed is computed again."""
    made = list(plan([configure("planted")], [ask("permutation")]).tasks)
    assert made[:2] == ["bd8b00ed09153beadd15", "9137453c1ee307caac47"]
    file = csv_file(tmp_path / "a.csv")
    code = (
        "import sys; from heedful.engine.tasks.configure import configure\n"
        "from heedful.engine.tasks.plan import ask, plan\n"
        "print(*plan([configure(sys.argv[1])], [ask('permutation')]).tasks)"
    )
    other = {**os.environ, "PYTHONHASHSEED": "3", "LC_ALL": "C", "TZ": "Asia/Tokyo", "OMP_NUM_THREADS": "7"}
    os.utime(file, (0, 0))
    done = subprocess.run([sys.executable, "-c", code, file], cwd=tmp_path, env=other, capture_output=True, text=True)
    assert done.stdout.split() == keys(configure(file)), done.stderr


def test_a_file_of_dev_rows_and_vectors_decide_too(tmp_path: Path) -> None:
    file, dev = csv_file(tmp_path / "a.csv"), tmp_path / "dev.csv"
    csv_file(dev)
    options = {"dev_file": dev}
    before = keys(configure(file, data=options))
    csv_file(dev, "other")
    assert keys(configure(file, data=options)) != before
    vectors = tmp_path / "v.txt"
    vectors.write_text("good 1 2\n")
    first = keys(configure(file, vectors=str(vectors)))
    vectors.write_text("good 1 3\n")
    assert keys(configure(file, vectors=str(vectors))) != first


def test_a_corpus_is_hashed_once_and_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = find_data

    def counted(dataset: str, options: DataOptions, *given: Any) -> object:
        calls.append(dataset)
        return real(dataset, options, *given)

    monkeypatch.setattr("heedful.engine.tasks.plan.find_data", counted)
    monkeypatch.setattr("heedful.data.corpora.load.load", lambda *a, **k: pytest.fail("the corpus was loaded"))
    file = csv_file(tmp_path / "a.csv")
    made = plan([configure(name, seed=s) for name in (file, "planted") for s in range(50)], [ask("permutation")])
    assert len(made) == 300
    assert calls == [file, "planted"]


def test_sources_by_name_are_found_in_the_data_folders(tmp_path: Path) -> None:
    folder = tmp_path / "sst"
    folder.mkdir()
    (folder / "train.jsonl").write_text('{"text": "a", "label": 0}\n')
    (folder / "README.md").write_text("not data")
    first = source_fingerprint("sst", None, [tmp_path])
    (folder / "README.md").write_text("still not data")
    assert source_fingerprint("sst", None, [tmp_path]) == first
    (folder / "train.jsonl").write_text('{"text": "b", "label": 0}\n')
    assert source_fingerprint("sst", None, [tmp_path]) != first
    assert source_fingerprint("planted") != source_fingerprint("planted-order")
    with pytest.raises(Mistake, match="there is no corpus 'sstt'"):
        source_fingerprint("sstt")


def test_ten_thousand_tasks() -> None:
    study = Study(
        title="large",
        datasets=("planted-single", "planted-order", "planted-majority"),
        encoders=("bilstm", "cnn", "average"),
        attentions=("additive", "dot"),
        seeds=80,
        experiments=("correlation", "permutation", "adversarial"),
    )
    chosen = select(study)
    made = plan(chosen.configs, chosen.asks)
    assert len(made) == 3 * 3 * 2 * 80 * 7  # benchmarks/bench_engine.py prints how long it takes
    assert made.count("train") == len({task.run for task in made.tasks.values()})


def test_threads_come_from_the_plan() -> None:
    one = plan([configure("planted")], [ask("permutation"), ask("adversarial")])
    assert {task.kind: task.threads for task in one.with_threads(8).tasks.values()} == {
        "train": 8,
        "experiment": 4,
        "summarise": 1,
    }
    many = plan([configure("planted", seed=seed) for seed in range(9)])
    assert {task.threads for task in many.with_threads(8).tasks.values()} == {1}


def test_a_task_survives_json() -> None:
    made = plan([configure("planted", seed=3)], [ask("correlation", {"k": 2}, limit=4)])
    for task in made.with_threads(2).tasks.values():
        assert Task.from_json(task.to_json()) == task


def test_the_command_that_does_one_task_alone(tmp_path: Path) -> None:
    config = configure("planted", model={"hidden_dim": 8}, training={"epochs": 2}, seed=4)
    train, rows, _ = plan([config], [ask("adversarial", {"method": "adam"}, limit=9)]).tasks.values()
    place = Workspace(tmp_path / "my runs")
    assert command(train, place) == (
        "heedful train planted --encoder bilstm --attention additive --seed 4 --set hidden_dim=8 --set epochs=2 "
        f"--runs '{tmp_path}/my runs'"
    )
    assert command(rows, place) == (
        f"heedful run adversarial --model '{tmp_path}/my runs/{train.run}' --limit 9 --set method=adam"
    )


@pytest.mark.parametrize(
    "config",
    [
        read_study("jain-wallace").config("snli", "average", "dot", 2, "glove"),
        configure("own.csv", data={"text_column": "a b", "labels": ["no", "yes"], "dev_fraction": 0.3}),
        configure("own.csv", data={"text_column": "1", "label_column": "null", "header": False}),
        configure("planted", training={"class_weights": False, "metric": "accuracy"}, model={"hidden_dim": 8}),
    ],
)
def test_the_printed_command_makes_the_same_run(config: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def train_one(config: RunConfig, *_: object) -> None:
        asked.append(config)
        raise KeyboardInterrupt

    monkeypatch.setattr("heedful.engine.running.execute.train_one", train_one)
    assert CliRunner().invoke(app, train_words(config)[1:]).exit_code == 130
    assert asked == [config]


def test_what_a_study_does_differently_on_one_dataset(tmp_path: Path) -> None:
    study = read_study("jain-wallace")
    sst, babi = (study.config(name, "cnn", "dot", 3, "glove") for name in ("sst", "babi1"))
    assert (sst.vectors, sst.training.missing_vectors, sst.training.patience) == ("glove", "zeros", None)
    assert (babi.vectors, babi.training.patience, babi.training.epochs) == (None, None, 100)
    assert (sst.data.tokenizer, sst.data.as_published.vocabulary) == ("words_and_digits", "all")
    assert sst.training.as_published.keep_from == 2
    published = babi.training.as_published
    assert (published.reduction, published.attention_decay, published.keep_from) == ("mean", True, 2)
    assert babi.model.as_published == ModelAsPublished(query_pooling="max_of_words", separate_embeddings=True)
    units = {name: study.config("babi1", name, "dot", 0).model.hidden_dim for name in study.encoders}
    assert units == {"bilstm": 64, "cnn": 32, "average": 32}
    assert study.has(sst, "glove")
    assert not study.has(sst)
    assert not study.has(sst.model_copy(update={"training": TrainingConfig()}), "glove")
    path = tmp_path / "own.toml"
    path.write_text(
        'title = "t"\ndatasets = ["sst"]\nencoders = ["cnn"]\nattentions = ["dot"]\nexperiments = []\n'
        'like = "jain-wallace"\nby_encoder = {}\noptions = {}\non = {}\n'
    )
    own = read_study(str(path))
    assert (own.numbers, own.sources, own.datasets) == (study.numbers, study.sources, ("sst",))
    assert own.config("sst", "cnn", "dot", 0).data.tokenizer is None


def test_seeds_and_limits_of_one_dataset() -> None:
    study = read_study("jain-wallace")
    chosen = select(study, datasets=["20news", "babi2"], encoders=["cnn"], attentions=["dot"], also_missing=True)
    assert [(config.dataset, config.seed) for config in chosen.configs] == [
        *(("20news", seed) for seed in range(5)),
        *(("babi2", seed) for seed in range(3)),
    ]
    limits = {one.experiment: one.limit for one in chosen.asks_on["babi2"]}
    assert limits == {"correlation": None, "permutation": None, "adversarial": 200}
    assert "20news" not in chosen.asks_on
    fewer = select(study, datasets=["20news"], seeds=2, limit=7, also_missing=True)
    assert {config.seed for config in fewer.configs} == {0, 1}
    assert {one.limit for one in (*fewer.asks, *fewer.asks_on["babi2"])} == {7}


def test_a_study_like_another(tmp_path: Path) -> None:
    """Everything that it does not say; of [on.DATASET] what the models are, not how often or what is asked."""
    study, like = read_study("jain-wallace"), read_study("jain-wallace-setup")
    assert like.by_encoder == study.by_encoder
    assert set(like.on) == {"sst", "20news", "babi1", "babi2"}
    assert like.on["babi1"].by_encoder == study.on["babi1"].by_encoder
    assert (like.on["babi1"].seeds, like.on["babi1"].limits, like.options) == (None, {}, {})
    same = like.config("babi1", "cnn", "additive", 1, "glove", "authors")
    assert same == study.config("babi1", "cnn", "additive", 1, "glove")
    before = like.config("babi1", "cnn", "additive", 1, "glove", "babi_network_before")
    assert (before.model.hidden_dim, before.model.as_published.query_pooling, before.training.patience) == (
        60,
        "mean",
        None,
    )
    for text, says in {
        'like = "jain-wallace"\ndatasets = "sst"\n': "datasets: a list is needed",
        'like = "jain-walace"\n': "jain-wallace",
        'like = "LOOP"\n': "without end",
    }.items():
        path = tmp_path / "own.toml"
        path.write_text('title = "t"\n' + text.replace("LOOP", str(path)))
        with pytest.raises(Mistake, match=says):
            read_study(str(path))


def test_a_study_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    study = read_study("jain-wallace")
    assert study.experiments == ("correlation", "permutation", "adversarial")
    assert len(study.datasets) == 12
    chosen = select(study, encoders=["bilstm"], attentions=["dot"], seeds=2)
    assert set(chosen.missing) == set(study.datasets) - {"babi1", "babi2", "babi3"}
    assert "mimic" in chosen.missing["diabetes"].lower()
    assert [(c.dataset, c.seed) for c in chosen.configs][:3] == [("babi1", 0), ("babi1", 1), ("babi2", 0)]
    with pytest.raises(Mistake, match="Did you mean 'jain-wallace'"):
        read_study("jain-walace")
    (tmp_path / "own.toml").write_text('title = "t"\nencoder = ["bilstm"]\n')
    with pytest.raises(Mistake, match=r"there is no setting 'encoder'|datasets: Field required"):
        read_study(str(tmp_path / "own.toml"))
    (tmp_path / "own.toml").write_text("title = ")
    with pytest.raises(Mistake, match="is not TOML"):
        read_study(str(tmp_path / "own.toml"))
    for wrong in (
        {"seeds": 0},
        {"encoders": ["lstn"]},
        {"experiments": ["permutatoin"]},
        {"limit": 0},
        {"split": "tset"},
    ):
        with pytest.raises(Mistake):
            select(study, datasets=["babi1"], **wrong)
