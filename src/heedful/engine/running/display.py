"""The progress of a whole plan: one bar for all tasks and a line for each under way; quiet lines elsewhere."""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from rich.progress import Progress as RichProgress
from rich.progress import TaskID

from heedful.engine.running.progress import Progress, columns
from heedful.engine.running.schedule import Schedule
from heedful.engine.tasks.kinds import TASK_KINDS
from heedful.engine.tasks.task import Task


class TaskDisplay:
    def __init__(self, progress: Progress, schedule: Schedule) -> None:
        self.progress, self.schedule = progress, schedule
        self.began: dict[str, float] = {}
        self.parts: dict[str, tuple[str, float]] = {}  # what is under way, and how much of it is done
        self.lines: dict[str, TaskID] = {}
        self.rich: RichProgress | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if not self.progress.quiet and self.progress.console.is_terminal:
            rich = RichProgress(*columns(), console=self.progress.console, transient=True)
            self.rich = self._stack.enter_context(rich)
            self.all = rich.add_task("all tasks", total=len(self.schedule.tasks), detail="")
            rich.update(self.all, completed=self.schedule.finished)
        self._stack.enter_context(self.progress.doing(self._describe))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _describe(self) -> str:
        if self.rich is not None:
            return ""
        over, at = len(self.schedule.tasks) - self.schedule.unfinished, list(self.parts.values())
        return f"[{over}/{len(self.schedule.tasks)}] " + "; ".join(f"{name}: {part:.0%}" for name, part in at)

    def say(self, text: str) -> None:
        self.progress.say(text)

    def begin(self, task: Task) -> None:
        self.began[task.key] = time.monotonic()
        self.parts[task.key] = task.name, 0.0
        if self.rich is not None:
            self.lines[task.key] = self.rich.add_task(f"  {task.name}", total=100, detail="")

    def message(self, task: Task, message: dict[str, Any]) -> None:
        """What a worker tells about its task."""
        if "say" in message:
            self.say(message["say"])
            return
        if "part" in message:
            self.parts[task.key] = task.name, message["part"]
        if self.rich is not None and task.key in self.lines:
            if "part" in message:
                self.rich.update(self.lines[task.key], completed=100 * message["part"])
            else:
                self.rich.update(self.lines[task.key], detail=message["detail"])

    def lost(self, task: Task, how: str) -> None:
        """Whoever was at it is gone: it is tried again, but not for ever."""
        again = self.schedule.died(task, how)
        self.say(f"a worker died ({how}) at {task.name}; {'it is tried again' if again else 'given up'}")
        self.end(task, "busy" if again else "failed")

    def end(self, task: Task, how: str) -> None:
        """`how`: done, kept, busy, failed ..."""
        self.parts.pop(task.key, None)
        taken = time.monotonic() - self.began.pop(task.key, time.monotonic())
        if self.rich is not None:
            if task.key in self.lines:
                self.rich.remove_task(self.lines.pop(task.key))
            self.rich.update(self.all, completed=len(self.schedule.tasks) - self.schedule.unfinished)
        if how == "busy":
            return
        over = len(self.schedule.tasks) - self.schedule.unfinished
        if TASK_KINDS[task.kind].computes or how == "failed":
            self.say(f"[{over}/{len(self.schedule.tasks)}] {task.name}: {how} ({taken:.1f} s)")
