"""Columns of a table of results as arrays: bins of the largest weight, quantiles, and one number of each text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)  # bins of max attention in figures 3 and 5 of Jain & Wallace 2019
BINS = ("[0, .25)", "[.25, .5)", "[.5, .75)", "[.75, 1]")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
DIGITS = 6  # of a value that bins are made of, so that a bar and the list of its texts always agree


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One number of every text, and what it is drawn against: (n,) each, nan where undefined."""

    example: Ints
    predicted: Ints  # -1: unknown
    max_attention: Floats
    n_words: Ints
    value: Floats

    def __len__(self) -> int:
        return len(self.example)


def column(table: pa.Table, name: str) -> Floats:
    """A column as floats, null as nan."""
    return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)


def rows_of(table: pa.Table, by: str | None, group: str | None) -> pa.Table:
    """The rows of one group, by the name of its value, or all where there are no groups."""
    if by is None or group is None:
        return table
    return table.filter(pc.equal(pc.cast(table[by], pa.string()), group))


def frame(table: pa.Table, name: str, by: str | None = None, group: str | None = None) -> Frame:
    """The column `name` of the rows of one group; what a table does not have is unknown."""
    rows = rows_of(table, by, group)
    n = len(rows)

    def whole(of: str, unknown: int) -> Ints:
        if of not in rows.column_names:
            return np.full(n, unknown)
        return np.nan_to_num(column(rows, of), nan=unknown).astype(np.int64)

    has = "max_attention" in rows.column_names
    return Frame(
        whole("example", -1),
        whole("predicted", -1),
        column(rows, "max_attention") if has else np.full(n, np.nan),
        whole("n_words", 0),
        column(rows, name),
    )


def bin_of(max_attention: Floats) -> Ints:
    """The bin of each text, the last one closed; -1 where max attention is undefined."""
    place = np.clip(np.searchsorted(EDGES, max_attention, side="right") - 1, 0, len(BINS) - 1)
    return np.where(np.isnan(max_attention), -1, place)


def quantiles(values: Floats) -> dict[str, float | None]:
    """The quantiles 5, 25, 50, 75 and 95 percent of the defined values; None without any."""
    defined = values[~np.isnan(values)]
    found = np.quantile(defined, QUANTILES).tolist() if defined.size else [None] * len(QUANTILES)
    return {f"q{round(100 * q):02d}": value for q, value in zip(QUANTILES, found, strict=True)}
