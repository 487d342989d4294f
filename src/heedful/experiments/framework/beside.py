"""A run beside others that were trained for the comparison: the same texts in each, and rows by run and text.

What `uniform`, `seeds`, `frozen` and `imitation` (Wiegreffe & Pinter 2019) have in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from heedful.config import CROSS_ENTROPY, EvaluationConfig, RunConfig
from heedful.errors import Mistake
from heedful.experiments.framework.description import Result, number_at
from heedful.experiments.framework.summary import Line, column, plain, quantiles
from heedful.measure.columns import Floats
from heedful.measure.levels import over_runs
from heedful.measure.performance import f1_of_labels
from heedful.measure.statistics import between_seeds

if TYPE_CHECKING:
    from heedful.experiments.edited_attention.observe import Observed
    from heedful.experiments.framework.other_runs import OtherRun
    from heedful.records import Batch


def trained_here(about: RunConfig | EvaluationConfig, experiment: str) -> RunConfig:
    """How the asked model was trained on these texts: only then others can be trained like it."""
    if isinstance(about, EvaluationConfig):
        raise Mistake(
            f"{experiment} trains models like the given one, on its own data: give the run "
            f"without --data, not {about.source.name} with {about.dataset}."
        )
    return about


def plainly_trained(about: RunConfig | EvaluationConfig, experiment: str) -> RunConfig:
    """A run whose own attention was trained for its task."""
    run = trained_here(about, experiment)
    if run.start is not None:
        raise Mistake(f"{experiment} is about classifiers of our own, and this run began with {run.start.name}.")
    if run.model.attention_name in ("uniform", "imposed") or run.training.objective != CROSS_ENTROPY:
        raise Mistake(
            f"{experiment} is about an attention that was trained for a task; that of this run is "
            f"{run.model.attention_name}, its objective {run.training.objective}."
        )
    return run


def seeds_beside(run: RunConfig, seeds: tuple[int, ...]) -> tuple[int, ...]:
    """The other seeds, without the run's own and without repetitions."""
    return tuple(dict.fromkeys(seed for seed in seeds if seed != run.seed))


def observe_beside(other: OtherRun, seen: Observed) -> Observed:
    """What another model makes of the same texts. Its attention is over the same words."""
    from heedful.experiments.edited_attention.observe import View, observer

    found = observer(other.network, View(level=seen.level))(seen.examples, other.batch(seen.examples))
    assert found.real.equal(seen.real), f"{other.name} does not read the same words"
    return found


def find_labels(batch: Batch, experiment: str) -> Floats:
    """The right labels: (B,)."""
    if batch.labels is None:
        raise Mistake(f"{experiment} compares scores, and these texts have no labels.")
    return np.asarray(batch.labels.cpu().numpy(), dtype=np.float64)


def by_run(table: pa.Table, name: str, by: str) -> Floats:
    """A column as (runs, texts), where every run has a row for each text; runs in the order of the rows."""
    runs = table[by].to_pylist()
    names = list(dict.fromkeys(runs))
    values = column(table, name)
    if not names:
        return np.zeros((1, 0))
    return np.stack([values[np.array([run == one for run in runs])] for one in names])


def crossed(table: pa.Table, name: str, by: str, least: float = -np.inf) -> Line:
    """n (texts), runs, mean, quantiles of all rows, and an interval that contains other texts and other runs.

    With few runs it is wide: `least` is what the number cannot be below.
    """
    values = by_run(table, name, by)
    found = asdict(over_runs(values))
    found["low"] = max(found["low"], least)
    line = {"n": found.pop("texts"), **found}
    del line["contains"]
    return plain(line) | quantiles(values.ravel())


def f1_by_run(table: pa.Table, predicted: str, by: str) -> Floats:
    """F1 of a column of predicted labels against the column `truth`: (runs,)."""
    pairs = zip(by_run(table, "truth", by), by_run(table, predicted, by), strict=True)
    return np.array([f1_of_labels(truth, labels) for truth, labels in pairs])


def over_seeds(values: Floats) -> Line:
    """Mean and spread of one number of each seed, and the numbers themselves."""
    found = between_seeds(values.tolist())
    each = [None if np.isnan(value) else float(value) for value in values]
    return plain({"mean": found.mean, "std": found.std}) | {"by_seed": each}


# The seed floor: what chance alone does to attention (seeds.py), for figures of other experiments.
#
# A run of which `seeds` was asked has it in `Result.beside`; figures of `adversarial`, `correlation` and `imitation`
# then draw it, and say how far their own number is from it.


@dataclass(frozen=True, slots=True)
class SeedFloor:
    """Means over texts and seeds of what lies between the model and one with another seed."""

    seeds: int
    jsd: float  # of the attentions
    tau: float | None  # of the attentions; None where it is undefined
    tvd: float | None  # of the outputs
    by_seed: Mapping[str, Mapping[str, Any]]  # the same means, seed by seed

    def line(self, value: float | None) -> dict[str, float]:
        """A named line for a figure; none where the value is undefined."""
        return {} if value is None else {"between seeds": value}

    def sentence(self, jsd: float) -> str:
        """A mean JSD against the floor."""
        return (
            f" For comparison: the attention of the same model trained with another seed is {self.jsd:.3f} away "
            f"(mean of {self.seeds} seeds); this is {jsd / self.jsd:.1f} times as far."
            if self.jsd > 0
            else ""
        )


def seed_floor(trial: Result) -> SeedFloor | None:
    """Of the same run, where `seeds` was asked of it."""
    summary = trial.beside.get("seeds")
    jsd = number_at(summary, "overall.mean")
    if summary is None or jsd is None:
        return None
    tau, tvd = (number_at(summary, f"overall.{name}.mean") for name in ("tau", "tvd"))
    return SeedFloor(int(summary["overall"]["runs"]), jsd, tau, tvd, summary["by_seed"])
