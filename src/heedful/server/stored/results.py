"""Rows of experiments, read by DuckDB from their Parquet files: only the columns that a page needs."""

from __future__ import annotations

import json
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from heedful.errors import Mistake
from heedful.measure.columns import Floats, Frame
from heedful.server.stored.library import Missing, Stamp
from heedful.server.stored.recent import Recent
from heedful.store.results import Results

File = tuple[Path, Stamp]  # of rows, as it was found
Group = tuple[str, str]  # a column and the value of it whose rows are meant
Counts = dict[int, list[int]]  # predicted label -> texts in each bin
KEPT = 64  # frames: some 10 MB with 4,000 instances each
KEPT_ROWS = 2048  # instances
KEPT_COLUMNS = 512  # sorted, for the place of a value among all: some 16 MB with 4,000 instances each
KEPT_COUNTS = 20_000


@dataclass(frozen=True, slots=True)
class Footer:
    columns: dict[str, str]  # name -> type
    made_by: dict[str, Any]  # split, options; empty where the file says nothing


class StoredResults:
    """One DuckDB for all requests; what was read is kept until the file changes."""

    def __init__(self) -> None:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "threads": 2,
        }
        self._database = duckdb.connect(":memory:", config=settings)
        self._lock, self._counting = threading.Lock(), threading.Lock()
        self._frames, self._rows, self._sorted = Recent(KEPT), Recent(KEPT_ROWS), Recent(KEPT_COLUMNS)
        self._counts: OrderedDict[Any, Counts] = OrderedDict()
        self._footers: dict[File, Footer] = {}
        self._groups: dict[tuple[File, str], list[str]] = {}

    def query(self, sql: str, parameters: Sequence[Any], path: Path | str) -> duckdb.DuckDBPyConnection:
        """What cannot be read is a mistake that names `path`."""
        try:
            return self._database.cursor().execute(sql, list(parameters))
        except duckdb.Error as error:
            first = str(error).splitlines()[0]
            raise Mistake(f"{Path(path).name} cannot be read ({first}): make these results again.") from None

    def footer(self, table: File) -> Footer:
        """What the end of a Parquet file says: its columns, and how it was made."""
        if table not in self._footers:
            Results(table[0].parent).check_published(table[0].stem)  # read once, until it changes
            try:
                found = pq.read_schema(table[0])
            except (pa.ArrowException, OSError) as error:
                first = str(error).splitlines()[0]
                raise Mistake(f"{table[0].name} cannot be read ({first}): make these results again.") from None
            try:
                said = json.loads((found.metadata or {}).get(b"heedful", b"{}"))
            except ValueError:
                said = {}
            columns = {name: str(kind) for name, kind in zip(found.names, found.types, strict=True)}
            self._footers[table] = Footer(columns, said if isinstance(said, dict) else {})
        return self._footers[table]

    def _whole(self, table: File) -> bool:
        """Whether a page of many runs can count on a file; the page of its own run says what is wrong with it."""
        try:
            self.footer(table)
        except Mistake:
            return False
        return True

    def groups(self, table: File, by: str | None) -> list[str]:
        """The values of the column that tells the rows of one text apart; empty where there is none."""
        if by is None or by not in self.footer(table).columns:
            return []
        if (table, by) not in self._groups:
            name = _quoted(by)
            sql = (
                f"select {name}::varchar from {scan('file_row_number')} "
                f"group by {name} order by min(file_row_number), {name}"
            )
            rows = self.query(sql, [plain_path(table[0])], table[0]).fetchall()
            self._groups[table, by] = [str(row[0]) for row in rows]
        return self._groups[table, by]

    def frame(self, table: File, column: str, group: Group | None) -> Frame:
        return self._frames.get((table, column, group), lambda: self._frame(table, column, group))

    def _frame(self, table: File, column: str, group: Group | None) -> Frame:
        schema = self.footer(table).columns
        for needed in ("example", "predicted", column):
            if needed not in schema:
                raise Missing(f"{table[0].name} has no column {needed!r} (it has: {', '.join(schema)}).")
        extra = [name if name in schema else "null" for name in ("max_attention", "n_words")]
        where, asked = _only(group)
        sql = (
            f"select example::bigint, coalesce(predicted, -1)::bigint, {extra[0]}::double, "
            f"coalesce({extra[1]}, 0)::bigint, {_quoted(column)}::double from {scan()} {where}"
        )
        found = list(self.query(sql, [plain_path(table[0]), *asked], table[0]).fetchnumpy().values())
        example, predicted, attention, n_words, value = (np.ma.asarray(array) for array in found)
        return Frame(
            example.filled(-1), predicted.filled(-1), attention.filled(np.nan), n_words.filled(0), value.filled(np.nan)
        )

    def histograms(
        self, tables: Sequence[File], column: str, group: Group | None, low: float, high: float, bins: int
    ) -> dict[File, Counts]:
        """Counts of `column` in equal bins by predicted label, for many files in one query.

        The last bin is closed; what lies outside is counted in the outermost bin.
        """
        wanted = {table: (table, column, group, low, high, bins) for table in tables}
        with self._counting:  # many who ask at once wait for one who reads
            with self._lock:
                missing = [table for table, key in wanted.items() if key not in self._counts]
            read = self._count(missing, column, group, low, high, bins) if missing else {}
            with self._lock:
                for table in missing:
                    self._counts[wanted[table]] = read.get(table, {})
        with self._lock:
            answer = {table: self._counts[key] for table, key in wanted.items()}
            _drop_oldest(self._counts, KEPT_COUNTS)
        return answer

    def _count(
        self, tables: Sequence[File], column: str, group: Group | None, low: float, high: float, bins: int
    ) -> dict[File, Counts]:
        tables = [table for table in tables if self._whole(table)]
        by_file = {str(path): (path, stamp) for path, stamp in tables}
        where, of_group = _only(group)
        sql = (
            f"select filename, coalesce(predicted, -1)::bigint as label, "
            f"greatest(0, least(? - 1, floor(({_quoted(column)} - ?) / ? * ?)))::bigint as bin, count(*) "
            f"from {scan('filename', 'union_by_name')} {where} "
            f"and {_quoted(column)} is not null group by all"
        )
        asked = [bins, low, high - low, bins, [plain_path(path) for path, _ in tables]]
        try:
            rows = self.query(sql, [*asked, *of_group], "one of the results").fetchall()
        except Mistake:
            if len(tables) == 1:
                return {}  # a file without this column, or a broken one: its cell stays empty
            parts = [self._count([table], column, group, low, high, bins) for table in tables]
            return {table: counts for part in parts for table, counts in part.items()}
        found: dict[File, Counts] = {}
        for filename, label, place, count in rows:
            counts = found.setdefault(by_file[filename], {})
            counts.setdefault(int(label), [0] * bins)[int(place)] = int(count)
        return found

    def rows(self, table: File, example: int) -> list[dict[str, Any]]:
        """Everything that an experiment says about one instance."""
        return self._rows.get((table, example), lambda: self._read_rows(table, example))

    def _read_rows(self, table: File, example: int) -> list[dict[str, Any]]:
        sql = f"select * from {scan()} where example = ?"
        if "example" not in self.footer(table).columns:
            return []
        cursor = self.query(sql, [plain_path(table[0]), example], table[0])
        names = [str(description[0]) for description in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def lists(self, table: File, column: str, places: Sequence[int]) -> dict[int, list[float]]:
        """A column of lists of numbers, by place, of a page of instances."""
        if not {"example", column} <= set(self.footer(table).columns) or not places:
            return {}
        sql = f"select example::bigint, {_quoted(column)} from {scan()} where example in (select unnest(?))"

        def read() -> dict[int, list[float]]:
            found = self.query(sql, [plain_path(table[0]), list(places)], table[0]).fetchall()
            return {int(place): weights for place, weights in found if weights is not None}

        return self._rows.get((table, column, tuple(places)), read)

    def range(self, tables: Sequence[File], column: str, group: Group | None) -> tuple[float, float]:
        """The least and the greatest value in these files; 0 to 1 where there is none."""
        where, of_group = _only(group)
        name = _quoted(column)
        sql = (
            f"select min({name})::double, max({name})::double from {scan('union_by_name')} "
            f"{where} and isfinite({name}::double)"
        )
        ends = []
        for table in tables:
            if column in self.footer(table).columns:
                asked = [plain_path(table[0]), *of_group]
                ends += [row for row in self.query(sql, asked, table[0]).fetchall() if None not in row]
        return min((low for low, _ in ends), default=0.0), max((high for _, high in ends), default=1.0)

    def below(self, table: File, column: str, rows: Sequence[Mapping[str, Any]], by: str | None) -> list[float | None]:
        """For each of an instance's rows, the share of all instances (of its group, where there are groups) with less.

        Whole columns are sorted once, and kept.
        """
        by = by if by is not None and by in self.footer(table).columns else None
        values = self._sorted.get((table, column, by), lambda: self._sort(table, column, by))
        shares: list[float | None] = []
        for row in rows:
            same = values.get(None if by is None else row[by], np.zeros(0))
            known = row[column] is not None and row[column] == row[column] and len(same) > 0  # nan is not a value
            shares.append(float(np.searchsorted(same, row[column]) / len(same)) if known else None)
        return shares

    def _sort(self, table: File, column: str, by: str | None) -> dict[Any, Floats]:
        """The values of a column in order, without the undefined; by group, or all under None.

        Here Arrow is quicker than a query.
        """
        try:
            with pq.ParquetFile(table[0]) as file:
                read = file.read([column] if by is None else [column, by], use_threads=False)
        except (pa.ArrowException, OSError) as error:
            first = str(error).splitlines()[0]
            raise Mistake(f"{table[0].name} cannot be read ({first}): make these results again.") from None
        values = np.asarray(read[column].to_numpy(), dtype=np.float64)
        if by is None:
            return {None: np.sort(values[~np.isnan(values)])}
        groups = read[by].combine_chunks().dictionary_encode()
        of = groups.indices.to_numpy()
        return {
            name: np.sort(values[(of == i) & ~np.isnan(values)]) for i, name in enumerate(groups.dictionary.to_pylist())
        }


def _only(group: Group | None) -> tuple[str, list[str]]:
    """The condition of a query, and its parameters."""
    return ("where true", []) if group is None else (f"where {_quoted(group[0])}::varchar = ?", [group[1]])


def total(counts: Mapping[int, Sequence[int]]) -> list[int]:
    """Over all labels."""
    return [sum(bins) for bins in zip(*counts.values(), strict=True)] if counts else []


def scan(*options: str) -> str:
    """What a query reads from: the files of its parameter, and nothing of their folders' names. Left to itself DuckDB
    takes a folder `median=0.9` for a column (a Hive partition), and shows .9 in place of every median."""
    given = ["?", *(f"{name} = true" for name in options), "hive_partitioning = false"]
    return f"read_parquet({', '.join(given)})"


def plain_path(path: Path) -> str:
    """A path that DuckDB takes as it is, not as a pattern."""
    return re.sub(r"([\[*?])", r"[\1]", str(path))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _drop_oldest(kept: OrderedDict[Any, Any], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
