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

from heedful.config import Config, RunConfig, Seed, TrialConfig
from heedful.errors import Mistake
from heedful.experiments.beside import crossed, seeds_beside, trained_here
from heedful.experiments.description import Measure, Statistic
from heedful.experiments.experiment import Batches, Chunk, Experiment, Summary
from heedful.experiments.other_runs import OtherRun, require_others
from heedful.experiments.seeds_description import COLUMNS, QUESTION, compare, figures, reasons, verdict
from heedful.experiments.summary import Line, column, grouped, mean
from heedful.measure.columns import rows_of

if TYPE_CHECKING:
    from heedful.models.network import Network

PAPERS = (
    50,
    257,
    500231,
    100078,
    12504,
    90754789,
    8988812,
    2,
)  # beside the base model's, in the authors' code


class SeedsConfig(Config):
    seeds: tuple[Seed, ...] = Field(default=PAPERS, min_length=1)  # of the other models


def runs(config: SeedsConfig, about: RunConfig | TrialConfig) -> Mapping[str, RunConfig]:
    """The run's own configuration with other seeds."""
    run = trained_here(about, "seeds")
    others = seeds_beside(run, config.seeds)
    if not others:
        raise Mistake(f"seeds: {list(config.seeds)} has no seed but that of the run itself.")
    return {str(seed): run.model_copy(update={"seed": seed}) for seed in others}


def run(
    model: Network,
    batches: Batches,
    config: SeedsConfig,
    rng: np.random.Generator,
    others: Mapping[str, OtherRun],
) -> Iterator[Chunk]:
    """One row for each text and other seed: `seed`, `jsd` and `tau` of the two attentions, `tvd` of the two outputs,
    1 in `same` where both decide alike."""
    from heedful.experiments.beside import observe_beside
    from heedful.experiments.observe import observer
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
    return crossed(table, "jsd", "seed", 0.0) | {
        name: crossed(table, name, "seed", low) for name, low in least.items()
    }


SEEDS = Experiment(
    name="seeds", question=QUESTION, paper="Wiegreffe & Pinter 2019, section 3.2", config=SeedsConfig,
    needs=frozenset({"attends", "edits_attention"}), version="1", run=run, summarise=summarise,
    asks="whether another seed of training attends alike", columns=COLUMNS, by="seed",
    scale="distance between the attention of two seeds, 0.69 being the most possible",
    group_title=lambda seed: f"seed {seed}",
    measures=(Measure("seeds", "JSD of the attentions of two seeds", "JSD of seeds", "jsd", "overall", rising=False),),
    statistics=(
        Statistic(
            "varies by seed", "overall.mean", "Varies by seed: mean JSD of the attentions of two seeds, at most 0.69."
        ),
    ),
    draw=figures, judge=verdict, examples=reasons, tabulate=compare, runs=runs,
)  # fmt: skip
