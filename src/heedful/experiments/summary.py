"""Lines of a summary from columns of a table, overall, by predicted class and by max attention.

Pure functions, no torch. Everything comes out as plain numbers for JSON; what is undefined is None, is
counted, and is never averaged in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedful.experiments.experiment import Floats
from heedful.measure import statistics

Bools = NDArray[np.bool_]
Line = dict[str, Any]

EDGES = (0.0, 0.25, 0.5, 0.75, 1.0)  # bins of max attention in figures 3 and 5 of Jain & Wallace 2019
BINS = ("[0, .25)", "[.25, .5)", "[.5, .75)", "[.75, 1]")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def grouped(table: pa.Table, line: Callable[[pa.Table], Line]) -> dict[str, Any]:
    """`line` of all rows, of each predicted class, of each bin of max attention, and of both together."""
    predicted = table["predicted"].to_numpy()
    bins = bin_of(column(table, "max_attention"))
    labels = [int(label) for label in np.unique(predicted)]
    return {
        "overall": line(table),
        "by_class": {str(label): line(table.filter(pa.array(predicted == label))) for label in labels},
        "by_max_attention": {name: line(table.filter(pa.array(bins == i))) for i, name in enumerate(BINS)},
        "by_class_and_max_attention": {
            str(label): {
                name: line(table.filter(pa.array((predicted == label) & (bins == i))))
                for i, name in enumerate(BINS)
            }
            for label in labels
        },
    }


def bin_of(max_attention: Floats) -> NDArray[np.int64]:
    """The bin of each text, the last one closed; -1 where max attention is undefined."""
    place = np.clip(np.searchsorted(EDGES, max_attention, side="right") - 1, 0, len(BINS) - 1)
    return np.where(np.isnan(max_attention), -1, place)


def column(table: pa.Table, name: str) -> Floats:
    """A column as floats, null as nan."""
    return np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)


def spread(values: Floats, p: Floats | None = None) -> Line:
    """n, undefined, mean, std, bootstrap interval of the mean (low, high), and with p-values sig_frac.

    The bootstrap has a generator of its own, always the same: a summary is a function of its table. It draws
    1000 samples, and fewer of large tables (200 from 20000 rows on), whose interval is narrow anyway.
    """
    resamples = int(np.clip(4_000_000 // max(1, len(values)), 200, 1000))
    line = asdict(statistics.summarise(values, p, resamples=resamples))
    if p is None:
        del line["sig_frac"]
    return plain(line)


def quantiles(values: Floats) -> Line:
    """The quantiles 5, 25, 50, 75 and 95 percent of the defined values."""
    defined = values[~np.isnan(values)]
    found = np.quantile(defined, QUANTILES) if defined.size else np.full(len(QUANTILES), np.nan)
    return plain({f"q{round(100 * q):02d}": float(value) for q, value in zip(QUANTILES, found, strict=True)})


def mean(values: Floats) -> float | None:
    """The mean of the defined values."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else None


def share(yes: Bools, defined: Bools) -> float | None:
    """The fraction of the defined rows for which it is true."""
    return float(yes[defined].mean()) if defined.any() else None


def plain(line: Mapping[str, Any]) -> Line:
    """nan as None: JSON has no nan."""
    return {name: None if isinstance(v, float) and math.isnan(v) else v for name, v in line.items()}
