"""The summaries of a study's runs as one small file: enough to make its page again, without weights, texts or training.

Parquet, a row for each run and experiment; the summary is JSON, its numbers to seven digits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from heedful.errors import Mistake
from heedful.report.comparison import Finished

COLUMNS = ("dataset", "encoder", "attention", "seed", "experiment", "summary")


def write_summaries(path: Path, runs: Sequence[Finished]) -> None:
    ordered = sorted(runs, key=lambda run: (run.setting, run.seed))
    rows = [
        (*run.setting, run.seed, experiment, json.dumps(_short(summary), separators=(",", ":")))
        for run in ordered
        for experiment, summary in run.stored.items()
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(COLUMNS)
    table = pa.table({name: list(column) for name, column in zip(COLUMNS, columns, strict=True)})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, compression="zstd", compression_level=19)


def read_summaries(path: Path) -> list[Finished]:
    """The runs that the file has the summaries of."""
    try:
        table = pq.read_table(path, columns=list(COLUMNS))
    except (OSError, pa.ArrowException, ValueError) as error:
        raise Mistake(f"{path} has no summaries of a study: {str(error)[:200]}") from None
    runs: dict[tuple[str, str, str, int], dict[str, Any]] = {}
    for row in table.to_pylist():
        about = (row["dataset"], row["encoder"], row["attention"], row["seed"])
        runs.setdefault(about, {})[row["experiment"]] = json.loads(row["summary"])
    return [Finished(about[:3], about[3], stored) for about, stored in runs.items()]


def _short(value: Any) -> Any:
    """With seven digits, which pages do not show."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, list) else value
