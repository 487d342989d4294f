"""Is attention needed for this task at all?

Wiegreffe & Pinter 2019, section 3.1: the same model with its attention frozen to uniform, 1 / T for each of the T
words, trained in the same way. Where it does as well, the task does not need attention, and what attention weights do
in a model for that task says little about explanation: whatever is found of it, in either direction, is weak evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from heedful.config import Config, EvaluationConfig, RunConfig
from heedful.errors import Mistake
from heedful.experiments.framework.beside import by_run, f1_by_run, over_seeds, plainly_trained, seeds_beside
from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, mean_of, number
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic, number_at, places_by
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Summary
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.summary import mean, plain
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, interval
from heedful.figures.figure import Figure
from heedful.measure.columns import column
from heedful.measure.levels import Sources, over_runs
from heedful.measure.paired import mcnemar, paired
from heedful.measure.statistics import SIGNIFICANT, Interval
from heedful.measure.tests import below

if TYPE_CHECKING:
    from heedful.models.network import Network


# The outcome of `uniform` in numbers: scores with trained and uniform attention, and tests of the difference.


MARGIN = 0.02  # of accuracy: see uniform_description.REASON


def summarise(table: pa.Table) -> Summary:
    """Accuracy and F1 of both (`trained`, `uniform`: mean and std over seeds); the `loss` of accuracy with an interval
    over seeds and texts; and its tests: `p` of no difference (signs of the texts' mean differences flipped), `mcnemar`
    of the run's own seed, `p_needless` of a loss of MARGIN or more, and `at_most`, the loss that is not exceeded (95%).
    """
    loss = by_run(table, "loss", "seed")
    found, small = over_runs(loss), below(loss, MARGIN)
    test = paired(loss.mean(0))
    f1 = {kind: f1_by_run(table, kind, "seed") for kind in ("trained", "uniform")}
    right = {
        kind: by_run(table, name, "seed").mean(1) for kind, name in (("trained", "right"), ("uniform", "right_uniform"))
    }
    tests = {
        "p": test.p,
        "mcnemar": mcnemar(int((loss[0] == 1).sum()), int((loss[0] == -1).sum())),
        "p_needless": small.p,
        "at_most": small.at_most,
    }
    line = {"runs": found.runs, "n": found.texts, "mean": found.mean, "low": found.low, "high": found.high}
    scores = {kind: {"accuracy": over_seeds(right[kind]), "f1": over_seeds(f1[kind])} for kind in f1}
    differences = {"loss": plain(line), "loss_f1": over_seeds(f1["trained"] - f1["uniform"])}
    return {
        "overall": scores | differences | plain(tests) | {"margin": MARGIN},
        "tvd": {"mean": mean(column(table, "tvd"))},
    }


# What `uniform` says about itself, and the warning that it puts on every other conclusion.


QUESTION = "Does this task need attention at all?"
REASON = (
    f"The margin of {MARGIN} separates what Wiegreffe & Pinter 2019 report: uniform attention costs .004 to .009 of "
    "F1 on AG News, 20News and SST, and .023 on IMDb."
)
NEEDED = 0.05  # of accuracy
RULE = f"Accuracy lost below {MARGIN}: attention is not needed; from {NEEDED} on: it is; between: it helps. {REASON}"
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "is needed for the task"),
    "mixed": Wording("It helps", "helps with the task"),
    "against": Wording("No", "is not needed for the task"),
}
COLUMNS = {
    "loss": Column(
        "loss",
        -1,
        1,
        "1: only the trained attention is right; -1: only the uniform one is; 0: both or neither.",
        bins=3,
    ),
    "tvd": Column("TVD of the outputs", 0, 1, "Left: the model with uniform attention says the same."),
    "right": Column("right", 0, 1, "1: the model with trained attention is right.", bins=2),
    "right_uniform": Column("right with uniform attention", 0, 1, "1: it is right.", bins=2),
    "truth": Column("right label", drawn=False),
    "trained": Column("predicted with trained attention", drawn=False),
    "uniform": Column("predicted with uniform attention", drawn=False),
}


def p_value(p: float | None) -> str:
    if p is None:
        return "undefined"
    return "p < .001" if p < 0.001 else f"p = {p:.3f}"


CLAIM = "trained attention is better than uniform"
JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (MARGIN, NEEDED))


def verdict(trial: Result) -> Verdict:
    overall = summarise(trial.table)["overall"]
    loss, p, needless = overall["loss"], overall["p"], overall["p_needless"]
    if needless is None or loss["low"] is None:
        sentence = "Fewer than two texts: nothing can be said."
        return JUDGEMENT.unclear("Undefined", sentence, "is not told")
    found = Interval(loss["mean"], loss["low"], loss["high"])
    means = [overall[kind]["accuracy"]["mean"] for kind in ("trained", "uniform")]
    sentence = (
        f"Trained attention has an accuracy of {means[0]:.3f}, uniform attention {means[1]:.3f} (means of "
        f"{loss['runs']} seeds): a loss of {interval(found, 3)} over {loss['n']:,} texts. That there is no loss: "
        f"{p_value(p)}; that it is {MARGIN} or more: {p_value(needless)}, so it is at most "
        f"{overall['at_most']:.3f} with 95% confidence."
    )
    contains = Sources(loss["n"], loss["runs"]).sentence()
    return JUDGEMENT.of(found, sentence, says_border=False, p=p, claim=CLAIM, contains=contains)


def warning(summary: Mapping[str, Any]) -> str:
    """What stands beside every other conclusion about the dataset, where it does not need attention."""
    overall = summary["overall"]
    p = overall["p_needless"]
    if p is None or p > SIGNIFICANT:
        return ""
    return (
        "This task does not need attention: with uniform attention accuracy changes by "
        f"{-overall['loss']['mean']:+.3f}, and a loss of {MARGIN} or more is rejected ({p_value(p)}). What attention "
        "does here says little about attention as explanation, in either direction (Wiegreffe & Pinter 2019)."
    )


def figures(trial: Result) -> list[Figure]:
    """What the two models of a seed say of each text."""
    from heedful.figures.drawing import by_max_attention, histogram

    tvd = trial.frame("tvd")
    loss = trial.summary["overall"]["loss"]
    told = "undefined" if loss["mean"] is None else f"{loss['mean']:+.3f}"
    return [
        Figure(
            "uniform-tvd",
            "How far the model with uniform attention is",
            "Each bar counts texts (of each seed): how far the outputs of the model with trained and with uniform "
            "attention are apart. Left: both say the same.",
            f"TVD between trained and uniform attention; accuracy lost: {told}.",
            histogram(
                tvd, trial.labels, COLUMNS["tvd"].edges_of(tvd.value).tolist(), "tvd", "distance of the outputs (TVD)"
            ),
        ),
        Figure(
            "uniform-tvd-max-attention",
            "… and where attention is sharp",
            "The same distance against the largest weight of the trained attention.",
            "TVD between trained and uniform attention against the largest attention weight.",
            by_max_attention(tvd, trial.labels, "distance of the outputs (TVD)", (0.0, 1.0)),
        ),
    ]


def reasons(trial: Result) -> Iterator[Reason]:
    """By the mean over seeds."""
    rows = trial.table
    first = rows.filter(rows["seed"].to_numpy(zero_copy_only=False) == rows["seed"][0].as_py())
    loss = by_run(rows, "loss", "seed").mean(0)
    peak = column(first, "max_attention")
    helped = np.where(loss > 0, -loss, np.nan)
    yield Reason(
        "Attention was needed", "Only the models with trained attention are right.", places_by(first, helped, -peak)
    )
    harmed = np.where(loss < 0, loss, np.nan)
    yield Reason(
        "Attention was in the way", "Only the models with uniform attention are right.", places_by(first, harmed)
    )


def compare(evidence: Evidence) -> Comparison:
    """The table of section 3.1: F1 with trained and with uniform attention, ours and published; and our tests."""
    rows, headlines = [], []
    for setting, found in evidence:
        overalls = [one["overall"] for one in found]
        for kind in ("trained", "uniform"):
            path = f"overall.{kind}.f1.mean"
            ours = mean_of([number_at(one, path) for one in found])
            rest = [number(value) for value in evidence.theirs(setting, path)]
            std = mean_of([overall[kind]["f1"]["std"] for overall in overalls])
            rows.append((*setting, kind, f"{number(ours)} ({number(std)})", *rest, "", "", "", ""))
        for overall in overalls:
            loss, f1 = overall["loss"], overall["loss_f1"]["mean"]
            theirs = [
                a - b if a is not None and b is not None else None
                for a, b in zip(
                    evidence.theirs(setting, "overall.trained.f1.mean"),
                    evidence.theirs(setting, "overall.uniform.f1.mean"),
                    strict=True,
                )
            ]
            told = f"{loss['mean']:+.3f} ({loss['low']:+.3f} to {loss['high']:+.3f})"
            tests = [p_value(overall["p"]), f"{overall['at_most']:+.3f}", p_value(overall["p_needless"])]
            rows.append((*setting, "loss", f"{f1:+.3f}", *map(number, theirs), told, *tests))
            needless = overall["p_needless"] is not None and overall["p_needless"] <= SIGNIFICANT
            headlines.append(
                f"**{setting[0]}**: uniform attention costs {told} of accuracy ({loss['runs']} "
                f"seed{'s' * (loss['runs'] > 1)}, {loss['n']:,} "
                f"texts); a loss of {MARGIN} or more is {'rejected' if needless else 'not rejected'} "
                f"({p_value(overall['p_needless'])})."
                + (
                    " Every conclusion about attention on this dataset is to be read with that in mind."
                    if needless
                    else ""
                )
            )
    header = (
        *SETTING,
        "trained or uniform",
        "F1 (std of seeds)",
        *evidence.sources,
        "loss of accuracy",
        "no loss at all",
        "loss at most (95%)",
        f"loss of {MARGIN} or more",
    )
    note = (
        "The same model with trained and with uniform attention (Wiegreffe & Pinter 2019, section 3.1). Intervals hold "
        f"other texts and other seeds. {REASON}"
    )
    return Comparison(tuple(headlines), (Table("Uniform attention", header, tuple(rows), note),) if rows else ())


class UniformConfig(Config):
    seeds: tuple[int, ...] = (1, 2)  # of further pairs of models, beside the run's own seed


def runs(config: UniformConfig, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
    """A model with uniform attention for each seed, and the run's own configuration with the other seeds."""
    own = plainly_trained(about, "uniform")
    if own.model.attention in ("latent", "variational"):
        raise Mistake(
            f"uniform trains the same model without its attention, and attention {own.model.attention!r} chooses one "
            "word in place of pooling all: a model that pools would differ in more than its weights."
        )
    uniform = own.model_copy(update={"model": own.model.model_copy(update={"attention": "uniform"})})
    others = seeds_beside(own, config.seeds)
    return {f"uniform {seed}": uniform.model_copy(update={"seed": seed}) for seed in (own.seed, *others)} | {
        f"trained {seed}": own.model_copy(update={"seed": seed}) for seed in others
    }


def run(
    model: Network, batches: Batches, config: UniformConfig, rng: np.random.Generator, others: Mapping[str, OtherRun]
) -> Iterator[Chunk]:
    """One row for each text and seed: `seed`, `truth`, what the two models of that seed predict (`trained`, `uniform`),
    1 where they are `right` and `right_uniform`, `loss` = right - right_uniform, and `tvd` of the two outputs."""
    from heedful.experiments.edited_attention.observe import observer
    from heedful.experiments.framework.beside import find_labels, observe_beside

    UNIFORM.check(model.can)
    require_others(others, UNIFORM.name)
    observe = observer(model)
    seeds = [name.removeprefix("uniform ") for name in others if name.startswith("uniform ")]
    for examples, batch in batches:
        seen, labels = observe(examples, batch), find_labels(batch, UNIFORM.name)
        for seed in seeds:
            own = observe_beside(others[f"trained {seed}"], seen) if f"trained {seed}" in others else seen
            flat = observe_beside(others[f"uniform {seed}"], seen)
            right, right_uniform = (one.predicted == labels for one in (own, flat))
            yield seen.rows() | {
                "seed": [seed] * len(examples),
                "truth": labels,
                "trained": own.predicted.astype(np.float64),
                "uniform": flat.predicted.astype(np.float64),
                "right": right.astype(np.float64),
                "right_uniform": right_uniform.astype(np.float64),
                "loss": right.astype(np.float64) - right_uniform,
                "tvd": own.distance(own.y, flat.y).numpy(),
            }


UNIFORM = Experiment(
    name="uniform",
    question=QUESTION,
    asks="whether the task needs attention at all",
    paper="Wiegreffe & Pinter 2019, section 3.1",
    run=run,
    columns=COLUMNS,
    config=UniformConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="1",
    by="seed",
    summarise=summarise,
    measures=(Measure("uniform", "accuracy lost by uniform attention", "lost by uniform", "loss", "overall.loss"),),
    judge=verdict,
    scale="accuracy lost when all words get the same attention",
    takes=Takes(runs=runs),
    pages=Presentation(
        group_title=lambda seed: f"seed {seed}",
        statistics=(
            Statistic(
                "lost by uniform",
                "overall.loss.mean",
                "Lost by uniform: accuracy of the model less that of one whose attention is frozen to uniform.",
                "+.3f",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
        warn=warning,
    ),
)
