"""How many of the items must go before the decision is another, and how many would be enough?

Serrano & Smith 2019, section 5 and figure 5: items are erased in the order of a ranking (rankings.py), the rest is
renormalised, and the share of the items that is gone at the first flip says how well the ranking finds what the
decision rests on. All prefixes of an order come from two running sums (`PooledStates.erase_along`).

A text of one item is left out and counted. When everything is gone there is no decision: that is not a flip. A text
whose decision no prefix flips is reported both ways: left out, as published, and counted as 1.0.

How few would have been enough is known, too (smallest_set.py): every ranking is a multiple of the best possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from pydantic import Field, field_validator

from heedful.experiments.edited_attention.choice import AttentionChoice
from heedful.experiments.erasure.importance_pages import (
    COLUMNS,
    QUESTION,
    RANDOM,
    compare,
    figures,
    ranking_name,
    reasons,
    verdict,
)
from heedful.experiments.framework.description import Measure, MethodMeasure, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Ints, States, Summary, generators
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.summary import Line, column, plain, quantiles, share, spread
from heedful.measure.columns import Floats, rows_of
from heedful.measure.paired import paired

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.experiments.edited_attention.observe import Observed
    from heedful.models.network import Network

RANKINGS = ("attention", "attention_gradient", "attention_x_gradient", RANDOM)


class ImportanceSetsConfig(AttentionChoice):
    """Defaults of the paper. A ranking is one of its four, or an explainer by name."""

    rankings: tuple[str, ...] = Field(default=RANKINGS, min_length=1)
    draws: int = Field(default=5, ge=1, le=10_000)  # of the random ranking

    @field_validator("rankings")
    @classmethod
    def _once(cls, rankings: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(rankings)) < len(rankings):
            raise ValueError("each ranking is given once")
        return rankings


def explainers_of(config: ImportanceSetsConfig) -> list[str]:
    return [name for name in config.rankings if name not in RANKINGS]


def run(
    model: Network, batches: Batches, config: ImportanceSetsConfig, rng: Generator, states: States | None = None
) -> Iterator[Chunk]:
    """One row for each text and `ranking` (each draw of the random one is a ranking): `removed` (items gone at the
    first flip; undefined: never), `share` of the items, and the size of the smallest flipping set (`smallest_low`,
    `smallest_high`)."""
    from heedful.experiments.edited_attention.observe import observer
    from heedful.experiments.erasure.erase import check_decides, decision
    from heedful.experiments.erasure.smallest_set import rankers, smallest_sets

    IMPORTANCE_SETS.check(model.can)
    check_decides(model.link, IMPORTANCE_SETS.name)
    observe, generator_of = observer(model, config.view()), generators(rng)
    named = rankers(model, config.rankings, config.draws, states or {})
    for examples, batch in batches:
        seen = observe(examples, batch)
        decided, rngs = decision(seen), [generator_of(i) for i in examples]
        removed = {
            f"{name} {draw}" if name == RANDOM else name: first_flip(seen, scores, decided)
            for name, ranker in named.items()
            for draw, scores in enumerate(ranker(seen, batch, rngs), 1)
        }
        smallest = smallest_sets(seen, decided, np.fmin.reduce(list(removed.values())))
        common = seen.rows()
        for name, gone in removed.items():
            yield common | {
                "ranking": [name] * len(batch),
                "removed": gone,
                "share": gone / np.maximum(seen.n_words, 1),
                "smallest_low": smallest.low,
                "smallest_high": smallest.high,
            }


def first_flip(seen: Observed, scores: Tensor, decided: Tensor) -> Floats:
    """How many items are gone when the decision flips first: (B,), nan where it never does."""
    import torch

    from heedful.experiments.erasure.erase import flipped
    from heedful.experiments.erasure.smallest_set import falling

    with torch.no_grad():
        flips = flipped(seen.erase_along(falling(scores, seen.real)), decided)  # (B, T)
    first = flips.to(torch.uint8).argmax(1).double() + 1 if flips.shape[1] else torch.zeros(len(flips))
    return torch.where(flips.any(1), first, torch.nan).numpy()


def summarise(table: pa.Table) -> Summary:
    """`smallest`: how small a set is enough. `rankings`: each overall and by predicted class (`_line`); `random` is
    all draws together. `paired`: each against attention, text by text (`_against`)."""
    names = table["ranking"].to_pylist()
    each = {name: rows_of(table, "ranking", name) for name in dict.fromkeys(names)}
    smallest = _smallest(each[names[0]])
    if any(name.startswith(RANDOM) for name in names):
        each[RANDOM] = pa.concat_tables([rows for name, rows in each.items() if name.startswith(RANDOM)])
    return {
        "smallest": smallest,
        "rankings": {name: _by_class(rows) for name, rows in each.items()},
        "paired": {
            f"{name}/attention": _against(rows, each["attention"])
            for name, rows in each.items()
            if "attention" in each and name != "attention" and not name.startswith(f"{RANDOM} ")
        },
    }


def _smallest(table: pa.Table) -> Line:
    """Of the texts of several items: how many have a flipping set at all, and its share of the items."""
    n, low, high = (column(table, name) for name in ("n_words", "smallest_low", "smallest_high"))
    several = n > 1
    return {
        "n": int(several.sum()),
        "single_item": int((~several).sum()),
        "none_flips": int((several & np.isnan(low)).sum()),  # proved
        "none_found": int((several & np.isnan(high) & ~np.isnan(low)).sum()),
        "exact": share(low == high, several & ~np.isnan(high)),
        "items": spread(high[several]) | quantiles(high[several]),
        "share": spread((high / n)[several], within=COLUMNS["share"].possible) | quantiles((high / n)[several]),
    }


def _by_class(table: pa.Table) -> Line:
    predicted: Ints = table["predicted"].to_numpy()
    classes = {str(c): _line(table.filter(pa.array(predicted == c))) for c in np.unique(predicted)}
    return {"overall": _line(table), "by_class": classes}


def _line(table: pa.Table) -> Line:
    """Over the rows of texts with several items. `flipped`: share removed where the decision flips;
    `counted`: where it never does, 1.0. `times_smallest`: removed / smallest_high, `optimal` where that is 1."""
    n, removed, part = (column(table, name) for name in ("n_words", "removed", "share"))
    several, high = n > 1, column(table, "smallest_high")
    part, times = part[several], (removed / high)[several]
    never = np.isnan(part)
    counted = np.where(never, 1.0, part)
    return {
        "n": int(several.sum()),
        "single_item": int((~several).sum()),
        "never": int(never.sum()),
        "flipped": spread(part, within=COLUMNS["share"].possible) | quantiles(part),
        "counted": spread(counted, within=COLUMNS["share"].possible) | quantiles(counted),
        "times_smallest": spread(times) | quantiles(times),
        "optimal": share(times <= 1, ~np.isnan(times)),
    }


def _against(table: pa.Table, attention: pa.Table) -> Line:
    """Share removed minus that under attention (never: 1.0; the mean over draws), with a permutation test, the
    rank-biserial effect size, and the share of the texts in which fewer, as many, or more items had to go."""
    ours, theirs = (_by_text(rows) for rows in (table, attention))
    several = ~np.isnan(ours)
    ours, theirs = ours[several], theirs[several]
    test = paired(ours, theirs)
    every = np.ones(len(ours), dtype=np.bool_)
    return plain(
        {
            "n": test.n,
            "difference": test.difference,
            "p": test.p,
            "effect_size": test.rank_biserial,
            "fewer": share(ours < theirs, every),
            "as_many": share(ours == theirs, every),
            "more": share(ours > theirs, every),
        }
    )


def _by_text(table: pa.Table) -> Floats:
    """The mean share over the draws of each text, never as 1.0; nan for a text of one item."""
    share_ = np.where(np.isnan(column(table, "share")), 1.0, column(table, "share"))
    share_ = np.where(column(table, "n_words") > 1, share_, np.nan)
    _, place = np.unique(table["example"].to_numpy(), return_inverse=True)
    return np.asarray(np.bincount(place, share_) / np.bincount(place))


IMPORTANCE_SETS = Experiment(
    name="importance_sets",
    question=QUESTION,
    asks="whether its attention finds the items that the decision rests on",
    paper="Serrano & Smith 2019, section 5",
    run=run,
    columns=COLUMNS,
    config=ImportanceSetsConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="2",
    by="ranking",
    summarise=summarise,
    measures=tuple(
        Measure(
            f"removed_{key}",
            f"share removed before a flip, by {ranking_name(name)}",
            f"removed ({ranking_name(name)})",
            "share",
            f"rankings.{name}.overall.flipped",
            name,
            rising=False,
            undefined=1.0,  # a decision that never changes: all of the items
        )
        for key, name in {"attention": "attention", "product": "attention_x_gradient"}.items()
    ),
    judge=verdict,
    scale="how soon the decision changes: 0 as in a random order, 1 as in the best",
    takes=Takes(forwards=(8, 8), explainers=explainers_of),
    pages=Presentation(
        group_title=ranking_name,
        statistics=(
            Statistic(
                "removed before a flip",
                "rankings.attention.overall.counted.q50",
                "Removed before a flip: median share of the items, most attended first, that changes the decision.",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
    ),
    audit=ForAudit(
        measures=(
            MethodMeasure(
                "removed",
                "share of the weights that must go before the decision flips",
                "Less is better; 1 where it never flips.",
                "share",
                method="ranking",
                missing=1.0,
                rising=False,
            ),
        )
    ),
)
