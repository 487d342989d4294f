"""A question to a model, while someone waits: it has a deadline, and ends when nobody waits any more.

A thread cannot be stopped from outside. So whatever asks a network looks at its question in between (`check`): every
module that is called does it (a hook of torch, put in place when the first model is loaded), and loops that take long.
There, too, a question that has had its turn gives way to those of other clients (turns.py).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request

from heedful.errors import Mistake
from heedful.server.turns import AT_ONCE, Turn, Turns

T = TypeVar("T")
DEADLINE = 30.0  # seconds of work for one question
MOST_WAITING = 24  # questions of one client
MOST_CLIENTS = 3  # that may each have so many questions waiting


class Busy(Mistake):
    """Too many questions at once: 503."""


class TooLong(Mistake):
    """A question whose answer would take longer than anyone should wait: 504."""


class Left(Exception):
    """Who asked has gone: there is nobody to answer."""


class ModelQuestion:
    def __init__(self, seconds: float = DEADLINE, turn: Turn | None = None) -> None:
        self.seconds, self.left = seconds, False
        self._turn = turn  # None: nobody else asks
        self._ends: float | None = None  # set when work on it begins: waiting for a turn does not count

    def work(self, answer: Callable[[], T]) -> T:
        """In the thread that answers."""
        self._take_turn()
        self._ends = time.monotonic() + self.seconds
        before = _CURRENT.set(self)
        try:
            self.check()
            return answer()
        finally:
            _CURRENT.reset(before)
            if self._turn is not None:
                self._turn.end()

    def check(self) -> None:
        if self.left:
            raise Left
        if self._ends is not None and time.monotonic() > self._ends:
            raise TooLong(
                f"this took longer than the {self.seconds:g} seconds that a question may take while others wait: give "
                "a shorter text or fewer methods, or ask on the command line, where there is no limit."
            )
        if self._turn is not None and self._turn.is_over():
            with self.aside():
                pass

    def leave(self) -> None:
        """Nobody waits for it any more."""
        self.left = True
        if self._turn is not None:
            self._turn.wake()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Without a turn, and without using up its time; then it takes its next turn."""
        began = time.monotonic()
        if self._turn is not None:
            self._turn.end()
        try:
            yield
        finally:
            self._take_turn()
            if self._ends is not None:
                self._ends += time.monotonic() - began

    def _take_turn(self) -> None:
        if self._turn is not None and not self._turn.begin(lambda: self.left):
            raise Left


_CURRENT: ContextVar[ModelQuestion | None] = ContextVar("question", default=None)


def check(*_: object) -> None:
    """End the question that this thread works on, if it is too late or nobody waits."""
    question = _CURRENT.get()
    if question is not None:
        question.check()


@contextmanager
def not_counted() -> Iterator[None]:
    """What is done here is not stopped, and does not count: loading a model that others will ask, too."""
    question = _CURRENT.get()
    if question is None:
        yield
        return
    before = _CURRENT.set(None)
    try:
        with question.aside():
            yield
    finally:
        _CURRENT.reset(before)


@contextmanager
def alone(lock: Lock) -> Iterator[None]:
    """With a lock: who waits for it has no turn meanwhile, so that who holds it gets one."""
    question = _CURRENT.get()
    if question is None or lock.acquire(blocking=False):
        if question is None:
            lock.acquire()
    else:
        with question.aside():
            while not lock.acquire(timeout=0.1):
                if question.left:
                    raise Left
    try:
        yield
    finally:
        lock.release()


class Lane:
    """A queue of questions, a few of which are worked on at once, each in a thread: reading pages stays fast."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._turns = Turns(at_once)
        self._asked: dict[ModelQuestion, str] = {}  # and the client that waits for it
        self._limiter: CapacityLimiter | None = None  # belongs to an event loop
        self._closed = False

    async def ask(self, request: Request, answer: Callable[[], T]) -> T:
        """The answer; `Left` where the client has gone meanwhile, `TooLong` after the deadline."""
        client = request.client.host if request.client is not None else ""
        waiting = list(self._asked.values())
        if waiting.count(client) >= MOST_WAITING or len(waiting) >= MOST_CLIENTS * MOST_WAITING:
            raise Busy("the models are busy with other questions: try again in a moment.")
        if self._closed:
            raise Left
        self._limiter = self._limiter or CapacityLimiter(MOST_CLIENTS * MOST_WAITING)
        question = ModelQuestion(DEADLINE, Turn(self._turns, client))
        watcher = asyncio.ensure_future(_watch(request, question))
        self._asked[question] = client
        try:
            return await to_thread.run_sync(question.work, answer, limiter=self._limiter, abandon_on_cancel=True)
        finally:
            self._asked.pop(question, None)
            watcher.cancel()

    def close(self) -> None:
        """The server ends: nobody will be answered any more."""
        self._closed = True
        for question in list(self._asked):
            question.leave()


async def _watch(request: Request, question: ModelQuestion) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    question.leave()
