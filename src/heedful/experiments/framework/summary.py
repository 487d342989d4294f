"""Lines of a summary from columns of a table, overall, by predicted class and by max attention.

Pure functions, no torch. Everything comes out as plain numbers for JSON; what is undefined is None, is
counted, and is never averaged in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedful.config import FINE_TUNING, EditConfig, EvaluationConfig, RunConfig, TrainingConfig
from heedful.experiments.framework.description import Column, Measure, Reason, Result, places_by
from heedful.measure import statistics
from heedful.measure.columns import BINS, Bools, Floats, bin_of, column, quantiles, rows_of

Line = dict[str, Any]

__all__ = ["BINS", "Bools", "Line", "bin_of", "column", "grouped", "mean", "plain", "quantiles", "share", "spread"]


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
                name: line(table.filter(pa.array((predicted == label) & (bins == i)))) for i, name in enumerate(BINS)
            }
            for label in labels
        },
    }


def spread(
    values: Floats, p: Floats | None = None, *, within: statistics.Range | None = None, yes_or_no: bool = False
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


# What an experiment gets that describes its columns and leaves out the rest.


def summary_of_columns(columns: Mapping[str, Column], by: str | None) -> Callable[[pa.Table], dict[str, Any]]:
    """A summary of every described column of numbers, by its name; with `by`, of each group, too."""

    def summarise(table: pa.Table) -> dict[str, Any]:
        lines = {name: _line_of(name, columns[name]) for name in _drawn(columns)}
        parted = "max_attention" in table.column_names
        made: dict[str, Any] = {
            name: grouped(table, line) if parted else {"overall": line(table)} for name, line in lines.items()
        }
        if by is not None:
            groups = [str(group) for group in dict.fromkeys(table[by].to_pylist())]
            parts = {group: rows_of(table, by, group) for group in groups}
            made["groups"] = {
                group: {name: line(part) for name, line in lines.items()} for group, part in parts.items()
            }
        return made

    return summarise


def _line_of(name: str, about: Column) -> Callable[[pa.Table], Line]:
    return lambda rows: spread(column(rows, name), within=about.possible)


def measures_of_columns(columns: Mapping[str, Column], experiment: str) -> tuple[Measure, ...]:
    """A measure for every described column of numbers, where `summary_of_columns` puts its mean.

    Columns of two experiments may have one name, and keys stand in addresses: there the experiment's name goes before.
    """
    keys = {name: name if name == experiment else f"{experiment}_{name}" for name in _drawn(columns)}
    titles = {name: columns[name].title for name in keys}
    return tuple(Measure(key, titles[name], titles[name], name, f"{name}.overall") for name, key in keys.items())


def ends_of_columns(columns: Mapping[str, Column], trial: Result) -> Iterator[Reason]:
    """The texts with the highest and the lowest values of the first described column."""
    for name in [name for name in _drawn(columns) if name in trial.table.column_names][:1]:
        title, values = columns[name].title, column(trial.table, name)
        for word, key in (("highest", -values), ("lowest", values)):
            places = list(dict.fromkeys(places_by(trial.table, key)))
            yield Reason(f"The {word} {title}", f"No text has a {word[:-3]}er {title}.", places)


def _drawn(columns: Mapping[str, Column]) -> list[str]:
    return [name for name, about in columns.items() if about.drawn]


# Copies of a model that an experiment trains to compare with: the same model on edited data, or trained otherwise.


def copy_of(about: RunConfig | EvaluationConfig, edit: EditConfig | None = None, **training: Any) -> RunConfig:
    """The configuration of a run's copy, with its data edited or settings of its training changed.

    Of a model on other data it is a model of the same kind that is trained on these data: one of ours from the start, a
    checkpoint fine-tuned. A file that was asked about whole is then both what is trained on and, the same texts at the
    same places, the test split: a copy is asked about what was done to it, not about what it has learnt of the texts.
    """
    if isinstance(about, RunConfig):
        run = about
    else:
        data = about.data
        if data.only is not None:
            data = data.model_copy(update={"only": None, "test_file": Path(about.dataset)})
        values: dict[str, Any] = {"dataset": about.dataset, "data": data, "seed": about.seed, "vectors": about.vectors}
        if about.model is None:
            values |= {"start": about.source, "training": FINE_TUNING}
        else:
            values["model"] = about.model
        run = RunConfig(**values)
    data = run.data if edit is None else run.data.model_copy(update={"edit": edit})
    changed = TrainingConfig.model_validate(run.training.model_dump() | training)
    return run.model_copy(update={"data": data, "training": changed})
