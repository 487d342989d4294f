"""The fault campaign (`make faults`): a small study is killed, damaged, starved and doubled at random.

After each fault the same command is given again, and in the end every table must be what an undisturbed run
gives: weights, rows and summaries to the last bit (the seconds of training.parquet excepted). Everything that
is random comes from --seed.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from heedful.data.generated.planted import generate
from heedful.engine.running.schedule import ATTEMPTS
from heedful.store.run import SEALED, runs_in

STUDY = """
title = "small, for the fault campaign"
datasets = ["{reviews}"]
encoders = ["bilstm", "average"]
attentions = ["additive"]
seeds = 2
experiments = ["correlation", "permutation", "adversarial"]
[data]
tokenizer = "whitespace"
[model]
embedding_dim = 6
hidden_dim = 8
[training]
epochs = 3
batch_size = 16
"""
TEXTS = 500
TIMEOUT = 300.0  # seconds: a command that takes longer hangs


class Campaign:
    def __init__(self, folder: Path, seed: int, engine: tuple[str, ...] = ()) -> None:
        self.folder, self.rng, self.engine = folder, random.Random(seed), engine
        self.study = folder / "study.toml"
        reviews = folder / "reviews.csv"
        write_corpus(reviews)
        self.study.write_text(STUDY.format(reviews=reviews))
        self.runs = folder / "runs"
        self.log = folder / "log.txt"  # what all commands have printed
        self.faults: Counter[str] = Counter()
        self.given_up = 0  # commands that ended with a task whose workers we had killed too often
        self.began = time.monotonic()
        self.finish()
        self.duration = time.monotonic() - self.began
        self.truth = digests(self.runs)
        self.tell(f"undisturbed: {len(self.truth)} files in {self.duration:.1f} s")

    def command(self, file_limit: int | None = None, runs: Path | None = None) -> subprocess.Popen[bytes]:
        """The command that is always the same. `file_limit`: no file may become larger (a full disk)."""
        words = ["study", str(self.study), "--limit", "60", "--runs", str(runs or self.runs)]
        words += ["--cores", "2", "--checkpoint-every", "0", *self.engine]

        def limit() -> None:
            if file_limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))

        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", "from heedful.cli import main; main()", *words],
                stdout=log,
                stderr=log,
                preexec_fn=limit,
                start_new_session=True,
            )

    def finish(self) -> str:
        """Give the command and let it end; what it printed."""
        before = self.printed()
        code = self.command().wait(TIMEOUT)
        said = self.printed()[len(before) :]
        if code != 0:
            raise SystemExit(f"the command ended with {code}:\n{said}")
        return said

    def printed(self) -> str:
        return self.log.read_text() if self.log.exists() else ""

    def check(self, after: str) -> None:
        """Everything is as if nothing had happened, and nothing half-written is left."""
        found = digests(self.runs)
        if found != self.truth:
            wrong = sorted(name for name in found.keys() | self.truth.keys() if found.get(name) != self.truth.get(name))
            raise SystemExit(f"after {after} the results differ: {wrong}\nlog: {self.log.read_text()[-5000:]}")
        for run in runs_in(self.runs):
            run.check()

    def tell(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:6.1f} s  {text}", flush=True)

    def kills(self, number: int) -> None:
        """Kill the command or one of its workers at random moments; in between, start over now and then."""
        while self.faults.total() < number:
            shutil.rmtree(self.runs, ignore_errors=True)
            rounds: Counter[str] = Counter()
            while True:
                before = self.printed()
                end = self.disturb(self.command(), rounds, number)
                if end == 0:
                    break
                said = self.printed()[len(before) :]
                if end == 1 and lost_only(said):  # we killed the worker of one task too often
                    self.given_up += 1
                elif end > 0 and end != 130:
                    raise SystemExit(f"the command ended with {end}:\n{said}")
            self.check(f"{dict(rounds)}")
            self.faults += rounds
            self.tell(f"{self.faults.total()} of {number} kills; this round {dict(rounds)}; tables identical")

    def disturb(self, process: subprocess.Popen[bytes], rounds: Counter[str], number: int) -> int:
        """Strike while the command runs; its exit code."""
        while True:
            try:
                return process.wait(self.rng.uniform(0.2, 0.9 * self.duration))
            except subprocess.TimeoutExpired:
                if self.faults.total() + rounds.total() >= number:
                    return process.wait(TIMEOUT)
            how = self.rng.choice(("driver", "driver", "worker", "worker", "interrupt", "terminate"))
            if how == "worker":
                workers = workers_of(process.pid)
                if not workers:
                    continue
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.rng.choice(workers), signal.SIGKILL)
            else:
                number_of = {"driver": signal.SIGKILL, "interrupt": signal.SIGINT, "terminate": signal.SIGTERM}
                process.send_signal(number_of[how])
            rounds[how] += 1

    def damage(self, number: int) -> None:
        """Flip a bit of a file, or cut it off: the file is named and made again."""
        names = sorted(str(path.relative_to(self.runs)) for path in self.runs.rglob("*") if sealed(path))
        for name in self.rng.sample(names, min(number, len(names))):
            path = self.runs / name
            content = bytearray(path.read_bytes())
            if self.rng.random() < 0.5:
                content[self.rng.randrange(len(content))] ^= 1 << self.rng.randrange(8)
            else:
                del content[self.rng.randrange(len(content)) :]
            path.write_bytes(content)
            said = self.finish()
            if "damaged" not in said or path.name.split(".")[0] not in said:
                raise SystemExit(f"{name} was damaged, and the command does not say so:\n{said}")
            self.check(f"damage of {name}")
            self.faults["damaged file"] += 1
        self.tell(f"{self.faults['damaged file']} damaged files were named and made again; tables identical")

    def two_at_once(self) -> None:
        """Two commands on one folder, one of them killed; then two that both live."""
        for kill in (True, False):
            shutil.rmtree(self.runs, ignore_errors=True)
            first, second = self.command(), self.command()
            if kill:
                time.sleep(self.rng.uniform(0.3, 0.7) * self.duration)
                first.kill()
            codes = [first.wait(TIMEOUT), second.wait(TIMEOUT)]
            if codes != [-9 if kill else 0, 0]:
                raise SystemExit(f"two at once ended with {codes}:\n{self.log.read_text()[-5000:]}")
            self.check("two commands at once")
            self.faults["two at once"] += 1
        self.tell("two commands at once, one killed and not: tables identical")

    def full_disk(self) -> None:
        """No room for anything, for weights, for results: the command says so, and later goes on."""
        for limit in (0, 500, 3_000, 9_000):
            shutil.rmtree(self.runs, ignore_errors=True)
            code = self.command(file_limit=limit).wait(TIMEOUT)
            if code == 0:
                raise SystemExit(f"the command ended well although no file could have more than {limit} bytes")
            self.finish()
            self.check(f"a disk with {limit} bytes")
            self.faults["full disk"] += 1
        self.tell(f"{self.faults['full disk']} times no room on the disk: tables identical")

    def small_disk(self) -> None:
        """A real disk that is full (a small tmpfs, where we may mount one), and later is not."""
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", disk], capture_output=True).returncode:
            self.tell("a small disk could not be mounted here")
            return
        try:
            code = self.command(runs=disk / "runs").wait(TIMEOUT)
            if code != 1 or "No space left on device" not in self.log.read_text():
                raise SystemExit(f"on a full disk the command ended with {code}:\n{self.log.read_text()[-5000:]}")
            subprocess.run(["mount", "-o", "remount,size=100m", disk], check=True)
            if self.command(runs=disk / "runs").wait(TIMEOUT) or digests(disk / "runs") != self.truth:
                raise SystemExit(f"after a full disk the results differ:\n{self.log.read_text()[-5000:]}")
        finally:
            subprocess.run(["umount", disk], check=True)
        self.faults["full tmpfs"] += 1
        self.tell("a disk that was full and then was not: tables identical")


def lost_only(said: str) -> bool:
    """Did a command fail only at tasks that it gave up because their workers were killed again and again?"""
    return 0 < said.count("\nfailed: ") == said.count(f"\n  its worker died {ATTEMPTS} times (SIGKILL")


def write_corpus(path: Path, texts: int = TEXTS) -> None:
    """A few texts of the built-in corpus, so that a command takes seconds."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "label"))
        rows.writerows((planted.text, planted.label) for planted in generate("single", texts, seed=0))


def sealed(path: Path) -> bool:
    """The files that carry results (links to them are the same files)."""
    kept = path.parent.name == "kept"
    return path.is_file() and (kept or path.name == "SHA256SUMS" or any(str(path).endswith(name) for name in SEALED))


def digests(runs: Path) -> dict[str, str]:
    """Every file of the runs by content, without what is wall-clock time."""
    found = {}
    for path in sorted(runs.rglob("*")):
        name = str(path.relative_to(runs))
        if path.is_file() and not name.endswith((".locks", "SHA256SUMS", ".seal.json")):
            found[name] = hashlib.sha256(content(path)).hexdigest()
    return found


def content(path: Path) -> bytes:
    if path.name != "training.parquet":
        return path.read_bytes()
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return json.dumps([{k: v for k, v in row.items() if k != "seconds"} for row in rows]).encode()


def workers_of(pid: int) -> list[int]:
    """The workers that a command has started, and no other process."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(n) for n in children if b"heedful.engine.running.worker" in Path(f"/proc/{n}/cmdline").read_bytes()]
    except (FileNotFoundError, ProcessLookupError):
        return []  # gone by now


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--damages", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="only kills and damages")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heedful-faults-") as folder:
        campaign = Campaign(Path(folder), given.seed)
        campaign.kills(given.kills)
        campaign.damage(given.damages)
        if not given.short:
            campaign.full_disk()
            campaign.small_disk()
            campaign.two_at_once()
        campaign.tell(f"{campaign.given_up} commands gave a task up, and the next one went on")
        campaign.tell(f"all tables identical after {dict(campaign.faults)}")


if __name__ == "__main__":
    main()
