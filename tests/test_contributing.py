"""CONTRIBUTING.md's three examples, as they stand on the page: installed by their entry points, held against the
contracts, and found in the command line, Python, the report, the server and the audit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import commands

HERE = Path(__file__).parent
PAGE = (HERE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^```python\n(?P<code>.*?)^```\n\n```toml\n(?P<entry>.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = {"heedful.explainers": "solo", "heedful.experiments": "confidence", "heedful.encoders": "gated"}
QUESTION = "How sure is the model of what it predicts?"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a distribution in `site`: a module for each example, and their entry points."""
    folder = tmp_path_factory.mktemp("contributing")
    site = folder / "site"
    about = site / "my_things-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: my-things\nVersion: 1.0\n")
    lines = []
    for example in EXAMPLE.finditer(PAGE):
        ((group, things),) = tomllib.loads(example["entry"])["project"]["entry-points"].items()
        ((name, where),) = things.items()
        assert NAMES[group] == name
        lines += [f"[{group}]", f"{name} = {where}"]
        (site / f"{where.partition(':')[0]}.py").write_text(example["code"])
    assert len(lines) == 2 * len(NAMES)
    (about / "entry_points.txt").write_text("\n".join(lines))
    return folder


def environment(place: Path) -> dict[str, str]:
    path = os.pathsep.join([str(place / "site"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def heedful(place: Path, *words: str) -> str:
    done = commands.heedful(*words, folder=place, installed=[place / "site"])
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def run(place: Path) -> str:
    """A run of the example's encoder, and the example's question to it."""
    sizes = ["--set", "embedding_dim=8", "--set", "hidden_dim=8"]
    trained = heedful(place, "train", "planted", "--encoder", "gated", "--epochs", "2", *sizes, "--json")
    path = str(json.loads(trained)["run"])
    told = json.loads(heedful(place, "run", "confidence", "--model", path, "--limit", "40", "--json"))
    line = told["summaries"]["confidence"]["confidence"]["overall"]
    assert line["n"] == 40
    assert 0.5 <= line["low"] <= line["mean"] <= line["high"] <= 1
    return path


def test_the_page_is_short_and_its_examples_are_small() -> None:
    words = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL).split()
    assert len(words) <= 900
    for example in EXAMPLE.finditer(PAGE):
        assert len(example["code"].splitlines()) <= 45
        imported = re.findall(r"^(?:from|import) (heedful[\w.]*)", example["code"], flags=re.MULTILINE)
        assert imported == ["heedful.plugins"]


@pytest.mark.parametrize(
    ("files", "chosen", "at_least"),
    [
        (["test_explainer_contract.py"], "solo", 30),
        (["test_experiment_contract.py", "test_experiment_description.py"], "confidence", 20),
        (["test_explainer_contract.py", "test_experiment_contract.py", "test_models.py"], "gated", 100),
    ],
)
def test_the_contracts_hold(place: Path, files: list[str], chosen: str, at_least: int) -> None:
    """Every case of the contracts that names it, without a line about it in the tests."""
    words = [sys.executable, "-m", "pytest", "-o", "addopts=", "-q", "-p", "no:cacheprovider", "-k", chosen]
    done = subprocess.run(
        [*words, *files], cwd=HERE, env=environment(place), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    counts = dict.fromkeys(["passed", "skipped"], 0) | {
        what: int(n) for n, what in re.findall(r"(\d+) (passed|skipped)", done.stdout)
    }
    assert counts["passed"] >= at_least
    assert counts["skipped"] == 0


def test_doctor_lists_them(place: Path) -> None:
    told = heedful(place, "doctor")
    assert all(name in told for name in NAMES.values())
    assert "my-things" in told


def test_explain(place: Path, run: str) -> None:
    """The example's method, and what other methods make of the example's encoder: lrp takes it apart exactly."""
    words = ["explain", run, "the bright day", "-m", "solo", "-m", "lrp", "-m", "omission", "--format", "json"]
    told = json.loads(heedful(place, *words))
    scores = {one["method"]: one["scores"]["passage"] for one in told["examples"][0]["attributions"]}
    assert list(scores) == ["solo", "lrp", "omission"]
    assert all(len(values) == 3 for values in scores.values())


def test_python(place: Path, run: str) -> None:
    code = (
        "import heedful, json\n"
        f"rows = heedful.run('confidence', {run!r}, limit=7)\n"
        f"found = heedful.explain({run!r}, ['the bright day'], methods=['solo'])\n"
        "print(json.dumps([sorted(rows.table.column_names), rows.summary['confidence']['overall']['n'],"
        " list(found.methods), 'confidence' in heedful.list_experiments(), 'solo' in heedful.list_explainers()]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place, env=environment(place), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    columns, n, methods, *listed = json.loads(done.stdout)
    assert columns == ["confidence", "example", "max_attention", "n_words", "predicted"]
    assert (n, methods, listed) == (7, ["solo"], [True, True])


def test_the_report(place: Path, run: str) -> None:
    heedful(place, "report", run, "-o", "report.html", "-q")
    page = (place / "report.html").read_text(encoding="utf-8")
    for wanted in (
        QUESTION,
        "probability of the predicted label",
        'data-figure="confidence"',
        "The highest probability of the predicted label",
        "confidence (Guo et al. 2017, section 2)",
        "a gated window of two words",
    ):
        assert wanted in page, wanted


def test_the_server(place: Path, run: str) -> None:
    pytest.importorskip("fastapi")
    code = (
        "import json; from pathlib import Path; from starlette.testclient import TestClient\n"
        "from heedful.server.app import create_app; from heedful.server.stored.library import Library\n"
        "client = TestClient(create_app(Library(Path('runs'))), base_url='http://localhost')\n"
        f"name = {Path(run).name!r}\n"
        "pages = ['/?measure=confidence', f'/runs/{name}', f'/runs/{name}/confidence']\n"
        "print(json.dumps([[page.status_code, page.text] for page in map(client.get, pages)]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place, env=environment(place), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [status for status, _ in found] == [200, 200, 200]
    assert "probability of the predicted label" in found[0][1]
    assert "probability of the predicted label" in found[1][1]
    assert QUESTION in found[2][1]


def test_the_audit(place: Path, run: str) -> None:
    """The example's method stands among the others. Its question tells nothing of methods: it is asked by name."""
    planned = heedful(place, "audit", run, "--dry-run")
    assert re.search(r"^methods: .*\bsolo\b", planned, flags=re.MULTILINE)
    assert re.search(r"^methods: .*\blrp\b", planned, flags=re.MULTILINE)
    assert (
        "left out: confidence: it has no verdict and says nothing about explainers (--experiment NAME adds it)"
        in planned
    )
    named = heedful(place, "audit", run, "--dry-run", "--experiment", "confidence")
    assert "confidence: about 1 forward passes a text" in named
    assert "left out: confidence" not in named
