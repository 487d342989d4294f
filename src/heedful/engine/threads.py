"""Cores and threads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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
