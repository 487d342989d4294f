"""Somebody else's package, installed: all that it adds is found by name, and works, without another line changed.

The package stands in tests/toy_package: an experiment with a figure and a verdict, explainers (one that learns), an
encoder, an attention, an objective, a corpus, and a family of models of two layers of three heads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import commands

HERE = Path(__file__).parent
ENTRY_POINTS = """
[heedful.experiments]
toy_sharpness = heedful_toy.sharpness:SHARPNESS
[heedful.explainers]
toy_rarity = heedful_toy.length:RARITY
toy_plain = heedful_toy.length:PLAIN
[heedful.encoders]
toy_window = heedful_toy.window:Window
[heedful.attentions]
toy_squared = heedful_toy.window:Squared
[heedful.objectives]
toy_calm = heedful_toy.calm:CALM
[heedful.corpora]
toy_weather = heedful_toy.corpus:WEATHER
[heedful.models]
toy = heedful_toy.family:TOYS
"""
STUDY = """
title = "A toy study"
datasets = ["toy_weather"]
encoders = ["toy_window"]
attentions = ["toy_squared"]
experiments = ["toy_sharpness", "permutation"]
[model]
embedding_dim = 8
hidden_dim = 8
[training]
epochs = 2
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package installed in `site`, by pip, from a wheel."""
    folder = tmp_path_factory.mktemp("toys")
    wheel = folder / "heedful_toy-0.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for path in sorted((HERE / "toy_package" / "heedful_toy").glob("*.py")):
            file.write(path, f"heedful_toy/{path.name}")
        file.write(HERE / "toy_transformer.py", "heedful_toy/transformer.py")
        about = {
            "METADATA": "Metadata-Version: 2.1\nName: heedful-toy\nVersion: 0.1\n",
            "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "entry_points.txt": ENTRY_POINTS,
        }
        for name, text in about.items():
            file.writestr(f"heedful_toy-0.1.dist-info/{name}", text)
        record = "".join(f"{name},,\n" for name in [*file.namelist(), "heedful_toy-0.1.dist-info/RECORD"])
        file.writestr("heedful_toy-0.1.dist-info/RECORD", record)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(folder / "site"), str(wheel)], check=True, capture_output=True)
    (folder / "study.toml").write_text(STUDY)
    return folder


def heedful(place: Path, *words: str, fails: bool = False) -> str:
    """A command in that folder; what it printed."""
    done = commands.heedful(*words, folder=place, installed=[place / "site"])
    assert (done.returncode != 0) == fails, done.stderr + done.stdout
    return done.stdout + done.stderr if fails else done.stdout


@pytest.fixture(scope="module")
def run(place: Path) -> str:
    """A study of the toy corpus, encoder, attention and experiment: the run folder it made."""
    heedful(place, "study", "study.toml", "--cores", "2", "--write", "study.md", "-q")
    (found,) = (path.name for path in (place / "runs").glob("toy_weather-toy_window-toy_squared-s0-*"))
    return f"runs/{found}"


def test_doctor_lists_what_was_added(place: Path) -> None:
    told = heedful(place, "doctor")
    for line in ENTRY_POINTS.splitlines():
        if "=" in line:
            assert line.split(" = ")[0] in told


def test_a_study_trains_and_asks(place: Path, run: str) -> None:
    summary = json.loads((place / run / "results" / "toy_sharpness.summary.json").read_text())
    assert summary["verdict"]["answer"] == "It has a toy verdict"
    assert 0 < summary["spread"]["overall"]["mean"] < 1
    page = (place / "study.md").read_text()
    assert "A toy study" in page
    assert "toy spread" in page or "Does toy attention choose a few words?" in page
    assert "toy_window" in page


def test_run_asks_again_with_an_option(place: Path, run: str) -> None:
    told = json.loads(heedful(place, "run", "toy_sharpness", "--model", run, "--set", "base=3.0", "--json"))
    assert told["summaries"]["toy_sharpness"]["spread"]["overall"]["n"] == 48
    assert "base" in heedful(place, "run", "toy_sharpness", "--model", run, "--set", "bass=3", fails=True)


def test_explain_with_an_explainer_that_learns(place: Path, run: str) -> None:
    words = [
        "explain",
        run,
        "the bright day",
        "-m",
        "toy_rarity",
        "-m",
        "toy_plain",
        "-m",
        "omission",
        "--format",
        "json",
    ]
    told = json.loads(heedful(place, *words))
    by_method = {a["method"]: a for a in told["examples"][0]["attributions"]}
    assert by_method["toy_plain"]["scores"]["passage"] == [1.0, 1.0, 1.0]
    learnt = by_method["toy_rarity"]["scores"]["passage"]
    assert learnt[1] > learnt[0]  # "the" is more frequent than "bright"
    assert list((place / run / "explainers").glob("toy_rarity-*.safetensors"))


def test_python_the_command_line_and_an_audit_know_its_explainer(place: Path, run: str) -> None:
    told = json.loads(heedful(place, "explain", run, "the bright day", "--format", "json"))
    assert "toy_plain" in [a["method"] for a in told["examples"][0]["attributions"]]  # nobody named it: it is usual
    squared = heedful(place, "explain", run, "the bright day", "-m", "toy_plain:power=2.0", "--format", "json")
    (attribution,) = json.loads(squared)["examples"][0]["attributions"]
    assert attribution["options"] == {"power": 2.0}
    assert "toy_plain" in heedful(place, "audit", run, "--dry-run").split("methods:")[1].split("\n")[0]
    refused = heedful(place, "explain", run, "the day", "-m", "toy_plain:power=much", fails=True)
    assert "power is a number" in refused


def test_the_report_has_its_figure_and_its_verdict(place: Path, run: str) -> None:
    heedful(place, "report", run, "-o", "report.html", "-q")
    page = (place / "report.html").read_text()
    for wanted in (
        "Spread of toy attention",
        "toy-spread",
        "It has a toy verdict",
        "was weighed by a toy",
        "plain toy",
    ):
        assert wanted in page


def test_the_server_shows_it(place: Path, run: str) -> None:
    pytest.importorskip("fastapi")
    code = (
        "import json, sys; from pathlib import Path; from starlette.testclient import TestClient\n"
        "from heedful.server.app import create_app; from heedful.server.stored.library import Library\n"
        "client = TestClient(create_app(Library(Path('runs'))), base_url='http://localhost')\n"
        f"name = {Path(run).name!r}\n"
        "pages = ['/?measure=toy_spread', f'/runs/{name}', f'/runs/{name}/toy_sharpness', f'/runs/{name}/playground']\n"
        "pages.append(f'/runs/{name}/playground?text=the+bright+day&methods=toy_plain&live=1')\n"
        "found = [client.get(page) for page in pages]\n"
        "print(json.dumps([[page.status_code, page.text] for page in found]))"
    )
    known = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place / "site"), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place, env=known, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    overview, about, experiment, playground, answer = json.loads(done.stdout)
    assert {page[0] for page in (overview, about, experiment, playground, answer)} == {200}
    assert 'value="toy_plain" checked> plain toy' in playground[1]
    assert "toy_rarity" not in playground[1]  # what it learns is for the command line
    assert answer[1].count("plain toy") > 1  # offered, and answered
    assert "spread of toy attention" in overview[1]
    assert "It has a toy verdict" in about[1]
    assert "toy spread" in experiment[1]


def test_an_objective_reads_targets_of_tokens(place: Path) -> None:
    common = ["train", "toy_weather", "--encoder", "average", "--epochs", "3", "--set", "embedding_dim=8"]
    plain, calm = (
        json.loads(heedful(place, *common, "--set", "hidden_dim=8", *more, "--json"))["run"]
        for more in ([], ["--set", "objective=toy_calm", "--set", 'objective_options={"weight": 20.0}'])
    )
    assert plain != calm
    spread = {}
    for name in (plain, calm):
        told: dict[str, Any] = json.loads(heedful(place, "run", "toy_sharpness", "--model", name, "--json"))
        spread[name] = told["summaries"]["toy_sharpness"]["spread"]["overall"]["mean"]
    assert spread[calm] < spread[plain]  # attention that is drawn to one word is sharp
    assert "weight" in heedful(
        place, *common, "--set", "objective=toy_calm", "--set", 'objective_options={"wait": 1}', fails=True
    )


def test_a_family_of_models_of_several_layers(place: Path) -> None:
    """A folder that only the package knows: explained, asked, and reported, on data it was not trained on."""
    words = ["the", "day", "was", "and", "they", "sang", "of", "it", "bright", "gloomy"]
    (place / "tiny").mkdir()
    (place / "tiny" / "toy.json").write_text(
        json.dumps({"seed": 3, "labels": ["down", "up", "sideways"], "words": words})
    )
    methods = [w for m in ("attention", "integrated_gradients", "lrp", "omission", "rollout") for w in ("-m", m)]
    told = json.loads(heedful(place, "explain", "tiny", "the bright day", *methods, "--format", "json"))
    assert [a["method"] for a in told["examples"][0]["attributions"]][-1] == "rollout"
    asked = ["run", "toy_sharpness", "permutation", "correlation", "heads", "--model", "tiny"]
    found = json.loads(heedful(place, *asked, "--data", "toy_weather", "--limit", "12", "--json"))
    assert found["failed"] == {}
    assert set(found["summaries"]) == {"toy_sharpness", "permutation", "correlation", "heads"}
    assert len(found["summaries"]["heads"]) > 0
    (trial,) = (place / "runs").glob("tiny-on-toy_weather-*")
    heedful(place, "report", str(trial), "-o", "trial.html", "-q")
    page = (place / "trial.html").read_text()
    assert "toy transformer of two layers of three heads" in page
    assert "It has a toy verdict" in page
    refused = heedful(
        place,
        "run",
        "adversarial",
        "--model",
        "tiny",
        "--data",
        "toy_weather",
        "--limit",
        "2",
        "--method",
        "adam",
        fails=True,
    )
    assert "pool by attention" in refused
