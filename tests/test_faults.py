"""A short form of the fault campaign (`make faults`): kills at random moments, damage, no room on the disk."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from faults import children, digests, sealed, write_corpus
from heedful.engine.carry_out import carry_out
from heedful.engine.configure import configure
from heedful.engine.place import Place
from heedful.engine.plan import Plan, ask, plan
from heedful.engine.progress import Progress

QUIET = Progress(quiet=True)
DRIVER = """
import sys; sys.path.insert(0, {tests!r}); sys.path.insert(0, {benchmarks!r})
from pathlib import Path
from test_faults import QUIET, place, study
from heedful.engine.carry_out import carry_out
report = carry_out(study(Path({truth!r})), place(Path({folder!r})), QUIET, {engine!r}, cores=1)
"""


def place(folder: Path) -> Place:
    return Place(folder / "runs", checkpoint_every=0.0)  # a checkpoint after every epoch


def script(truth: Path, folder: Path, engine: str) -> str:
    """A command of its own: the study of the folder `truth`, with its runs in `folder`."""
    here = Path(__file__).resolve()
    paths = {"tests": str(here.parent), "benchmarks": str(here.parents[1] / "benchmarks")}
    return DRIVER.format(truth=str(truth), folder=str(folder), engine=engine, **paths)


def study(folder: Path) -> Plan:
    configs = [
        configure(
            str(folder / "reviews.csv"),
            data={"tokenizer": "whitespace"},
            model={"encoder": encoder, "embedding_dim": 6, "hidden_dim": 8},
            training={"epochs": 8, "batch_size": 8},
        )
        for encoder in ("bilstm", "average")
    ]
    return plan(configs, [ask("permutation", limit=40), ask("adversarial", limit=40)])


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder whose study has been run without any disturbance."""
    folder = tmp_path_factory.mktemp("truth")
    write_corpus(folder / "reviews.csv")
    assert carry_out(study(folder), place(folder), QUIET, "here", cores=1).complete
    return folder, digests(folder / "runs")


def test_kills_of_the_command_and_of_its_workers(truth: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """The command is killed in the midst of training; the next one loses a worker, twice; nothing differs."""
    chance = random.Random(5)
    driver = subprocess.Popen([sys.executable, "-c", script(truth[0], tmp_path, "local")])
    wait_for(lambda: bool(list((tmp_path / "runs").glob("*/checkpoint.safetensors"))), driver)
    time.sleep(chance.uniform(0.0, 0.5))
    driver.kill()
    driver.wait()
    killed: list[int] = []

    def strike() -> None:
        while len(killed) < 2:
            time.sleep(chance.uniform(0.5, 3.0))
            if workers := [pid for pid in children(os.getpid()) if pid not in killed]:
                os.kill(workers[0], signal.SIGKILL)
                killed.append(workers[0])

    threading.Thread(target=strike, daemon=True).start()
    report = carry_out(study(truth[0]), place(tmp_path), QUIET, "local", cores=1)
    assert report.complete
    assert report.done or report.kept
    assert digests(tmp_path / "runs") == truth[1]


def wait_for(happened: object, process: subprocess.Popen[bytes], patience: float = 120.0) -> None:
    until = time.monotonic() + patience
    while not happened():  # type: ignore[operator]
        assert process.poll() is None, "the command ended before it could be killed"
        assert time.monotonic() < until, "the command does not get on"
        time.sleep(0.02)


@pytest.mark.parametrize("seed", range(8))
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
    report = carry_out(study(folder), place(folder), Progress(), "here", cores=1)
    assert report.done
    assert str(path) in capsys.readouterr().err.replace("\n", "")
    assert digests(folder / "runs") == expected


def test_no_room_on_the_disk(truth: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """No file may grow beyond a few bytes: the command says so; with room, it goes on as if nothing had been."""
    starved = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        + script(truth[0], tmp_path, "here")
        + "print(report.failed[0].error)"
    )
    done = subprocess.run([sys.executable, "-c", starved], capture_output=True, text=True)
    assert "cannot be written: File too large; make room and give the same command." in done.stdout, (
        done.stderr
    )
    assert carry_out(study(truth[0]), place(tmp_path), QUIET, "here", cores=1).complete
    assert digests(tmp_path / "runs") == truth[1]
