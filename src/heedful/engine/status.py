"""What of a plan is there already, whole and of the right content."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heedful.engine.plan import Plan
from heedful.engine.task import Task
from heedful.store.checks import Damaged
from heedful.store.results import MADE_BY
from heedful.store.run import Run

Condition = Literal["finished", "interrupted", "missing", "damaged"]


@dataclass(frozen=True, slots=True)
class Status:
    """`note` names the file and says what is wrong with it, where it is damaged."""

    state: Condition
    note: str = ""


def task_status(task: Task, runs: Path) -> Status:
    """Files are hashed: a bit that has flipped is seen."""
    run = Run(runs / task.run)
    try:
        if task.kind == "train":
            return _train(run, task)
        assert task.ask is not None
        if task.kind == "experiment":
            return _rows(run, task.ask.experiment, task.key)
        return _summary(run, task.ask.experiment, task.needs[0], task.key)
    except Damaged as damage:
        return Status("damaged", str(damage))


def plan_status(plan: Plan, runs: Path) -> dict[str, Status]:
    """All tasks, several runs at a time: hashing leaves Python's lock free."""
    by_run: dict[str, list[Task]] = {}
    for task in plan.tasks.values():
        by_run.setdefault(task.run, []).append(task)
    if not runs.is_dir():
        return dict.fromkeys(plan.tasks, Status("missing"))
    there = {path.name for path in runs.iterdir()}
    found = {
        task.key: Status("missing") for run, tasks in by_run.items() if run not in there for task in tasks
    }
    with ThreadPoolExecutor(4) as pool:
        present = [tasks for run, tasks in by_run.items() if run in there]
        for states in pool.map(lambda tasks: _scan_run(tasks, runs), present):
            found.update(states)
    return found


def _scan_run(tasks: list[Task], runs: Path) -> Mapping[str, Status]:
    """Every file is looked at, so that all damage is named; a result counts if what it was made from counts."""
    found: dict[str, Status] = {}
    for task in tasks:
        here = task_status(task, runs)
        if here.state == "finished" and any(found[key].state != "finished" for key in task.needs):
            here = Status("missing")
        found[task.key] = here
    return found


def _train(run: Run, task: Task) -> Status:
    if not run.path.exists():
        return Status("missing")
    if run.finished:
        run.check()
        return Status("finished")
    return Status("interrupted" if run.interrupted else "missing")


def _rows(run: Run, experiment: str, key: str) -> Status:
    """Rows count when they are whole, and of the weights that the run has now."""
    seal = run.results.check_rows(experiment, key)
    if seal is None or not run.finished or seal["weights"] != run.sums().get("model.safetensors"):
        return Status("missing")
    return Status("finished")


def _summary(run: Run, experiment: str, rows: str, key: str) -> Status:
    summary = run.results.check_summary(experiment, key)
    seal = run.results.seal(experiment, rows)
    if summary is None or seal is None or summary[MADE_BY]["rows"] != seal["rows"]:
        return Status("missing")
    return Status("finished")
