"""A question to a model, while someone waits: it has a deadline, and ends when nobody waits any more.

A thread cannot be stopped from outside. So whatever asks a network looks at its question in between (`check`): every
module that is called does it (a hook of torch, put in place when the first model is loaded), and loops that take long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request

from heedful.errors import Mistake

T = TypeVar("T")
DEADLINE = 30.0  # seconds of work for one question
AT_ONCE = 4  # questions that are worked on; their forward passes take turns
MOST_WAITING = 24


class Busy(Mistake):
    """Too many questions at once: 503."""


class TooLong(Mistake):
    """A question whose answer would take longer than anyone should wait: 504."""


class Left(Exception):
    """Who asked has gone: there is nobody to answer."""


class ModelQuestion:
    def __init__(self, seconds: float = DEADLINE) -> None:
        self.seconds, self.left = seconds, False
        self._ends: float | None = None  # set when work on it begins: waiting in the queue does not count

    def work(self, answer: Callable[[], T]) -> T:
        """In the thread that answers."""
        self._ends = time.monotonic() + self.seconds
        before = _CURRENT.set(self)
        try:
            self.check()
            return answer()
        finally:
            _CURRENT.reset(before)

    def check(self) -> None:
        if self.left:
            raise Left
        if self._ends is not None and time.monotonic() > self._ends:
            raise TooLong(
                f"this took longer than the {self.seconds:g} seconds that a question may take while others wait: give "
                "a shorter text or fewer methods, or ask on the command line, where there is no limit."
            )

    def wait(self, seconds: float) -> None:
        """So much of its time was not its own."""
        if self._ends is not None:
            self._ends += seconds


_CURRENT: ContextVar[ModelQuestion | None] = ContextVar("question", default=None)


def check(*_: object) -> None:
    """End the question that this thread works on, if it is too late or nobody waits."""
    question = _CURRENT.get()
    if question is not None:
        question.check()


@contextmanager
def not_counted() -> Iterator[None]:
    """What is done here is not stopped, and does not count: loading a model that others will ask, too."""
    question, began = _CURRENT.get(), time.monotonic()
    before = _CURRENT.set(None)
    try:
        yield
    finally:
        _CURRENT.reset(before)
        if question is not None:
            question.wait(time.monotonic() - began)


class Lane:
    """A queue of questions, a few of which are worked on at once, each in a thread: reading pages stays fast."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once, self._waiting = at_once, 0
        self._limiter: CapacityLimiter | None = None  # belongs to an event loop

    async def ask(self, request: Request, answer: Callable[[], T]) -> T:
        """The answer; `Left` where the client has gone meanwhile, `TooLong` after the deadline."""
        if self._waiting >= MOST_WAITING:
            raise Busy("the models are busy with other questions: try again in a moment.")
        self._limiter = self._limiter or CapacityLimiter(self._at_once)
        question = ModelQuestion(DEADLINE)
        watcher = asyncio.ensure_future(_watch(request, question))
        self._waiting += 1
        try:
            return await to_thread.run_sync(question.work, answer, limiter=self._limiter)
        finally:
            self._waiting -= 1
            watcher.cancel()


async def _watch(request: Request, question: ModelQuestion) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    question.left = True
