"""The engine: planning against hashing the tasks, and eight equal tasks on two cores against one after the other."""

from __future__ import annotations

import csv
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from heedful.config import RunConfig
from heedful.data.generated.planted import generate
from heedful.engine.running.execute import Engine, execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import plan
from heedful.studies.file import read_study
from heedful.studies.part import select

TASKS, TEXTS, EPOCHS = 8, 3_000, 20


def planning() -> None:
    """The study of Jain & Wallace, with so many seeds on the built-in corpora that there are 10,000 tasks."""
    study = read_study("jain-wallace")
    began = time.perf_counter()
    chosen = select(study, datasets=["planted-single", "planted-order"], seeds=120)
    made = plan(chosen.configs, chosen.asks)
    planned = time.perf_counter() - began
    began = time.perf_counter()
    for task in made.tasks.values():  # the least that a plan costs: a key is a hash of what a task is
        hashlib.sha256(json.dumps(task.config.model_dump(mode="json"), sort_keys=True).encode()).hexdigest()
    hashed = time.perf_counter() - began
    print(
        f"planning: {len(made):,} tasks in {planned:.1f} s, {planned / hashed:.1f} times hashing their configurations "
        "with json and hashlib"
    )


def eight_tasks(folder: Path) -> list[RunConfig]:
    """Trainings that differ only in their seed. The labels are coins: nothing to learn, so none ends early."""
    coins = np.random.default_rng(0).integers(2, size=TEXTS)
    reviews = folder / "reviews.csv"
    with reviews.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "label"))
        rows.writerows(zip((one.text for one in generate("single", TEXTS, seed=0)), coins, strict=True))
    model, data = {"embedding_dim": 64, "hidden_dim": 64}, {"tokenizer": "whitespace"}
    training = {"epochs": EPOCHS, "patience": EPOCHS}
    return [configure(str(reviews), data=data, model=model, training=training, seed=seed) for seed in range(TASKS)]


def seconds(configs: list[RunConfig], folder: Path, engine: Engine, cores: int) -> float:
    """Of the whole sweep, the start of the workers included."""
    shutil.rmtree(folder / "runs", ignore_errors=True)
    began = time.perf_counter()
    report = execute(plan(configs), Workspace(folder / "runs"), Progress(quiet=True), engine, cores=cores)
    taken = time.perf_counter() - began
    if len(report.done) != len(configs):
        raise SystemExit(f"the sweep did not finish: {report.failed}")
    return taken


def second_thread(configs: list[RunConfig], folder: Path) -> float:
    """How much faster a training is that has both cores to itself, all in this process."""
    seconds(configs[:1], folder, "here", 1)  # the first call of anything is slow
    one, two = (sum(seconds([c], folder, "here", cores) for c in configs[:3]) for cores in (1, 2))
    return one / two


def ray_is_here(home: Path) -> bool:
    """Start a small cluster of our own, which leaves nothing behind outside of `home`."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", HOME=str(home))
    try:
        import ray
    except ImportError:
        return False
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _temp_dir=str(home / "ray"),
    )
    return True


def main() -> None:
    planning()
    with tempfile.TemporaryDirectory(prefix="heedful-") as name:
        folder = Path(name)
        made = eight_tasks(folder)
        alone, local = seconds(made, folder, "local", 1), seconds(made, folder, "local", 2)
        print(
            f"local engine: {TASKS} equal tasks on two cores {alone / local:.2f} times faster than one after the other "
            f"({alone:.1f} s, {local:.1f} s); with two threads for each, one after the other, it would be "
            f"{second_thread(made, folder):.2f} times",
            flush=True,
        )
        if not ray_is_here(folder):
            print("Ray: not installed, not measured")
            return
        import ray

        try:
            spread = seconds(made, folder, "ray", 2)
        finally:
            ray.shutdown()
        print(f"Ray: the same on the same two cores {alone / spread:.2f} times faster ({spread:.1f} s)")


if __name__ == "__main__":
    main()
