"""What rows of known evidence add up to: each method with intervals, against chance, and against attention."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from heedful.experiments.evidence_rows import ATTENTION, MEASURES
from heedful.experiments.experiment import Ints, Summary
from heedful.experiments.summary import Line, column, mean, plain, spread
from heedful.measure.chance import Floor
from heedful.measure.columns import Floats, rows_of
from heedful.measure.discovery import benjamini_hochberg
from heedful.measure.evidence import average_precision_expected, hit_floor, precision_floor
from heedful.measure.paired import paired

FLOORS: dict[str, Callable[[Ints, Ints], Floor]] = {"hit": hit_floor, "precision": precision_floor}


def methods_of(table: pa.Table) -> list[str]:
    """In the order of the rows."""
    return list(dict.fromkeys(table["method"].to_pylist()))


def summarise_evidence(table: pa.Table) -> Summary:
    """`methods`: the mean of each measure with its interval, overall and by predicted class. `chance`: what a random
    order gets, exactly. `against_chance`: the difference from it, with p by the law of random orders and q over all
    methods (Benjamini & Hochberg). `paired`: each method against attention, text by text, by precision."""
    each = {name: rows_of(table, "method", name) for name in methods_of(table)}
    first = next(iter(each.values()))
    n, m = _counts(first)
    return {
        "texts": int((m > 0).sum()),
        "without_evidence": int((m == 0).sum()),
        "methods": {name: _by_class(rows) for name, rows in each.items()},
        "chance": {
            "hit": mean(column(first, "chance")),
            "precision": mean(column(first, "chance")),
            "auprc": mean(average_precision_expected(n, m)),
            "rank": mean(np.where(m > 0, (n + 1) / 2, np.nan)),
        },
        "against_chance": {name: _against_chance(each, name) for name in FLOORS},
        "paired": {
            f"{name}/{ATTENTION}": _against(rows, each[ATTENTION])
            for name, rows in each.items()
            if ATTENTION in each and name != ATTENTION
        },
    }


def _counts(rows: pa.Table) -> tuple[Ints, Ints]:
    """Words, and words of evidence, of each text."""
    return rows["ranked_words"].to_numpy(), rows["evidence_words"].to_numpy()


def _by_class(rows: pa.Table) -> Line:
    predicted = rows["predicted"].to_numpy()
    classes = {str(c): _line(rows.filter(pa.array(predicted == c))) for c in np.unique(predicted)}
    return {"overall": _line(rows), "by_class": classes}


def _line(rows: pa.Table) -> Line:
    return {name: spread(column(rows, name), yes_or_no=name == "hit") for name in MEASURES}


def _against_chance(each: dict[str, pa.Table], name: str) -> dict[str, Line]:
    p = [chance_p(rows, name) for rows in each.values()]
    lines = {}
    for method, rows, one, q in zip(each, each.values(), p, benjamini_hochberg(p), strict=True):
        line = spread(column(rows, name) - column(rows, "chance"))
        difference = {key: line[key] for key in ("n", "mean", "low", "high")}
        lines[method] = difference | plain({"p": one, "q": float(q)})
    return lines


def chance_p(rows: pa.Table, name: str) -> float:
    """How often random orders of the words of these texts have a mean as far from chance."""
    values: Floats = column(rows, name)
    n, m = _counts(rows)
    known = ~np.isnan(values)
    if not known.any():
        return float("nan")
    return FLOORS[name](n[known], m[known]).surprise(float(values[known].mean()))


def _against(rows: pa.Table, attention: pa.Table) -> Line:
    ours, theirs = column(rows, "precision"), column(attention, "precision")
    test = paired(ours, theirs)
    found = {"n": test.n, "difference": test.difference, "low": test.low, "high": test.high, "p": test.p}
    return plain(found | {"effect_size": test.rank_biserial})
