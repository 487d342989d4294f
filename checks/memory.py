"""How much memory long documents take: the peak of a process that trains on, or asks about, texts of 5,000 words.

Models have the published sizes. A peak is never forgotten, so training has a process of its own, and the experiments
come in the order of what they take.
"""

from __future__ import annotations

import csv
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import ask, plan

LENGTH, TEXTS, TYPES = 5_000, 36, 5_000  # words a text; texts, 32 of them to train on; different words
DATA = {"tokenizer": "whitespace", "test_fraction": 0.06, "dev_fraction": 0.06}
ENCODERS = ("bilstm", "cnn", "average")
EXPERIMENTS = ("permutation", "adversarial", "correlation")


def write_corpus(path: Path) -> None:
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "label"))
        for number in range(TEXTS):
            rows.writerow((" ".join(f"w{word}" for word in rng.integers(TYPES, size=LENGTH)), number % 2))


def do(folder: Path, encoder: str, experiments: list[str]) -> None:
    """One task after the other, in this process, as a worker does it; print the peak after each."""
    config = configure(str(folder / "long.csv"), data=DATA, model={"encoder": encoder}, training={"epochs": 1})
    for asks in [[ask(name, limit=1)] for name in experiments] or [[]]:  # a text is more than half a batch
        report = execute(plan([config], asks), Workspace(folder / "runs"), Progress(quiet=True), "here")
        if not report.complete:
            raise SystemExit(f"failed: {report.failed}")
        print(peak())


def peak() -> float:
    """MiB of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KiB on Linux


def peaks(*task: str) -> list[float]:
    """Of a process that does `task`: a folder, an encoder, and experiments."""
    done = subprocess.run([sys.executable, __file__, *task], stdout=subprocess.PIPE, check=True)
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="heedful-") as name:
        folder = Path(name)
        write_corpus(folder / "long.csv")
        (libraries,) = peaks(name)
        print(f"texts of {LENGTH:,} words: peak in MiB (libraries alone {libraries:.0f})")
        print(f"{'':8s}  {'training':>11s}" + "".join(f"  {one:>11s}" for one in EXPERIMENTS), flush=True)
        for encoder in ENCODERS:
            found = [*peaks(name, encoder), *peaks(name, encoder, *EXPERIMENTS)]
            print(f"{encoder:8s}" + "".join(f"  {one:11.0f}" for one in found), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        from heedful.engine.running import executor  # noqa: F401 (the libraries of a worker)

        if len(sys.argv) > 2:
            do(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
        else:
            print(peak())
