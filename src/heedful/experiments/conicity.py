"""Are the states that attention chooses from alike?

Mohankumar et al. 2020, section 3.1 and table 2: where all states of a text point one way, every attention over them
gives nearly the same context, so its weights can hardly matter. Conicity is the mean |cosine| of the states with
their mean (models/conicity.py). A condition and no trial: low conicity does not make attention an explanation, so
there is no verdict. Beside it stands what as many random directions would have, which is much for short texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from heedful.config import Config
from heedful.experiments.description import Column, Measure, Statistic
from heedful.experiments.evidence_rows import common_columns
from heedful.experiments.experiment import Batches, Chunk, Experiment, Summary
from heedful.experiments.summary import Line, column, grouped, mean, quantiles, spread

if TYPE_CHECKING:
    from heedful.models.network import Network


def run(model: Network, batches: Batches, config: Config, rng: Generator) -> Iterator[Chunk]:
    """Rows: `conicity` of the states of the words (of the sentences in a hierarchical model), and `chance`, that of as
    many random directions, 1 / sqrt(n); undefined without states."""
    import torch

    from heedful.models.conicity import conicity, read_states

    CONICITY.check(model.can)
    for examples, batch in batches:
        with torch.no_grad():
            output = model(batch)
            h, there = read_states(model, batch, output)
            found = conicity(h.double(), there).cpu().numpy()  # (batch,)
        n = there.sum(1).cpu().numpy()
        yield common_columns(model, examples, batch, output) | {
            "conicity": np.where(n > 0, found, np.nan),
            "chance": np.where(n > 0, 1 / np.sqrt(np.maximum(n, 1)), np.nan),
        }


def summarise(table: pa.Table) -> Summary:
    return grouped(table, _line)


def _line(table: pa.Table) -> Line:
    values = column(table, "conicity")
    found = spread(values, within=COLUMNS["conicity"].possible) | quantiles(values)
    return found | {"chance": mean(column(table, "chance"))}


COLUMNS = {
    "conicity": Column(
        "conicity of the states",
        0,
        1,
        "Near 1: all states of the text point one way, whatever their words are.",
    ),
    "chance": Column("conicity of random directions", 0, 1, "1 / √n of n states.", drawn=False),
}

CONICITY = Experiment(
    name="conicity", question="Are the states that attention chooses from alike?",
    paper="Mohankumar et al. 2020, section 3.1", config=Config, needs=frozenset({"attends"}), version="1", run=run,
    summarise=summarise, asks="whether the states that its attention chooses from are alike", columns=COLUMNS,
    measures=(Measure("conicity", "conicity of the states", "conicity", "conicity", "overall", rising=False),),
    statistics=(
        Statistic("conicity", "overall.mean", "Conicity: mean cosine of the states of a text with their mean."),
    ),
)  # fmt: skip
