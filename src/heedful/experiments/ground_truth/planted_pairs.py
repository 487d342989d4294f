"""Do methods for pairs of words find the two words that are known to decide together?

In texts whose label two words decide together (`planted-negation`: a cue and its negator, "not good"; `planted-order`:
a cue of each side, of which the last wins; or one's own texts with two or more words of evidence) every two words of
the evidence are a planted pair, and all other pairs are not. A method for pairs ranks all of them by |score|. Beside it
stand what single words say of pairs, the product and the sum of the |scores| of both, so that it shows what a number
for each pair is worth; and two controls, a random order and how near the two words stand.

    hit        the strongest pair is planted        precision   of the k strongest pairs, with k planted ones
    auc        planted pairs above the others       rank        the mean rank of planted pairs

Measures are those of single words (measure/evidence.py), over pairs. A text with less than two words of evidence is
counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import field_validator

from heedful.config import Config
from heedful.experiments.correlation.correlation import random_scores
from heedful.experiments.framework.description import Column, Result
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, States, generators
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.verdict import Judgement, Verdict, Wording, interval
from heedful.experiments.ground_truth.evidence import (
    common_columns,
    evidence_of,
    measure_scores,
    method_scorer,
    words_of,
)
from heedful.figures.figure import method_name
from heedful.measure.columns import Bools, Floats, column, rows_of
from heedful.measure.evidence import join_near
from heedful.measure.statistics import Interval
from heedful.measure.statistics import summarise as summarise_values
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Network, Output
    from heedful.records import Batch, Tokens

PAIRS = ("integrated_hessians", "removal_interactions", "archipelago")
SINGLE = ("integrated_gradients", "omission")
PRODUCT, SUM, RANDOM, NEAR = "product", "sum", "random", "near"


class PlantedPairsConfig(Config):
    """methods None: those of PAIRS and SINGLE that the model can be explained by. The controls are always there."""

    methods: tuple[str, ...] | None = None

    @field_validator("methods")
    @classmethod
    def _known(cls, methods: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in methods or ():
            EXPLAINERS.check(name)
        return methods


def explainers_of(config: PlantedPairsConfig) -> list[str]:
    return list((*PAIRS, *SINGLE) if config.methods is None else config.methods)


def run(
    model: Network, batches: Batches, config: PlantedPairsConfig, rng: Generator, states: States | None = None
) -> Iterator[Chunk]:
    """One row for each text and `method`; a method of single words has two, by product and by sum."""
    import torch

    PLANTED_PAIRS.check(model.can)
    names, generator_of = explainers_of(config), generators(rng)
    if config.methods is None:
        names = [name for name in names if EXPLAINERS.find(name).fits(model)]
    for examples, batch in batches:
        evidence = evidence_of(batch, PLANTED_PAIRS.name)
        with torch.no_grad():
            output = model(batch)
        base = common_columns(model, examples, batch, output)
        words = words_of(batch)
        i, j = np.triu_indices(words.shape[1], 1)
        real, planted = words[:, i] & words[:, j], evidence[:, i] & evidence[:, j] & words[:, i] & words[:, j]
        ties = random_scores(real, [generator_of(place) for place in examples])
        n, m = real.sum(1), planted.sum(1)
        chance = np.where(m > 0, m / np.maximum(n, 1), np.nan)
        about = base | {"ranked_words": n, "evidence_words": m, "chance": chance}
        scores: dict[str, Floats] = {}
        for name in names:
            scores |= _of_method(model, name, batch, output, states or {})
        near = -np.broadcast_to((j - i).astype(np.float64), real.shape)
        for name, all_pairs in scores.items():
            ranked = join_near(np.abs(all_pairs[:, i, j]), real)
            yield {"method": [name] * len(batch)} | about | _measured(ranked, real, planted, ties)
        for name, control in ((RANDOM, ties), (NEAR, near)):
            yield {"method": [name] * len(batch)} | about | _measured(control, real, planted, ties)


def _measured(scores: Floats, real: Bools, planted: Bools, ties: Floats) -> Chunk:
    """Of single words' measures those that mean something of pairs."""
    found = measure_scores(scores, real, planted, ties)
    return {name: found[name] for name in ("auc", "hit", "precision", "auprc", "rank")}


def _of_method(model: Network, name: str, batch: Batch, output: Output, states: States) -> dict[str, Floats]:
    """(batch, words, words) by name: of a method for pairs its own; of another what two words say each by itself."""
    explainer = EXPLAINERS.find(name).with_state(states.get(name))
    if explainer.axes == "pairs":
        explainer.check(model.can)
        found = explainer.run(model, batch, output.predicted, parts="passage").pairs
        assert found is not None
        return {name: pairs_of_words(found, batch.passage)}
    single = np.abs(by_word_of(method_scorer(model, name, states)(batch, output), batch.passage))
    return {
        f"{name} {PRODUCT}": single[:, :, None] * single[:, None, :],
        f"{name} {SUM}": single[:, :, None] + single[:, None, :],
    }


def by_word_of(scores: Tensor, tokens: Tokens) -> Floats:
    """(batch, words) from (batch, length): pieces are summed."""
    found: Floats = np.einsum("bwl,bl->bw", membership(tokens), scores.detach().double().cpu().numpy())
    return found


def pairs_of_words(pairs: Tensor, tokens: Tokens) -> Floats:
    """(batch, words, words), at i < j, from (batch, length, length): pieces are summed."""
    member = membership(tokens)
    found: Floats = np.einsum("bvl,blm,bwm->bvw", member, pairs.detach().double().cpu().numpy(), member, optimize=True)
    return np.triu(found) + np.tril(found, -1).transpose(0, 2, 1)


def membership(tokens: Tokens) -> NDArray[np.float64]:
    """Which tokens a word has, (batch, words, length), with words where `by_word` puts them."""
    mask: Bools = tokens.mask.cpu().numpy()
    if tokens.word_index is None:
        alone: Floats = mask[:, None, :] * np.eye(mask.shape[1])
        return alone
    index = tokens.word_index.clamp(min=0).cpu().numpy()
    found: Bools = (index[:, None, :] == np.arange(index.max() + 1)[:, None]) & mask[:, None, :]
    return found.astype(np.float64)


def title(method: str) -> str:
    name, _, how = method.rpartition(" ")
    if how in (PRODUCT, SUM):
        return f"{method_name(name)}, {how} of both words"
    return {NEAR: "nearness"}.get(method) or method_name(method)


BARS = (0.7, 0.9)
JUDGEMENT = Judgement(
    "Do methods for pairs of words find the two words that decide together?",
    f"Planted pairs stand above the others, by the method for pairs that is asked first, in {BARS[1]:.0%} or more: "
    f"yes; from {BARS[0]:.0%} on: in part; below: no (a random order: 50%). It says nothing of attention, and does not "
    "count in the headline.",
    {
        "for": Wording("Yes", "has pairs of words that methods for pairs find"),
        "mixed": Wording("In part", "has pairs of words that methods for pairs find in part"),
        "against": Wording("No", "has pairs of words that methods for pairs do not find"),
    },
    BARS,
    counts=False,
)


def verdict(trial: Result) -> Verdict:
    """By the first method's mean AUC, with the others beside it."""
    methods = list(dict.fromkeys(trial.table["method"].to_pylist()))
    values = {name: column(rows_of(trial.table, "method", name), "auc") for name in methods}
    found = summarise_values(values[methods[0]], within=(0, 1))
    if not found.n:
        return JUDGEMENT.unclear("Undefined", "No text has two words of evidence beside other words.", "has no pairs")
    others = ", ".join(f"{title(name)} {np.nanmean(auc):.2f}" for name, auc in values.items() if name != methods[0])
    mean = Interval(found.mean, found.low, found.high)
    sentence = (
        f"By {title(methods[0])}, planted pairs stand above {interval(mean)} of the other pairs, in {found.n:,} texts. "
        f"Others: {others}."
    )
    return JUDGEMENT.of(mean, sentence)


PLANTED_PAIRS = Experiment(
    name="planted_pairs",
    question=JUDGEMENT.question,
    asks="whether methods for pairs of words find those that decide together",
    paper="Tsang et al. 2020, section 5.1, on texts",
    run=run,
    columns={
        "auc": Column("planted pairs above the others", 0, 1, "1: above all other pairs; .5: as in a random order."),
        "hit": Column("strongest pair is planted", 0, 1, "1: it is; 0: it is not; between: a tie.", bins=10),
        "precision": Column("precision at k", 0, 1, "1: the k strongest pairs are the k planted ones."),
        "auprc": Column("AUPRC", 0, 1, "1: every planted pair stands above every other."),
        "rank": Column("mean rank of planted pairs", 0, None, "1: the planted pair is the strongest."),
        "chance": Column("share of pairs that are planted", 0, 1, "What a random order gets.", drawn=False),
    },
    config=PlantedPairsConfig,
    version="1",
    by="method",
    judge=verdict,
    scale="pairs that planted ones stand above: .5 in a random order, 1 all of them",
    takes=Takes(forwards=(100, 20), explainers=explainers_of),
    audit=ForAudit(only_for="texts in which two words together decide"),
    pages=Presentation(group_title=title, has_say=False),
)
