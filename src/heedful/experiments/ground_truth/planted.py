"""Do explanations find words that are known to decide?

Bastings et al. 2022 ("Will you find these shortcuts?"): where words were planted that decide the label, an explanation
of a model that uses them must point at them. First it is asked whether the model does: its output without the planted
words is set against its output without as many random others (`effect`, `effect_random`: total variation distance,
words are deleted), and its accuracy. Where it does not use them nothing can be said of explanations, and the verdict
says so.

The data have known evidence (our corpora planted-*), or a shortcut is put into a copy of them (`plant`).

`precision` at k, k being the number of planted words, and their mean `rank` are measured for each method; the verdict
goes by the texts that are predicted rightly. Chance is known exactly. Scores are ranked by size: a word can decide by
speaking against.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from pydantic import Field

from heedful.config import EditConfig, EvaluationConfig, RunConfig
from heedful.data.edits.plant import Kind
from heedful.experiments.framework.description import Column, Measure, MethodMeasure, Result, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Floats, States, Summary, generators
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.summary import Bools, Line, column, copy_of, mean, plain, spread
from heedful.experiments.framework.verdict import Verdict, Wording
from heedful.experiments.ground_truth.evidence import (
    EvidenceConfig,
    common_columns,
    evidence_of,
    explainers_of,
    found_by_method,
    methods_of,
    scorers,
    summarise_evidence,
    words_of,
)
from heedful.experiments.ground_truth.verdict import COLUMNS, Claim, figures_of, method_title, reasons, verdict_of
from heedful.measure.columns import rows_of
from heedful.measure.paired import paired

if TYPE_CHECKING:
    from heedful.models.network import Network, Output
    from heedful.records import Batch

BARS = (0.5, 0.8)
COPY = "planted"  # the name of the run on planted data
USED = 0.1  # TVD: so much more than random words the planted ones must move the output, on average
CLAIM = Claim(
    question="Do explanations find the words that are known to decide?",
    measure="precision",
    bars=BARS,
    rule=(
        f"Of the way from a random order to all of the planted words, attention gets {BARS[1]:.0%} or more: yes; from "
        f"{BARS[0]:.0%} on: often; below, or no better than chance: no. Asked only where deleting the planted words "
        f"moves the output by {USED:g} more than deleting others does, on average: else the model does not use them."
    ),
    wordings={
        "for": Wording("Yes", "finds the words that decide"),
        "mixed": Wording("Often", "often finds the words that decide"),
        "against": Wording("No", "looks at other words than those that decide"),
    },
    told="Of the k most attended words, k being how many were planted, {value} are planted ones; in a random order it "
    "would be {chance} ({p}).",
)
OWN_COLUMNS = {
    "effect": Column("change without the planted words", 0, 1, "Near 0: the model does not use them.", unit="TVD"),
    "correct": Column("predicted rightly", 0, 1, "1: the label of the text is predicted.", bins=2),
    "effect_random": Column("change without random words", 0, 1, "Near 0: others hardly matter.", unit="TVD"),
}


class PlantedConfig(EvidenceConfig):
    """plant: a shortcut (data/edits/plant.py) is put into a copy of the data, and a copy of the model is trained on it
    and asked; None: the data have known evidence themselves."""

    plant: Kind | None = None
    share: float = Field(default=0.25, gt=0, le=1)  # of the training texts that it is put into


def copies(config: PlantedConfig, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
    if config.plant is None:
        return {}
    options = {"kind": config.plant, "share": config.share}
    return {COPY: copy_of(about, EditConfig(name="plant", options=options))}


def run(
    model: Network,
    batches: Batches,
    config: PlantedConfig,
    rng: Generator,
    states: States | None = None,
    others: Mapping[str, OtherRun] | None = None,
) -> Iterator[Chunk]:
    """One row for each text and `method`: see `found_by_method`; `effect`, `effect_random` and `correct` (undefined
    without a label) are of the text. With `plant` all of these are of the copy and its texts, and what every experiment
    has (`predicted`, ...) is of the model and the text that were asked about."""
    import torch

    PLANTED.check(model.can)
    if config.plant is not None:
        require_others(others or {}, PLANTED.name)
    asked = model if config.plant is None else (others or {})[COPY].network
    methods, generator_of = scorers(asked, config, states or {}), generators(rng)
    for examples, batch in batches:
        with torch.no_grad():
            output = model(batch)
        base = common_columns(model, examples, batch, output)
        if config.plant is not None:
            batch = (others or {})[COPY].batch(examples)
            with torch.no_grad():
                output = asked(batch)
        evidence = evidence_of(batch, PLANTED.name)
        rngs = [generator_of(i) for i in examples]
        base |= _verify(asked, batch, output, evidence, rngs)
        for chunk in found_by_method(methods, batch, output, evidence, config.absolute, rngs):
            yield base | chunk


def _verify(model: Network, batch: Batch, output: Output, evidence: Bools, rngs: list[Generator]) -> Chunk:
    """Is it these words that the model uses?"""
    real = words_of(batch)
    others = np.zeros_like(evidence)
    for row, rng in enumerate(rngs):
        rest = np.flatnonzero(real[row] & ~evidence[row])
        others[row, rng.permutation(rest)[: int(evidence[row].sum())]] = True
    correct = np.full(len(batch), np.nan)
    if batch.labels is not None:
        correct = (output.predicted == batch.labels).double().cpu().numpy()
    return {
        "effect": change_without(model, batch, output, evidence, real),
        "effect_random": change_without(model, batch, output, others, real),
        "correct": correct,
    }


def change_without(model: Network, batch: Batch, output: Output, words: Bools, real: Bools) -> Floats:
    """How far the output moves when these words are deleted: (texts,), nan where none or all would be."""
    import torch

    from heedful.explainers.perturbation.edits import Edits
    from heedful.explainers.perturbation.perturb import predict

    some = words.any(1) & (real & ~words).any(1)
    change = np.full(len(batch), np.nan)
    at = np.flatnonzero(some)
    if not len(at):
        return change
    tokens = batch.passage
    index = (
        torch.arange(tokens.ids.shape[1]).expand(tokens.ids.shape) if tokens.word_index is None else tokens.word_index
    )
    gone = np.take_along_axis(words, np.maximum(index.cpu().numpy(), 0), 1)  # (texts, length) tokens of these words
    edits = Edits.keeping(tokens, at, ~gone[at])
    logits = predict(model, batch, edits)
    before = output.probabilities[torch.from_numpy(at).to(output.logits.device)]
    moved = model.link.distance(model.link.probabilities(logits), before)
    change[at] = moved.double().cpu().numpy()
    return change


def summarise(table: pa.Table) -> Summary:
    """As all evidence, over all texts (`methods`) and over those that are predicted rightly (`right`); `used`: whether
    the model uses the planted words."""
    right = rightly_predicted(table)
    return summarise_evidence(table) | {
        "used": _used(_once(table)),
        "right": summarise_evidence(right) if len(right) else None,
    }


def rightly_predicted(table: pa.Table) -> pa.Table:
    """The rows of texts whose label is predicted, or is not known."""
    correct = column(table, "correct")
    return table.filter(pa.array(np.isnan(correct) | (correct > 0)))


def _once(table: pa.Table) -> pa.Table:
    """One row for each text."""
    return rows_of(table, "method", methods_of(table)[0])


def _used(rows: pa.Table) -> Line:
    effect, random = column(rows, "effect"), column(rows, "effect_random")
    test = paired(effect, random)
    return {
        "accuracy": mean(column(rows, "correct")),
        "effect": spread(effect),
        "effect_random": spread(random),
        "difference": plain({"n": test.n, "mean": test.difference, "low": test.low, "high": test.high, "p": test.p}),
    }


_judge = verdict_of(CLAIM, rightly_predicted)


def _moved(used: Line) -> str:
    """How far the output moves without the planted words and without others, and how many texts are right."""
    if used["difference"]["mean"] is None:
        return "No text has planted words and others"
    accuracy = "" if used["accuracy"] is None else f"; {used['accuracy']:.0%} of the texts are predicted rightly"
    return (
        f"Deleting the planted words moves the output by {used['effect']['mean']:.2f} on average, deleting as many "
        f"others by {used['effect_random']['mean']:.2f}{accuracy}"
    )


def unused(summary: Mapping[str, Any]) -> str:
    """Why nothing can be said of explanations; empty where the model uses the planted words."""
    used = summary["used"]
    told, low = used["difference"]["mean"], used["difference"]["low"]
    if told is not None and (told if low is None else low) > USED:
        return ""
    return f"{_moved(used)}: the model does not use the planted words enough for an explanation to have to show them."


def verdict(trial: Result) -> Verdict:
    """Where the model does not use the planted words, that is the verdict."""
    used = _used(_once(trial.table))
    sentence = unused({"used": used})
    if sentence:
        return CLAIM.unclear("The model does not use them", sentence, "is not asked")
    found = _judge(trial)
    return replace(found, sentence=f"{_moved(used)}: it uses them. {found.sentence}")


PLANTED = Experiment(
    name="planted",
    question=CLAIM.question,
    asks="whether its explanations find words that are known to decide",
    paper="Bastings et al. 2022",
    run=run,
    columns=COLUMNS | OWN_COLUMNS,
    config=PlantedConfig,
    needs=frozenset({"predicts"}),
    version="1",
    by="method",
    summarise=summarise,
    measures=(
        Measure(
            "planted",
            "precision of attention at the planted words",
            "precision",
            "precision",
            "methods.attention.overall.precision",
            "attention",
        ),
    ),
    judge=verdict,
    scale="planted words that attention finds: 0 as a random order, 1 all of them",
    takes=Takes(
        forwards=(62, 1),  # integrated gradients takes most of it
        explainers=explainers_of,
        runs=copies,
    ),
    pages=Presentation(
        group_title=method_title,
        statistics=(
            Statistic(
                "planted words used",
                "used.difference.mean",
                "Planted words used: how much more the output moves without them than without random words.",
            ),
        ),
        draw=figures_of(("precision", "rank", "hit")),
        examples=reasons,
    ),
    audit=ForAudit(
        measures=(
            MethodMeasure(
                "precision",
                "precision at k of the planted words",
                "1: the k strongest words are the k planted ones.",
                "precision",
                chance="chance",
                possible=1.0,
                about="ground truth",
            ),
        ),
        void=unused,
    ),
)
