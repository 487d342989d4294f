"""Who works on what: one lock for each task, all in one small file of the runs folder.

A task's lock is one byte of that file, at the place its key says, so nothing is left behind. The system
releases it when its holder ends, however it ends. POSIX locks also hold between machines that share a folder.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE = ".locks"


@contextmanager
def lock(runs: Path, key: str, wait: bool = False) -> Iterator[bool]:
    """True inside when the task is ours, False when another process is at it (and `wait` is not asked for).

    One lock at a time in a process: closing the file lets go of all of them (POSIX).
    """
    runs.mkdir(parents=True, exist_ok=True)
    handle = os.open(runs / FILE, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, int(key[:15], 16))
        except (BlockingIOError, PermissionError):
            yield False
        else:
            yield True
    finally:
        os.close(handle)
