"""Are the runs in two folders the same, bit for bit: every weight, row and summary value?

    python checks/same_runs.py BEFORE AFTER

For changes that must not change a number: make a small study before and after, and compare. What differs is named;
the exit code is 1 if anything does. Keys of tasks and times are not compared: they follow from the code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from safetensors.numpy import load_file

NOT_COMPARED = {"task", "sha256", "seconds", "made", "versions"}  # keys of tasks, seals, times


def values(folder: Path) -> Iterator[tuple[str, Any]]:
    """Everything that runs say, by place."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.suffix == ".safetensors":
            for weight, array in load_file(path).items():
                yield f"{name}:{weight}", array.tobytes()
        elif path.suffix == ".parquet" and "kept" not in path.parts:
            columns = pq.ParquetFile(path).read()
            for column in columns.column_names:
                if column not in NOT_COMPARED:
                    yield f"{name}:{column}", repr(columns[column].to_pylist())
        elif path.name.endswith(".summary.json") and "kept" not in path.parts:
            yield from leaves(json.loads(path.read_text(encoding="utf-8")), name)


def leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in NOT_COMPARED:
                yield from leaves(inner, f"{place}/{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, f"{place}/{i}")
    else:
        yield place, repr(value)


def main(before: str, after: str) -> int:
    one, other = dict(values(Path(before))), dict(values(Path(after)))
    if not one:
        print(f"{before} holds no runs.")
        return 2
    differ = [place for place in one if place not in other or one[place] != other[place]]
    added = [place for place in other if place not in one]
    for place in differ:
        missing = place not in other
        print(f"{place}: {'missing' if missing else f'{one[place]!r:.100} is now {other[place]!r:.100}'}")
    for place in added:
        print(f"{place}: new")
    print(f"{len(one):,} values in {before}: {len(differ):,} differ, {len(added):,} are new.")
    return 1 if differ or added else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
