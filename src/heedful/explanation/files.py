"""Explanations in files: Parquet and JSON that keep everything, and CSV of the tidy table, written piece by piece.

A Parquet file is the tidy table with one more column, `record`, that keeps what the table does not say (texts,
probabilities, checks, costs, options). Row groups hold whole examples, so that writing takes the memory of one group,
however long the explanation is; the first row of each group has the records of its examples, as an Arrow stream
(`pyarrow.ipc.open_stream`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import csv

from heedful.errors import Mistake
from heedful.explanation.attribution import Attribution, Check, Cost
from heedful.explanation.checks import check_columns
from heedful.explanation.columns import Cells, Columns, Ints
from heedful.explanation.record import Explained
from heedful.explanation.table import SINCE, columns_of_records, plain_strings, records_of, tidy_table
from heedful.explanation.views import columns_of
from heedful.files import whole_file
from heedful.records import Words

FORMAT = "heedful explanation 2"
FORMULA = r"\A[=+\-@\t\r]"  # how cells begin that a spreadsheet computes
ROW_GROUP = 2**17  # rows written at once


# What reading a file of any content can end in: a field that is missing or of another kind, offsets of 2**40.
DAMAGES = (
    *(Mistake, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, AssertionError),
    pa.ArrowException,
)


def tables(columns: Columns, run: str) -> Iterator[pa.Table]:
    """The tidy table in pieces of whole examples."""
    return (plain_strings(tidy_table(piece, run, columns.axes)) for piece in columns.cut(ROW_GROUP))


def write_parquet(columns: Columns, run: str, path: Path, beside: pa.Table | None = None) -> None:
    """`beside` has a row for each example: further columns of the file, which `read_parquet` leaves out."""
    names = [] if beside is None else beside.column_names
    facts = {"format": FORMAT, "run": run, "labels": columns.label_sets, "answers": columns.answers}
    facts |= {"beside": names} if names else {}
    schema = tidy_table(columns.between(0, 0), run, columns.axes).schema
    for field in () if beside is None else beside.schema:
        schema = schema.append(field)
    with _writer(path, schema.append(pa.field("record", pa.large_binary())), json.dumps(facts)) as writer:
        row = 0
        for piece in columns.cut(ROW_GROUP):
            table = tidy_table(piece, run, columns.axes)
            if beside is not None:
                own = np.repeat(np.arange(len(piece)), rows_of_examples(piece)) + row
                for field in beside.schema:
                    table = table.append_column(field, beside[field.name].take(pa.array(own)))
            row += len(piece)
            first = pa.array([_as_stream(records_of(piece))], pa.large_binary())
            others = pa.nulls(len(table) - 1, pa.large_binary())
            writer.write_table(table.append_column("record", pa.chunked_array([first, others])))


def rows_of_examples(columns: Columns) -> Ints:
    """How many rows of the tidy table each example has: (examples,)."""
    c = columns
    n = c.n_scores + (c.attributions.n_cells if c.axes else 0)  # (attributions,)
    return np.bincount(c.example_of_attribution, n, len(c)).astype(np.int64)


def _writer(path: Path, schema: pa.Schema, facts: str) -> pq.ParquetWriter:
    coded = [f.name for f in schema if pa.types.is_dictionary(f.type) or pa.types.is_string(f.type)]
    writer = pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        store_schema=False,  # codes are how strings are written, not what a reader is to get
        use_dictionary=[*coded, "position", "start", "end", "probability"],
        use_byte_stream_split=["score"],
        write_statistics=["example", "part", "method", "target"],
    )
    writer.add_key_value_metadata({"heedful": facts})
    return writer


class Unlike(Exception):
    """Files of explanations that cannot stand in one file as they are."""


def join_parquet(files: Sequence[Path], path: Path) -> None:
    """One file of what several have, row group by row group, in the memory of one; raises `Unlike` where their columns
    or labels are not the same."""
    schema = pq.read_schema(files[0])
    for file in files:  # one after the other: there may be more files than can be open
        other = pq.read_schema(file)
        if not other.equals(schema, check_metadata=True):
            raise Unlike
    facts = (schema.metadata or {})[b"heedful"].decode()
    with whole_file(path) as temporary, _writer(temporary, schema.remove_metadata(), facts) as writer:
        for file in files:
            with pq.ParquetFile(file) as part:
                for group in range(part.num_row_groups):
                    writer.write_table(part.read_row_group(group).replace_schema_metadata(None))


def _as_stream(records: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema) as stream:
        stream.write_batch(records)
    stored: bytes = sink.getvalue().to_pybytes()
    return stored


def _of_streams(streams: list[bytes]) -> pa.RecordBatch:
    batches = [batch for stream in streams for batch in pa.ipc.open_stream(stream)]
    for batch in batches:
        batch.validate(full=True)  # bytes that were changed must not be followed
    return pa.concat_batches(batches)


def write_csv(columns: Columns, run: str, path: Path, escape_formulas: bool = True) -> None:
    """A word that a spreadsheet would take for a formula gets an apostrophe before it, unless that is not wanted."""
    with csv.CSVWriter(path, plain_strings(tidy_table(columns.between(0, 0), run, columns.axes)).schema) as writer:
        for table in tables(columns, run):
            writer.write_table(_without_formulas(table) if escape_formulas else table)


def _without_formulas(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            plain = pc.replace_substring_regex(table[place], FORMULA, r"'\0")
            table = table.set_column(place, field, plain)
    return table


def read_parquet(path: Path) -> tuple[Columns, str]:
    """What `write_parquet` wrote."""
    try:
        there = path.is_file()
    except OSError:  # a name of 300 characters
        there = False
    if not there:
        raise Mistake(f"{str(path)[:200]} is not a file: give a Parquet file that Explanation.save wrote.")
    try:
        table = pq.ParquetFile(path).read()
        facts = json.loads((table.schema.metadata or {})[b"heedful"])
        if facts["format"] != FORMAT:
            raise KeyError(facts["format"])
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise Mistake(f"{path} is not a Parquet file that Explanation.save wrote ({error}).") from None
    try:
        columns, run = _columns(table, facts), facts["run"]
        agree = _agree(columns, run, table)
    except DAMAGES:
        agree = False
    if not agree:
        raise Mistake(f"{path} was changed after it was saved: its rows do not agree with its records.")
    return columns, run


def read_groups(path: Path) -> Iterator[tuple[Columns, str]]:
    """What `write_parquet` wrote, a row group at a time, in the memory of one."""
    try:
        with pq.ParquetFile(path) as file:
            facts = json.loads((file.schema_arrow.metadata or {})[b"heedful"])
            if facts["format"] != FORMAT:
                raise KeyError(facts["format"])
            for group in range(file.num_row_groups):
                yield _columns(file.read_row_group(group), facts), facts["run"]
    except (pa.ArrowException, OSError, *DAMAGES) as error:
        if isinstance(error, Mistake):
            raise
        raise Mistake(
            f"{path} is not a Parquet file that heedful explain wrote, or it was changed ({error})."
        ) from None


def _columns(table: pa.Table, facts: dict[str, Any]) -> Columns:
    records = table["record"].drop_null().to_pylist()
    if not records:
        return columns_of([])
    label_sets = tuple(map(tuple, facts["labels"]))
    return check_columns(columns_of_records(_of_streams(records), table, label_sets, tuple(facts["answers"])))


def _agree(columns: Columns, run: str, table: pa.Table) -> bool:
    """Do the rows say what the records say?"""
    beside = json.loads((table.schema.metadata or {})[b"heedful"]).get("beside", [])
    rows, row = table.drop_columns(["record", *beside]), 0
    older = [name for name in SINCE if name not in rows.column_names]
    for piece in tables(columns, run):
        piece = piece.drop_columns(older)
        if not piece.equals(rows.slice(row, len(piece))):
            return False
        row += len(piece)
    return row == len(rows)


def json_of(examples: Iterable[Explained], run: str) -> Iterator[str]:
    """Strict JSON, in pieces: what is undefined is null."""
    yield f'{{"format": {_dumps(FORMAT)}, "run": {_dumps(run)}, "examples": ['
    for i, e in enumerate(examples):
        yield (", " if i else "") + _dumps(asdict(e) | {"predicted": e.predicted})
    yield "]}"


def read_json(text: str) -> tuple[Columns, str]:
    try:
        record = json.loads(text)
        if record["format"] == FORMAT and isinstance(record["run"], str):
            records = record["examples"]
            if all(isinstance(each["id"], str) for each in records):
                return columns_of([explained_of(each) for each in records]), record["run"]
    except DAMAGES:
        pass
    raise Mistake(f"this is not the JSON of an explanation ({FORMAT}).")


def explained_of(record: dict[str, Any]) -> Explained:
    """What `asdict` and JSON made of an `Explained`."""

    def words(r: dict[str, Any]) -> Words:
        offsets = np.array(r["offsets"]).reshape(-1, 2)
        if len(offsets) and offsets.dtype.kind != "i":
            raise ValueError("places of words are whole numbers")
        if np.any(offsets != offsets.astype(np.int32)):
            raise OverflowError("places of words are outside of any text")
        return Words(r["text"], tuple(r["forms"]), offsets.astype(np.int32))

    def attribution(r: dict[str, Any]) -> Attribution:
        check = None if r["check"] is None else Check(**r["check"])
        cells = cells_of_record(r["cells"]) if "cells" in r else Cells.none()
        return Attribution(**r | {"check": check, "cost": Cost(**r["cost"]), "cells": cells})

    return Explained(
        id=record["id"],
        passage=words(record["passage"]),
        labels=tuple(record["labels"]),
        probabilities=np.array(record["probabilities"]),
        attributions=tuple(map(attribution, record["attributions"])),
        query=None if record["query"] is None else words(record["query"]),
        truth=record["truth"],
        word_index=record["word_index"],
        unknown=record["unknown"],
        answers=record["answers"],
    )


def cells_of_record(r: dict[str, Any]) -> Cells:
    return Cells.of((r["layer"], r["i"], r["j"]), r["score"])


def _dumps(record: object) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False, default=lambda array: array.tolist())
