"""How sharp is attention? An experiment with a figure and a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from heedful.config import Config
from heedful.experiments.framework.description import Column, Measure, Result
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment
from heedful.experiments.framework.parts import Presentation
from heedful.experiments.framework.summary import column, grouped, spread
from heedful.experiments.framework.verdict import Verdict
from heedful.figures.figure import Figure

QUESTION = "Does toy attention choose a few words?"


class SharpnessConfig(Config):
    base: float = 2.0


def run(network: Any, batches: Batches, config: SharpnessConfig, rng: np.random.Generator) -> Iterator[Chunk]:
    """Entropy of the attention over the words, as a share of the most that it can be."""
    from heedful.experiments.edited_attention.observe import observer

    observe = observer(network)
    for examples, batch in batches:
        seen = observe(examples, batch)
        words = seen.words(seen.alpha)
        bits = [-(w[w > 0] * np.log(w[w > 0])).sum() / np.log(max(2, len(w))) for w in words]
        yield seen.rows() | {"spread": np.array(bits)}


def summarise(table: pa.Table) -> dict[str, Any]:
    return grouped(table, lambda part: spread(column(part, "spread")))


def draw(trial: Result) -> Sequence[Figure]:
    values = column(trial.table, "spread")
    bars = [{"low": i / 10, "texts": int(((values * 10).astype(int).clip(0, 9) == i).sum())} for i in range(10)]
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.1.0.json",
        "data": {"values": bars},
        "mark": "bar",
        "encoding": {
            "x": {"field": "low", "type": "ordinal"},
            "y": {"field": "texts", "type": "quantitative"},
        },
    }
    return [Figure("toy-spread", "Spread of toy attention", "Left is sharp.", "Histogram of the spread.", spec)]


def judge(trial: Result) -> Verdict:
    mean = float(np.nanmean(column(trial.table, "spread")))
    answer, clause = "It has a toy verdict", "was weighed by a toy"
    sentence = f"The toy spread is {mean:.2f}."
    return Verdict(
        QUESTION,
        "mixed",
        answer,
        sentence,
        "Toys are always mixed.",
        clause,
        mean,
        mean,
        mean,
        (0.5,),
        "Toy.",
    )


SHARPNESS = Experiment(
    name="toy_sharpness",
    question=QUESTION,
    paper="Toy 2026",
    run=run,
    columns={"spread": Column("toy spread", 0, 1, "0: one word has all.")},
    config=SharpnessConfig,
    needs=frozenset({"attends"}),
    version="1",
    summarise=summarise,
    measures=(Measure("toy_spread", "spread of toy attention", "toy spread", "spread", "overall"),),
    judge=judge,
    pages=Presentation(draw=draw),
)
