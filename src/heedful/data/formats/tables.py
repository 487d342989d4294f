"""Tables of any of our file formats, read the same way: column names, and rows with their line numbers."""

from __future__ import annotations

import csv
import re
import sys
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from heedful.data.formats.rows import Ledger, byte_lines, json_lines, open_bytes
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
class InputTable:
    """`rows` gives (line number, values by column name) once, as the file is read.

    Of lines of JSON, any row may bring a field: `missing` says how many of the `counted` rows have not got it.
    """

    path: Path
    columns: tuple[str, ...]
    rows: Iterator[tuple[int, Mapping[str, Any]]]
    counted: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)

    def has(self, column: str) -> int:
        """How many rows have a field that some lack; 0 where that is not counted."""
        return self.counted - self.missing[column] if column in self.missing else 0


def file_format(path: Path) -> Format | None:
    """The format that the file's name tells, gzipped or not; None if it tells none."""
    return FORMATS.get(Path(path.name.lower().removesuffix(".gz")).suffix)


def read_table(
    path: Path, ledger: Ledger, delimiter: str | None = None, header: bool = True, wanted: Sequence[str] = ()
) -> InputTable:
    """Without a header the columns are called 1, 2, 3 ... `wanted` columns help to see the delimiter."""
    kind = file_format(path)
    if kind is None:
        known = ", ".join(FORMATS)
        raise Mistake(f"{path}: the name of a data file ends in one of {known} (each also with .gz).")
    if kind == "separated":
        return _separated(path, ledger, delimiter, header, wanted)
    return _json(path, ledger) if kind == "jsonl" else _parquet(path)


def _separated(path: Path, ledger: Ledger, delimiter: str | None, header: bool, wanted: Sequence[str]) -> InputTable:
    delimiter, first = read_header(path, delimiter, wanted)
    columns = tuple(first) if header else tuple(str(i) for i in range(1, len(first) + 1))
    rows = separated_rows(path, ledger, delimiter, len(columns), has_header=header)
    return InputTable(path, columns, ((line, dict(zip(columns, fields, strict=True))) for line, fields in rows))


def _json(path: Path, ledger: Ledger) -> InputTable:
    fields, counted = json_fields(path)
    rows = json_lines(path, ledger)
    if not fields and (first := next(rows, None)):  # nothing but empty objects; what is worse was raised
        rows = chain([first], rows)
    missing = {name: counted - has for name, has in fields.items() if has < counted}
    return InputTable(path, tuple(fields), rows, counted, missing)


def json_fields(path: Path) -> tuple[Counter[str], int]:
    """How many rows have each field, in the order of first appearance, and how many rows there are."""
    fields: Counter[str] = Counter()
    counted = 0
    for _, row in json_lines(path, Ledger(skip_bad=True)):  # what is bad is said when the rows are read
        fields.update(row.keys())
        counted += 1
    return fields, counted


def _parquet(path: Path) -> InputTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open_bytes(path) as file:  # pyarrow reads plain files by itself; a gzipped one is unpacked first
            packed = path.name.lower().endswith(".gz")
            source = pq.ParquetFile(pa.BufferReader(file.read()) if packed else str(path))
            columns = tuple(source.schema_arrow.names)
    except (pa.ArrowException, OSError, EOFError, zlib.error, ValueError) as error:
        raise Mistake(f"{path} is not a readable Parquet file ({_reason(error)}).") from None
    return InputTable(path, columns, _parquet_rows(path, source))


def _parquet_rows(path: Path, source: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow as pa

    row = 0
    try:
        for batch in source.iter_batches(batch_size=4096):
            for values in batch.to_pylist():
                row += 1
                yield row, values
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise Mistake(f"{path}: the Parquet data cannot be read after row {row} ({_reason(error)}).") from None


def _reason(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


# Rows of comma or tab separated files, with the true number of the line each one begins on.


DELIMITERS = ",;|\t"
NO_DELIMITERS = '"\r\n'
_ESCAPED = re.compile("[\udc80-\udcff]")  # how Python writes bytes that were not UTF-8


class _Feed:
    """Lines for the csv module; remembers those of the row under way, so that they can be given back."""

    def __init__(self, path: Path, ledger: Ledger, delimiter: str) -> None:
        # Bytes that are not UTF-8 travel as lone surrogates through the csv module and are found after it.
        self._lines = ((n, b.decode("utf-8", "surrogateescape")) for n, b in byte_lines(path, ledger))
        self._waiting: deque[tuple[int, str]] = deque()
        self.taken: list[tuple[int, str]] = []
        self._delimiter = delimiter
        self._reader = csv.reader(self, delimiter=delimiter, strict=True)

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        item = self._waiting.popleft() if self._waiting else next(self._lines)
        self.taken.append(item)
        return item[1]

    def give_back_all_but_first(self) -> None:
        self._waiting.extendleft(reversed(self.taken[1:]))

    def next_row(self) -> list[str] | None:
        """By the rules of the csv module; None at the end; csv.Error for broken quotes."""
        self.taken.clear()
        limit = csv.field_size_limit(sys.maxsize)  # a text can be longer than the module's 128 KiB
        try:
            return next(self._reader, None)
        except csv.Error:
            self._reader = csv.reader(self, delimiter=self._delimiter, strict=True)  # without half a row
            raise
        finally:
            csv.field_size_limit(limit)


def _plain(line: str, delimiter: str) -> list[str]:
    return line.rstrip("\r\n").split(delimiter)


def read_header(path: Path, delimiter: str | None, wanted: Sequence[str] = ()) -> tuple[str, list[str]]:
    """The delimiter and the fields of the first line.

    Where no delimiter is given: a tab for .tsv and .tab, otherwise the one of , ; | and tab that gives
    the first line the most of the wanted columns, then the most fields (a comma if they are equal).
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in NO_DELIMITERS):
        raise Mistake(f"a delimiter is one character, and not a quote or line end; given: {delimiter!r}.")
    if delimiter is None and path.name.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        delimiter = "\t"
    best: list[str] = []
    score, chosen = (0, 0), delimiter or ","
    for one in delimiter or DELIMITERS:
        try:
            fields = _Feed(path, Ledger(), one).next_row() or []
        except csv.Error as error:
            if delimiter is None and one != ",":
                continue
            raise Mistake(f"{path}, line 1: the header is broken ({_why(error)}).") from None
        names = [name.strip() for name in fields]
        this = (sum(name in names for name in wanted), len(names))
        if this > score:
            best, score, chosen = names, this, one
    if not best:
        raise Mistake(f"{path} is empty; its first line should name its columns.")
    if any(_not_utf8(name) for name in best):
        raise Mistake(f"{path}, line 1: the header is not valid UTF-8.")
    return chosen, best


def separated_rows(
    path: Path, ledger: Ledger, delimiter: str, width: int, has_header: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """(number of the line it begins on, fields) for each row; blank lines are not rows.

    Quotes are those of the csv module: "a ""quoted"" field", which may hold delimiters and line ends.
    A broken row ends where its first line ends, so that one stray quote does not swallow the rest.
    In a tab separated file quotes are often meant as they stand: lines that would be complete rows
    by themselves are read so when the quotes do not close, or close only on a later line.
    """
    feed = _Feed(path, ledger, delimiter)
    first = has_header
    while True:
        trouble = ""
        try:
            fields = feed.next_row()
        except csv.Error as error:
            fields, trouble = [], f"the quotes or line ends are broken ({_why(error)})"
        if fields is None:
            return
        if first:
            first = False
            continue
        if not fields and not trouble:
            continue
        line = feed.taken[0][0]
        if not trouble and len(fields) != width:
            trouble = f"{len(fields)} fields where the header has {width}"
        if delimiter == "\t" and (trouble or len(feed.taken) > 1):
            plain = _plain(feed.taken[0][1], delimiter)
            alone = all(len(_plain(text, delimiter)) == width for _, text in feed.taken)
            if len(plain) == width and (trouble or alone):
                feed.give_back_all_but_first()
                fields, trouble = plain, ""
        if trouble:
            feed.give_back_all_but_first()
            ledger.bad(path, line, trouble)
        elif any(_not_utf8(value) for value in fields):
            ledger.bad(path, line, f"column {_first_bad(fields)} is not valid UTF-8")
        else:
            yield line, fields


def _why(error: csv.Error) -> str:
    """What Python's reader complains of, about the file and not about how it was opened."""
    said = str(error)
    return "a carriage return stands inside a line, outside of quotes" if "new-line character" in said else said


def _not_utf8(value: str) -> bool:
    return not value.isascii() and _ESCAPED.search(value) is not None


def _first_bad(fields: list[str]) -> int:
    return next(i for i, value in enumerate(fields, start=1) if _not_utf8(value))
