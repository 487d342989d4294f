"""How long a text takes on a core of this machine: from finished runs where there are some, else measured now.

Training reads every word once in each pass, so its cost grows with the words: seconds = texts (a + b L) with L
words a text. Leaving out each word in turn grows with L squared: experiments have seconds = texts (a + b L + c L²).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from heedful.config import ModelConfig, RunConfig, TrainingConfig
from heedful.engine.data_sources import Size
from heedful.engine.task import Ask
from heedful.store.run import Run

if TYPE_CHECKING:
    from heedful.data.batching import Texts

LENGTHS = (10, 40, 120)  # words a text at which the machine is measured
TEXTS, BATCH = 8, 32  # in an experiment: few, so that measuring takes seconds; in a training step: as usual
WORDS = 15_000


@dataclass
class Throughput:
    """Seconds of one core, by encoder and size of the model. Measured once each, when first asked for."""

    runs: Iterable[Run] = ()
    _curves: dict[object, Callable[[float], float]] = field(default_factory=dict)
    _recorded: dict[object, float] | None = None

    def train(self, config: RunConfig, size: Size) -> float:
        """Of one pass over the training texts."""
        recorded = self._of_runs().get(("train", config.dataset, config.model, config.training.batch_size))
        if recorded is not None:
            return recorded * size.words
        model = _without_attention(config.model)
        curve = self._curve(("train", model), lambda length: _train_seconds(model, length), powers=2)
        return curve(size.length) * size.texts

    def ask(self, config: RunConfig, one: Ask, size: Size) -> float:
        """Of one experiment on these texts."""
        recorded = self._of_runs().get((config.dataset, config.model, one.experiment, str(one.options)))
        if recorded is not None:
            return recorded * size.texts
        model = _without_attention(config.model)
        which = (one.experiment, str(one.options), model)
        curve = self._curve(which, lambda length: _ask_seconds(model, one, length), powers=3)
        return curve(size.length) * size.texts

    def _curve(self, which: object, seconds: Callable[[int], float], powers: int) -> Callable[[float], float]:
        """Measured at LENGTHS; no part of the cost shrinks with the length, so far beyond them it is sensible, too."""
        from scipy.optimize import nnls

        if which not in self._curves:
            seconds(LENGTHS[0])  # the first time is slow
            measured = [seconds(length) for length in LENGTHS]
            parts, _ = nnls(np.vander(LENGTHS, powers, increasing=True).astype(float), np.array(measured))
            self._curves[which] = lambda length: float(
                sum(part * length**power for power, part in enumerate(parts))
            )
        return self._curves[which]

    def _of_runs(self) -> dict[object, float]:
        """Median seconds: of training by word, of experiments by text."""
        if self._recorded is None:
            found: dict[object, list[float]] = {}
            for run in self.runs:
                config, words = run.config, run.info["data"]["words"]["train"]
                passes = [row["seconds"] / max(1, words) for row in run.training()]
                found.setdefault(
                    ("train", config.dataset, config.model, config.training.batch_size), []
                ).extend(passes)
                for seal in run.results.seals():
                    key = (config.dataset, config.model, seal["experiment"], str(seal["asked"]["options"]))
                    found.setdefault(key, []).append(seal["seconds"] / max(1, seal["n_texts"]))
            self._recorded = {key: median(values) for key, values in found.items()}
        return self._recorded


def _without_attention(model: ModelConfig) -> ModelConfig:
    """The kind of attention hardly changes the time."""
    return model.model_copy(update={"attention": "additive"})


def _train_seconds(model: ModelConfig, length: int) -> float:
    """Of one text in a training step, the first of which is slow."""
    from heedful.data.batching import Encoded
    from heedful.engine.processors import threads
    from heedful.models import build
    from heedful.models.training import fit

    encoded = Encoded(_texts(3 * BATCH, length), None, None, np.arange(3 * BATCH, dtype=np.int64) % 2)
    ends: list[float] = []
    with threads(1):
        config = TrainingConfig(epochs=1, batch_size=BATCH, metric="accuracy")
        step = fit(
            build(model, WORDS, 2),
            encoded,
            encoded,
            config,
            0,
            on_step=lambda *_: ends.append(time.process_time()),
        )
        next(step)
    return float(np.diff(ends).min()) / BATCH


def _ask_seconds(model: ModelConfig, one: Ask, length: int) -> float:
    from heedful import experiments
    from heedful.data.batching import Encoded
    from heedful.engine.processors import threads
    from heedful.models import build

    experiment = experiments.find(one.experiment)
    config = experiment.config.parse(one.options, f"the options of {one.experiment}")
    encoded = Encoded(_texts(TEXTS, length), None, None, None)
    network = build(model, WORDS, 2).eval()
    with threads(1):
        began = time.process_time()
        for _ in experiment.run(network, encoded.batches(TEXTS), config, np.random.default_rng(0)):
            pass
        return (time.process_time() - began) / TEXTS


def _texts(number: int, length: int) -> Texts:
    """Every text twice, so that labels that alternate cannot be learnt: training does not stop early.

    Twenty words make a sentence, for models that read sentences.
    """
    from heedful.data.batching import Texts

    once = np.random.default_rng(length).integers(4, WORDS, (number // 2, length + 2))
    lengths = np.full(number, length + 2, dtype=np.int64)
    sentences = np.tile(np.arange(length + 2, dtype=np.int64) // 20, number)
    begins = np.cumsum(lengths) - lengths
    return Texts(once.repeat(2, axis=0).ravel(), lengths, begins, sentence_index=sentences)
