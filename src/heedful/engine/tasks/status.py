"""What of a plan is there already, whole and of the right content."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.kinds import TASK_KINDS
from heedful.engine.tasks.plan import Plan
from heedful.engine.tasks.task import Status, Task
from heedful.store.checks import Damaged


def task_status(task: Task, workspace: Workspace) -> Status:
    """Files are hashed: a bit that has flipped is seen."""
    try:
        return TASK_KINDS[task.kind].status(task, workspace.run(task.run))
    except Damaged as damage:
        return Status("damaged", str(damage))


def plan_status(plan: Plan, workspace: Workspace) -> dict[str, Status]:
    """All tasks, several runs at a time: hashing leaves Python's lock free. What needs another run comes after it."""
    by_run: dict[str, list[Task]] = {}
    for task in plan.tasks.values():
        by_run.setdefault(task.run, []).append(task)
    if not workspace.runs.is_dir():
        return dict.fromkeys(plan.tasks, Status("missing"))
    there = {path.name for path in workspace.runs.iterdir()}
    found = {task.key: Status("missing") for run, tasks in by_run.items() if run not in there for task in tasks}
    with ThreadPoolExecutor(4) as pool:
        present = [tasks for run, tasks in by_run.items() if run in there]
        for states in pool.map(lambda tasks: _scan_run(tasks, workspace), present):
            found.update(states)
    return {key: _with_needs(task, found) for key, task in plan.tasks.items()}


def _scan_run(tasks: list[Task], workspace: Workspace) -> Mapping[str, Status]:
    """Every file is looked at, so that all damage is named."""
    return {task.key: task_status(task, workspace) for task in tasks}


def _with_needs(task: Task, found: dict[str, Status]) -> Status:
    """A result counts if what it was made from counts: tasks stand in a plan after those that they need."""
    if found[task.key].state == "finished" and any(found[key].state != "finished" for key in task.needs):
        found[task.key] = Status("missing")
    return found[task.key]
