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

from heedful.measure import statistics
from heedful.measure.columns import BINS, Bools, Floats, bin_of, column, quantiles

Line = dict[str, Any]

__all__ = [
    "BINS",
    "Bools",
    "Line",
    "bin_of",
    "column",
    "grouped",
    "mean",
    "plain",
    "quantiles",
    "share",
    "spread",
]


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


def spread(
    values: Floats,
    p: Floats | None = None,
    *,
    within: statistics.Range | None = None,
    yes_or_no: bool = False,
) -> Line:
    """n, undefined, mean, std, interval of the mean (low, high; inside what the measure can be, `within`; of a share,
    where the values are 1 and 0, `yes_or_no`), and with p-values sig_frac.

    The bootstrap has a generator of its own, always the same: a summary is a function of its table. It draws
    1000 samples, and fewer of large tables (200 from 20000 rows on), whose interval is narrow anyway.
    """
    resamples = int(np.clip(4_000_000 // max(1, len(values)), 200, 1000))
    line = asdict(statistics.summarise(values, p, resamples=resamples, within=within, yes_or_no=yes_or_no))
    if p is None:
        del line["sig_frac"]
    return plain(line)


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
