"""The outcome of `imitation` in numbers: the curve of mean JSD and mean TVD over lambda, beside what is possible."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from heedful.experiments.experiment import Summary
from heedful.experiments.summary import Line, column, quantiles, share, spread
from heedful.measure.columns import rows_of


def summarise(table: pa.Table) -> Summary:
    """By lambda: mean, interval and quantiles of `jsd` and `tvd`, and how often the imitator stays below the text's
    optimum; the same adversary for all; and all imitators together (`overall`)."""
    lambdas = dict.fromkeys(table["lambda"].to_pylist())
    rows = {one: rows_of(table, "lambda", one) for one in lambdas}
    first = next(iter(rows.values()))
    return {
        "by_lambda": {one: _line(here) for one, here in rows.items()},
        "adversary": spread(column(first, "adversary")),
        "overall": {name: spread(column(table, name)) for name in ("jsd", "tvd")},
    }


def _line(table: pa.Table) -> Line:
    jsd, best, tvd, adversary = (column(table, name) for name in ("jsd", "optimum", "tvd", "adversary"))
    return {
        "jsd": spread(jsd) | quantiles(jsd),
        "tvd": spread(tvd) | quantiles(tvd),
        "kl": spread(column(table, "kl")),
        "optimum": spread(best),
        "below_optimum": share(jsd <= best, ~np.isnan(jsd) & ~np.isnan(best)),
        "below_adversary": share(jsd <= adversary, ~np.isnan(jsd) & ~np.isnan(adversary)),
    }
