"""How sharp is attention? An experiment with a figure and a verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from heedful.plugins import (
    EXPLAINERS,
    Batches,
    Chunk,
    Column,
    Config,
    Experiment,
    Figure,
    Measure,
    Presentation,
    Result,
    Verdict,
    common_columns,
)

QUESTION = "Does toy attention choose a few words?"


class SharpnessConfig(Config):
    base: float = 2.0


def run(network: Any, batches: Batches, config: SharpnessConfig, rng: np.random.Generator) -> Iterator[Chunk]:
    """Entropy of the attention over the words, as a share of the most that it can be."""
    attention = EXPLAINERS.find("attention")
    for examples, batch in batches:
        output = network(batch)
        weights = attention.run(network, batch, output.predicted).passage.detach().numpy()  # (batch, length)
        words = [row[there] for row, there in zip(weights, batch.passage.mask.numpy(), strict=True)]
        bits = [-(w[w > 0] * np.log(w[w > 0])).sum() / np.log(max(2, len(w))) for w in words]
        yield common_columns(network, examples, batch, output) | {"spread": np.array(bits)}


def draw(trial: Result) -> Sequence[Figure]:
    values = trial.table["spread"].to_numpy()
    bars = [{"low": i / 10, "texts": int(((values * 10).astype(int).clip(0, 9) == i).sum())} for i in range(10)]
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.1.0.json",
        "data": {"values": bars},
        "mark": "bar",
        "encoding": {"x": {"field": "low", "type": "ordinal"}, "y": {"field": "texts", "type": "quantitative"}},
    }
    return [Figure("toy-spread", "Spread of toy attention", "Left is sharp.", "Histogram of the spread.", spec)]


def judge(trial: Result) -> Verdict:
    mean = float(np.nanmean(trial.table["spread"].to_numpy()))
    answer, clause = "It has a toy verdict", "was weighed by a toy"
    sentence = f"The toy spread is {mean:.2f}."
    return Verdict(
        QUESTION, "mixed", answer, sentence, "Toys are always mixed.", clause, mean, mean, mean, (0.5,), "Toy."
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
    measures=(Measure("toy_spread", "spread of toy attention", "toy spread", "spread", "spread.overall"),),
    judge=judge,
    pages=Presentation(draw=draw),
)
