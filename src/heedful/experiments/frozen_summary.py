"""The outcome of `frozen` in numbers: scores of token-wise models under each guide, and what one gives over another."""

from __future__ import annotations

import pyarrow as pa

from heedful.experiments.beside import by_run, f1_by_run, over_seeds
from heedful.experiments.experiment import Summary
from heedful.experiments.summary import Line, column, mean, plain
from heedful.measure.columns import Floats, rows_of
from heedful.measure.levels import over_runs
from heedful.measure.paired import paired
from heedful.measure.performance import f1_of_labels


def summarise(table: pa.Table) -> Summary:
    """By guide: `accuracy` with an interval over seeds and texts, `f1` by seed, and how much more accuracy it has than
    the model with its own attention (`gain`, with the p-value of a test that flips the signs of texts); `base`: the
    score of the asked run itself; `overall`: of all guides together."""
    rows = {guide: rows_of(table, "guide", guide) for guide in dict.fromkeys(table["guide"].to_pylist())}
    right = {guide: by_run(here, "right", "seed") for guide, here in rows.items()}
    some = next(iter(rows.values()))
    first = rows_of(some, "seed", some["seed"][0].as_py())  # one row for each text
    base = {
        "accuracy": mean(column(first, "right_base")),
        "f1": f1_of_labels(column(first, "truth"), column(first, "predicted")),
    }
    return {
        "by_guide": {guide: _line(rows[guide], right[guide], right.get("trained")) for guide in rows},
        "base": plain(base),
        "overall": {"right": {"mean": mean(column(table, "right"))}},
    }


def _line(rows: pa.Table, right: Floats, trained: Floats | None) -> Line:
    found = over_runs(right)
    accuracy = {"mean": found.mean, "low": found.low, "high": found.high}
    line: Line = {"runs": found.runs, "n": found.texts, "accuracy": plain(accuracy)}
    line["f1"] = over_seeds(f1_by_run(rows, "token_wise", "seed"))
    if trained is not None:
        more = over_runs(right - trained)
        p = paired(right.mean(0), trained.mean(0)).p
        line["gain"] = plain({"mean": more.mean, "low": more.low, "high": more.high, "p": p})
    return line
