"""Does attention agree with other measures of what mattered?

Jain & Wallace 2019, section 4.1, Algorithm 1, table 2 and figure 2: Kendall's tau-b over the real words of
each text between two explanations of the predicted label. tau_g is the pair attention/gradient_x_input,
tau_loo is attention/omission, each as published (`JAIN_WALLACE` in the method's file). Two more pairs make
them readable: gradient_x_input/omission (do the alternatives agree with each other?) and attention/random
(what chance gives). tau counts the unimportant words as much as the important ones, so each row also says
whether both put the same word first, and has the overlap of the k highest words (each with what a random order would
get), Spearman's rho, and a top-weighted tau. A pair is undefined for a text
with one word or constant scores: that is null, is counted, and is never averaged in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from pydantic import Field, field_validator

from heedful.config import Config
from heedful.errors import Mistake
from heedful.experiments.correlation.published import compare
from heedful.experiments.correlation.verdict import QUESTION, reasons, verdict
from heedful.experiments.framework.description import Column, Measure, Result, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Ints, States, Summary, generators
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.summary import Bools, Line, column, mean, plain, spread
from heedful.figures.figure import Figure, pair_name
from heedful.measure.agreement import expected_overlap, top_k_overlap
from heedful.measure.columns import Floats
from heedful.measure.rank import kendall, spearman, weighted_kendall
from heedful.measure.statistics import significant

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Network, Output
    from heedful.records import Batch, Tokens

RANDOM = "random"
ATTENTION = "attention"
MEASURES = ("tau", "same_first", "overlap", "spearman", "weighted_tau")
EXPECTED = ("same_first", "overlap")  # measures whose value under a random order depends on the length of the text


class CorrelationConfig(Config):
    """Defaults of the paper. `options` are for one method: {"gradient_x_input": {"of": "logit"}}.

    For the two methods of the paper, the options given are added to those of the publication.
    """

    pairs: tuple[tuple[str, str], ...] = Field(
        default=(
            (ATTENTION, "gradient_x_input"),
            (ATTENTION, "omission"),
            ("gradient_x_input", "omission"),
            (ATTENTION, RANDOM),
        ),
        min_length=1,
    )
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    k: int = Field(default=3, ge=1, lt=2**31)  # words compared by `overlap`
    absolute: bool = True  # rank by |score|: what pushes the prediction down mattered, too

    @field_validator("pairs")
    @classmethod
    def _different(cls, pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        if len(set(pairs)) < len(pairs) or any(first == second for first, second in pairs):
            raise ValueError("a pair is two different methods, and is given once")
        return pairs


def run(
    model: Network, batches: Batches, config: CorrelationConfig, rng: Generator, states: States | None = None
) -> Iterator[Chunk]:
    """One row for each text and pair: `pair` ("attention/omission"), the MEASURES, `p` of tau, and
    `overlap_expected` and `same_first_expected`, what they would be if one of the two were a random ranking."""
    import torch

    from heedful.experiments.edited_attention.observe import in_float64

    CORRELATION.check(model.can)
    model = in_float64(model)
    methods = methods_of(config, model, states or {})
    generator_of = generators(rng)
    for examples, batch in batches:
        with torch.no_grad():
            output = model(batch)
        found = {name: method(model, batch, output) for name, method in methods.items()}
        scores = {name: by_word(values, batch.passage) for name, values in found.items()}  # (B, words) each
        attention = scores[ATTENTION]
        real = by_word(batch.passage.mask, batch.passage) > 0
        scores[RANDOM] = random_scores(real, [generator_of(i) for i in examples])
        if config.absolute:
            scores = {name: np.abs(values) for name, values in scores.items()}
        base: Chunk = {
            "example": np.asarray(examples, dtype=np.int64),
            "predicted": output.predicted.cpu().numpy(),
            "max_attention": np.where(real.any(1), attention.max(1, initial=0.0).astype(np.float64), np.nan),
            "n_words": real.sum(1),
        }
        for first, second in config.pairs:
            pair = {"pair": [f"{first}/{second}"] * len(batch)}
            yield base | pair | compared(scores[first], scores[second], real, config.k)


def by_word(values: Tensor, tokens: Tokens) -> Floats:
    """Scores of tokens as scores of words: pieces are summed. (B, length) -> (B, words), or as they are."""
    import torch

    if tokens.word_index is None:
        plain: Floats = values.detach().cpu().numpy()
        return plain
    words = tokens.word_index.clamp(min=0)
    summed = torch.zeros(len(words), int(words.max()) + 1, dtype=torch.float64, device=words.device)
    summed.scatter_add_(1, words, values.detach().double() * tokens.mask)
    return summed.cpu().numpy()


def explainers_of(config: CorrelationConfig) -> list[str]:
    return [name for pair in config.pairs for name in pair]


def methods_of(config: CorrelationConfig, model: Network, states: States) -> dict[str, Callable[..., Tensor]]:
    """Each method of the pairs once, with its options, as a function (model, batch, output) -> (B, length).

    Attention is always among them: every row has its largest weight.
    """
    from heedful.explainers import EXPLAINERS
    from heedful.explainers.gradients.gradient import JAIN_WALLACE as GRADIENT
    from heedful.explainers.perturbation.occlusion import LEAVE_ONE_OUT

    published: dict[str, dict[str, Any]] = {"gradient_x_input": {**GRADIENT}, "omission": {**LEAVE_ONE_OUT}}
    names = [ATTENTION, *(name for name in explainers_of(config) if name not in (ATTENTION, RANDOM))]
    for name in config.options:
        if name not in names:
            raise Mistake(f"options are given for {name!r}, which is in none of the pairs, or takes none.")

    def prepared(name: str) -> Callable[..., Tensor]:
        explainer = EXPLAINERS.find(name).with_state(states.get(name))
        explainer.check(model.can)
        options = published.get(name, {}) | config.options.get(name, {})
        if "parts" in explainer.options:
            options = {"parts": "passage"} | options  # the query is not attended to
        options = explainer.parse(options)
        if options.get("hold_attention") and "edits_attention" not in model.can:
            raise Mistake(
                f"the {name} of the publication holds attention constant, and this model's can only be read: set "
                f'options={{"{name}": {{"hold_attention": false}}}}.'
            )
        knows = "output" in explainer.keywords

        def scores(model: Network, batch: Batch, output: Output) -> Tensor:
            known = {"output": output} if knows else {}
            return explainer.run(model, batch, output.predicted, **options, **known).passage

        return scores

    return {name: prepared(name) for name in dict.fromkeys(names)}


def random_scores(real: Bools, rngs: list[Generator]) -> Floats:
    """A random ranking of the real words of each text: (B, length)."""
    scores = np.zeros(real.shape)
    for row, rng in enumerate(rngs):
        scores[row, real[row]] = rng.random(int(real[row].sum()))
    return scores


def compared(first: Floats, second: Floats, real: Bools, k: int) -> Chunk:
    """The measures of one pair, from scores (B, length): (B,) each, nan where undefined."""
    found = kendall(first, second, real)
    constant = np.isnan(found.tau)  # nothing is ranked: then no measure means anything
    tops: Chunk = {}
    for name, many in (("same_first", 1), ("overlap", k)):
        tops[name] = np.where(constant, np.nan, top_k_overlap(first, second, real, many))
        tops[f"{name}_expected"] = np.where(constant, np.nan, expected_overlap(found.n_tokens, many))
    return {
        "tau": found.tau,
        "p": found.p,
        "spearman": spearman(first, second, real),
        "weighted_tau": weighted_kendall(first, second, real),
        **tops,
    }


def summarise(table: pa.Table) -> Summary:
    """For each pair, overall and by predicted class: n, undefined, mean, std, interval of each measure.

    `tau` also has sig_frac, the share of the defined ones with p <= .05 (table 2), and `significant`, the same by sign;
    `same_first` and `overlap` have `expected`, what a random order would get.
    """
    names = table["pair"].to_numpy(zero_copy_only=False)
    return {str(name): _by_class(table.filter(pa.array(names == name))) for name in dict.fromkeys(names)}


def _by_class(table: pa.Table) -> Line:
    predicted: Ints = table["predicted"].to_numpy()
    classes = {str(label): _line(table.filter(pa.array(predicted == label))) for label in np.unique(predicted)}
    return {"overall": _line(table), "by_class": classes}


def _line(table: pa.Table) -> Line:
    p = column(table, "p")
    line = {
        name: spread(
            column(table, name),
            p if name == "tau" else None,
            within=COLUMNS[name].possible,
            yes_or_no=name == "same_first",
        )
        for name in MEASURES
    }
    line["tau"]["significant"] = plain(asdict(significant(column(table, "tau"), p)))
    for name in EXPECTED:
        line[name]["expected"] = mean(column(table, f"{name}_expected"))
    return line


def figures(trial: Result) -> Sequence[Figure]:
    from heedful.experiments.correlation.figures import figures as draw  # needs altair

    return draw(trial, COLUMNS["tau"])


def _measure(key: str, title: str, short: str, pair: str) -> Measure:
    return Measure(key, title, short, "tau", f"{pair}.overall.tau", pair)


def _statistic(title: str, pair: str) -> Statistic:
    reading = "τ: mean rank correlation of attention with another explanation."
    return Statistic(title, f"{pair}.overall.tau.mean", reading)


COLUMNS = {
    "tau": Column(
        "Kendall's τ", -1, 1, "1: both rank the words alike; 0: no relation; −1: they rank them in reverse.", bins=40
    ),
    "same_first": Column("same strongest word", 0, 1, "1: both put the same word first; 0: they do not.", bins=2),
    "spearman": Column("Spearman's ρ", -1, 1, "As τ, on ranks: 1 is full agreement, 0 none."),
    "weighted_tau": Column("top-weighted τ", -1, 1, "As τ, but agreement about the strongest words counts most."),
    "overlap": Column("overlap of the strongest words", 0, 1, "The share of the strongest words that both name."),
    "p": Column("p of τ", 0, 1, "How often chance gives as much agreement.", drawn=False),
    "overlap_expected": Column("overlap by chance", 0, 1, "What a random order would get.", drawn=False),
    "same_first_expected": Column("same by chance", 0, 1, "What a random order would get.", drawn=False),
}

CORRELATION = Experiment(
    name="correlation",
    question=QUESTION,
    asks="whether its attention agrees with other explanations",
    paper="Jain & Wallace 2019, section 4.1",
    run=run,
    columns=COLUMNS,
    config=CorrelationConfig,
    needs=frozenset({"attends"}),
    version="3",
    by="pair",
    summarise=summarise,
    measures=(
        _measure("tau_g", "τ of attention and gradient × input", "τ gradient", "attention/gradient_x_input"),
        _measure("tau_loo", "τ of attention and leave-one-out", "τ leave-one-out", "attention/omission"),
        _measure(
            "tau_reference", "τ of gradient × input and leave-one-out", "τ of the two", "gradient_x_input/omission"
        ),
        Measure(
            "same_first",
            "same strongest word by attention and leave-one-out",
            "same first word",
            "same_first",
            "attention/omission.overall.same_first",
            "attention/omission",
        ),
        _measure("tau_random", "τ of attention and a random order", "τ random", "attention/random"),
    ),
    judge=verdict,
    scale="agreement with other explanations: 0 as a random order, 1 as they agree with each other",
    takes=Takes(
        forwards=(3, 1),  # the prediction, a gradient (forward and backward), and each word left out
        explainers=explainers_of,
    ),
    pages=Presentation(
        group_title=pair_name,
        statistics=(
            _statistic("τ with gradients", "attention/gradient_x_input"),
            _statistic("τ with leave-one-out", "attention/omission"),
            Statistic(
                "same first word",
                "attention/omission.overall.same_first.mean",
                "Same first word: the share of the texts whose most attended word is also the "
                "strongest by leave-one-out.",
                ".0%",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
    ),
)
