"""Does an explanation change when the model's answer does not?

Two ways of leaving the answer as it is, on the user's own model:

    shift    the same function, its inputs moved (Kindermans et al. 2019): every word vector is moved by one constant
             vector, the mean of word vectors, which the model takes back before it reads. The output is the same for
             every text, to rounding, so whatever changes depends on where zero happens to be.
    noise    an input that is nearly the same (Ghorbani et al. 2019, with random directions in place of an attack, so a
             lower bound of what can be done): every word of the vocabulary gets a small random vector, `size` of the
             length of word vectors, the same wherever it stands.

Only texts whose predicted label stays, and whose probability moves by at most `within`, count. `tau` is Kendall's
between the scores before and after (1: the same order; two random orders: 0 on average), `moved` how far the
probability moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.random import Generator
from pydantic import Field, field_validator

from heedful.config import Config
from heedful.errors import Mistake
from heedful.experiments.correlation.correlation import by_word, random_scores
from heedful.experiments.framework.description import Column, Result
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, States, generators
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.verdict import Judgement, Verdict, Wording, interval
from heedful.experiments.ground_truth.evidence import common_columns, method_scorer, words_of
from heedful.figures.figure import method_name
from heedful.measure.columns import Floats, column, rows_of
from heedful.measure.evidence import join_near
from heedful.measure.rank import kendall
from heedful.measure.statistics import Interval
from heedful.measure.statistics import summarise as summarise_values
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Differentiable, Network, Output
    from heedful.records import Batch, Tokens

Way = Literal["shift", "noise"]
METHODS = ("gradient", "gradient_x_input", "integrated_gradients", "occlusion", "omission")
RANDOM = "random"
VOCABULARY = 2000  # words that stand for all where the constant is taken


class StabilityConfig(Config):
    """methods None: those of METHODS that the model can be explained by. A random order is always there."""

    methods: tuple[str, ...] | None = None
    ways: tuple[Way, ...] = Field(default=("shift", "noise"), min_length=1)
    size: float = Field(default=0.05, gt=0, le=1)  # of the noise, as a share of the length of word vectors
    within: float = Field(default=0.05, gt=0, le=1)  # that the probability may move

    @field_validator("methods")
    @classmethod
    def _known(cls, methods: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in methods or ():
            EXPLAINERS.check(name)
        return methods


def explainers_of(config: StabilityConfig) -> list[str]:
    return list(METHODS if config.methods is None else config.methods)


class Moved:
    """A network whose word vectors are moved: by a constant that it takes back, or by a vector for each word that it
    does not take back."""

    def __init__(self, network: Differentiable, by: Tensor, taken_back: bool) -> None:
        self.network, self.by, self.taken_back = network, by, taken_back

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    @property
    def can(self) -> frozenset[str]:
        return self.network.can & {"predicts", "differentiable"}

    def embed(self, tokens: Tokens) -> Tensor:
        return self.network.embed(tokens) + (self.by if self.taken_back else self.by[tokens.ids])

    def __call__(self, batch: Batch, x: Tensor | None = None, x_query: Tensor | None = None, **given: Any) -> Output:
        parts = {"x": (batch.passage, x), "x_query": (batch.query, x_query)}
        read = {}
        for name, (tokens, vectors) in parts.items():
            if vectors is None and (self.taken_back or tokens is None):
                continue
            here = self.embed(tokens) if vectors is None and tokens is not None else vectors
            assert here is not None
            read[name] = here - self.by if self.taken_back else here
        return self.network(batch, **read, **given)


def run(
    model: Network, batches: Batches, config: StabilityConfig, rng: Generator, states: States | None = None
) -> Iterator[Chunk]:
    """One row for each text, `method` and `way`, told apart by `case`."""
    import torch

    STABILITY.check(model.can)
    network = cast("Differentiable", model)
    generator_of = generators(rng)
    others = {way: moved(network, way, config.size, int(rng.integers(2**31))) for way in config.ways}
    # a network that is moved has no attention to be read, so methods that read it are left out
    names = [name for name in explainers_of(config) if EXPLAINERS.find(name).fits(next(iter(others.values())))]
    if not names:
        raise Mistake("stability moves word vectors and reads no attention: give methods such as lrp or gradient.")
    before = {name: method_scorer(model, name, states or {}) for name in names}
    after = {
        way: {name: method_scorer(cast("Network", o), name, states or {}) for name in names}
        for way, o in others.items()
    }
    for examples, given in batches:
        batch = given.rows(torch.arange(len(given), device=model.device))  # without needless padding
        with torch.no_grad():
            output = model(batch)
            there = {way: other(batch) for way, other in others.items()}
        base, real = common_columns(model, examples, batch, output), words_of(batch)
        rngs = [generator_of(place) for place in examples]
        first = {name: join_near(_words(scorer(batch, output), batch), real) for name, scorer in before.items()}
        own = _of(output, output.predicted)
        for way, other in there.items():
            change = np.abs(_of(other, output.predicted) - own)
            stays = (other.predicted == output.predicted).cpu().numpy() & (change <= config.within)
            about: Chunk = {**base, "way": [str(way)] * len(batch), "moved": change}
            for name, scorer in after[way].items():
                second = join_near(_words(scorer(batch, output), batch), real)
                yield about | _row(name, way, np.where(stays, kendall(first[name], second, real).tau, np.nan))
            one, two = random_scores(real, rngs), random_scores(real, rngs)
            yield about | _row(RANDOM, way, np.where(stays, kendall(one, two, real).tau, np.nan))


def _row(name: str, way: str, tau: Floats) -> Chunk:
    return {"case": [f"{name}, {way}"] * len(tau), "method": [name] * len(tau), "tau": tau}


def _words(scores: Tensor, batch: Batch) -> Floats:
    return by_word(scores, batch.passage).astype(np.float64)


def _of(output: Output, labels: Tensor) -> Floats:
    """The probability of these labels: (batch,)."""
    return output.probabilities.gather(1, labels.unsqueeze(1))[:, 0].double().cpu().numpy()


def moved(network: Differentiable, way: Way, size: float, seed: int) -> Moved:
    """The network whose inputs are moved this way."""
    import torch

    from heedful.records import Tokens

    n = network.n_words
    ids = torch.arange(min(n, VOCABULARY), device=network.device).unsqueeze(1)  # texts of one word
    with torch.no_grad():
        vectors = network.embed(
            Tokens(ids, torch.ones_like(ids, dtype=torch.bool), torch.ones_like(ids, dtype=torch.bool))
        )
    known = vectors[:, 0]  # (words, dim)
    if way == "shift":
        return Moved(network, known.mean(0), taken_back=True)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(n, known.shape[1], generator=generator, dtype=torch.float64)
    length = known.norm(dim=1).mean() * size
    return Moved(network, (drawn / drawn.norm(dim=1, keepdim=True)).to(known) * length, taken_back=False)


def title(case: str) -> str:
    method, _, way = case.partition(", ")
    return f"{method_name(method)}, {'inputs moved' if way == 'shift' else 'noise'}"


BARS = (0.5, 0.8)
JUDGEMENT = Judgement(
    "Does an explanation change when the model's answer does not?",
    f"Kendall's tau before and after, the mean of all methods, is {BARS[1]:g} or more: no; from {BARS[0]:g} on: in "
    "part; below: yes (two random orders: 0). It does not count in the headline.",
    {
        "for": Wording("No", "has explanations that stay while its answer does"),
        "mixed": Wording("In part", "has explanations that stay in part while its answer does"),
        "against": Wording("Yes", "has explanations that change while its answer does not"),
    },
    BARS,
    counts=False,
)


def verdict(trial: Result) -> Verdict:
    """By the mean tau of the methods; each of them beside it."""
    table = trial.table
    cases = [case for case in dict.fromkeys(table["case"].to_pylist()) if not case.startswith(RANDOM)]
    each = {case: column(rows_of(table, "case", case), "tau") for case in cases}
    examples = rows_of(table, "case", cases[0])["example"].to_numpy() if cases else np.zeros(0)
    whole = np.stack(list(each.values())) if cases else np.zeros((0, len(examples)))
    known = ~np.isnan(whole)
    of_text = np.where(known, whole, 0).sum(0) / np.maximum(known.sum(0), 1)
    found = summarise_values(np.where(known.any(0), of_text, np.nan), within=(-1, 1))
    if not found.n:
        return JUDGEMENT.unclear("Undefined", "No text kept its answer.", "never keeps its answer")
    mean = Interval(found.mean, found.low, found.high)
    told = ", ".join(f"{title(case)} {np.nanmean(tau):.2f}" for case, tau in each.items() if not np.isnan(tau).all())
    return JUDGEMENT.of(mean, f"The mean tau is {interval(mean)} over {found.n:,} texts: {told}.")


STABILITY = Experiment(
    name="stability",
    question=JUDGEMENT.question,
    asks="whether explanations change when its answer does not",
    paper="Kindermans et al. 2019; Ghorbani et al. 2019",
    run=run,
    columns={
        "tau": Column("Kendall tau before and after", -1, 1, "1: the same order of words; 0: as of two random orders."),
        "moved": Column("change of the probability", 0, 1, "0: the answer is the same."),
    },
    config=StabilityConfig,
    needs=frozenset({"predicts", "differentiable"}),
    version="1",
    by="case",
    judge=verdict,
    scale="Kendall's tau before and after: 1 the same order, 0 as of two random orders",
    takes=Takes(forwards=(250, 2), explainers=explainers_of),
    pages=Presentation(group_title=title, has_say=False),
)
