"""Erasure, flips and importance sets of small trained models, computed again by a slow program of its own."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest

import heedful
from commands import script
from heedful.engine.running.progress import Progress
from heedful.store.run import Run

SCRIPT = Path(__file__).parent.parent / "checks" / "recompute_erasure.py"


def write_reviews(path: Path, n: int = 150) -> Path:
    """Several sentences with opposite opinions, so that some decisions can be flipped."""
    rng = random.Random(0)
    opinions = {"bad": ["awful", "dull"], "fine": ["nice", "okay"], "good": ["superb", "lovely"]}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for i in range(n):
            label = list(opinions)[i % 3]
            others = [rng.choice(rng.choice(list(opinions.values()))) for _ in range(rng.randrange(4))]
            said = [rng.choice(opinions[label]), rng.choice(opinions[label]), *others]
            rng.shuffle(said)
            sentences = [f"{' '.join(rng.choices(['the', 'film', 'was'], k=3))} {word}." for word in said]
            writer.writerow([" ".join(sentences), label])
    return path


@pytest.mark.parametrize(
    "settings",
    [
        {"encoder": "bigru", "hierarchical": True, "hidden_dim": 8},
        {"encoder": "cnn", "hierarchical": True, "hidden_dim": 8, "widths": (3, 5), "attention_dim": 6},
        {"encoder": "none", "hidden_dim": 12},
    ],
    ids=["HANrnn", "HANconv", "FLANnoenc"],
)
def test_a_slow_program_of_its_own_finds_the_same_numbers(tmp_path: Path, settings: dict[str, Any]) -> None:
    run: Run = heedful.train(
        str(write_reviews(tmp_path / "reviews.csv")),
        runs=tmp_path / "runs",
        embedding_dim=12,
        epochs=4,
        batch_size=16,
        learning_rate=0.02,
        progress=Progress(quiet=True),
        **settings,
    )
    rows = {name: heedful.run(name, run) for name in ("erasure", "flips", "importance_sets")}
    flips = rows["importance_sets"].summary["rankings"]["attention"]["overall"]
    assert 0 < flips["never"] < flips["n"]  # some decisions flip, some do not
    done = script(SCRIPT, run.path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n") == 1 + 4 + 4 + 3 + 5 + 1
