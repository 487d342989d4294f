"""Which task is next. Pure bookkeeping: no processes, no files, no clock of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from heedful.engine.tasks.kinds import TASK_KINDS
from heedful.engine.tasks.plan import Plan
from heedful.engine.tasks.task import Task

ATTEMPTS = 3  # times that a task may take its worker down before it is given up


@dataclass(frozen=True, slots=True)
class Failure:
    """`error` is one sentence; `details` the traceback, where it was not the user's mistake."""

    task: Task
    error: str
    details: str = ""
    mistake: bool = False  # of what was asked: the same again would fail again


@dataclass
class Report:
    """How a plan ended."""

    done: list[Task] = field(default_factory=list)  # computed now
    kept: list[Task] = field(default_factory=list)  # there before
    failed: list[Failure] = field(default_factory=list)
    blocked: list[Task] = field(default_factory=list)  # needed a task that failed

    @property
    def complete(self) -> bool:
        return not self.failed and not self.blocked


class Schedule:
    """Tasks become ready when all they need is finished."""

    def __init__(self, plan: Plan, finished: Iterable[str] = ()) -> None:
        self.tasks = plan.tasks
        self.report = Report(kept=[plan.tasks[key] for key in finished])
        over = {task.key for task in self.report.kept}
        self._left = {key: set(task.needs) - over for key, task in plan.tasks.items() if key not in over}
        self._after: dict[str, list[str]] = {}
        for key, needs in self._left.items():
            for need in needs:
                self._after.setdefault(need, []).append(key)
        self._deaths: dict[str, int] = {}
        self._later: dict[str, float] = {}  # tasks that others are at -> when to try again
        self._ready = Ready({key: place for place, key in enumerate(plan.tasks)})
        for key, needs in self._left.items():
            if not needs:
                self._ready.add(self.tasks[key])

    @property
    def over(self) -> bool:
        return not self._left

    @property
    def finished(self) -> int:
        return len(self.report.done) + len(self.report.kept)

    @property
    def unfinished(self) -> int:
        return len(self._left)

    def next(self, now: float, free: int, last: Task | None = None) -> Task | None:
        """The task to give to a worker whose last one was `last`, or None while there is none.

        What the worker has in memory decides first (model, then corpus), then what takes longest, then the
        order of the plan. `free` is the number of cores that are not in use.
        """
        for key in [key for key, since in self._later.items() if since <= now]:
            del self._later[key]
            self._ready.add(self.tasks[key])
        return self._ready.take(free, last)

    def waits_until(self) -> float | None:
        """When the first of the tasks that others are at is to be tried again."""
        return min(self._later.values(), default=None)

    def record(self, task: Task, result: Mapping[str, Any], later: float = 0.0) -> None:
        """What became of a task, as `Executor.attempt` tells it; `later` is when to try one that others are at."""
        if result["outcome"] == "busy":
            self.busy(task, later)
        elif result["outcome"] == "failed":
            self.failed(Failure(task, result["error"], result["details"], mistake=not result["details"]))
        else:
            self.done(task, kept=result["outcome"] == "kept")

    def done(self, task: Task, kept: bool = False) -> None:
        (self.report.kept if kept else self.report.done).append(task)
        del self._left[task.key]
        for key in self._after.get(task.key, ()):
            if key in self._left:
                self._left[key].discard(task.key)
                if not self._left[key]:
                    self._ready.add(self.tasks[key])

    def busy(self, task: Task, until: float) -> None:
        """Another process is at it: look again later."""
        self._later[task.key] = until

    def died(self, task: Task, how: str) -> bool:
        """Its worker died. True if the task is tried once more."""
        self._deaths[task.key] = self._deaths.get(task.key, 0) + 1
        if self._deaths[task.key] < ATTEMPTS:
            self._ready.add(task)
            return True
        self.failed(Failure(task, f"its worker died {ATTEMPTS} times ({how}); is there enough memory?"))
        return False

    def failed(self, failure: Failure) -> None:
        """The task is given up, and with it all that need it; the others go on."""
        self.report.failed.append(failure)
        del self._left[failure.task.key]
        for key in self._after.get(failure.task.key, ()):
            self._block(key)

    def _block(self, key: str) -> None:
        if key in self._left:
            del self._left[key]
            self.report.blocked.append(self.tasks[key])
            for after in self._after.get(key, ()):
                self._block(after)


class Ready:
    """Tasks that can begin, in heaps by run, by data and all together; what one has given the others skip."""

    def __init__(self, order: Mapping[str, int]) -> None:
        self.order = order
        self._tasks: dict[str, Task] = {}
        self._heaps: dict[object, list[tuple[bool, int, int, str]]] = {}

    def add(self, task: Task) -> None:
        self._tasks[task.key] = task
        urgency = (
            TASK_KINDS[task.kind].starts_run,
            -task.size,
            self.order[task.key],
            task.key,
        )  # what ends a run, then long ones
        for which in _shelves(task):
            heappush(self._heaps.setdefault(which, []), urgency)

    def take(self, free: int, last: Task | None) -> Task | None:
        for which in _shelves(last) if last is not None else (ALL,):
            found = self._first(self._heaps.get(which, []), free)
            if found is not None:
                return self._tasks.pop(found)
        return None

    def _first(self, heap: list[tuple[bool, int, int, str]], free: int) -> str | None:
        too_wide = []
        found = None
        while heap and found is None:
            entry = heappop(heap)
            task = self._tasks.get(entry[-1])
            if task is not None and task.threads <= free:
                found = task.key
            elif task is not None:
                too_wide.append(entry)
        for entry in too_wide:
            heappush(heap, entry)
        return found


ALL = "all"


def _shelves(task: Task) -> tuple[object, object, object]:
    """Where a task is found: with its run, with its data, with all."""
    return ("run", task.run), ("data", task.config.dataset, task.source), ALL
