"""An experiment of another package, with an odd table: two rows for each text, no largest weight, no range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from heedful.config import Config
from heedful.experiments import Chunk, Experiment, Result
from heedful.experiments.framework.description import Column, Measure, Reason, Statistic, places_by
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.summary import column, spread
from heedful.experiments.framework.verdict import Verdict
from heedful.measure.columns import rows_of

QUESTION = "Do the <b>layers</b> see the same?"


class LayersConfig(Config):
    layers: tuple[str, ...] = ("first", "the last: one")


def run(model: Any, batches: Any, config: LayersConfig, rng: np.random.Generator) -> Iterator[Chunk]:
    for examples, batch in batches:
        predicted = model(batch).predicted.numpy()
        for i, layer in enumerate(config.layers):
            values = 5.0 * i + np.asarray(examples) / 10
            yield {
                "example": np.asarray(examples),
                "predicted": predicted,
                "layer": [layer] * len(examples),
                "score": np.where(np.asarray(examples) == 1, np.nan, values),
            }


def summarise(table: pa.Table) -> dict[str, Any]:
    names = dict.fromkeys(table["layer"].to_pylist())
    return {name: spread(column(rows_of(table, "layer", name), "score")) for name in names}


def verdict(trial: Result) -> Verdict:
    values = column(trial.table, "score")
    mean = float(np.nanmean(values))
    return Verdict(
        QUESTION,
        "for",
        "They do",
        f"The mean score is {mean:.2f}.",
        "Always.",
        "sees with all its layers",
        mean,
        mean - 1,
        mean + 1,
        (0.0,),
        "A made-up paper.",
    )


def reasons(trial: Result) -> Iterator[Reason]:
    rows = rows_of(trial.table, "layer", "first")
    yield Reason("The highest score", "Nothing scores higher.", places_by(rows, -column(rows, "score")))


LAYERS = Experiment(
    name="layers",
    question=QUESTION,
    asks="whether its layers see the same",
    paper="Nobody 2030, section 1",
    run=run,
    columns={"score": Column("score of a layer", reading="More is more.")},
    config=LayersConfig,
    needs=frozenset(),
    version="1",
    by="layer",
    summarise=summarise,
    measures=(Measure("layers", "score of the last layer", "score", "score", "the last: one", "the last: one"),),
    judge=verdict,
    takes=Takes(forwards=(2, 0.5)),
    pages=Presentation(
        statistics=(Statistic("last layer", "the last: one.mean", "Last layer: mean score."),), examples=reasons
    ),
)
