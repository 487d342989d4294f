"""Are the states that attention chooses from alike?

Mohankumar et al. 2020, section 3.1 and table 2: where all states of a text point one way, every attention over them
gives nearly the same context, so its weights can hardly matter. Conicity is the mean |cosine| of the states with
their mean (models/objectives/diversity.py). It is a condition:
low conicity does not make attention an explanation, so its verdict has no say in the headline. Beside it stands
what as many random directions would have, which is much for short texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.random import Generator

from heedful.config import Config
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic, places_by
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Summary
from heedful.experiments.framework.parts import Presentation
from heedful.experiments.framework.summary import Line, column, grouped, mean, quantiles, spread
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, interval
from heedful.experiments.ground_truth.evidence import common_columns
from heedful.measure.statistics import Interval
from heedful.measure.statistics import summarise as summarise_values

if TYPE_CHECKING:
    from heedful.models.network import Network


QUESTION = "Are the states that attention chooses from alike?"
BARS = (0.35, 0.5)  # between the published LSTMs and the published models with diverse states
RULE = (
    f"Mean conicity of {BARS[1]:g} or more: yes; from {BARS[0]:g} on: in part; below: no. It does not count in the "
    "headline: that states differ is a condition for weights to matter, and says nothing of whether they do."
)
WORDINGS: dict[Grade, Wording] = {  # are they alike?
    "against": Wording("Yes", "chooses from states that are alike"),
    "mixed": Wording("In part", "chooses from states that are alike in part"),
    "for": Wording("No", "chooses from states that differ"),
}


def run(model: Network, batches: Batches, config: Config, rng: Generator) -> Iterator[Chunk]:
    """Rows: `conicity` of the states of the words (of the sentences in a hierarchical model), and `chance`, that of as
    many random directions, 1 / sqrt(n); undefined without states."""
    import torch

    from heedful.models.objectives.diversity import conicity, read_states

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


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, BARS, rising=False, counts=False)


def verdict(trial: Result) -> Verdict:
    """By the mean conicity: less is better."""
    values = column(trial.table, "conicity")
    found = summarise_values(values, within=COLUMNS["conicity"].possible)
    if not found.n:
        nothing = "No text has states."
        return JUDGEMENT.unclear("Undefined", nothing, "is empty")
    mean_of = Interval(found.mean, found.low, found.high)
    sentence = (
        f"The mean |cosine| of the states of a text with their mean is {interval(mean_of)} over {found.n:,} texts; as "
        f"many random directions would have {mean(column(trial.table, 'chance')):.2f}."
    )
    return JUDGEMENT.of(mean_of, sentence)


def reasons(trial: Result) -> Iterator[Reason]:
    values = column(trial.table, "conicity")
    alike = "Its states point one way, so its prediction hardly depends on which of them is attended to."
    yield Reason("States most alike", alike, places_by(trial.table, -values))
    yield Reason("States least alike", "Its states differ most from each other.", places_by(trial.table, values))


COLUMNS = {
    "conicity": Column(
        "conicity of the states", 0, 1, "Near 1: all states of the text point one way, whatever their words are."
    ),
    "chance": Column("conicity of random directions", 0, 1, "1 / √n of n states.", drawn=False),
}

CONICITY = Experiment(
    name="conicity",
    question=QUESTION,
    asks="whether the states that its attention chooses from are alike",
    paper="Mohankumar et al. 2020, section 3.1",
    run=run,
    columns=COLUMNS,
    config=Config,
    needs=frozenset({"attends"}),
    version="1",
    summarise=summarise,
    measures=(Measure("conicity", "conicity of the states", "conicity", "conicity", "overall", rising=False),),
    judge=verdict,
    scale="mean cosine of the states of a text with their mean, 1 being one direction",
    pages=Presentation(
        statistics=(
            Statistic("conicity", "overall.mean", "Conicity: mean cosine of the states of a text with their mean."),
        ),
        examples=reasons,
        has_say=False,
    ),
)
