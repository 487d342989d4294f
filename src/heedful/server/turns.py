"""Who may use the processor next: fair to clients, and within a client to short questions.

Some questions are worked on at once. One that has had the processor for a while gives way where others wait; the turn
goes to the client with the fewest turns now, of those to the one that had none for longest, and of its questions to the
one that has taken the least time so far. So neither many questions nor long ones make another client's short one wait.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from threading import Condition

AT_ONCE = 4  # questions that are worked on; their forward passes take turns
QUANTUM = 0.1  # seconds of a turn, where others wait


class Turns:
    """The turns of a queue, in which all its questions stand."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self.at_once = at_once
        self.changed = Condition()  # its lock is held for whatever follows
        self.waiting: list[Turn] = []
        self.running = Counter[str]()  # turns that each client has now
        self.last: dict[str, int] = {}  # when each client got one, in turns
        self.count = 0

    def next(self) -> Turn | None:
        """Whose turn it is, if another question may be worked on."""
        if not self.waiting or self.running.total() >= self.at_once:
            return None
        return min(
            self.waiting, key=lambda turn: (self.running[turn.client], self.last.get(turn.client, 0), turn.seconds)
        )


class Turn:
    """The turns of one question, one after the other."""

    def __init__(self, turns: Turns, client: str) -> None:
        self._turns, self.client = turns, client
        self.seconds = 0.0  # that it has had so far
        self._began: float | None = None  # of the turn that it has now

    def begin(self, given_up: Callable[[], bool]) -> bool:
        """Waits for a turn; False where it was given up meanwhile."""
        turns = self._turns
        with turns.changed:
            turns.waiting.append(self)
            try:
                turns.changed.wait_for(lambda: given_up() or turns.next() is self)
            finally:
                turns.waiting.remove(self)
                turns.changed.notify_all()
            if given_up():
                return False
            turns.running[self.client] += 1
            turns.count += 1
            turns.last[self.client] = turns.count
            self._began = time.monotonic()
            return True

    def end(self) -> None:
        """It has no turn any more, if it had one."""
        turns = self._turns
        with turns.changed:
            if self._began is None:
                return
            self.seconds += time.monotonic() - self._began
            self._began = None
            turns.running[self.client] -= 1
            here = {turn.client for turn in turns.waiting}
            for client in [client for client in turns.last if not turns.running[client] and client not in here]:
                del turns.last[client], turns.running[client]
            turns.changed.notify_all()

    def is_over(self) -> bool:
        """Whether it has lasted long enough, and others wait."""
        began = self._began
        return began is not None and bool(self._turns.waiting) and time.monotonic() - began > QUANTUM

    def wake(self) -> None:
        """Whoever waits looks whether it was given up."""
        with self._turns.changed:
            self._turns.changed.notify_all()
