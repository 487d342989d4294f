"""The schedule, played through with any order of endings: no process, no file."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.engine.running.schedule import ATTEMPTS, Failure, Schedule
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import Plan, ask, plan
from heedful.engine.tasks.task import Task

PLAN = plan(
    [configure(name, seed=seed) for name in ("planted-single", "planted-order") for seed in range(3)],
    [ask("permutation"), ask("adversarial")],
).with_threads(2)


def children(made: Plan, task: Task) -> set[str]:
    direct = {other.key for other in made.tasks.values() if task.key in other.needs}
    return direct.union(*(children(made, made.tasks[key]) for key in direct))


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_every_task_ends_once_and_after_what_it_needs(chance: random.Random, workers: int) -> None:
    """Workers die, tasks fail, others are at them: whatever happens, all is accounted for."""
    schedule, now = Schedule(PLAN), 0.0
    running: list[Task] = []
    ended: list[str] = []
    deaths: dict[str, int] = {}
    while not schedule.over:
        now += 1
        while len(running) < workers and (task := schedule.next(now, 2, chance.choice([None, *running]))) is not None:
            assert all(need in ended for need in task.needs)
            assert task.key not in {other.key for other in running}
            running.append(task)
        if not running:
            assert schedule.waits_until() is not None
            continue
        task = running.pop(chance.randrange(len(running)))
        happens = chance.choice(("done", "done", "done", "kept", "fails", "dies", "busy"))
        if happens == "fails":
            schedule.failed(Failure(task, "no"))
        elif happens == "busy":
            schedule.busy(task, now + 2)
        elif happens == "dies":
            deaths[task.key] = deaths.get(task.key, 0) + 1
            assert schedule.died(task, "SIGKILL") == (deaths[task.key] < ATTEMPTS)
        else:
            schedule.done(task, kept=happens == "kept")
            ended.append(task.key)
    report = schedule.report
    failed = [failure.task for failure in report.failed]
    over = [task.key for task in (*report.done, *report.kept, *failed, *report.blocked)]
    assert sorted(over) == sorted(PLAN.tasks)
    lost = set().union(*(children(PLAN, task) for task in failed))
    assert {task.key for task in report.blocked} == lost
    assert report.complete == (not failed)


def test_what_a_worker_has_in_memory_comes_first() -> None:
    schedule = Schedule(PLAN)
    first = schedule.next(0.0, 2)
    assert first is not None
    other = schedule.next(0.0, 2, first)  # no experiment is ready: a run on the same data
    assert other is not None
    assert (other.config.dataset, other.kind) == (first.config.dataset, "train")
    schedule.done(first)
    after = schedule.next(0.0, 2, first)
    assert after is not None
    assert (after.run, after.kind) == (first.run, "experiment")


def test_finished_tasks_are_not_given_out() -> None:
    trains = [task.key for task in PLAN.of("train")]
    schedule = Schedule(PLAN, finished=trains)
    given_out = []
    while (task := schedule.next(0.0, 1)) is not None:
        given_out.append(task)
        schedule.done(task)
    assert schedule.over
    assert {task.kind for task in given_out} == {"experiment", "summarise"}
    assert len(schedule.report.kept) == len(trains)


def test_a_task_waits_for_as_many_cores_as_it_has_threads() -> None:
    wide = Schedule(plan([configure("planted")]).with_threads(4))
    assert wide.next(0.0, 3) is None
    assert wide.next(0.0, 4) is not None
