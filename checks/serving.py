"""`heedful serve`, a real server on loopback: under load, and as a playground.

Load: 500 runs of 4,000 instances, 50 clients at once, on the overview and on instance pages, each for the first time
and again. Playground: a small model of the built-in corpus and one person, who types sentences, moves attention and
asks for the adversary. Prints medians and 99th percentiles; fails on any error.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heedful.experiments import Result, find
from heedful.experiments.framework.verdict import to_json
from heedful.store.checks import write_signed

RUNS, INSTANCES, CLIENTS, REQUESTS, SECONDS = 500, 4000, 50, 6, 60.0
PAIRS = ("attention/gradient_x_input", "attention/omission", "gradient_x_input/omission", "attention/random")
WORDS = 20
SENTENCES = 100  # typed into the playground


def write_store(folder: Path, runs: int = RUNS, instances: int = INSTANCES) -> list[str]:
    """Run folders with rows of the three experiments. The first is computed, the others are links to its files."""
    rng = np.random.default_rng(0)
    example, predicted = np.arange(instances), rng.integers(2, size=instances)
    base = {
        "example": example,
        "predicted": predicted,
        "max_attention": rng.random(instances),
        "n_words": np.full(instances, WORDS),
    }
    attention = pa.array(list(rng.dirichlet(np.ones(WORDS), instances)))
    tables = {
        "correlation": pa.table(
            {k: np.tile(v, 4) for k, v in base.items()}
            | {"pair": np.repeat(PAIRS, instances), "tau": rng.uniform(-1, 1, 4 * instances)}
        ),
        "permutation": pa.table(base | {"median": rng.random(instances)}),
        "adversarial": pa.table(
            base
            | {"jsd": rng.uniform(0, np.log(2), instances), "attention": attention, "adversarial": attention}
            | {"ceiling": np.full(instances, np.log(2)), "exact": np.ones(instances, dtype=bool)}
            | {"bound": np.full(instances, np.log(2))}
        ),
    }
    verdicts = {}
    for experiment, table in tables.items():
        verdict = find(experiment).verdict(Result(experiment, table, {}))
        assert verdict is not None
        verdicts[experiment] = to_json(verdict)
    text = pa.array([" ".join(f"word{j}" for j in range(WORDS))] * instances)
    spans = np.cumsum([0, *[len(f"word{j} ") for j in range(WORDS)]])
    starts, ends = spans[:-1].tolist(), (spans[1:] - 1).tolist()
    texts = {
        "example": example,
        "id": [f"t{i}" for i in example],
        "text": text,
        "forms": [[f"word{j}" for j in range(WORDS)]] * instances,
    }
    texts |= {"starts": [starts] * instances, "ends": [ends] * instances, "label": predicted}
    texts |= {f"query_{name}": pa.nulls(instances) for name in ("text", "forms", "starts", "ends")}
    texts |= {"evidence": pa.nulls(instances), "candidates": pa.nulls(instances)}
    names = []
    for i in range(runs):
        dataset, encoder = f"corpus{i % 12}", ("bilstm", "cnn", "average")[i // 12 % 3]
        attention_name = ("additive", "dot")[i // 36 % 2]
        name = f"{dataset}-{encoder}-{attention_name}-s{i}-{i:08x}"
        names.append(name)
        (folder / name / "results").mkdir(parents=True)
        (folder / name / "texts").mkdir()
        config = {
            "dataset": dataset,
            "model": {"encoder": encoder, "attention": attention_name},
            "training": {},
            "seed": i,
            "vectors": None,
        }
        info = {"config": config, "task": "classification", "labels": ["no", "yes"], "data": {"fingerprint": dataset}}
        (folder / name / "config.json").write_text(json.dumps(info))
        means = {"overall": {"mean": float(rng.random()), "q50": float(rng.random()), "mean_of_ceiling": 0.7}}
        summaries: dict[str, dict[str, Any]] = {"permutation": means, "adversarial": means}
        summaries["correlation"] = {
            pair: {"overall": {"tau": {"mean": float(rng.random()), "n": instances, "undefined": 0}}} for pair in PAIRS
        }
        for experiment, summary in summaries.items():
            path = folder / name / "results" / f"{experiment}.summary.json"
            write_signed(path, summary | {"verdict": verdicts[experiment]})
        scores = json.dumps({"accuracy": float(rng.random())})
        (folder / name / "results" / "performance.summary.json").write_text(scores)
        for experiment, table in tables.items():
            _put(
                table,
                folder / name / "results" / f"{experiment}.parquet",
                folder / names[0] / "results" / f"{experiment}.parquet",
            )
        _put(pa.table(texts), folder / name / "texts" / "test.parquet", folder / names[0] / "texts" / "test.parquet")
    return names


def _put(table: pa.Table, path: Path, first: Path) -> None:
    if path == first:
        pq.write_table(table, path, compression="zstd", row_group_size=512)
    else:
        path.hardlink_to(first)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def get(port: int, address: str, body: dict[str, Any] | None = None) -> tuple[int, float, bytes]:
    """Status, seconds and answer of one request, on a connection of its own; with a body it is a POST."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sent = b"" if body is None else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    head = f"{method} {address} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
    writer.write(head.encode() + sent)
    answer = await reader.read()
    writer.close()
    while chunk := await reader.read():
        answer += chunk
    return int(answer.split(b" ", 2)[1]), time.perf_counter() - began, answer.partition(b"\r\n\r\n")[2]


async def load(port: int, addresses: list[str]) -> list[float]:
    """CLIENTS at once, each asks for REQUESTS addresses one after the other."""
    deadline = time.perf_counter() + SECONDS
    taken: list[float] = []

    async def client(number: int) -> None:
        for i in range(REQUESTS):
            if time.perf_counter() > deadline:
                return
            status, seconds, _ = await get(port, addresses[(number * REQUESTS + i) % len(addresses)])
            if status != 200:
                raise RuntimeError(f"status {status}")
            taken.append(seconds)

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return taken


@contextmanager
def served(runs: Path) -> Iterator[tuple[int, int, float]]:
    """A server of its own process: its port, its process, and the seconds until it answered."""
    port, began = free_port(), time.perf_counter()
    command = [sys.executable, "-c", "from heedful.cli import main; main()", "serve"]
    server = subprocess.Popen([*command, "--runs", str(runs), "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        while True:
            try:
                asyncio.run(get(port, "/static/icon.svg"))
                break
            except OSError:
                if server.poll() is not None or time.perf_counter() - began > 60:
                    raise RuntimeError("heedful serve did not start") from None
                time.sleep(0.02)
        yield port, server.pid, time.perf_counter() - began
    finally:
        server.terminate()
        server.wait(10)


def cpu_seconds(pid: int) -> float:
    """What a process has used of its cores so far; nan where the system does not tell (/proc)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def told(title: str, taken: Sequence[float], more: str = "") -> None:
    ms = np.array(taken) * 1000
    print(f"{title}: median {np.median(ms):.0f} ms, 99th percentile {np.quantile(ms, 0.99):.0f} ms{more}", flush=True)


def under_load(folder: Path) -> None:
    names = write_store(folder)
    with served(folder) as (port, pid, started):
        print(f"serve: started with {RUNS} runs in {started:.2f} s ({cpu_seconds(pid):.2f} s of processor)")
        _, first, _ = asyncio.run(get(port, "/"))
        print(f"serve: first overview of {RUNS} runs x {INSTANCES:,} instances: {first * 1000:.0f} ms")
        _, first, _ = asyncio.run(get(port, f"/runs/{quote(names[0])}"))
        print(f"serve: first visit of a run's page: {first * 1000:.0f} ms")
        overview = [
            "/",
            "/?measure=permutation",
            "/?encoder=cnn",
            "/?view=list&dataset=corpus1",
            "/?measure=adversarial&sort=value",
        ]
        instance = [f"/runs/{quote(name)}/examples/{7 * i % INSTANCES}" for i, name in enumerate(names)]
        for title, addresses in (
            ("overview", overview),
            ("overview again", overview),
            ("instance", instance),
            ("instance again", instance),
        ):
            taken = asyncio.run(load(port, addresses))
            rate = len(taken) / max(sum(taken) / CLIENTS, 1e-9)
            told(
                f"serve: {title}: {len(taken)} requests of {CLIENTS} clients, no error", taken, f", {rate:.0f} a second"
            )


def playground(folder: Path) -> None:
    """Sentences that the server has not seen: every one is read, predicted and explained by every quick method."""
    from heedful import api
    from heedful.data.corpora import load as corpora
    from heedful.engine.running.progress import Progress

    run = api.train(
        "planted-single", runs=folder, embedding_dim=50, hidden_dim=64, epochs=1, progress=Progress(quiet=True)
    )
    texts = [example.passage.text for example in corpora.load("planted-single")["test"][: SENTENCES + 1]]
    address = f"/runs/{quote(run.name)}"

    with served(folder) as (port, pid, _):

        def ask(path: str, **body: Any) -> tuple[float, dict[str, Any]]:
            status, seconds, answer = asyncio.run(get(port, f"{address}/{path}", body))
            if status != 200:
                raise RuntimeError(f"status {status}: {answer[:200]!r}")
            return seconds, json.loads(answer)

        first, _ = ask("playground?format=json", text=texts[0])
        print(f"playground: first sentence, with the model and torch to load: {first:.1f} s")
        taken: dict[str, list[float]] = {"prediction and all explanations": [], "edited attention": [], "adversary": []}
        used = dict.fromkeys(taken, 0.0)
        for text in texts[1:]:
            for title in taken:
                before = cpu_seconds(pid)
                if title.startswith("prediction"):
                    seconds, seen = ask("playground?format=json", text=text)
                elif title.startswith("edited"):
                    weights = seen["attention"][1:] + seen["attention"][:1]
                    seconds, _ = ask("decode", text=text, weights=weights)
                else:
                    seconds, _ = ask("adversary", text=text)
                taken[title].append(seconds)
                used[title] += cpu_seconds(pid) - before
        for title, seconds_taken in taken.items():
            told(
                f"playground: {title}", seconds_taken, f" ({used[title] / SENTENCES * 1000:.0f} ms of processor, mean)"
            )


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server and the store are removed
    for part in (playground, under_load):
        folder = Path(tempfile.mkdtemp(prefix="heedful-web-"))
        try:
            part(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
