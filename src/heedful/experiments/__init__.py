"""One file for each question. `find("permutation").run(model, batches, config, rng)` answers it in rows."""

from __future__ import annotations

from importlib import import_module

from heedful.errors import one_of
from heedful.experiments.experiment import Batches, Chunk, Experiment, Summary, to_table

EXPERIMENTS: dict[str, str] = {  # name -> where its `Experiment` is; loaded when asked for
    "correlation": "heedful.experiments.correlation:CORRELATION",
    "permutation": "heedful.experiments.permutation:PERMUTATION",
    "adversarial": "heedful.experiments.adversarial:ADVERSARIAL",
}


def find(name: str) -> Experiment:
    """An experiment by name; a wrong one lists the right ones."""
    if name not in EXPERIMENTS:
        raise one_of("experiment", name, list(EXPERIMENTS))
    module, variable = EXPERIMENTS[name].split(":")
    experiment: Experiment = getattr(import_module(module), variable)
    return experiment


__all__ = ["EXPERIMENTS", "Batches", "Chunk", "Experiment", "Summary", "find", "to_table"]
