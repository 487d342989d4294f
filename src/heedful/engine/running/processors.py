"""What a task computes with: cores, threads of torch, and the GPU that Ray has given it."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.engine.running.workspace import Workspace
from heedful.errors import Mistake, short

if TYPE_CHECKING:
    import torch


def cores() -> int:
    """The cores this process may use: its affinity, or less where a container has a quota."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            return max(1, min(allowed, int(quota) // int(period)))
    return allowed


@contextmanager
def threads(number: int) -> Iterator[None]:
    """So many threads for torch inside: sums are rounded by how they are split among threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def use_threads(number: int) -> None:
    """So many threads for torch from now on, where this thread of the process asks it: each has its own number."""
    import torch

    if torch.get_num_threads() != number:
        torch.set_num_threads(number)


def before_each_module(call: Callable[..., None]) -> None:
    """Every module of this process calls it before its forward pass: what it raises ends the pass."""
    import torch

    torch.nn.modules.module.register_module_forward_pre_hook(call)


@contextmanager
def stopped_after(seconds: float, say: str) -> Iterator[None]:
    """What is asked of networks here ends with a `Mistake` that says so, at the first module that is called late."""
    import torch

    end = time.perf_counter() + seconds

    def check(*_: object) -> None:
        if time.perf_counter() > end:
            raise Mistake(say)

    handle = torch.nn.modules.module.register_module_forward_pre_hook(check)
    try:
        yield
    finally:
        handle.remove()


def torch_device(name: str | None) -> torch.device:
    """By its name, if torch has it here."""
    import torch

    try:
        place = torch.device("cpu" if name is None else name)
        torch.empty(0, device=place)
    except (RuntimeError, AssertionError, TypeError, ValueError, OverflowError):
        raise Mistake(f"device={short(name)}: torch has no such device here; 'cpu' is always there.") from None
    return place


def find_device(workspace: Workspace) -> torch.device:
    """The one that was asked for. Ray shows a task only the GPU that is its own, so there is nothing to choose."""
    import torch

    if workspace.gpus == 0:
        return torch_device(workspace.device)
    if not torch.cuda.is_available():
        raise Mistake(
            f"--gpus: Ray gave this task a GPU of {socket.gethostname()}, and torch cannot use it there. "
            "Install a build of torch for its GPU on that node, or leave --gpus out."
        )
    return torch.device("cuda")
