"""Carry out a plan: the one road from tasks to results, whichever engine does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from heedful.config import RunConfig
from heedful.engine.running.display import TaskDisplay
from heedful.engine.running.processors import cores as usable_cores
from heedful.engine.running.progress import Progress
from heedful.engine.running.schedule import Report, Schedule
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.plan import Plan, plan
from heedful.engine.tasks.status import plan_status
from heedful.errors import Mistake
from heedful.files import clean
from heedful.store.run import Run

if TYPE_CHECKING:
    from heedful.engine.running.executor import Executor

PARTS = ("", "results", "results/kept", "texts", "explainers", "pretrained")  # of a run's folder, with files of ours
Engine = Literal["here", "local", "ray"]


def execute(
    planned: Plan,
    workspace: Workspace,
    progress: Progress,
    engine: Engine = "local",
    *,
    cores: int | None = None,
    address: str | None = None,
    strict: bool = False,
    executor: Executor | None = None,
) -> Report:
    """Do what is not done. "here" is this process (one task after the other), "local" workers beside it.

    A failed task does not stop the others: it is in the report, with those that needed it. With `strict`
    ("here" only) its exception is raised instead. An `executor` ("here" only) that is given again has the last data and
    the last model in memory.
    """
    if cores is not None and cores < 1:
        raise Mistake(f"--cores {cores}: at least one core is needed.")
    try:
        workspace.runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"--runs {workspace.runs} cannot be written: {error.strerror}.") from None
    planned = planned.with_threads(1 if engine == "ray" else cores or usable_cores())
    tidy(planned, workspace, progress)
    schedule = Schedule(planned, finished=look_around(planned, workspace, progress))
    if not schedule.over:
        if engine == "here":
            run_here(schedule, workspace, progress, strict, executor)
        else:
            work(schedule, workspace, progress, engine, cores or usable_cores(), address)
        tidy(planned, workspace, progress)  # of workers that died, while others went on
    publish(schedule.report, workspace)
    return schedule.report


def work(
    schedule: Schedule, workspace: Workspace, progress: Progress, engine: Engine, cores: int, address: str | None
) -> None:
    """By workers beside this process, on this machine or on a cluster."""
    with TaskDisplay(progress, schedule) as display:
        if engine == "ray":
            from heedful.engine.running.ray_cluster import run_ray

            run_ray(schedule, workspace, cores, address, display)
        else:
            from heedful.engine.running.local import run_local

            run_local(schedule, workspace, cores, display)


def train_one(config: RunConfig, workspace: Workspace, progress: Progress) -> Run:
    """Train one configuration in this process, or take the run that is there."""
    planned = plan([config], (), workspace.data_dirs, hash_file=workspace.hash_file)
    *_, task = planned.of("train")  # after those that its objective needs
    report = execute(planned, workspace, progress, "here", strict=True)
    if task in report.kept:
        progress.say(f"{task.run} is there already")
    return workspace.run(task.run)


def run_here(
    schedule: Schedule, workspace: Workspace, progress: Progress, strict: bool, executor: Executor | None = None
) -> None:
    """In this process: Ctrl-C and the bars of a single task work as one expects."""
    from heedful.engine.running.executor import Executor

    executor = executor or Executor(workspace)
    last = None
    while (task := schedule.next(now=0.0, free=1 << 30, last=last)) is not None:
        last = task
        if strict:
            schedule.done(task, kept=executor.do(task, progress, wait=True) == "kept")
        else:
            schedule.record(task, executor.attempt(task, progress, wait=True))


def look_around(planned: Plan, workspace: Workspace, progress: Progress) -> list[str]:
    """The keys of what is finished. Damage is named."""
    found = plan_status(planned, workspace)
    for state in found.values():
        if state.state == "damaged":
            progress.say(f"{state.note}; it is made again")
    return [key for key in planned.tasks if found[key].state == "finished"]


def publish(report: Report, workspace: Workspace) -> None:
    """Let the plain names of results stand for what was asked now."""
    for task in (*report.kept, *report.done):
        if task.kind == "summarise":
            assert task.ask is not None
            workspace.run(task.run).results.publish(task.ask.experiment, task.needs[0], task.key)


def tidy(planned: Plan, workspace: Workspace, progress: Progress) -> None:
    """Remove what killed processes have left half-written, here and in the runs of the plan."""
    runs = {workspace.runs / task.run for task in planned.tasks.values()}
    folders = [workspace.runs, *(path / part for path in runs for part in PARTS)]
    removed = [path for folder in folders for path in clean(folder)]
    if removed:
        progress.say(f"removed {len(removed)} half-written files of processes that are gone")
