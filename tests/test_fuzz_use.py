"""Wrong uses of options, configuration and commands: each ends well, or in one sentence that says what is wrong.

Seeded, so that a case that fails can be run again by its number; `HEEDFUL_FUZZ=20 pytest tests/test_fuzz_use.py` tries
twenty times as many. Damaged data files: tests/test_fuzz_data.py.
"""

from __future__ import annotations

import os
import random
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful import api, cli
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.models.model import Model
from heedful.registry import EXPERIMENTS, EXPLAINERS
from heedful.studies.file import read_study
from heedful.studies.part import select

MORE = int(os.environ.get("HEEDFUL_FUZZ", "1"))
INF, NAN = float("inf"), float("nan")
HUGE = 10**30
# What people, spreadsheets and scripts give in place of what is meant.
ODD: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 5, 0.5, 1.5, -0.0, INF, -INF, NAN, 1e300, 2**63, 2**64, HUGE, 10**5000),
    *("", " ", "a", "nan", "1", "²", "x" * 300, "a\x00b", "half \ud800", "9" * 5000, "..", "/", "~nobody/x", "🙂"),
    *(b"bytes", [], [None], ["a"], {}, {"a": 1}, (), object(), np.float64(0.5), np.array([1, 2]), torch.zeros(3)),
]
WORDS = [
    *("", " ", "a", "nan", "inf", "-1", "0", "1.5", "1e400", "18446744073709551616", "9" * 5000, "x" * 300),
    *("²", "🙂", "/", "..", "~nobody/x", "/dev/null/x", "a=b", "=", "[[[[", '{"a":NaN}', "true", "null", ","),
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fuzz")
    rows = [f"{'good' if i % 2 else 'bad'} film {i},{'pos' if i % 2 else 'neg'}" for i in range(40)]
    (folder / "reviews.csv").write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    sizes: dict[str, Any] = {"encoder": "average", "embedding_dim": 4, "hidden_dim": 4, "epochs": 1}
    quiet = Progress(quiet=True)
    return api.train(str(folder / "reviews.csv"), runs=folder / "runs", progress=quiet, **sizes).path


@pytest.fixture(scope="module")
def model(run: Path) -> Model:
    return heedful.load(run)


def tolerable(what: Callable[[], Any], case: object) -> Any:
    """Its result, or the Mistake: one sentence of a length that can be read. Anything else is ours."""
    try:
        return what()
    except Mistake as mistake:
        said = str(mistake)
        assert 10 < len(said) < 3000, (case, said)
        assert "\n" not in said.strip(), (case, said)
        said.encode()
        return None
    except Exception as error:
        raise AssertionError(f"{case!r:.300}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("seed", range(3 * MORE))
def test_options_of_explainers(model: Model, seed: int) -> None:
    """A wrong value is refused; a right one is recorded as it was given."""
    rng = random.Random(seed)
    for _ in range(40):
        name = rng.choice([n for n in EXPLAINERS if EXPLAINERS[n].needs <= model.network.can])
        few = {"lime": {"n_samples": 20}, "shap": {"n_permutations": 1}}
        options: dict[str, Any] = dict(few.get(name, {}))
        known = sorted(EXPLAINERS[name].options | {"nope"})
        odd = rng.choice(known)
        options[odd] = rng.choice(ODD)
        found = tolerable(partial(heedful.explain, model, ["a good film"], [name], **options), options)
        if found is not None:
            told, given = found[0].attribution(name).options[odd], options[odd]
            if isinstance(given, torch.Tensor):
                assert told == f"tensor {tuple(given.shape)}"
            else:
                same = told == (list(given) if isinstance(given, tuple) else given)
                assert same or (isinstance(told, float) and told == float(given)), (name, odd, told)


@pytest.mark.parametrize("seed", range(MORE))
def test_arguments_in_python(model: Model, run: Path, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    explained = heedful.explain(model, ["a good film"], ["attention"])
    calls: dict[str, Callable[[Any], Any]] = {
        "texts": lambda odd: heedful.explain(model, odd, ["attention"]),
        "one of the texts": lambda odd: heedful.explain(model, ["a good film", odd], ["attention"]),
        "methods": lambda odd: heedful.explain(model, ["good"], odd),
        "target": lambda odd: heedful.explain(model, ["good"], ["attention"], odd),
        "queries": lambda odd: heedful.explain(model, ["good"], ["attention"], queries=odd),
        "labels": lambda odd: heedful.explain(run, ["good"], ["attention"], labels=odd),
        "load": heedful.load,
        "device": lambda odd: heedful.load(run, device=odd),
        "wrap": lambda odd: heedful.wrap(odd, labels=["a", "b"]),
        "labels of a function": lambda odd: heedful.wrap(lambda texts: np.ones((len(texts), 2)) / 2, labels=odd),
        "experiment": lambda odd: heedful.run(odd, model, ["a good film"]),
        "examples": lambda odd: heedful.run("permutation", model, odd if odd is not None else []),
        "limit": lambda odd: heedful.run("permutation", model, ["a good film"] * 3, limit=odd),
        "split": lambda odd: heedful.run("permutation", model, ["a good film"], split=odd),
        "permutations": lambda odd: heedful.run("permutation", model, ["a good film"], permutations=odd),
        "epsilon": lambda odd: heedful.adversary(model, ["a good film"], epsilon=odd),
        "save": lambda odd: explained.save(tmp_path / odd if isinstance(odd, str) else odd),
        "read": heedful.Explanation.load,
        "JSON": heedful.Explanation.from_json,
        "top": explained.top,
        "method": explained.method,
        "predict": lambda odd: model.predict([odd]),
        "data": lambda odd: api.configure(odd),
        "seed": lambda odd: api.configure("planted-single", seed=odd),
        "start": lambda odd: api.configure("planted-single", start=odd) if odd else None,
    }
    for name, call in calls.items():
        for odd in rng.sample(ODD, 12) if MORE == 1 else ODD:
            found = tolerable(partial(call, odd), (name, odd))
            if name == "one of the texts" and found is not None:
                assert isinstance(odd, str), f"{odd!r} was read as a text"


@pytest.mark.parametrize("seed", range(2 * MORE))
def test_settings(seed: int) -> None:
    """Of the data, the model and the training: refused, or in the configuration as they were given."""
    rng = random.Random(seed)
    names = [
        *(*api.configure("planted-single").model.model_fields_set, "hidden_dim", "epochs", "learning_rate", "widths"),
        *("seed_", "dropout_words", "train_rows", "min_df", "edit", "objective", "objective_options", "labels"),
        *("mask_words", "metric", "imposed", "evidence_words", "delimiter", "dev_fraction", "patience", "batch_size"),
    ]
    for _ in range(60):
        name, value = rng.choice(names), rng.choice(ODD)
        tolerable(partial(api.configure, "planted-single", settings={name: value}), (name, value))
    for name, experiment in EXPERIMENTS.items():
        for field in sorted(experiment.config.model_fields):
            value = rng.choice(ODD)
            tolerable(partial(experiment.config.parse, {field: value}, "x"), (name, field, value))


STUDY = """title = "a study"
datasets = ["planted-single"]
encoders = ["average"]
attentions = ["additive"]
experiments = ["permutation"]
seeds = 1
[model]
hidden_dim = 8
[options.permutation]
permutations = 10
[on.planted-single]
training = { epochs = 1 }
"""


@pytest.mark.parametrize("seed", range(MORE))
def test_studies(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    file = tmp_path / "study.toml"
    values = [
        "inf",
        "nan",
        "-1",
        "0",
        "1" * 5000,
        '"x"',
        "[]",
        "{}",
        "true",
        "18446744073709551616",
        "[[[",
        "1979-05-27",
    ]

    def read() -> Any:
        return select(read_study(str(file)))

    file.write_text(STUDY, encoding="utf-8")
    assert read().configs[0].model.hidden_dim == 8
    for _ in range(60):
        lines = STUDY.splitlines()
        place = rng.randrange(len(lines))
        line = lines[place]
        if "=" in line and rng.random() < 0.7:
            lines[place] = f"{line.split(' = ')[0]} = {rng.choice(values)}"
        elif rng.random() < 0.5:
            lines[place] = line.replace("n", "m", 1)
        else:
            del lines[place]
        raw = "\n".join(lines).encode()
        if rng.random() < 0.2:
            at = rng.randrange(len(raw))
            raw = raw[:at] + bytes([rng.randrange(256)]) + raw[at + 1 :]
        file.write_bytes(raw)
        tolerable(read, raw)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("[on.typo.model]\nhidden_dim = 8\n", r"\[on.typo\] is never used.*planted-single"),
        ("[options.nope]\nk = 3\n", r"\[options.nope\] is never used"),
        ("[options.adversarial]\nk = 3\n", r"\[options.adversarial\] is never used"),
        ("[by_encoder.bilstm]\nhidden_dim = 8\n", r"\[by_encoder.bilstm\] is never used"),
        ("[on.planted-single.options.correlation]\nk = 3\n", r"correlation\] is never used"),
        ("[on.planted-single.modle]\nhidden_dim = 8\n", r"no setting 'on.planted-single.modle'. Known: vectors, data"),
    ],
)
def test_what_a_study_would_never_use_is_refused(more: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY.split("[on")[0] + more, encoding="utf-8")
    with pytest.raises(Mistake, match=sentence):
        read_study(str(file))


def test_a_nested_setting_is_told_its_own_neighbours() -> None:
    edit = {"name": "plant", "nop": 1}
    with pytest.raises(Mistake, match=r"no setting 'data.edit.nop'. Known: name, options"):
        api.configure("planted-single", settings={"edit": edit})


def command(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> int:
    """The exit code. 2 with exactly one sentence of ours, or typer's own box about how to use the command."""
    monkeypatch.setattr(sys, "argv", ["heedful", *words])
    try:
        cli.main()
        code: Any = 0
    except SystemExit as end:
        code = end.code or 0
    except Exception as error:
        raise AssertionError(f"{words!r:.300}: {type(error).__name__}: {error}") from error
    told = capsys.readouterr().err
    if code == 2:
        ours = [line for line in told.splitlines() if line.startswith("heedful: ")]
        assert len(ours) == 1 or "Usage:" in told, (words, told)
    assert code in (0, 1, 2), (words, code, told)
    return int(code)


@pytest.mark.parametrize("seed", range(MORE))
def test_the_command_line(
    run: Path, seed: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rng = random.Random(seed)
    monkeypatch.chdir(tmp_path)
    file = str(run.parent.parent / "reviews.csv")
    explain, ask = (["explain", str(run), "a good film", "-q"], ["run", "permutation", "--model", str(run), "-q"])
    commands: list[tuple[list[str], list[str]]] = [
        (explain, ["-m", "--target", "--of", "--seed", "--file", "--query", "--labels", "--format", "-o"]),
        ([*explain, "-m", "integrated_gradients"], ["--n-steps", "--baselines", "--tolerance"]),
        (["adversary", str(run), "a good film"], ["--epsilon", "-o", "--file", "--query"]),
        ([*ask, "--limit", "2"], ["--set", "--split", "--cores", "--data", "--labels", "--data-dir"]),
        (["words", str(run), "-q"], ["--label", "--min-texts", "--top", "--limit", "--split", "--data", "--data-dir"]),
        (
            ["train", file, "--dry-run", "--encoder", "average", "--epochs", "1"],
            ["--seed", "--set", "--learning-rate", "--vectors", "--labels", "--text-column", "--test-file", "--min-df"],
        ),
        (["data", "describe", file], ["--labels", "--task", "--label-column", "--data-dir"]),
        (["report", str(run)], ["-o", "--figures", "--data-dir"]),
        (["study"], [""]),
        (["explain"], [""]),
        (["train"], [""]),
        (["audit", str(run), "--dry-run", "-q"], ["--budget", "--bar", "--method", "--junit", "--split"]),
    ]
    for _ in range(45):
        words, options = rng.choice(commands)
        option, value = rng.choice(options), rng.choice(WORDS)
        command([*words, *([option] if option else []), value], monkeypatch, capsys)


def test_outputs_are_checked_before_any_work(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY, encoding="utf-8")
    folder = tmp_path / "runs"
    for words in (["--write", str(tmp_path)], ["--cores", "0"], ["--write", str(file / "x.md")]):
        assert command(["study", str(file), "--runs", str(folder), *words], monkeypatch, capsys) == 2
    assert not folder.exists()
    assert command(["run", "permutation", "--model", str(run), "--cores", "0"], monkeypatch, capsys) == 2
    assert command(["train", str(file.parent)], monkeypatch, capsys) == 2


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("heedful train planted-s", r"planted-single\t.+"),
        ("heedful run corr", r"correlation\tDoes attention agree"),
        ("heedful study jain", r"jain-wallace\t.+"),
        ("heedful explain runs --method integ", "integrated_gradients"),
    ],
)
def test_a_shell_is_told_what_it_offers(
    typed: str, offered: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_HEEDFUL_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", typed)
    monkeypatch.setattr(sys, "argv", ["heedful"])
    with pytest.raises(SystemExit):
        cli.app(prog_name="heedful")
    assert re.search(offered, capsys.readouterr().out)
