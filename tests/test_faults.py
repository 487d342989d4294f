"""A short form of the fault campaign (`make faults`): kills at random moments, damage, no room on the disk."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from digests import digests, sealed, workers_of
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import Plan, ask, plan
from planted_reviews import reviews

QUIET = Progress(quiet=True)


def place(folder: Path) -> Workspace:
    return Workspace(folder / "runs", checkpoint_every=0.0)  # a checkpoint after every epoch


def study(folder: Path) -> Plan:
    configs = [
        configure(
            str(folder / "reviews.csv"),
            data={"tokenizer": "whitespace"},
            model={"encoder": encoder, "embedding_dim": 6, "hidden_dim": 8},
            training={"epochs": 6, "batch_size": 8},
        )
        for encoder in ("bilstm", "average")
    ]
    return plan(configs, [ask("permutation", limit=40), ask("adversarial", limit=40)])


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder whose study has been run without any disturbance."""
    folder = tmp_path_factory.mktemp("truth")
    reviews(folder / "reviews.csv", 300)
    assert execute(study(folder), place(folder), QUIET, "here", cores=1).complete
    return folder, digests(folder / "runs")


def test_kills_of_the_command_and_of_its_workers(truth: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """The command is killed in the midst of training; the next one loses a worker, twice; nothing differs."""
    chance = random.Random(5)
    driver = subprocess.Popen([sys.executable, __file__, truth[0], tmp_path])
    wait_for(lambda: bool(list((tmp_path / "runs").glob("*/config.json"))), driver)
    time.sleep(chance.uniform(0.0, 0.5))
    driver.kill()
    driver.wait()
    killed: list[int] = []
    over = threading.Event()

    def strike() -> None:
        while len(killed) < 2 and not over.wait(chance.uniform(0.5, 3.0)):
            if workers := [pid for pid in workers_of(os.getpid()) if pid not in killed]:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])

    threading.Thread(target=strike, daemon=True).start()
    report = execute(study(truth[0]), place(tmp_path), QUIET, "local", cores=1)
    over.set()
    assert killed
    assert report.complete
    assert digests(tmp_path / "runs") == truth[1]


def wait_for(happened: Callable[[], bool], process: subprocess.Popen[bytes], patience: float = 120.0) -> None:
    until = time.monotonic() + patience
    while not happened():
        assert process.poll() is None, "the command ended before it could be killed"
        assert time.monotonic() < until, "the command does not get on"
        time.sleep(0.02)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))])
def test_a_damaged_file_is_named_and_made_again(
    truth: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    folder, expected = truth
    chance = random.Random(seed)
    files = sorted(path for path in (folder / "runs").rglob("*") if sealed(path))
    path = chance.choice(files)
    content = bytearray(path.read_bytes())
    if seed % 2:
        del content[chance.randrange(len(content)) :]
    else:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    report = execute(study(folder), place(folder), Progress(), "here", cores=1)
    assert report.done
    assert str(path) in capsys.readouterr().err.replace("\n", "")
    assert digests(folder / "runs") == expected


def test_no_room_on_the_disk(truth: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """No file may become larger than 4,000 bytes. The command says so; with room, it goes on as if nothing had been."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, before[1]))
    try:
        report = execute(study(truth[0]), place(tmp_path), QUIET, "here", cores=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert report.failed
    said = report.failed[0].error
    assert said.endswith("cannot be written: File too large; make room and give the same command.")
    assert execute(study(truth[0]), place(tmp_path), QUIET, "here", cores=1).complete
    assert digests(tmp_path / "runs") == truth[1]


if __name__ == "__main__":  # the command that is killed: the study of the first folder, with its runs in the second
    execute(study(Path(sys.argv[1])), place(Path(sys.argv[2])), QUIET, "local", cores=1)
