"""Several experiments in one pass over the batches: each batch is read by the model once.

Every experiment begins with the model's own prediction and attention. Asked together they share them; the
rows are the same as when each is run alone with a generator of the same seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from heedful.config import Config
from heedful.experiments.experiment import Batches, Chunk, Experiment
from heedful.experiments.observe import read
from heedful.models.classifier import AttentiveClassifier


def together(
    model: AttentiveClassifier, batches: Batches, asked: Sequence[tuple[Experiment, Config]], seed: int
) -> Iterator[tuple[str, Chunk]]:
    """(name of the experiment, rows), batch by batch."""
    for experiment, _ in asked:
        experiment.check(model.can)
    for examples, batch in batches:
        output = read(model, batch)
        for experiment, config in asked:
            rng = np.random.default_rng(seed)
            answers = experiment.run(model, [(examples, batch)], config, rng, lambda *_, known=output: known)
            for chunk in answers:
                yield experiment.name, chunk
