"""How much does attention vary by chance?

Wiegreffe & Pinter 2019, section 3.2: models that differ in nothing but the seed of their training. The JSD between the
attention of each and that of the asked run, against the largest weight, is a noise floor: another attention (an
adversary's, an imitator's) says little where it is no farther away than that of another seed. In the same way the
rank correlation of the attentions of two seeds is what a correlation of attention with anything can be held against.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic import Field

from heedful.config import Config, EvaluationConfig, RunConfig, Seed
from heedful.errors import Mistake
from heedful.experiments.framework.beside import by_run, crossed, seeds_beside, trained_here
from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, number
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic, places_by, quartiles
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Summary
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.summary import Line, column, grouped, mean
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, border, interval
from heedful.figures.figure import Figure
from heedful.measure.columns import BINS, Floats, rows_of
from heedful.measure.levels import over_runs
from heedful.measure.statistics import Interval

if TYPE_CHECKING:
    from heedful.models.network import Network


# What `seeds` says about itself: columns, verdict, figures, texts worth a look, comparison.


QUESTION = "How much does attention vary with the seed of training?"
LN2 = float(np.log(2))
LITTLE, MUCH = 0.05, 0.2  # nats of JSD
RULE = f"Mean JSD below {LITTLE}: little; from {MUCH} on: much; between: somewhat. At most 0.69 is possible."
COLUMNS = {
    "jsd": Column("JSD of the attentions", 0, LN2, "Left: another seed attends to the same words.", unit="nats"),
    "tvd": Column("TVD of the outputs", 0, 1, "Left: another seed says the same."),
    "tau": Column("τ of the attentions", -1, 1, "Right: another seed puts the words into the same order."),
    "same": Column("same decision", 0, 1, "1: another seed decides alike.", bins=2),
}
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Little", "hardly varies with the seed of training"),
    "mixed": Wording("Somewhat", "varies with the seed of training"),
    "against": Wording("A lot", "varies a lot with the seed of training"),
}


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (LITTLE, MUCH), rising=False)


def verdict(trial: Result) -> Verdict:
    """The mean JSD between the attention of the run and those of other seeds."""
    found = over_runs(by_run(trial.table, "jsd", "seed"))
    bars = JUDGEMENT.bars
    if np.isnan(found.mean):
        sentence = "No text has words: there is nothing to attend to."
        return JUDGEMENT.unclear("Undefined", sentence, "has no words")
    mean = Interval(found.mean, max(found.low, 0.0), found.high)  # few seeds: a wide interval
    alike = float(by_run(trial.table, "same", "seed").mean())
    sentence = (
        f"The attention of {found.runs} models that differ in nothing but their seed is {interval(mean, 3)} nats of "
        f"JSD away from that of this one, over {found.texts:,} texts; they decide alike in {alike:.0%} of them."
        f"{border(mean, *bars)} Another attention that is no farther away differs by no more than chance."
    )
    return JUDGEMENT.of(mean, sentence, says_border=False, contains=found.contains)


def figures(trial: Result) -> list[Figure]:
    """The violins of Wiegreffe & Pinter 2019, section 3.2: JSD between seeds in bins of the largest weight."""
    from heedful.figures.charts import violins
    from heedful.figures.drawing import histogram

    frame, tvd = trial.frame("jsd"), trial.frame("tvd")
    line = trial.summary["overall"]
    return [
        Figure(
            "seeds-jsd",
            "How far the attention of another seed is",
            "A violin for each bin of the largest weight: wide where many pairs of text and seed are; the line is the "
            "median. Violins at the left: whatever the seed, attention is on the same words.",
            f"JSD between the attentions of seeds by the largest weight; {quartiles(line)}.",
            violins(frame, "distance from another seed's attention (JSD)", (0.0, LN2)),
        ),
        Figure(
            "seeds-tvd",
            "… and what it says",
            "Each bar counts pairs of a text and another seed: how far the outputs of the two models are apart.",
            f"TVD between the outputs of seeds; {quartiles(line['tvd'])}.",
            histogram(
                tvd, trial.labels, COLUMNS["tvd"].edges_of(tvd.value).tolist(), "tvd", "distance of the outputs (TVD)"
            ),
        ),
    ]


def reasons(trial: Result) -> Iterator[Reason]:
    """By the mean over seeds."""
    rows = trial.table
    first = rows.filter(rows["seed"].to_numpy(zero_copy_only=False) == rows["seed"][0].as_py())
    jsd: Floats = by_run(rows, "jsd", "seed").mean(0)
    yield Reason("Every seed attends to the same", "The lowest mean JSD between seeds.", places_by(first, jsd))
    yield Reason("Every seed attends elsewhere", "The greatest mean JSD between seeds.", places_by(first, -jsd))


def compare(evidence: Evidence) -> Comparison:
    """The violins in numbers."""
    rows = []
    for setting, found in evidence:
        for one in found:
            overall, bins = one["overall"], one["by_max_attention"]
            cells = [number(bins[name]["q50"]) for name in BINS]
            rest = [number(overall[name]["mean"]) for name in ("tau", "tvd", "same")]
            mean = f"{overall['mean']:.3f} ({overall['low']:.3f} to {overall['high']:.3f})"
            rows.append((*setting, str(overall["runs"]), mean, *cells, *rest))
    header = (
        *SETTING,
        "seeds",
        "mean JSD",
        *(f"median, max α in {name}" for name in BINS),
        "τ",
        "TVD",
        "same decision",
    )
    note = (
        "Attention of models that differ in their seed alone, against that of the first: the noise floor (Wiegreffe & "
        "Pinter 2019, section 3.2). JSD in nats, at most 0.693; intervals hold other texts and other seeds."
    )
    return Comparison(tables=(Table("Variance by seed", header, tuple(rows), note),) if rows else ())


PAPERS = (50, 257, 500231, 100078, 12504, 90754789, 8988812, 2)  # beside the base model's, in the authors' code


class SeedsConfig(Config):
    seeds: tuple[Seed, ...] = Field(default=PAPERS, min_length=1)  # of the other models


def runs(config: SeedsConfig, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
    """The run's own configuration with other seeds."""
    run = trained_here(about, "seeds")
    others = seeds_beside(run, config.seeds)
    if not others:
        raise Mistake(f"seeds: {list(config.seeds)} has no seed but that of the run itself.")
    return {str(seed): run.model_copy(update={"seed": seed}) for seed in others}


def run(
    model: Network, batches: Batches, config: SeedsConfig, rng: np.random.Generator, others: Mapping[str, OtherRun]
) -> Iterator[Chunk]:
    """One row for each text and other seed: `seed`, `jsd` and `tau` of the two attentions, `tvd` of the two outputs,
    1 in `same` where both decide alike."""
    from heedful.experiments.edited_attention.observe import observer
    from heedful.experiments.framework.beside import observe_beside
    from heedful.measure.distance import jsd
    from heedful.measure.rank import kendall

    SEEDS.check(model.can)
    require_others(others, SEEDS.name)
    observe = observer(model)
    for examples, batch in batches:
        seen = observe(examples, batch)
        some, real = seen.n_words > 0, seen.real.numpy()
        for seed, other in others.items():
            theirs = observe_beside(other, seen)
            alphas = seen.alpha.numpy(), theirs.alpha.numpy()
            yield seen.rows() | {
                "seed": [seed] * len(examples),
                "jsd": np.where(some, jsd(*alphas), np.nan),
                "tau": kendall(*alphas, real).tau,
                "tvd": seen.distance(seen.y, theirs.y).numpy(),
                "same": (seen.predicted == theirs.predicted).astype(np.float64),
            }


def summarise(table: pa.Table) -> Summary:
    """The distance of attentions (`jsd`), their correlation and the distance of outputs, overall, by class and by the
    largest weight (`_line`); and the mean of each seed, which a curve of trained adversaries is held against."""
    by_seed = {
        seed: {name: mean(column(rows, name)) for name in ("jsd", "tvd", "tau", "same")}
        for seed in dict.fromkeys(table["seed"].to_pylist())
        for rows in [rows_of(table, "seed", seed)]
    }
    return grouped(table, _line) | {"by_seed": by_seed}


def _line(table: pa.Table) -> Line:
    least = {"tvd": 0.0, "same": 0.0, "tau": -1.0}
    return crossed(table, "jsd", "seed", 0.0) | {name: crossed(table, name, "seed", low) for name, low in least.items()}


SEEDS = Experiment(
    name="seeds",
    question=QUESTION,
    asks="whether another seed of training attends alike",
    paper="Wiegreffe & Pinter 2019, section 3.2",
    run=run,
    columns=COLUMNS,
    config=SeedsConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="1",
    by="seed",
    summarise=summarise,
    measures=(Measure("seeds", "JSD of the attentions of two seeds", "JSD of seeds", "jsd", "overall", rising=False),),
    judge=verdict,
    scale="distance between the attention of two seeds, 0.69 being the most possible",
    takes=Takes(runs=runs),
    pages=Presentation(
        group_title=lambda seed: f"seed {seed}",
        statistics=(
            Statistic(
                "varies by seed",
                "overall.mean",
                "Varies by seed: mean JSD of the attentions of two seeds, at most 0.69.",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
    ),
)
