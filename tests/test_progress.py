"""Signs of life: no command is silent for long, whether or not its output is a terminal."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import transformer_zoo
from heedful.cli import app
from heedful.engine.running import progress as module
from heedful.engine.running.display import TaskDisplay
from heedful.engine.running.progress import Progress, ProgressBar
from heedful.engine.running.schedule import Schedule
from heedful.engine.tasks.rows import SLOW_TEXTS, ask_model
from heedful.engine.tasks.task import Request

SOON = 0.05


class Heard(io.StringIO):
    """What is printed; `wait` until one more line is there."""

    def __init__(self) -> None:
        super().__init__()
        self.more = threading.Event()

    def write(self, text: str) -> int:
        self.more.set()
        return super().write(text)

    def wait(self) -> str:
        self.more.clear()
        assert self.more.wait(60)
        return self.getvalue()


@pytest.fixture
def heard() -> Iterator[tuple[Progress, Heard]]:
    out = Heard()
    progress = Progress(Console(file=out, width=200))
    stop = progress.watch(SOON)
    yield progress, out
    stop()


def test_a_bar_that_does_not_move_says_where_it_is(heard: tuple[Progress, Heard]) -> None:
    progress, out = heard
    with progress.bar("permutation of ckpt", 40) as bar:
        while "permutation of ckpt: 0 of 40 after " not in out.wait():
            pass
        bar.advance(8)
        while "8 of 40 after " not in out.wait():
            pass
    while "still at work after " not in out.wait():  # between bars
        pass


def test_a_plan_of_several_tasks_says_what_is_under_way(heard: tuple[Progress, Heard]) -> None:
    progress, out = heard
    task: Any = type("Task", (), {"key": "k", "name": "train a", "kind": "fit"})()
    schedule: Any = type("Plan", (Schedule,), {"__init__": lambda self: None, "unfinished": 3, "tasks": [1, 2, 3, 4]})()
    with TaskDisplay(progress, schedule) as display:
        display.begin(task)
        display.message(task, {"part": 0.25})
        while "[1/4] train a: 25%" not in out.wait():
            pass


def test_silence_where_it_is_wanted_and_where_a_bar_is_drawn() -> None:
    for quiet in (True, False):
        out = Heard()
        progress = Progress(Console(file=out, force_terminal=not quiet), quiet=quiet)
        stop = progress.watch(SOON)
        with progress.bar("a bar", 4):
            threading.Event().wait(4 * SOON)
        stop()
        assert "of 4 after" not in out.getvalue()
        assert "still at work" not in out.getvalue()


def test_a_command_is_watched_and_its_watch_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[str] = []

    def watch(self: Progress, every: float = 0) -> Any:
        watched.append("begins")
        return lambda: watched.append("ends")

    monkeypatch.setattr(module.Progress, "watch", watch)
    for command in (["explain", "nowhere", "a text"], ["report", "nowhere"], ["run", "permutation", "nowhere"]):
        CliRunner().invoke(app, command)
        assert watched[-2:] == ["begins", "ends"], command
        assert len(watched) % 2 == 0
    before = len(watched)
    CliRunner().invoke(app, ["report", "nowhere", "--quiet"])
    assert len(watched) == before


def test_a_bar_moves_before_all_texts_are_read() -> None:
    """A batch of 64 texts times 100 permutations was one step of it: minutes of 0 of 40."""
    model = transformer_zoo.model("Bert")
    texts = [transformer_zoo.TEXTS[i % 3] for i in range(20)]
    steps: list[int] = []
    bar = ProgressBar(lambda text: None)
    bar.show = lambda amount, detail: steps.append(amount)  # type: ignore[method-assign]
    examples = dict(enumerate(model.examples(texts)))
    ask_model(model, examples, np.arange(20), Request(experiment="erasure"), 0, bar)
    assert (sum(steps), max(steps)) == (20, SLOW_TEXTS)
