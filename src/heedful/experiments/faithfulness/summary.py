"""From rows of `faithfulness` to its summary: each method against chance and against the others, text by text.

A difference is tested by flipping signs (each text is its own control), all tests of a summary are corrected together
(Benjamini & Hochberg 1995), and a method is called better than random where q <= .05 and the difference is on the
right side. Each way of removing words has its own tests: a conclusion that changes with it is flagged.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from heedful.experiments.faithfulness.orders import LOW_IS_GOOD, METRICS
from heedful.experiments.framework.experiment import Summary
from heedful.experiments.framework.summary import Line, column, mean, plain, spread
from heedful.measure.columns import Floats, rows_of
from heedful.measure.paired import paired
from heedful.measure.statistics import SIGNIFICANT
from heedful.measure.tests import benjamini_hochberg, minimum_detectable
from heedful.registry import EXPLAINERS

MAIN = "comprehensiveness"  # what methods are ordered by
TESTED = METRICS  # against their floors
RESAMPLES = 1999
SOFT = "soft"
Rows = dict[tuple[str, str], pa.Table]  # by method and operator, in the order of the texts


def summarise(table: pa.Table) -> Summary:
    """`methods`: by method and operator each metric (`_line`). `pairs`: by operator and "first/second" the difference
    of comprehensiveness. `operators`: the order of the methods under each, and what changes between them (`flags`).
    `reached`: what the method that reaches most under the first operator reaches. `forward_passes`: what was run."""
    rows = {
        (method, operator): rows_of(table, "method_operator", f"{method}/{operator}")
        for operator in dict.fromkeys(table["operator"].to_pylist())
        for method in dict.fromkeys(table["method"].to_pylist())
    }
    methods: dict[str, dict[str, Line]] = {}
    for (method, operator), some in rows.items():
        methods.setdefault(method, {})[operator] = {name: _line(some, name) for name in METRICS} | {
            "tau": spread(column(some, "tau")),
            **{name: spread(column(some, name)) for name in ("naopc_deletion", "naopc_insertion")},
            **({name: spread(column(some, name)) for name in ("soft_nc", "soft_ns")} if operator == SOFT else {}),
        }
    pairs = _pairs(rows)
    _control(methods, pairs)
    operators = _operators(methods, pairs)
    first = next(iter(operators["order"]))
    best = operators["order"][first][0] if operators["order"][first] else None
    one = table.take(np.unique(table["example"].to_numpy(), return_index=True)[1])
    return {
        "scale": str(table["scale"][0]),
        "left_out": [said for said in str(table["left_out"][0]).split("; ") if said],
        "texts": _texts(one),
        "methods": methods,
        "pairs": pairs,
        "operators": operators,
        "reached": {"method": best, "operator": first}
        | (dict(methods[best][first][MAIN]["normalised"]) if best else {}),
        "forward_passes": _passes(rows),
    }


def _texts(table: pa.Table) -> Line:
    n = column(table, "n_words")
    return {
        "n": len(table),
        "no_words": int((n == 0).sum()),
        "one_word": int((n == 1).sum()),
        "exact": int(np.sum(table["exact"].to_numpy(zero_copy_only=False))),
    }


def _line(table: pa.Table, name: str) -> Line:
    """n, undefined, mean, std, low, high; `floor` and `best` in the mean, `floor_error` of the former from draws;
    `normalised` (undefined: texts in which no order is better than chance); and against the floor, text by text:
    `difference` (above 0: better than random), its interval, p, effect size and the smallest detectable one."""
    values, floor = column(table, name), column(table, f"{name}_floor")
    sign = -1.0 if name in LOW_IS_GOOD else 1.0
    ours, theirs = sign * values, sign * floor
    errors = column(table, f"{name}_floor_error")
    errors = errors[~np.isnan(errors)]
    return spread(values) | {
        "floor": mean(floor),
        "floor_error": float(np.sqrt((errors**2).sum()) / errors.size) if errors.size else None,
        "best": mean(column(table, f"{name}_best")),
        "normalised": spread(column(table, f"{name}_normalised")),
        "against_random": _compare(ours, theirs),
    }


def _compare(ours: Floats, theirs: Floats) -> Line:
    """Two values of each text: the mean difference, its interval and p, the effect size, the detectable effect."""
    found = paired(ours, theirs, resamples=RESAMPLES)
    difference = (ours - theirs)[~np.isnan(ours - theirs)]
    std = float(difference.std(ddof=1)) if difference.size > 1 else float("nan")
    return plain(
        {
            "n": found.n,
            "difference": found.difference,
            "low": found.low,
            "high": found.high,
            "p": found.p,
            "effect_size": found.rank_biserial,
            "detectable": minimum_detectable(std, found.n),
        }
    )


def _pairs(rows: Rows) -> dict[str, dict[str, Line]]:
    found: dict[str, dict[str, Line]] = {}
    for operator in dict.fromkeys(operator for _, operator in rows):
        values = {method: _by_text(some) for (method, way), some in rows.items() if way == operator}
        found[operator] = {
            f"{first}/{second}": _compare(*_of_both(values[first], values[second]))
            for first, second in combinations(values, 2)
        }
    return found


def _by_text(rows: pa.Table) -> dict[int, float]:
    return dict(zip(rows["example"].to_pylist(), column(rows, MAIN).tolist(), strict=True))


def _of_both(first: dict[int, float], second: dict[int, float]) -> tuple[Floats, Floats]:
    """An audit asks fewer texts about a method that is decided: those that both have."""
    both = [text for text in first if text in second]
    return np.array([first[text] for text in both]), np.array([second[text] for text in both])


def _control(methods: dict[str, dict[str, Line]], pairs: dict[str, dict[str, Line]]) -> None:
    """q of all tests together, and what follows: `better` than random, and which of a pair is `better`, or neither."""
    lines = [line[name]["against_random"] for by in methods.values() for line in by.values() for name in TESTED]
    lines += [line for by in pairs.values() for line in by.values()]
    p = np.array([np.nan if line["p"] is None else line["p"] for line in lines])
    for line, q in zip(lines, benjamini_hochberg(p).tolist(), strict=True):
        line["q"] = None if np.isnan(q) else q
    for by in methods.values():
        for line in by.values():
            for name in TESTED:
                against = line[name]["against_random"]
                against["better"] = _significant(against) and against["difference"] > 0
    for operator in pairs.values():
        for pair, line in operator.items():
            first, second = pair.split("/")
            line["better"] = (first if line["difference"] > 0 else second) if _significant(line) else None


def _significant(line: Line) -> bool:
    return line["q"] is not None and line["q"] <= SIGNIFICANT


def is_control(method: str) -> bool:
    """Whether it knows nothing of the model: what is said of methods is not said of it."""
    return method in EXPLAINERS and EXPLAINERS[method].kind == "control"


def _operators(methods: dict[str, dict[str, Line]], pairs: dict[str, dict[str, Line]]) -> dict[str, Any]:
    """`order` of the methods by comprehensiveness under each operator, `better_than_random` by method and operator,
    and `flags`, a sentence for each conclusion that changes: a method that is better than random under some only,
    and two methods of which the one is significantly better here and the other there."""
    order = {
        operator: sorted(
            (method for method, by in methods.items() if by[operator][MAIN]["mean"] is not None),
            key=lambda method: -float(methods[method][operator][MAIN]["mean"]),
        )
        for operator in pairs
    }
    better = {
        method: {operator: line[MAIN]["against_random"]["better"] for operator, line in by.items()}
        for method, by in methods.items()
    }
    flags = []
    for method, found in better.items():
        if is_control(method):
            continue
        yes, no = ([operator for operator, said in found.items() if said is wanted] for wanted in (True, False))
        if yes and no:
            flags.append(f"{method} is better than random under {', '.join(yes)}, and not under {', '.join(no)}")
    for pair in next(iter(pairs.values()), {}):
        winners = {operator: lines[pair]["better"] for operator, lines in pairs.items() if lines[pair]["better"]}
        if len(set(winners.values())) > 1 and not any(map(is_control, pair.split("/"))):
            told = ", ".join(f"{winner} under {operator}" for operator, winner in winners.items())
            flags.append(f"which of {pair.replace('/', ' and ')} is better changes: {told}")
    return {
        "order": order,
        "same_order": len({tuple(names) for names in order.values()}) == 1,
        "better_than_random": better,
        "flags": flags,
    }


def _passes(rows: Rows) -> Line:
    """Edited texts that went through the model (`run`), that each metric of each method by itself would have asked
    for (`wanted`), what was `saved`, and what the methods themselves took (texts forward and backward)."""
    run = wanted = 0
    for operator in dict.fromkeys(operator for _, operator in rows):
        some = [table for (_, way), table in rows.items() if way == operator]
        wanted += sum(int(column(table, "wanted").sum()) for table in some)
        wanted += int(column(some[0], "wanted_limits").sum())
        run += int(column(some[0], "forwards").sum())  # of all methods together
    first = next(iter(rows))[1]
    by_methods = [table for (_, way), table in rows.items() if way == first]
    return {
        "run": run,
        "wanted": wanted,
        "saved": wanted - run,
        "explainer_forwards": sum(int(column(table, "explainer_forwards").sum()) for table in by_methods),
        "explainer_backwards": sum(int(column(table, "explainer_backwards").sum()) for table in by_methods),
    }
