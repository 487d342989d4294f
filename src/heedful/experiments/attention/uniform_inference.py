"""Would the prediction change if the model, as it stands, attended to everything alike?

The uniform attention of Wiegreffe & Pinter 2019 (section 3.1), put into a trained model: nothing is trained again, so
it can be asked of any model whose attention can be edited. A model that was trained with uniform attention could have
learnt to do without (that is `uniform`); here it could not, so a change says that this model uses where it attends,
not that its task needs attention. Of several layers it is asked of all at once, and of each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow.compute import field

from heedful.config import Config
from heedful.experiments.attention.head_changes import Changes, change_heads, layers_and_heads
from heedful.experiments.attention.permutation import HARDLY, MUCH, RULE
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic, places_by
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Floats, Summary
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.summary import Line, column, mean, plain, quantiles, spread
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, interval
from heedful.measure.statistics import quantile

if TYPE_CHECKING:
    from heedful.models.network import Attends

QUESTION = "Would the prediction change if the model attended to all words alike?"
ALL = "all layers"
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "decides much of the prediction"),
    "mixed": Wording("Somewhat", "moves the prediction somewhat when it is made uniform"),
    "against": Wording("Hardly", "can be made uniform and hardly changes the prediction"),
}
COLUMNS = {
    "tvd": Column("change of the output", 0, 1, "Near 0: the prediction stays where it was.", unit="TVD"),
    "flipped": Column("another label", 0, 1, "1: another label is predicted.", bins=2, drawn=False),
    "right": Column("right", 0, 1, "1: the model as it is is right.", bins=2, drawn=False),
    "right_uniform": Column("right under uniform attention", 0, 1, "1: it is right.", bins=2, drawn=False),
}


class UniformInferenceConfig(Config):
    layers: tuple[int, ...] | None = None  # None: all
    heads: tuple[int, ...] | None = None  # None: all


def run(model: Attends, batches: Batches, config: UniformInferenceConfig, rng: np.random.Generator) -> Iterator[Chunk]:
    """A row for each text and question (all layers at once, each by itself): `tvd` of the outputs, whether another
    label is predicted (`flipped`), and whether the model is `right` and `right_uniform`, undefined without labels."""
    import torch

    from heedful.experiments.edited_attention.observe import observer
    from heedful.explainers.attention.weights import head_numbers

    UNIFORM_INFERENCE.check(model.can)
    observe = observer(model)
    for examples, batch in batches:
        seen = observe(examples, batch)
        layers, n_heads = layers_and_heads(model, batch, config.layers)
        heads = head_numbers(config.heads, n_heads)
        with torch.no_grad():
            own = model(batch)
        asked = {ALL: layers} | {f"layer {layer}": [layer] for layer in layers if len(layers) > 1}
        labels = np.full(len(batch), np.nan) if batch.labels is None else batch.labels.cpu().numpy()
        for question, chosen in asked.items():
            changes: Changes = {(layer, head): "uniform" for layer in chosen for head in heads}
            with torch.no_grad():
                flat = model(batch, edit=change_heads([changes] * len(batch)))
                moved = model.link.distance(flat.probabilities.double(), own.probabilities.double())
            yield seen.rows() | {
                "question": [question] * len(batch),
                "tvd": moved.cpu().numpy(),
                "flipped": (flat.predicted != own.predicted).cpu().numpy().astype(np.float64),
                "right": _right(own.predicted.cpu().numpy(), labels),
                "right_uniform": _right(flat.predicted.cpu().numpy(), labels),
            }


def _right(predicted: Floats, labels: Floats) -> Floats:
    return np.where(np.isnan(labels), np.nan, predicted == labels)


def summarise(table: pa.Table) -> Summary:
    """Of all layers at once (`overall`) and of each by itself: the change of the output, decisions, and accuracy."""
    questions = list(dict.fromkeys(table["question"].to_pylist()))
    lines = {name: _line(table.filter(field("question") == name)) for name in questions}
    return {"overall": lines[ALL], "by_question": lines}


def _line(table: pa.Table) -> Line:
    tvd = column(table, "tvd")
    shares = {name: mean(column(table, name)) for name in ("flipped", "right", "right_uniform")}
    return spread(tvd, within=COLUMNS["tvd"].possible) | quantiles(tvd) | plain(shares)


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (HARDLY, MUCH))


def verdict(trial: Result) -> Verdict:
    """The median over texts of the change under uniform attention in all layers."""
    rows = trial.table.filter(field("question") == ALL)
    values = column(rows, "tvd")
    defined = values[~np.isnan(values)]
    if not defined.size:
        none = "No text could be predicted again."
        return JUDGEMENT.unclear("Undefined", none, "is empty")
    found, line = quantile(defined), trial.summary["overall"]
    scores = (
        f" Accuracy is {line['right_uniform']:.3f} then, and {line['right']:.3f} as it is."
        if line["right"] is not None
        else ""
    )
    sentence = (
        f"When all words get the same attention, in all layers tested, the prediction changes by "
        f"{interval(found, 3 if found.value < 0.1 else 2)} in the median of {defined.size:,} texts, and its label for "
        f"{line['flipped']:.0%} of them.{scores}"
    )
    return JUDGEMENT.of(found, sentence)


def reasons(trial: Result) -> Iterator[Reason]:
    rows = trial.table.filter(field("question") == ALL)
    change, peak = column(rows, "tvd"), column(rows, "max_attention")
    most = "The prediction that uniform attention changes most."
    yield Reason("Attention matters most", most, places_by(rows, -change))
    calm = "Attention is sharp (its largest weight is above one half), and without it nothing changes."
    yield Reason("Sharp, and not needed", calm, places_by(rows, np.where(peak > 0.5, change, np.nan)))


UNIFORM_INFERENCE = Experiment(
    name="uniform_inference",
    question=QUESTION,
    asks="whether the prediction changes when attention is made uniform",
    paper="Wiegreffe & Pinter 2019, section 3.1, without training",
    run=run,
    columns=COLUMNS,
    config=UniformInferenceConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="1",
    by="question",
    summarise=summarise,
    measures=(Measure("flat", "output change under uniform attention", "Δŷ uniform", "tvd", "overall"),),
    judge=verdict,
    scale="change of the prediction when the attention is made uniform, 1 being all of it",
    takes=Takes(
        forwards=(3, 0)  # of one layer; each further layer takes one more
    ),
    pages=Presentation(
        statistics=(
            Statistic(
                "change when uniform",
                "overall.q50",
                "Change when uniform: median change of the prediction under uniform attention.",
                ".3f",
            ),
        ),
        examples=reasons,
    ),
)
