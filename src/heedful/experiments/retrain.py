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
from numpy.random import Generator
from pydantic import Field, field_validator

from heedful.config import Config, EditConfig, RunConfig, TrialConfig
from heedful.errors import Mistake
from heedful.experiments.copies import copy_of
from heedful.experiments.description import Measure, MethodMeasure, Statistic
from heedful.experiments.evidence_rows import common_columns
from heedful.experiments.experiment import Batches, Chunk, Experiment
from heedful.experiments.other_runs import OtherRun, require_others
from heedful.experiments.retrain_description import (
    COLUMNS,
    QUESTION,
    RANDOM,
    figures,
    group_title,
    reasons,
    summarise,
    verdict,
)
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from heedful.models.network import Network, Output
    from heedful.records import Batch


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


def copies(config: RetrainConfig, about: RunConfig | TrialConfig) -> Mapping[str, RunConfig]:
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
        raise Mistake("retrain asks whether labels are predicted: these texts have none.")
    n = len(batch)
    return {
        "removal": [name_of(method, fraction)] * n,
        "method": [method] * n,
        "fraction": np.full(n, fraction),
        "correct": (output.predicted == batch.labels).double().cpu().numpy(),
        "probability": output.probabilities.gather(1, batch.labels.unsqueeze(1))[:, 0].double().cpu().numpy(),
    }


RETRAIN = Experiment(
    name="retrain", question=QUESTION, paper="Hooker et al. 2019", config=RetrainConfig,
    needs=frozenset({"predicts"}), version="1", run=run, summarise=summarise,
    asks="whether a model trained without the words that it points at is worse than without random words",
    scale="accuracy lost without the attended words, beyond what random words cost",
    columns=COLUMNS, by="removal", group_title=group_title,
    measures=(Measure("retrain", "accuracy after training without words", "accuracy", "correct", "overall"),),
    statistics=(
        Statistic(
            "lost without attended words", "against_random.attention.mean",
            "Lost without attended words: how much lower accuracy is than after training without random words.",
        ),
    ),
    method_measures=(
        MethodMeasure(
            "accuracy", "accuracy after training without its words",
            "Less is better: what was removed was what there was to learn from.", "correct", rising=False,
        ),
    ),
    draw=figures, judge=verdict, examples=reasons, forwards=(16, 0), runs=copies,
)  # fmt: skip
