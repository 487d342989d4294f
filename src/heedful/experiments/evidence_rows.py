"""Rows of the experiments that know which words matter: what each method's scores find of them.

`rationales` (people marked the words), `planted` (the words decide by construction) and `pointing` (the words come from
texts of the predicted label) differ in where the evidence comes from, and share everything here. Beside the methods
stand three controls: a random order, uniform scores, and the first words of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from pydantic import field_validator

from heedful.config import Config
from heedful.errors import Mistake
from heedful.experiments.correlation import by_word, random_scores
from heedful.experiments.experiment import Chunk, Floats, Ints, States
from heedful.measure import evidence as measure
from heedful.measure.columns import Bools
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Network, Output
    from heedful.records import Batch

ATTENTION, RANDOM, UNIFORM, FIRST_WORDS = "attention", "random", "uniform", "first_words"
METHODS = (ATTENTION, "gradient", "gradient_x_input", "integrated_gradients", "lrp", "omission")
CONTROLS = (RANDOM, UNIFORM, FIRST_WORDS)
MEASURES = ("hit", "precision", "best_f1", "iou_f1", "auprc", "rank", "auc")

Scorer = Callable[["Batch", "Output"], "Tensor"]  # scores of tokens for the predicted label: (batch, length)


class EvidenceConfig(Config):
    """methods None: those of METHODS that the model can be explained by. The controls are always there."""

    methods: tuple[str, ...] | None = None
    absolute: bool = True  # rank by |score|

    @field_validator("methods")
    @classmethod
    def _known(cls, methods: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in methods or ():
            EXPLAINERS.check(name)
        if methods is not None and len(set(methods)) < len(methods):
            raise ValueError("each method is given once")
        return methods


def explainers_of(config: EvidenceConfig) -> list[str]:
    return list(METHODS if config.methods is None else config.methods)


def scorers(model: Network, config: EvidenceConfig, states: States) -> dict[str, Scorer]:
    """Each method as a function; one that was asked for by name and does not fit the model is refused."""
    names = [name for name in explainers_of(config) if name not in CONTROLS]
    if config.methods is None:
        names = [name for name in names if EXPLAINERS.find(name).needs <= model.can]
    return {name: method_scorer(model, name, states) for name in names}


def method_scorer(model: Network, name: str, states: States) -> Scorer:
    explainer = EXPLAINERS.find(name).with_state(states.get(name))
    explainer.check(model.can)
    options = {"parts": "passage"} if "parts" in explainer.options else {}
    knows = "output" in explainer.keywords
    limit = getattr(model, "limit", None) if "attends" in explainer.needs else None

    def scores(batch: Batch, output: Output) -> Tensor:
        """A text that is read in windows has no one attention: what needs it is nan for all its words."""
        import torch

        from heedful.experiments.faithfulness_scores import reads_at_once

        whole = np.ones(len(batch), dtype=np.bool_) if limit is None else reads_at_once(batch) <= limit
        if whole.all():
            known = {"output": output} if knows else {}
            return explainer.run(model, batch, output.predicted, **options, **known).passage
        found = torch.full(batch.passage.ids.shape, torch.nan, dtype=model.dtype, device=model.device)
        rows = torch.from_numpy(np.flatnonzero(whole)).to(model.device)
        if len(rows):
            some = explainer.run(model, batch.rows(rows), output.predicted[rows], **options).passage
            found[rows] = 0.0
            found[rows, : some.shape[1]] = some.detach().to(found.dtype)
        return found

    return scores


def common_columns(model: Network, examples: Ints, batch: Batch, output: Output) -> Chunk:
    """What every experiment's rows have; without one attention over all of a text its largest weight is undefined."""
    real = words_of(batch)
    peak = np.full(len(batch), np.nan)
    if EXPLAINERS.find(ATTENTION).needs <= model.can:
        weights = by_word(method_scorer(model, ATTENTION, {})(batch, output), batch.passage)
        peak = np.where(real.any(1), weights.astype(np.float64).max(1, initial=0.0), np.nan)
    return {
        "example": np.asarray(examples, dtype=np.int64),
        "predicted": output.predicted.cpu().numpy(),
        "max_attention": peak,
        "n_words": real.sum(1),
    }


def words_of(batch: Batch) -> Bools:
    """Which places hold words: (batch, words)."""
    return by_word(batch.passage.mask, batch.passage) > 0


def evidence_of(batch: Batch, experiment: str) -> Bools:
    """The words that are known to matter, (batch, words), as the batch has them; of a text that does not say, none."""
    from heedful.data.batching import EVIDENCE, SOME_EVIDENCE

    known = batch.targets.get(EVIDENCE, batch.targets.get(SOME_EVIDENCE))
    if known is None:
        raise Mistake(
            f"{experiment} needs texts whose evidence is known, and none of these says it: give a corpus that has it, "
            "or one's own file with --set evidence_column=COLUMN."
        )
    return by_word(known & batch.passage.mask, batch.passage) > 0


def found_by_method(
    methods: dict[str, Scorer],
    batch: Batch,
    output: Output,
    evidence: Bools,
    absolute: bool,
    rngs: list[Generator],
) -> Iterator[Chunk]:
    """A chunk for each method and control: `method`, `ranked_words`, `evidence_words` of them, `chance` (the
    share of the words that are evidence, which is what hit and precision of a random order are on average), and the
    MEASURES.

    The random order also decides between words of equal score, where a choice has to be made (`iou_f1`).
    """
    real = words_of(batch)
    ties = random_scores(real, rngs)
    places = np.broadcast_to(np.arange(real.shape[1]), real.shape)
    controls: dict[str, Floats] = {
        RANDOM: ties,
        UNIFORM: real.astype(np.float64),
        FIRST_WORDS: -places.astype(np.float64),
    }
    n, m = real.sum(1), (evidence & real).sum(1)
    about: Chunk = {
        "ranked_words": n,
        "evidence_words": m,
        "chance": np.where(m > 0, m / np.maximum(n, 1), np.nan),
    }
    for name, method in methods.items():
        scores = by_word(method(batch, output), batch.passage).astype(np.float64)
        scores = measure.join_near(np.abs(scores) if absolute else scores, real)
        yield {"method": [name] * len(batch)} | about | measure_scores(scores, real, evidence, ties)
    for name, scores in controls.items():
        yield {"method": [name] * len(batch)} | about | measure_scores(scores, real, evidence, ties)


def measure_scores(scores: Floats, real: Bools, evidence: Bools, ties: Floats) -> Chunk:
    """The MEASURES of scores (texts, words): (texts,) each, nan without evidence."""
    ranked = measure.Ranked.of(scores, real, evidence)
    chosen = measure.first_words(scores, real, ranked.m, ties)
    return {
        "hit": measure.hit(ranked),
        "precision": measure.precision(ranked),
        "best_f1": measure.best_f1(ranked),
        "iou_f1": np.where(ranked.m > 0, measure.iou_f1(chosen, evidence & real), np.nan),
        "auprc": measure.average_precision(ranked),
        "rank": measure.mean_rank(ranked),
        "auc": measure.roc_auc(ranked),
    }
