"""One file for each question. `find("permutation").run(network, batches, config, rng)` answers it in rows."""

from __future__ import annotations

from heedful.experiments.experiment import Batches, Chunk, Experiment, Summary, to_table
from heedful.registry import EXPERIMENTS

find = EXPERIMENTS.find

__all__ = ["EXPERIMENTS", "Batches", "Chunk", "Experiment", "Summary", "find", "to_table"]
