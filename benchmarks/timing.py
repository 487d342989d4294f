"""Compare ways of doing the same thing, in one process, turn by turn, so that a busy machine slows both."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median


def seconds(*ways: Callable[[], object], repeats: int = 5) -> list[float]:
    """The median time of each way; they take turns, after one round that is not counted."""
    times: list[list[float]] = [[] for _ in ways]
    for turn in range(repeats + 1):
        for way, taken in zip(ways, times, strict=True):
            began = time.perf_counter()
            way()
            if turn:
                taken.append(time.perf_counter() - began)
    return [median(taken) for taken in times]
