"""Progress: bars on a terminal, quiet lines elsewhere, nothing when asked for silence."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

Send = Callable[[dict[str, Any]], None]
LINE_EVERY = 8.0  # seconds between two lines about the same task
RELAY_EVERY = 0.3  # seconds between two messages about the same bar


def columns() -> tuple[Any, ...]:
    detail = TextColumn("{task.fields[detail]}")
    times = TimeElapsedColumn(), TimeRemainingColumn()
    return TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), detail, *times


class ProgressBar:
    """One task's progress. This one shows nothing but its notes."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.say = say
        self.loss: float | None = None

    def advance(self, amount: int) -> None:
        """So many more of the total are done."""
        self.show(amount, None)

    def step(self, examples: int, loss: float) -> None:
        """A training step: `loss` is smoothed for the eye."""
        self.loss = loss if self.loss is None else 0.95 * self.loss + 0.05 * loss
        self.show(examples, f"loss {self.loss:.4f}")

    def note(self, text: str) -> None:
        """Something worth a line of its own."""
        self.say(text)

    def show(self, amount: int, detail: str | None) -> None:
        pass


class LineBar(ProgressBar):
    """Where there is no terminal: a line now and then, so that nobody takes a long task for a dead one."""

    def __init__(self, say: Callable[[str], None], name: str, total: int) -> None:
        super().__init__(say)
        self.name, self.total, self.done, self.detail = name, total, 0, ""
        self.began = self.told = time.monotonic()

    def show(self, amount: int, detail: str | None) -> None:
        self.done += amount
        self.detail = "" if detail is None else f", {detail}"
        if time.monotonic() - self.told >= LINE_EVERY:
            self.say(self.describe())

    def describe(self) -> str:
        self.told = time.monotonic()
        taken = self.told - self.began
        left = taken * (self.total / self.done - 1) if self.done else 0.0
        rest = f", about {left:.0f} s left" if left >= 1 else ""
        return f"{self.name}: {self.done:,} of {self.total:,} after {taken:.0f} s{rest}{self.detail}"


class RichBar(ProgressBar):
    """A bar on a terminal."""

    def __init__(self, say: Callable[[str], None], rich: RichProgress) -> None:
        super().__init__(say)
        self.rich = rich

    def show(self, amount: int, detail: str | None) -> None:
        fields: dict[str, Any] = {} if detail is None else {"detail": detail}
        self.rich.update(self.rich.task_ids[0], advance=amount, **fields)


@dataclass
class Progress:
    """Where progress goes. On stderr, so that stdout holds results only."""

    console: Console = field(default_factory=lambda: Console(stderr=True))
    quiet: bool = False
    under_way: list[Callable[[], str]] = field(default_factory=list)  # what is done now says where it is
    _told: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        self._told = time.monotonic()
        if not self.quiet:
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    @contextmanager
    def bar(self, name: str, total: int) -> Iterator[ProgressBar]:
        if self.quiet or not self.console.is_terminal:
            self.say(name)
            if self.quiet:
                yield ProgressBar(self.say)
                return
            bar = LineBar(self.say, name, total)
            with self.doing(bar.describe):
                yield bar
            return
        with RichProgress(*columns(), console=self.console, transient=True) as rich, self.doing(lambda: ""):
            rich.add_task(name, total=total, detail="")
            yield RichBar(self.say, rich)

    @contextmanager
    def doing(self, where: Callable[[], str]) -> Iterator[None]:
        """What is said in the meantime where a command would be silent; nothing where that is drawn (`""`)."""
        self.under_way.append(where)
        try:
            yield
        finally:
            self.under_way.pop()
            self._told = time.monotonic()

    def watch(self, every: float = LINE_EVERY) -> Callable[[], None]:
        """Say where the work is whenever nothing else was said for a while, until what is returned is called."""
        over, began = threading.Event(), time.monotonic()

        def beat() -> None:
            while not over.wait(every / 8):
                now = time.monotonic()
                if now - self._told >= every:
                    where = [one() for one in self.under_way[-1:]] or [f"still at work after {now - began:.0f} s"]
                    if where[0]:
                        self.say(where[0])

        thread = threading.Thread(target=beat, name="life signs", daemon=True)
        thread.start()

        def stop() -> None:
            over.set()
            thread.join()

        return stop


class Relay(Progress):
    """Progress that is sent elsewhere as plain messages: from a worker to the command that is watched."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self.send = send

    def say(self, text: str) -> None:
        self.send({"say": text})

    @contextmanager
    def bar(self, name: str, total: int) -> Iterator[ProgressBar]:
        yield RelayBar(self.send, total)


class RelayBar(ProgressBar):
    """Sums up what happens and tells it now and then."""

    def __init__(self, send: Send, total: int) -> None:
        super().__init__(lambda text: None)
        self.send, self.total, self.done, self.told = send, total, 0, 0.0

    def note(self, text: str) -> None:
        self.send({"detail": text})

    def show(self, amount: int, detail: str | None) -> None:
        self.done += amount
        now = time.monotonic()
        if now - self.told > RELAY_EVERY:
            self.told = now
            self.send({"part": self.done / max(1, self.total)})
