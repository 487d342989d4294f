"""The engine of one machine: workers beside the command, as many at a time as the cores allow.

A worker that dies (killed, out of memory) takes only its task with it, and that is given to a new worker.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from types import FrameType
from typing import IO, Any

from heedful.engine.running.display import TaskDisplay
from heedful.engine.running.schedule import Schedule
from heedful.engine.running.worker import Channel
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.task import Task

LOOK_AGAIN = 1.0  # seconds until a task that another process is at is tried again
PATIENCE = 20.0  # seconds that workers have to save what they have when the command is stopped
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Worker:
    """A process, the channel to it, and the task it is at."""

    def __init__(self, workspace: Workspace) -> None:
        ours, theirs = socket.socketpair()
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "heedful.engine.running.worker", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env={**os.environ, **ONE_THREAD},
                stdin=subprocess.DEVNULL,
                stdout=self.errors,
                stderr=self.errors,
                start_new_session=True,  # Ctrl-C reaches the command alone, which tells its workers
            )
        self.channel = Channel(ours)
        self.task: Task | None = None
        self.last: Task | None = None
        self.tell({"workspace": workspace.to_json()})

    def give(self, task: Task) -> None:
        self.task = self.last = task
        self.tell({"task": task.to_json()})

    def tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # it has just died: `receive` will say so
            self.channel.send(message)

    def farewell(self) -> str:
        """How it ended, with the last line it had to say."""
        self.channel.close()
        code = self.process.wait()
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        self.errors.close()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"{how}: {lines[-1]}" if lines else how

    def kill(self) -> None:
        self.process.kill()
        self.farewell()


def run_local(schedule: Schedule, workspace: Workspace, cores: int, display: TaskDisplay) -> None:
    """Do everything that is left of the schedule."""
    workers: list[Worker] = []
    try:
        with terminate_is_interrupt():
            while not schedule.over:
                hand_out(schedule, workers, workspace, cores, display)
                for worker in waiting(workers, schedule):
                    receive_result(worker, workers, schedule, display)
    except KeyboardInterrupt:
        stop(workers, display)
        raise
    finally:
        for worker in workers:
            worker.kill()


def hand_out(schedule: Schedule, workers: list[Worker], workspace: Workspace, cores: int, display: TaskDisplay) -> None:
    """Give every idle worker a task, and start workers while there are tasks and cores for them."""
    while True:
        free = cores - sum(worker.task.threads for worker in workers if worker.task is not None)
        idle = [worker for worker in workers if worker.task is None]
        if free < 1 or not (idle or len(workers) < cores):
            return
        worker = idle[0] if idle else None
        task = schedule.next(time.monotonic(), free, worker.last if worker else None)
        if task is None:
            return
        if worker is None:
            worker = Worker(workspace)
            workers.append(worker)
        display.begin(task)
        worker.give(task)


def waiting(workers: list[Worker], schedule: Schedule) -> list[Worker]:
    """The workers that have something to say, after waiting for the first of them."""
    until = schedule.waits_until()
    timeout = None if until is None else max(0.05, until - time.monotonic())
    ready, _, _ = select.select([worker.channel for worker in workers], [], [], timeout)
    return [worker for worker in workers if worker.channel in ready]


def receive_result(worker: Worker, workers: list[Worker], schedule: Schedule, display: TaskDisplay) -> None:
    messages = worker.channel.receive()
    if messages is None:
        workers.remove(worker)
        how = worker.farewell()
        if worker.task is not None:
            display.lost(worker.task, how)
        return
    for message in messages:
        task = worker.task
        assert task is not None
        if "outcome" not in message:
            display.message(task, message)
            continue
        worker.task = None
        schedule.record(task, message, time.monotonic() + LOOK_AGAIN)
        display.end(task, message["outcome"])


def stop(workers: list[Worker], display: TaskDisplay) -> None:
    """Let each worker save what it has; a second Ctrl-C does not wait for it."""
    display.say("stopping: each worker saves what it has (once more Ctrl-C does not wait)")
    until = time.monotonic() + PATIENCE
    at_work = [worker for worker in workers if worker.task is not None]
    with contextlib.suppress(KeyboardInterrupt):
        for worker in at_work:
            worker.tell({"stop": True})
        for worker in at_work:
            with contextlib.suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))


@contextlib.contextmanager
def terminate_is_interrupt() -> Iterator[None]:
    """A polite end (SIGTERM, as batch systems send it) is treated like Ctrl-C. Only the main thread may ask."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
