"""How often does removing the most attended item change the decision, and removing another one?

Serrano & Smith 2019, section 4.2 and table 2: the rows of `erasure`, counted. i* and r are erased by themselves, and
each text is in one of four cells: both flip the decision, only i* does, only r does, neither. The texts in which
only one of them does say whether i* flips more often than r: if it did not, each would be as likely as the other
(McNemar's test, by the exact binomial).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from heedful.experiments.erasure.erasure import ErasureConfig, run
from heedful.experiments.erasure.pages import (
    COLUMNS,
    FLIPS_QUESTION,
    MARGINS,
    flips_compare,
    flips_figures,
    flips_reasons,
    flips_verdict,
)
from heedful.experiments.framework.description import Measure, MethodMeasure, Statistic
from heedful.experiments.framework.experiment import Experiment, Floats, Summary
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.summary import Line, column, grouped, plain
from heedful.measure.paired import mcnemar
from heedful.measure.statistics import proportion


def summarise(table: pa.Table) -> Summary:
    """The flip table overall, by predicted class, by max attention and by both (`_line`), and by how far the decision
    was ahead of the next label (`by_margin`): one that is hardly ahead is flipped by anything."""
    margin = column(table, "margin")
    bins = {name: (margin >= low) & (margin < high) for name, (low, high) in MARGINS.items()}
    return grouped(table, _line) | {
        "by_margin": {name: _line(table.filter(pa.array(rows))) for name, rows in bins.items()}
    }


def _line(table: pa.Table) -> Line:
    """`n` texts in which both questions have an answer, `undefined` the others (one item; no weight left).

    Each cell, and `top` and `random` in all: count, percent and its 95% interval (Wilson 1927). `p`: how likely a
    difference as large between i* and r is by chance, two-sided; `difference` in percent points.
    """
    top, random = column(table, "flip_top"), column(table, "flip_random")
    defined = ~np.isnan(top) & ~np.isnan(random)
    i, r = top[defined] > 0, random[defined] > 0
    counts = {
        "both": int((i & r).sum()),
        "only_top": int((i & ~r).sum()),
        "only_random": int((~i & r).sum()),
        "neither": int((~i & ~r).sum()),
        "top": int(i.sum()),
        "random": int(r.sum()),
    }
    n = int(defined.sum())
    return {
        "n": n,
        "undefined": int((~defined).sum()),
        "flip_top": _rate(top),
        **{name: _percent(count, n) for name, count in counts.items()},
        **plain(
            {
                "difference": 100 * (counts["top"] - counts["random"]) / n if n else float("nan"),
                "p": mcnemar(counts["only_top"], counts["only_random"]),
            }
        ),
    }


def _rate(flips: Floats) -> Line:
    """Of all texts in which the question has an answer."""
    known = flips[~np.isnan(flips)]
    found = proportion(int(known.sum()), known.size)
    return plain({"n": known.size, "mean": found.value, "low": found.low, "high": found.high})


def _percent(count: int, n: int) -> Line:
    found = proportion(count, n)
    ends = {"percent": 100 * found.value, "low": 100 * found.low, "high": 100 * found.high}
    return {"count": count, **plain(ends)}


FLIPS = Experiment(
    name="flips",
    question=FLIPS_QUESTION,
    asks="whether removing the most attended item changes the decision",
    paper="Serrano & Smith 2019, section 4.2, table 2",
    run=run,
    columns=COLUMNS,
    config=ErasureConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="3",
    summarise=summarise,
    measures=(
        Measure("flips", "decision changed without the most attended item", "flips", "flip_top", "overall.flip_top"),
    ),
    judge=flips_verdict,
    scale="share of the texts whose decision changes without the most attended item",
    takes=Takes(forwards=(2, 0)),
    pages=Presentation(
        statistics=(
            Statistic(
                "flips without i*",
                "overall.top.percent",
                "Flips without i*: percent of the texts whose decision changes without the most attended item.",
                ".1f",
            ),
        ),
        draw=flips_figures,
        examples=flips_reasons,
        tabulate=flips_compare,
    ),
    audit=ForAudit(
        measures=(
            MethodMeasure(
                "flip",
                "decision changed without the most attended item",
                "More: it decides more often.",
                "flip_top",
                only="attention",
                chance="flip_random",
            ),
        )
    ),
)
