"""Is attention needed for this task at all?

Wiegreffe & Pinter 2019, section 3.1: the same model with its attention frozen to uniform, 1 / T for each of the T
words, trained in the same way. Where it does as well, the task does not need attention, and what attention weights do
in a model for that task says little about explanation: whatever is found of it, in either direction, is weak evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from heedful.config import Config, RunConfig, TrialConfig
from heedful.errors import Mistake
from heedful.experiments.beside import plainly_trained, seeds_beside
from heedful.experiments.description import Measure, Statistic
from heedful.experiments.experiment import Batches, Chunk, Experiment
from heedful.experiments.other_runs import OtherRun, require_others
from heedful.experiments.uniform_description import (
    COLUMNS,
    QUESTION,
    compare,
    figures,
    reasons,
    verdict,
    warning,
)
from heedful.experiments.uniform_summary import summarise

if TYPE_CHECKING:
    from heedful.models.network import Network


class UniformConfig(Config):
    seeds: tuple[int, ...] = (1, 2)  # of further pairs of models, beside the run's own seed


def runs(config: UniformConfig, about: RunConfig | TrialConfig) -> Mapping[str, RunConfig]:
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
    model: Network,
    batches: Batches,
    config: UniformConfig,
    rng: np.random.Generator,
    others: Mapping[str, OtherRun],
) -> Iterator[Chunk]:
    """One row for each text and seed: `seed`, `truth`, what the two models of that seed predict (`trained`, `uniform`),
    1 where they are `right` and `right_uniform`, `loss` = right - right_uniform, and `tvd` of the two outputs."""
    from heedful.experiments.beside import find_labels, observe_beside
    from heedful.experiments.observe import observer

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
    name="uniform", question=QUESTION, paper="Wiegreffe & Pinter 2019, section 3.1", config=UniformConfig,
    needs=frozenset({"attends", "edits_attention"}), version="1", run=run, summarise=summarise,
    asks="whether the task needs attention at all", columns=COLUMNS, by="seed",
    scale="accuracy lost when all words get the same attention",
    group_title=lambda seed: f"seed {seed}",
    measures=(Measure("uniform", "accuracy lost by uniform attention", "lost by uniform", "loss", "overall.loss"),),
    statistics=(
        Statistic(
            "lost by uniform", "overall.loss.mean",
            "Lost by uniform: accuracy of the model less that of one whose attention is frozen to uniform.", "+.3f",
        ),
    ),
    draw=figures, judge=verdict, examples=reasons, tabulate=compare, runs=runs, warn=warning,
)  # fmt: skip
