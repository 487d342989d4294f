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
from heedful.engine.sources.data import SplitSize
from heedful.engine.tasks.task import Request
from heedful.store.run import Run

if TYPE_CHECKING:
    from heedful.data.text.batching import Encoded, Ints, Texts
    from heedful.models.network import Trainable
    from heedful.records import Batch

LENGTHS = (10, 40, 120)  # words a text at which the machine is measured
TEXTS, BATCH = 8, 32  # in an experiment: few, so that measuring takes seconds; in a training step: as usual
WORDS = 15_000


@dataclass
class Throughput:
    """Seconds of one core, by encoder and size of the model. Measured once each, when first asked for."""

    runs: Iterable[Run] = ()
    _curves: dict[object, Callable[[float], float]] = field(default_factory=dict)
    _recorded: dict[object, float] | None = None

    def train(self, config: RunConfig, size: SplitSize) -> float:
        """Of one pass over the training texts."""
        recorded = self._of_runs().get(("train", config.dataset, _kind(config), config.training.batch_size))
        if recorded is not None:
            return recorded * size.words
        which = ("train", _without_attention(config.model), config.start)
        curve = self._curve(which, lambda length: _train_seconds(config, length), powers=2)
        return curve(size.length) * size.texts

    def ask(self, config: RunConfig, one: Request, size: SplitSize) -> float:
        """Of one experiment on these texts."""
        recorded = self._of_runs().get((config.dataset, _kind(config), one.experiment, str(one.options)))
        if recorded is not None:
            return recorded * size.texts
        which = (one.experiment, str(one.options), _without_attention(config.model), config.start)
        curve = self._curve(which, lambda length: _ask_seconds(config, one, length), powers=3)
        return curve(size.length) * size.texts

    def _curve(self, which: object, seconds: Callable[[int], float], powers: int) -> Callable[[float], float]:
        """Measured at LENGTHS; no part of the cost shrinks with the length, so far beyond them it is sensible, too."""
        from scipy.optimize import nnls

        if which not in self._curves:
            seconds(LENGTHS[0])  # the first time is slow
            measured = [seconds(length) for length in LENGTHS]
            parts, _ = nnls(np.vander(LENGTHS, powers, increasing=True).astype(float), np.array(measured))
            self._curves[which] = lambda length: float(sum(part * length**power for power, part in enumerate(parts)))
        return self._curves[which]

    def _of_runs(self) -> dict[object, float]:
        """Median seconds: of training by word, of experiments by text."""
        if self._recorded is None:
            found: dict[object, list[float]] = {}
            for run in self.runs:
                config, words = run.config, run.info["data"]["words"]["train"]
                passes = [row["seconds"] / max(1, words) for row in run.training()]
                found.setdefault(("train", config.dataset, _kind(config), config.training.batch_size), []).extend(
                    passes
                )
                for seal in run.results.seals():
                    key = (config.dataset, _kind(config), seal["experiment"], str(seal["asked"]["options"]))
                    found.setdefault(key, []).append(seal["seconds"] / max(1, seal["n_texts"]))
            self._recorded = {key: median(values) for key, values in found.items()}
        return self._recorded


def _kind(config: RunConfig) -> object:
    """What decides the time: the sizes of one of ours, or a checkpoint."""
    return config.start.fingerprint if config.start else config.model


def _network(config: RunConfig) -> Trainable:
    """One of the same size, for two labels."""
    from heedful.models import build_network

    if config.start is None:
        return build_network(_without_attention(config.model), WORDS, 2).eval()
    from heedful.engine.sources.huggingface import checkpoint_of
    from heedful.models.huggingface.fine_tuning import begin

    return begin(checkpoint_of(config.start.place).folder, ("no", "yes"), seed=0).network


def _without_attention(model: ModelConfig) -> ModelConfig:
    """The kind of attention hardly changes the time."""
    return model.model_copy(update={"attention": "additive"})


def _train_seconds(config: RunConfig, length: int) -> float:
    """Of one text in a training step, the first of which is slow."""
    from heedful.data.text.batching import Encoded
    from heedful.engine.running.processors import threads
    from heedful.models.training import fit

    network = _network(config)
    texts = _texts(3 * BATCH, length, network.embedding.num_embeddings)
    encoded = Encoded(texts, None, None, np.arange(3 * BATCH, dtype=np.int64) % 2)
    ends: list[float] = []
    with threads(1):
        step = fit(
            network,
            encoded,
            encoded,
            TrainingConfig(epochs=1, batch_size=BATCH, metric="accuracy"),
            0,
            on_step=lambda *_: ends.append(time.process_time()),
        )
        next(step)
    return float(np.diff(ends).min()) / BATCH


def _ask_seconds(run: RunConfig, one: Request, length: int) -> float:
    from heedful import experiments
    from heedful.data.text.batching import SENTENCE_BEGINS, Encoded
    from heedful.engine.running.processors import threads

    experiment = experiments.find(one.experiment)
    config = experiment.config.parse(one.options, f"the options of {one.experiment}")
    network = _network(run)
    labels = np.arange(TEXTS, dtype=np.int64) % 2
    texts = _texts(TEXTS, length, network.embedding.num_embeddings)
    targets = {
        "evidence": texts.mark_words([[0]] * TEXTS),
        SENTENCE_BEGINS: texts.mark_words([list(range(0, length, 20))] * TEXTS),
    }
    encoded = Encoded(texts, None, None, labels, targets=targets)
    others = {name: _Beside(network, encoded) for name in experiment.takes.runs(config, run)}
    given = {"others": others} if others else {}
    with threads(1):
        began = time.process_time()
        for _ in experiment.run(network, encoded.batches(TEXTS), config, np.random.default_rng(0), **given):
            pass
        return (time.process_time() - began) / TEXTS


@dataclass(frozen=True)
class _Beside:
    """Stands for a run that an experiment compares with (OtherRun): the network that is measured, on its texts."""

    network: Trainable
    encoded: Encoded
    name: str = "measured"

    def batch(self, places: Ints) -> Batch:
        return self.encoded.batch(places)


def _texts(number: int, length: int, n_words: int) -> Texts:
    """Every text twice, so that labels that alternate cannot be learnt: training does not stop early.

    Twenty words make a sentence, for models that read sentences.
    """
    from heedful.data.text.batching import Texts

    once = np.random.default_rng(length).integers(4, n_words, (number // 2, length + 2))
    lengths = np.full(number, length + 2, dtype=np.int64)
    sentences = np.tile(np.arange(length + 2, dtype=np.int64) // 20, number)
    begins = np.cumsum(lengths) - lengths
    return Texts(once.repeat(2, axis=0).ravel(), lengths, begins, sentence_index=sentences)
