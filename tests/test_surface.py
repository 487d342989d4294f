"""The public surface: what a person types. Names are stable, start-up is light, mistakes are one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from typer.testing import CliRunner

import heedful
from commands import heedful as command
from heedful.api.lists import list_added
from heedful.cli import app
from heedful.registry import EXPERIMENTS

HEAVY = {"torch", "spacy", "pandas", "sklearn", "transformers"}


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import heedful",
        "import heedful.cli",
        "import heedful.explanation.explanation",
        "import heedful.measure.distance, heedful.store.run, heedful.config",
        "from heedful.cli import app\ntry:\n    app(['--help'])\nexcept SystemExit:\n    pass",
    ],
)
def test_starting_needs_nothing_heavy(code: str) -> None:
    loaded = modules_after(code)
    assert not HEAVY & loaded


def test_the_public_names() -> None:
    names = (
        "Explanation Mistake adversary audit cite counterfactual explain list_corpora list_experiments list_explainers"
    )
    assert " ".join(sorted(heedful.__all__)) == f"{names} load run train wrap"
    for name in heedful.__all__:
        assert getattr(heedful, name).__doc__
    with pytest.raises(AttributeError, match="nonsense"):
        heedful.nonsense  # noqa: B018


def test_the_stable_names_of_methods_and_experiments() -> None:
    explainers = (
        "attention rollout attention_flow attention_x_norm value_zeroing gradient gradient_x_input "
        "integrated_gradients lrp occlusion omission mask lime shap sources "
        "integrated_hessians removal_interactions shapley_interactions archipelago bilrp rationale"
    )
    assert heedful.list_explainers() == [*explainers.split(), "random", "uniform"]
    assert {"correlation", "permutation", "adversarial", "heads"} <= set(heedful.list_experiments())
    assert {"sst", "imdb", "adr", "20news", "agnews", "diabetes", "anemia", "cnn", "snli", "planted"} <= set(
        heedful.list_corpora()
    )


COMMANDS = [
    "demo",
    "data",
    "train",
    "explain",
    "cite",
    "adversary",
    "run",
    "study",
    "audit",
    "report",
    "serve",
    "doctor",
]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    done = command(name, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout or name == "data"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "sstt"], "there is no corpus 'sstt'. Did you mean 'sst'?"),
        (["train", "planted", "--encoder", "gru"], "encoder"),
        (["train", "planted", "--vectors", "nothing"], "there are no vectors 'nothing'"),
        (["train", "nothing.csv"], "nothing.csv"),
        (["explain", "nowhere", "a text"], "there is no run folder nowhere"),
        (["data", "describe", "imdbb"], "there is no corpus 'imdbb'"),
        (["study", "jain"], "there is no study 'jain'"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = command(*arguments, *(["--runs", str(tmp_path)] if arguments[0] in ("train", "study") else []))
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_debug_shows_the_traceback() -> None:
    done = command("explain", "nowhere", "a text", "--debug")
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_doctor_tells_what_is_there() -> None:
    done = command("doctor", "--json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["packages"]["torch"]
    assert report["corpora"]["planted"] == "built in"


def test_version() -> None:
    assert command("--version").stdout.strip() == f"heedful {heedful.__version__}"


def test_the_package_is_a_command() -> None:
    done = subprocess.run([sys.executable, "-m", "heedful", "--version"], capture_output=True, text=True)
    assert done.stdout.strip() == f"heedful {heedful.__version__}"


def test_doctor_lists_what_other_packages_added(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("zebra", "zoo.zebra:ZEBRA", EXPERIMENTS.group)
    monkeypatch.setattr(EXPERIMENTS, "found", {"zebra": point})
    assert list_added() == [{"what": "experiment", "name": "zebra", "package": "zoo"}]
    done = CliRunner().invoke(app, ["doctor"])
    assert "Added by other packages: experiment zebra (of zoo)" in done.stdout


def test_a_warning_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Every method of a command meets the same long text."""
    from heedful.cli import warn_once

    warn = warn_once()
    for message in ("a text is long", "a text is long", "another"):
        warn(UserWarning(message), UserWarning, "file.py", 1)
    assert capsys.readouterr().err == "warning: a text is long\nwarning: another\n"
