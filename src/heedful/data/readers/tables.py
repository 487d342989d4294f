"""Tables of any of our file formats, read the same way: column names, and rows with their line numbers."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from heedful.data.readers.lines import json_lines, open_bytes
from heedful.data.readers.rows import Ledger
from heedful.data.readers.separated import read_header, separated_rows
from heedful.errors import Mistake

Format = Literal["separated", "jsonl", "parquet"]
FORMATS: dict[str, Format] = {
    ".csv": "separated",
    ".tsv": "separated",
    ".tab": "separated",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` gives (line number, values by column name) once, as the file is read."""

    path: Path
    columns: tuple[str, ...]
    rows: Iterator[tuple[int, Mapping[str, Any]]]


def file_format(path: Path) -> Format | None:
    """The format that the file's name tells, gzipped or not; None if it tells none."""
    return FORMATS.get(Path(path.name.lower().removesuffix(".gz")).suffix)


def read_table(
    path: Path,
    ledger: Ledger,
    delimiter: str | None = None,
    header: bool = True,
    wanted: Sequence[str] = (),
) -> Table:
    """Without a header the columns are called 1, 2, 3 ... `wanted` columns help to see the delimiter."""
    kind = file_format(path)
    if kind is None:
        known = ", ".join(FORMATS)
        raise Mistake(f"{path}: the name of a data file ends in one of {known} (each also with .gz).")
    if kind == "separated":
        return _separated(path, ledger, delimiter, header, wanted)
    return _json(path, ledger) if kind == "jsonl" else _parquet(path)


def _separated(
    path: Path, ledger: Ledger, delimiter: str | None, header: bool, wanted: Sequence[str]
) -> Table:
    delimiter, first = read_header(path, delimiter, wanted)
    columns = tuple(first) if header else tuple(str(i) for i in range(1, len(first) + 1))
    rows = separated_rows(path, ledger, delimiter, len(columns), has_header=header)
    return Table(path, columns, ((line, dict(zip(columns, fields, strict=True))) for line, fields in rows))


def _json(path: Path, ledger: Ledger) -> Table:
    rows = json_lines(path, ledger)
    first = next(rows, None)
    if first is None:
        return Table(path, (), iter(()))
    return Table(path, tuple(first[1]), chain([first], rows))


def _parquet(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_bytes(path) as file:  # pyarrow reads plain files by itself; a gzipped one is unpacked first
            packed = path.name.lower().endswith(".gz")
            source = pq.ParquetFile(pa.BufferReader(file.read()) if packed else str(path))
            columns = tuple(source.schema_arrow.names)
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError) as error:
        raise Mistake(f"{path} is not a readable Parquet file ({_reason(error)}).") from None
    return Table(path, columns, _parquet_rows(path, source))


def _parquet_rows(path: Path, source: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow as pa

    row = 0
    try:
        for batch in source.iter_batches(batch_size=4096):
            for values in batch.to_pylist():
                row += 1
                yield row, values
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise Mistake(
            f"{path}: the Parquet data cannot be read after row {row} ({_reason(error)})."
        ) from None


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
