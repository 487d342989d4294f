"""The files of runs by their content, and the processes that make them: for tests that compare, damage and kill."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pyarrow.parquet as pq

from heedful.store.run import SEALED


def digests(runs: Path) -> dict[str, str]:
    """Every file of the runs by content, without what is wall-clock time."""
    made = {}
    for path in sorted(runs.rglob("*")):
        if not path.is_file() or path.name.endswith((".locks", "SHA256SUMS", ".seal.json")):
            continue
        content = path.read_bytes()
        if path.name == "training.parquet":
            content = json.dumps(pq.read_table(path).drop_columns("seconds").to_pylist()).encode()
        made[str(path.relative_to(runs))] = hashlib.sha256(content).hexdigest()
    return made


def sealed(path: Path) -> bool:
    """Whether the file carries results (links to them are the same files)."""
    kept = path.parent.name == "kept"
    return path.is_file() and (kept or path.name == "SHA256SUMS" or path.name.endswith(tuple(SEALED)))


def workers_of(pid: int) -> list[int]:
    """The workers that a command has started, and no other process."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(n) for n in children if b"heedful.engine.running.worker" in Path(f"/proc/{n}/cmdline").read_bytes()]
    except (FileNotFoundError, ProcessLookupError):
        return []  # gone by now
