"""Does a model that is trained again need the words that a method points at?

ROAR (Hooker et al. 2019; for text Madsen et al. 2022): the words that a method ranks highest are removed from every
text of every split, and the model is trained again on what is left. If they were what there was to learn from, the new
model is worse than one that is trained without as many random words; a model that is never trained again could be wrong
only because such texts are strange to it. `recursive` ranks anew with each new model and removes a little more each
time, so that a word is not kept because another one said the same.

The new models are runs like others: trained once, shared, resumed. Each text is then asked of each of them, in the form
that the model knows it (`correct`, and the `probability` of its label), so that methods are compared text by text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from pydantic import Field, field_validator

from heedful.config import Config, EditConfig, EvaluationConfig, RunConfig
from heedful.errors import Mistake
from heedful.experiments.framework.description import (
    Column,
    Measure,
    MethodMeasure,
    Reason,
    Result,
    Statistic,
    places_by,
)
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Summary
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.summary import Line, column, copy_of, plain, spread
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, grade_at, interval
from heedful.experiments.ground_truth.evidence import common_columns
from heedful.figures.figure import Figure, method_name
from heedful.measure.columns import Floats, rows_of
from heedful.measure.paired import paired
from heedful.measure.statistics import Interval
from heedful.measure.tests import benjamini_hochberg
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from heedful.models.network import Network, Output
    from heedful.records import Batch


# What the rows of `retrain` add up to and say: curves of accuracy, each method against random words, the verdict.


QUESTION = "Is a model worse when it is trained again without the words that attention points at?"
ATTENTION, RANDOM, NONE = "attention", "random", "none"
BARS = (0.02, 0.1)
RULE = (
    f"Accuracy lost beyond what random words cost, mean over the fractions removed: {BARS[1]:g} or more: yes; from "
    f"{BARS[0]:g} on: somewhat; below, or no more than chance can do: no."
)
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "points at words that a model needs to learn from"),
    "mixed": Wording("Somewhat", "points at words that a model needs somewhat more than others"),
    "against": Wording("No", "points at words that a model can as well be trained without"),
}
COLUMNS = {
    "correct": Column("predicted rightly after training again", 0, 1, "1: rightly, 0: wrongly.", bins=2),
    "probability": Column("probability of the label", 0, 1, "1: the new model is sure of the text's label."),
    "fraction": Column("share of the words removed", 0, 1, "Of every text, before training.", drawn=False),
}


def group_title(removal: str) -> str:
    method, _, fraction = removal.rpartition(" ")
    return "nothing removed" if method == NONE else f"{float(fraction):.0%} by {method_name(method)}"


def methods_of(table: pa.Table) -> list[str]:
    return [name for name in dict.fromkeys(table["method"].to_pylist()) if name != NONE]


def by_text(table: pa.Table, method: str) -> Floats:
    """The mean of `correct` over the fractions, of each text in the order of their places."""
    rows = rows_of(table, "method", method)
    _, place = np.unique(rows["example"].to_numpy(), return_inverse=True)
    return np.asarray(np.bincount(place, column(rows, "correct")) / np.bincount(place))


def summarise(table: pa.Table) -> Summary:
    """`none`: accuracy of the model itself; `curves`: by method and fraction; `against_random`: accuracy after random
    words were removed minus after those of the method, mean over the fractions, with a permutation test over texts, q
    over the methods (Benjamini & Hochberg) and the effect size. Intervals are over texts: another seed of training is
    another curve."""
    found = {name: _against_random(table, name) for name in methods_of(table) if name != RANDOM}
    adjusted = benjamini_hochberg([np.nan if line["p"] is None else line["p"] for line in found.values()])
    return {
        "overall": spread(column(table, "correct"), yes_or_no=True),
        "none": spread(column(rows_of(table, "method", NONE), "correct"), yes_or_no=True),
        "curves": {name: _curve(rows_of(table, "method", name)) for name in methods_of(table)},
        "against_random": {
            name: line | plain({"q": float(q)}) for (name, line), q in zip(found.items(), adjusted, strict=True)
        },
    }


def _curve(rows: pa.Table) -> list[Line]:
    fraction = column(rows, "fraction")
    return [
        {"fraction": float(one)} | spread(column(rows, "correct")[fraction == one], yes_or_no=True)
        for one in np.unique(fraction)
    ]


def _against_random(table: pa.Table, method: str) -> Line:
    random, ours = by_text(table, RANDOM), by_text(table, method)
    test = paired(random, ours)
    line = {"n": test.n, "mean": test.difference, "low": test.low, "high": test.high, "p": test.p}
    return plain(line | {"effect_size": test.rank_biserial})


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, BARS)


def verdict(trial: Result) -> Verdict:
    table = trial.table
    if ATTENTION not in methods_of(table):
        told = "The words of highest attention were not removed: see the figures."
        return JUDGEMENT.unclear("Not asked", told, "was not asked")
    line = _against_random(table, ATTENTION)
    if line["low"] is None or line["high"] is None:
        told = "One text is not enough for a comparison."
        return JUDGEMENT.unclear("Undefined", told, "was not asked")
    found = Interval(line["mean"], min(line["low"], line["mean"]), max(line["high"], line["mean"]))
    grade: Grade = "against" if found.low <= 0 else grade_at(found.value, *BARS, rising=True)
    means = {name: float(by_text(table, name).mean()) for name in methods_of(table)}
    own = float(column(rows_of(table, "method", NONE), "correct").mean())
    fractions = np.unique(column(rows_of(table, "method", ATTENTION), "fraction"))
    others = ", ".join(f"{method_name(n)} {m:.2f}" for n, m in means.items() if n not in (ATTENTION, RANDOM))
    sentence = (
        f"Trained again without {fractions.min():.0%} to {fractions.max():.0%} of the words, the model predicts "
        f"{means[RANDOM]:.2f} of the texts rightly where random words are gone and {means[ATTENTION]:.2f} where the "
        f"most attended are ({own:.2f} with all words): {interval(found)} are lost beyond chance, in {line['n']:,} "
        f"texts and one training for each point.{f' Others: {others}.' if others else ''}"
    )
    return JUDGEMENT.of(found, sentence, grade)


def figures(trial: Result) -> list[Figure]:
    """Figure 4 of Hooker et al. 2019: accuracy against the share removed, a line for each method."""
    from heedful.figures.charts import curves

    none = {"fraction": 0.0, **trial.summary["none"]}
    lines = {method_name(name): [none, *found] for name, found in trial.summary["curves"].items()}
    told = "; ".join(f"{name} {points[-1]['mean'] or 0.0:.2f}" for name, points in lines.items())
    return [
        Figure(
            "retrain",
            "Accuracy after training without words",
            "Each point is a model that was trained without that share of the words of every text. The lower a curve "
            "is below that of random words, the more the method removed of what there is to learn from. Bands are 95% "
            "intervals over texts.",
            f"Accuracy at the largest share removed: {told}.",
            curves(lines, ("share of the words removed", "accuracy")),
            wide=True,
        )
    ]


def reasons(trial: Result) -> Iterator[Reason]:
    methods = methods_of(trial.table)
    method = ATTENTION if ATTENTION in methods else methods[0]
    texts = pa.table({"example": np.unique(trial.table["example"].to_numpy())})
    lost = by_text(trial.table, RANDOM) - by_text(trial.table, method)
    told = method_name(method)
    why = f"Predicted rightly without random words, and not without those that {told} ranks highest."
    yield Reason("Its words are needed", why, places_by(texts, -np.where(lost > 0, lost, np.nan)))
    odd = f"Predicted rightly without the words that {told} ranks highest."
    yield Reason("Its words are not needed", odd, places_by(texts, -by_text(trial.table, method)))


class RetrainConfig(Config):
    """Defaults of Hooker et al., with one training for each point. how None: replaced by the unknown word, and for a
    checkpoint, whose tokenizer has its own, deleted."""

    methods: tuple[str, ...] = Field(default=("attention", "gradient_x_input"), min_length=1)
    fractions: tuple[float, ...] = Field(default=(0.1, 0.3, 0.5, 0.7, 0.9), min_length=1)
    how: Literal["replace", "delete"] | None = None
    recursive: bool = False

    @field_validator("methods")
    @classmethod
    def _known(cls, methods: tuple[str, ...]) -> tuple[str, ...]:
        for name in methods:
            EXPLAINERS.check(name)
        if len(set(methods)) < len(methods) or RANDOM in methods:
            raise ValueError("each method is given once, and random words are always removed, too")
        return methods

    @field_validator("fractions")
    @classmethod
    def _rising(cls, fractions: tuple[float, ...]) -> tuple[float, ...]:
        if not all(0 < low < high < 1 for low, high in pairwise((*fractions, 0.9999))):
            raise ValueError("fractions rise, above 0 and below 1")
        return fractions


def name_of(method: str, fraction: float) -> str:
    return f"{method} {fraction:g}"


def copies(config: RetrainConfig, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
    """A run for each method and fraction."""
    base = copy_of(about)
    how = config.how or ("replace" if base.start is None else "delete")
    if how == "replace" and base.start is not None:
        raise Mistake("retrain: a checkpoint's tokenizer has its own unknown word; give how=delete.")
    made: dict[str, RunConfig] = {}
    for method in (*config.methods, RANDOM):
        before, gone = base, 0.0
        for fraction in config.fractions:
            of = before if config.recursive else base
            share = (fraction - gone) / (1 - gone) if config.recursive else fraction
            options = {"base": of.model_dump(mode="json"), "method": method, "fraction": share, "how": how}
            before, gone = copy_of(base, EditConfig(name="remove", options=options)), fraction
            made[name_of(method, fraction)] = before
    return made


def run(
    model: Network, batches: Batches, config: RetrainConfig, rng: Generator, others: Mapping[str, OtherRun]
) -> Iterator[Chunk]:
    """Rows for each text, `method` and `fraction`, which `removal` names in one: `correct` (1: the new model predicts
    the label of the text) and `probability` of that label; of the model itself with the fraction 0."""
    import torch

    RETRAIN.check(model.can)
    require_others(others, RETRAIN.name)
    asked = [(m, f) for m in (*config.methods, RANDOM) for f in config.fractions]
    for examples, batch in batches:
        with torch.no_grad():
            output = model(batch)
        base = common_columns(model, examples, batch, output)
        yield base | _columns("none", 0.0, output, batch)
        for method, fraction in asked:
            other = others[name_of(method, fraction)]
            edited = other.batch(examples)
            with torch.no_grad():
                yield base | _columns(method, fraction, other.network(edited), edited)


def _columns(method: str, fraction: float, output: Output, batch: Batch) -> Chunk:
    if batch.labels is None:
        raise Mistake("retrain needs labels, and these texts have none.")
    n = len(batch)
    return {
        "removal": [name_of(method, fraction)] * n,
        "method": [method] * n,
        "fraction": np.full(n, fraction),
        "correct": (output.predicted == batch.labels).double().cpu().numpy(),
        "probability": output.probabilities.gather(1, batch.labels.unsqueeze(1))[:, 0].double().cpu().numpy(),
    }


RETRAIN = Experiment(
    name="retrain",
    question=QUESTION,
    asks="whether a model trained without the words that it points at is worse than without random words",
    paper="Hooker et al. 2019",
    run=run,
    columns=COLUMNS,
    config=RetrainConfig,
    needs=frozenset({"predicts"}),
    version="1",
    by="removal",
    summarise=summarise,
    measures=(Measure("retrain", "accuracy after training without words", "accuracy", "correct", "overall"),),
    judge=verdict,
    scale="accuracy lost without the attended words, beyond what random words cost",
    takes=Takes(forwards=(16, 0), runs=copies),
    pages=Presentation(
        group_title=group_title,
        statistics=(
            Statistic(
                "lost without attended words",
                "against_random.attention.mean",
                "Lost without attended words: how much lower accuracy is than after training without random words.",
            ),
        ),
        draw=figures,
        examples=reasons,
    ),
    audit=ForAudit(
        measures=(
            MethodMeasure(
                "accuracy",
                "accuracy after training without its words",
                "Less is better: what was removed was what there was to learn from.",
                "correct",
                rising=False,
            ),
        )
    ),
)
