"""Does removing the most attended item change the output more than removing another one?

Serrano & Smith 2019, section 4.1 and figure 3: i* is the item with the largest weight, r a random other one. Each
is erased by itself (erase.py), and

    delta JS = JS(p, q without i*) - JS(p, q without r)   is set against   delta alpha = alpha_i* - alpha_r

for the output p of the model as it is. JS is in nats, at most ln 2. Negative values are texts in which the less
attended item mattered more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from heedful.experiments.edited_attention.choice import AttentionChoice
from heedful.experiments.erasure.pages import (
    COLUMNS,
    ERASURE_QUESTION,
    erasure_compare,
    erasure_figures,
    erasure_reasons,
    erasure_verdict,
)
from heedful.experiments.framework.description import Measure, MethodMeasure, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Summary, generators
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.summary import Line, column, grouped, mean, quantiles, share, spread
from heedful.measure.columns import BINS, bin_of
from heedful.measure.rank import spearman

if TYPE_CHECKING:
    from heedful.models.network import Network


class ErasureConfig(AttentionChoice):
    """Defaults of the paper."""

    drawn: Literal["other", "not_first"] = "other"  # r: see `random_items`; "not_first" is the authors' code


def run(model: Network, batches: Batches, config: ErasureConfig, rng: np.random.Generator) -> Iterator[Chunk]:
    """Rows: `delta_alpha`, `js_top`, `js_random`, `delta_js`, 1 in `flip_top`, `flip_random` where the most probable
    label becomes another, `margin` by which it was ahead of the next; undefined for a text of one item."""
    from heedful.experiments.edited_attention.observe import observer
    from heedful.experiments.erasure.erase import check_decides, erase_pair

    ERASURE.check(model.can)
    check_decides(model.link, ERASURE.name)
    observe, generator_of = observer(model, config.view()), generators(rng)
    for examples, batch in batches:
        seen = observe(examples, batch)
        pair = erase_pair(seen, [generator_of(i) for i in examples], config.drawn)
        yield seen.rows() | pair.columns()


def summarise(table: pa.Table) -> Summary:
    """delta JS overall, by class, by max attention and by both (`_line`), and by delta alpha (figure 3)."""
    bins = bin_of(column(table, "delta_alpha"))
    return grouped(table, _line) | {
        "by_delta_alpha": {name: _line(table.filter(pa.array(bins == i))) for i, name in enumerate(BINS)}
    }


def _line(table: pa.Table) -> Line:
    delta, alpha = column(table, "delta_js"), column(table, "delta_alpha")
    defined = ~np.isnan(delta)
    rank = spearman(delta[None], alpha[None], defined[None])[0] if defined.any() else float("nan")
    return (
        spread(delta, within=COLUMNS["delta_js"].possible)
        | quantiles(delta)
        | {
            "negative": share(delta < 0, defined),  # r mattered more
            "js_top": mean(column(table, "js_top")),
            "js_random": mean(column(table, "js_random")),
            "spearman": None if np.isnan(rank) else float(rank),  # of delta JS and delta alpha
        }
    )


ERASURE = Experiment(
    name="erasure",
    question=ERASURE_QUESTION,
    asks="whether removing the most attended item matters more than removing another one",
    paper="Serrano & Smith 2019, section 4.1",
    run=run,
    columns=COLUMNS,
    config=ErasureConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="3",
    summarise=summarise,
    measures=(Measure("erasure", "ΔJS of the most attended item and another", "ΔJS", "delta_js", "overall"),),
    judge=erasure_verdict,
    scale="share of the texts in which the most attended item matters more than a random other one",
    takes=Takes(forwards=(2, 0)),
    pages=Presentation(
        statistics=(
            Statistic(
                "other item matters more",
                "overall.negative",
                "Other item matters more: share of the texts in which removing a random item changes the output more.",
            ),
        ),
        draw=erasure_figures,
        examples=erasure_reasons,
        tabulate=erasure_compare,
    ),
    audit=ForAudit(
        measures=(
            MethodMeasure(
                "js",
                "change of the output without the most attended item",
                "More: it mattered more.",
                "js_top",
                only="attention",
                chance="js_random",
            ),
        )
    ),
)
