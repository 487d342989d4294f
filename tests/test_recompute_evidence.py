"""planted, rationales and pointing of a small trained model, computed again by a slow program of its own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import heedful
from commands import script
from heedful.data.generated.planted import generate
from heedful.engine.running.progress import Progress
from heedful.store.run import Run

SCRIPT = Path(__file__).parent.parent / "checks" / "recompute_evidence.py"
METHODS = {"planted": ["attention", "omission"], "rationales": ["lrp"], "pointing": ["attention"]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("evidence")
    with (folder / "reviews.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "label", "evidence"))
        for one in generate("majority", 150, seed=3):
            rows.writerow((one.text, one.label, json.dumps([list(span) for span in one.spans])))
    return heedful.train(
        str(folder / "reviews.csv"),
        runs=folder / "runs",
        evidence_column="evidence",
        tokenizer="whitespace",
        encoder="bilstm",
        embedding_dim=8,
        hidden_dim=8,
        epochs=3,
        batch_size=16,
        learning_rate=0.02,
        progress=Progress(quiet=True),
    )


@pytest.mark.parametrize("experiment", METHODS)
def test_a_slow_program_of_its_own_finds_the_same_rows(run: Run, experiment: str) -> None:
    rows = heedful.run(experiment, run, limit=12, methods=METHODS[experiment])
    assert len(rows) == 12 * (len(METHODS[experiment]) + 3)
    done = script(SCRIPT, run.path, "--experiment", experiment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("largest difference") == 8 + 3 * (experiment == "planted")
