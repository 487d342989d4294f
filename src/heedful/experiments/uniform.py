"""Is attention needed for this task at all?

Wiegreffe & Pinter 2019, section 3.1: the same model with its attention frozen to uniform, 1 / T for each of the T words,
trained in the same way. Where it does as well, the task does not need attention, and what attention weights do in a
model for that task says little about explanation: whatever is found of it, in either direction, is weak evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from heedful.config import Config, RunConfig, TrialConfig
from heedful.experiments.beside import by_run, plainly_trained, seeds_beside
from heedful.experiments.description import Measure, Statistic
from heedful.experiments.experiment import Batches, Chunk, Experiment, Summary
from heedful.experiments.other_runs import OtherRun, require_others
from heedful.experiments.summary import Line, column, plain
from heedful.experiments.uniform_description import (
    COLUMNS,
    MARGIN,
    QUESTION,
    compare,
    figures,
    reasons,
    verdict,
    warning,
)
from heedful.measure.equivalence import below
from heedful.measure.performance import f1_of_labels
from heedful.measure.statistics import between_seeds, mcnemar, over_runs, paired

if TYPE_CHECKING:
    from heedful.models.network import Network


class UniformConfig(Config):
    seeds: tuple[int, ...] = (1, 2)  # of further pairs of models, beside the run's own seed


def runs(config: UniformConfig, about: RunConfig | TrialConfig) -> Mapping[str, RunConfig]:
    """A model with uniform attention for each seed, and the run's own configuration with the other seeds."""
    own = plainly_trained(about, "uniform")
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


def summarise(table: pa.Table) -> Summary:
    """Accuracy and F1 of both (`trained`, `uniform`: mean and std over seeds), the `loss` of accuracy with an interval
    over seeds and texts, and its tests: `p` of no difference (signs of the texts' mean differences flipped), `mcnemar` of
    the run's own seed, `p_needless` of a loss of MARGIN or more, and `at_most`, the loss that is not exceeded (95%)."""
    loss = by_run(table, "loss", "seed")
    found, equivalent = over_runs(loss), below(loss, MARGIN)
    test = paired(loss.mean(0), np.zeros(loss.shape[1]), np.random.default_rng(0))
    scores = {
        kind: {
            "accuracy": _seeds(by_run(table, right, "seed").mean(1)),
            "f1": _seeds([f1_of_labels(y, p) for y, p in zip(*_labels(table, kind), strict=True)]),
        }
        for kind, right in (("trained", "right"), ("uniform", "right_uniform"))
    }
    f1 = [
        a - b
        for a, b in zip(scores["trained"]["f1"]["by_seed"], scores["uniform"]["f1"]["by_seed"], strict=True)
    ]
    flipped = [int((loss[0] == sign).sum()) for sign in (1, -1)]
    line = {"runs": found.runs, "n": found.texts, "mean": found.mean, "low": found.low, "high": found.high}
    return {
        "overall": scores
        | {
            "loss": plain(line),
            "loss_f1": _seeds(f1),
            **plain(
                {
                    "p": test.p,
                    "mcnemar": mcnemar(*flipped),
                    "p_needless": equivalent.p,
                    "at_most": equivalent.at_most,
                }
            ),
            "margin": MARGIN,
        },
        "tvd": plain({"mean": float(np.nanmean(column(table, "tvd"))) if len(table) else float("nan")}),
    }


def _labels(table: pa.Table, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(right, predicted) labels, (seeds, texts) each."""
    return by_run(table, "truth", "seed"), by_run(table, kind, "seed")


def _seeds(values: list[float] | np.ndarray) -> Line:
    found = between_seeds([float(value) for value in values])
    return plain({"mean": found.mean, "std": found.std}) | {"by_seed": [float(value) for value in values]}


UNIFORM = Experiment(
    name="uniform", question=QUESTION, paper="Wiegreffe & Pinter 2019, section 3.1", config=UniformConfig,
    needs=frozenset({"attends", "edits_attention"}), version="1", run=run, summarise=summarise,
    asks="whether the task needs attention at all", columns=COLUMNS, by="seed",
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
