"""`heedful serve` under load: 500 runs of 4,000 instances, 50 clients at once, a real server on loopback.

Prints the median and the 99th percentile for the overview and for instance pages; fails on any error.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RUNS, INSTANCES, CLIENTS, REQUESTS, SECONDS = 500, 4000, 50, 6, 60.0
PAIRS = ("attention/gradient_x_input", "attention/omission", "gradient_x_input/omission", "attention/random")
WORDS = 20


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
        ),
    }
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
        info = {
            "config": config,
            "task": "classification",
            "labels": ["no", "yes"],
            "data": {"fingerprint": dataset},
        }
        (folder / name / "config.json").write_text(json.dumps(info))
        means = {"overall": {"mean": float(rng.random())}}
        summaries = {
            "performance": {"accuracy": float(rng.random())},
            "permutation": means,
            "adversarial": means,
        }
        summaries["correlation"] = {
            pair: {"overall": {"tau": {"mean": float(rng.random())}}} for pair in PAIRS
        }
        for experiment, summary in summaries.items():
            (folder / name / "results" / f"{experiment}.summary.json").write_text(json.dumps(summary))
        for experiment, table in tables.items():
            _put(
                table,
                folder / name / "results" / f"{experiment}.parquet",
                folder / names[0] / "results" / f"{experiment}.parquet",
            )
        _put(
            pa.table(texts),
            folder / name / "texts" / "test.parquet",
            folder / names[0] / "texts" / "test.parquet",
        )
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


async def get(port: int, address: str) -> tuple[int, float]:
    """Status and seconds of one request, on a connection of its own."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
    body = await reader.read()
    writer.close()
    while chunk := await reader.read():
        body += chunk
    return int(body.split(b" ", 2)[1]), time.perf_counter() - began


async def load(port: int, addresses: list[str]) -> list[float]:
    """CLIENTS at once, each asks for REQUESTS addresses one after the other."""
    deadline = time.perf_counter() + SECONDS
    taken: list[float] = []

    async def client(number: int) -> None:
        for i in range(REQUESTS):
            if time.perf_counter() > deadline:
                return
            status, seconds = await get(port, addresses[(number * REQUESTS + i) % len(addresses)])
            if status != 200:
                raise RuntimeError(f"status {status}")
            taken.append(seconds)

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return taken


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server and the store are removed
    folder = Path(tempfile.mkdtemp(prefix="heedful-web-"))
    server = None
    try:
        names = write_store(folder)
        port, began = free_port(), time.perf_counter()
        command = [
            sys.executable,
            "-c",
            "from heedful.cli import main; main()",
            "serve",
            "--runs",
            str(folder),
            "--port",
            str(port),
        ]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while True:
            try:
                asyncio.run(get(port, "/static/icon.svg"))
                break
            except OSError:
                if server.poll() is not None or time.perf_counter() - began > 60:
                    raise RuntimeError("heedful serve did not start") from None
                time.sleep(0.02)
        print(f"serve: started with {RUNS} runs in {time.perf_counter() - began:.2f} s")
        _, first = asyncio.run(get(port, "/"))
        print(f"serve: first overview of {RUNS} runs x {INSTANCES:,} instances: {first * 1000:.0f} ms")
        overview = [
            "/",
            "/?measure=permutation",
            "/?encoder=cnn",
            "/?view=list&dataset=corpus1",
            "/?measure=adversarial&sort=value",
        ]
        instance = [f"/runs/{quote(name)}/examples/{7 * i % INSTANCES}" for i, name in enumerate(names)]
        for title, addresses in (("overview", overview), ("instance", instance)):
            taken = np.array(asyncio.run(load(port, addresses))) * 1000
            rate = len(taken) / max(taken.sum() / 1000 / CLIENTS, 1e-9)
            print(
                f"serve: {title}: {len(taken)} requests of {CLIENTS} clients, no error, "
                f"median {np.median(taken):.0f} ms, 99th percentile {np.quantile(taken, 0.99):.0f} ms, "
                f"{rate:.0f} a second"
            )
    finally:
        if server is not None:
            server.terminate()
            server.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
