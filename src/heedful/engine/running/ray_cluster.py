"""The engine of many machines: the same tasks, on a Ray cluster.

Ray gives each task to a node with a free core, and again to another when the node or the worker is lost. Results
are written once, by key, to the runs folder, which all nodes must see (a shared file system); so a task that
is done twice does no harm. Nothing is kept in Ray: when the whole cluster is lost, the same command goes on.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from contextlib import chdir, nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.data.corpora import locate
from heedful.engine.running.display import TaskDisplay
from heedful.engine.running.schedule import Schedule
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.kinds import TASK_KINDS
from heedful.engine.tasks.task import Task
from heedful.errors import Mistake

if TYPE_CHECKING:
    from heedful.engine.running.executor import Executor

LOOK_AGAIN = 2.0  # seconds until a task that another process is at is tried again
RETRIES = 3  # times that Ray itself gives a lost task to another node
ANSWER = 10.0  # seconds that a cluster has to answer
AHEAD = 2  # tasks handed to Ray for each core, so that none waits for us


def run_ray(schedule: Schedule, workspace: Workspace, cores: int, address: str | None, display: TaskDisplay) -> None:
    """Do everything that is left of the schedule, on the cluster at `address` or on one of our own."""
    ray = import_ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ours = not ray.is_initialized()
    if ours:
        start(ray, cores, address)
    try:
        follow(ray, schedule, workspace, display)
    finally:
        if ours:
            ray.shutdown()


def import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise Mistake("--engine ray needs Ray; install it with pip install 'heedful[ray]'.") from None
    return ray


def start(ray: Any, cores: int, address: str | None) -> None:
    """Join the cluster at `address`, or start one on this machine, even if another is running here."""
    own = {"num_cpus": cores, "include_dashboard": False} if address is None else {}
    try:
        if address is not None and address != "auto":
            answers(address)  # Ray itself would try for many minutes
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **own)
    except Exception as error:  # Ray's own are of no common class
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        if address is None:
            raise Mistake(f"--engine ray: Ray cannot be started on this machine ({reason}).") from None
        raise Mistake(f"--address {address}: no Ray cluster can be reached ({reason}).") from None


def answers(address: str) -> None:
    """Does anything listen there? ray://HOST:PORT or HOST:PORT; raises OSError or ValueError."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError("HOST:PORT, ray://HOST:PORT or auto is expected")
    socket.create_connection((host, int(port)), timeout=ANSWER).close()


def follow(ray: Any, schedule: Schedule, workspace: Workspace, display: TaskDisplay) -> None:
    """Hand out what is ready, hear what is done."""
    check_gpus(ray, workspace)
    do = ray.remote(num_cpus=1, max_retries=RETRIES)(do_task)
    here = tuple(folder for folder in locate.data_dirs(workspace.data_dirs) if folder.is_dir())
    values, folder = replace(workspace, data_dirs=here).to_json(), str(Path.cwd())
    under_way: dict[Any, Task] = {}
    try:
        while not schedule.over:
            room = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1))) - len(under_way)
            while room > 0 and (task := schedule.next(time.monotonic(), free=1)) is not None:
                gpus = workspace.gpus if TASK_KINDS[task.kind].computes else 0
                under_way[do.options(num_gpus=gpus).remote(task.to_json(), values, folder)] = task
                display.begin(task)
                room -= 1
            ready, _ = ray.wait(list(under_way), timeout=0.5) if under_way else ([], [])
            for future in ready:
                receive_result(ray, future, under_way.pop(future), schedule, display)
            if not under_way:
                time.sleep(0.1)  # all that is left is being done by others
    finally:
        for future in under_way:  # stopped: what they have written so far stays
            ray.cancel(future, force=True)


def check_gpus(ray: Any, workspace: Workspace) -> None:
    """Ray itself would wait for such a node for ever."""
    found = ray.cluster_resources().get("GPU", 0.0)
    if workspace.gpus > found:
        raise Mistake(
            f"--gpus {workspace.gpus:g}: the Ray cluster has {found:g} GPUs. Start its nodes with --num-gpus, "
            "or leave --gpus out: tasks compute on CPUs then."
        )


def receive_result(ray: Any, future: Any, task: Task, schedule: Schedule, display: TaskDisplay) -> None:
    try:
        result = ray.get(future)
    except ray.exceptions.RayError as error:  # its node or worker was lost more often than Ray retries
        display.lost(task, type(error).__name__)
        return
    for text in result["said"]:
        display.say(text)
    schedule.record(task, result, time.monotonic() + LOOK_AGAIN)
    display.end(task, result["outcome"])


@lru_cache(maxsize=1)
def executor(workspace: Workspace) -> Executor:
    """One for each process of a node: the next task finds the last corpus and model there."""
    from heedful.engine.running.executor import Executor

    return Executor(workspace)


def do_task(task: dict[str, Any], workspace: dict[str, Any], folder: str) -> dict[str, Any]:
    """On a node, in the folder where the command was given, if the node has it: paths may be relative to it."""
    from heedful.engine.running.progress import Relay

    said: list[str] = []
    relay = Relay(lambda message: said.append(message["say"]) if "say" in message else None)
    with chdir(folder) if Path(folder).is_dir() else nullcontext():
        result = executor(Workspace.from_json(workspace)).attempt(Task.from_json(task), relay)
    return {**result, "said": said}
