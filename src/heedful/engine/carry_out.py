"""Carry out a plan: the one road from tasks to results, whichever engine does the work."""

from __future__ import annotations

from typing import Literal

from heedful.config import RunConfig
from heedful.engine.board import Board
from heedful.engine.place import Place
from heedful.engine.plan import Plan, plan
from heedful.engine.progress import Progress
from heedful.engine.schedule import Report, Schedule
from heedful.engine.state import scan
from heedful.engine.threads import cores as usable_cores
from heedful.errors import Mistake
from heedful.store.files import clean
from heedful.store.run import Run

Engine = Literal["here", "local", "ray"]


def carry_out(
    planned: Plan,
    place: Place,
    progress: Progress,
    engine: Engine = "local",
    *,
    cores: int | None = None,
    address: str | None = None,
    strict: bool = False,
) -> Report:
    """Do what is not done. "here" is this process (one task after the other), "local" workers beside it.

    A failed task does not stop the others: it is in the report, with those that needed it. With `strict`
    ("here" only) its exception is raised instead.
    """
    try:
        place.runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"--runs {place.runs} cannot be written: {error.strerror}.") from None
    planned = planned.with_threads(1 if engine == "ray" else cores or usable_cores())
    tidy(planned, place, progress)
    schedule = Schedule(planned, finished=look_around(planned, place, progress))
    if not schedule.over:
        work(schedule, place, progress, engine, cores or usable_cores(), address, strict)
        tidy(planned, place, progress)  # of workers that died, while others went on
    publish(schedule.report, place)
    return schedule.report


def work(
    schedule: Schedule,
    place: Place,
    progress: Progress,
    engine: Engine,
    cores: int,
    address: str | None,
    strict: bool,
) -> None:
    if engine == "here":
        run_here(schedule, place, progress, strict)
        return
    with Board(progress, schedule) as board:
        if engine == "ray":
            from heedful.engine.ray_cluster import run_ray

            run_ray(schedule, place, cores, address, board)
        else:
            from heedful.engine.local import run_local

            run_local(schedule, place, cores, board)


def train_one(config: RunConfig, place: Place, progress: Progress) -> Run:
    """Train one configuration in this process, or take the run that is there."""
    planned = plan([config], (), place.data_dirs)
    (task,) = planned.of("train")
    report = carry_out(planned, place, progress, "here", strict=True)
    if report.kept:
        progress.say(f"{task.run} is there already")
    return Run(place.runs / task.run)


def run_here(schedule: Schedule, place: Place, progress: Progress, strict: bool) -> None:
    """In this process: Ctrl-C and the bars of a single task work as one expects."""
    from heedful.engine.workshop import Workshop

    workshop = Workshop(place)
    last = None
    while (task := schedule.next(now=0.0, free=1 << 30, last=last)) is not None:
        last = task
        if strict:
            schedule.done(task, kept=workshop.do(task, progress, wait=True) == "kept")
        else:
            schedule.heard(task, workshop.attempt(task, progress, wait=True))


def look_around(planned: Plan, place: Place, progress: Progress) -> list[str]:
    """The keys of what is finished. Damage is named."""
    found = scan(planned, place.runs)
    for state in found.values():
        if state.state == "damaged":
            progress.say(f"{state.note}; it is made again")
    return [key for key in planned.tasks if found[key].state == "finished"]


def publish(report: Report, place: Place) -> None:
    """Let the plain names of results stand for what was asked now."""
    for task in (*report.kept, *report.done):
        if task.kind == "summarise":
            assert task.ask is not None
            Run(place.runs / task.run).results.publish(task.ask.experiment, task.needs[0], task.key)


def tidy(planned: Plan, place: Place, progress: Progress) -> None:
    """Remove what killed processes have left half-written, here and in the runs of the plan."""
    runs = {place.runs / task.run for task in planned.tasks.values()}
    folders = [
        place.runs,
        *(path / part for path in runs for part in ("", "results", "results/kept", "texts")),
    ]
    removed = [path for folder in folders for path in clean(folder)]
    if removed:
        progress.say(f"removed {len(removed)} half-written files of processes that are gone")
