"""One file for each question. `find("permutation").run(network, batches, config, rng)` answers it in rows."""

from __future__ import annotations

from heedful.experiments.framework.description import Published, Result
from heedful.experiments.framework.experiment import (
    Batches,
    Chunk,
    Experiment,
    Summary,
    stranger,
    summary_with_verdict,
    to_table,
    without_verdict,
)
from heedful.registry import EXPERIMENTS

find = EXPERIMENTS.find


def experiment_of(name: str) -> Experiment:
    """By name; for results of an experiment that is not installed here, one that only knows its name."""
    return find(name) if name in EXPERIMENTS else stranger(name)


__all__ = [
    "EXPERIMENTS",
    "Batches",
    "Chunk",
    "Experiment",
    "Published",
    "Result",
    "Summary",
    "experiment_of",
    "find",
    "stranger",
    "summary_with_verdict",
    "to_table",
    "without_verdict",
]
