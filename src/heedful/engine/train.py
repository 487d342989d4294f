"""From a training task to a finished run folder.

A run that was interrupted goes on after its last checkpoint and ends with the same bits. Ctrl-C leaves a run
that can be loaded: the best epoch so far.
"""

from __future__ import annotations

import math
import platform
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.config import ModelConfig, RunConfig, TrainingConfig
from heedful.data import locate, word2vec
from heedful.data.batching import CPU, Encoded, encode
from heedful.data.describe import describe_reading
from heedful.data.vectors import load_vectors
from heedful.data.vocabulary import Vocabulary
from heedful.data.word_encoder import WordEncoder
from heedful.engine.kinds import run_config
from heedful.engine.model_sources import source_of
from heedful.engine.processors import find_device, threads
from heedful.engine.progress import Progress
from heedful.engine.task import Task
from heedful.engine.workspace import Workspace
from heedful.errors import Mistake
from heedful.measure.performance import performance
from heedful.models import build
from heedful.models.classifier import AttentiveClassifier
from heedful.models.model import Model
from heedful.models.training import Epoch, TrainingState, Weights, finished, fit, predict
from heedful.records import Corpus, Words
from heedful.registry import ENCODERS
from heedful.store.checks import Damaged
from heedful.store.run import Run, create


def train(
    task: Task, corpus: Corpus, bases: Mapping[str, Run], workspace: Workspace, progress: Progress
) -> Run:
    """Train what the task describes, going on where an interrupted run stands. `bases` is what its objective needs."""
    run, config = workspace.run(task.run), run_config(task)
    state, n_threads = read_progress(run, progress, task.threads)
    for split in ("train", "dev"):
        if not corpus[split]:
            raise Mistake(
                f"{corpus.name} has no {split} texts ({config.dataset}); training needs some of both."
            )
    progress.say(str(describe_reading(corpus)))
    words = [text for e in corpus["train"] for text in (e.passage, e.query) if text]
    vocabulary = Vocabulary.build(words, config.data.min_df or 1)
    network, vectors = start(config, corpus, vocabulary, words, workspace.data_dirs)
    device = find_device(workspace)
    network.to(device)
    if vectors is not None:
        progress.say(coverage(vectors, len(vocabulary)))
    info = run_info(task, corpus, vectors, device)
    text = WordEncoder(vocabulary, corpus.tokenizer, config.model.hierarchical)
    sets = [encode(corpus[split], text, len(corpus.labels), device) for split in ("train", "dev")]
    networks = {name: load_base(base, name, vocabulary, corpus, device) for name, base in bases.items()}
    with threads(n_threads):
        save = Saver(run, info, vocabulary)
        state = fit_all(task, network, sets, networks, state, n_threads, save, workspace, progress)
        run.write_description(info, vocabulary.words)
        run.write_summary("performance", test_scores(network, corpus, text))
    run.finish()
    return run


class Saver:
    """Writes checkpoints of one run: the folder appears with the first of them."""

    def __init__(self, run: Run, info: dict[str, Any], vocabulary: Vocabulary) -> None:
        self.run, self.info, self.vocabulary = run, info, vocabulary

    def __call__(self, state: TrainingState, n_threads: int) -> None:
        notes: dict[str, Any] = {"history": [asdict(epoch) for epoch in state.history], "threads": n_threads}
        arrays = {
            f"{part}:{name}": tensor.numpy()
            for part in ("weights", "best", "optimiser")
            for name, tensor in getattr(state, part).items()
        }
        best = {name: tensor.numpy() for name, tensor in state.best.items()}
        if not self.run.path.exists():
            create(self.run.path, self.info, self.vocabulary.words, best, arrays, notes)
            return
        self.run.write_checkpoint(arrays, notes)
        self.run.write_training(best, notes["history"])


def fit_all(
    task: Task,
    network: AttentiveClassifier,
    sets: list[Encoded],
    bases: Mapping[str, AttentiveClassifier],
    state: TrainingState,
    n_threads: int,
    save: Saver,
    workspace: Workspace,
    progress: Progress,
) -> TrainingState:
    """All epochs that are left, with checkpoints; at the end everything is saved."""
    config, (train_set, dev_set) = run_config(task).training, sets
    saved = time.monotonic()
    with progress.bar(f"train {task.run}", total=config.epochs * len(train_set)) as bar:
        bar.advance(len(state.history) * len(train_set))
        try:
            steps = fit(network, train_set, dev_set, config, task.config.seed, state, bar.step, bases)
            for after in steps:
                state = after
                bar.note(describe(state.history[-1], config))
                if time.monotonic() - saved > workspace.checkpoint_every and not finished(state, config):
                    save(state, n_threads)
                    saved = time.monotonic()
        except KeyboardInterrupt:
            if state.history:
                save(state, n_threads)
                progress.say(
                    f"stopped after epoch {len(state.history)}: {save.run.path} holds the best epoch so far; "
                    "the same command goes on from here"
                )
            raise
    save(state, n_threads)
    return state


def start(
    config: RunConfig,
    corpus: Corpus,
    vocabulary: Vocabulary,
    words: Sequence[Words],
    data_dirs: Sequence[Path],
) -> tuple[AttentiveClassifier, dict[str, Any] | None]:
    """A fresh network, with its word vectors where they were asked for."""
    vectors = None
    model_config: ModelConfig = config.model
    if config.vectors == word2vec.NAME:
        vectors = word2vec.train_word2vec(words, vocabulary, model_config.embedding_dim, config.seed)
    elif config.vectors is not None:
        rng = np.random.default_rng([config.seed, 0])
        missing, folders = config.training.missing_vectors, locate.data_dirs(data_dirs)
        counts = Counter(chain.from_iterable(text.forms for text in words))
        vectors = load_vectors(config.vectors, vocabulary, folders, missing=missing, rng=rng, counts=counts)
        model_config = model_config.with_vectors(vectors.matrix.shape[1])
    has_query = corpus.task != "classification"
    network = build(model_config, len(vocabulary), len(corpus.labels), has_query, config.seed)
    if vectors is None:
        return network, None
    with torch.no_grad():
        network.embedding.weight.copy_(torch.from_numpy(vectors.matrix))
    found = {"dim": vectors.matrix.shape[1], "types": vectors.types, "tokens": vectors.tokens}
    return network, {"vectors": config.vectors, **found}


def load_base(
    run: Run, name: str, vocabulary: Vocabulary, corpus: Corpus, device: torch.device
) -> AttentiveClassifier:
    """A trained network that an objective looks at. It reads the same batches, so it must know the same words."""
    base = load(run, device)
    if run.words != vocabulary.words or base.labels != corpus.labels:
        raise Mistake(
            f"{run.path}, which the objective needs as {name!r}, does not have the words and labels of {corpus.name}: "
            "train it on the same data."
        )
    assert isinstance(base.network, AttentiveClassifier)
    return base.network.requires_grad_(False)


def coverage(vectors: dict[str, Any], n_words: int) -> str:
    """How many words of the training texts the vectors know."""
    return (
        f"word vectors {vectors['vectors']}: {vectors['types']:.1%} of {n_words:,} words have one, "
        f"{vectors['tokens']:.1%} of the running words"
    )


def run_info(
    task: Task, corpus: Corpus, vectors: dict[str, Any] | None, device: torch.device
) -> dict[str, Any]:
    """What config.json holds."""
    config = run_config(task)
    words = {
        split: sum(len(e.passage) + len(e.query or ()) for e in examples)
        for split, examples in corpus.splits.items()
    }
    return {
        "key": task.key,
        "config": config.model_dump(mode="json"),
        "model": {"description": describe_model(config.model), **_imposed(config.model)},
        "task": corpus.task,
        "labels": list(corpus.labels),
        "tokenizer": corpus.tokenizer,
        "embedding_dim": vectors["dim"] if vectors else config.model.embedding_dim,
        "vectors": vectors,
        "data": {
            "name": corpus.name,
            "fingerprint": task.source,
            "examples": {split: len(examples) for split, examples in corpus.splits.items()},
            "words": words,
            "skipped": list(corpus.skipped),
        },
        "versions": library_versions(),
        "device": str(device),
    }


def describe_model(config: ModelConfig) -> str:
    """In words: "a bidirectional LSTM with additive attention"."""
    encoder = (
        getattr(ENCODERS.find(config.encoder), "title", "") or f"a model with the encoder {config.encoder!r}"
    )
    if config.imposed is not None:
        return f"{encoder} on which the attention of {describe_model(config.imposed)} is imposed"
    levels = " over words and sentences" if config.hierarchical else ""
    return f"{encoder} with {config.attention} attention{levels}"


def _imposed(config: ModelConfig) -> dict[str, str]:
    """What kind of attention a run has, where it is not the one that its settings name."""
    return {} if config.imposed is None else {"attention": config.attention_name}


def library_versions() -> dict[str, str]:
    found = {name: version(name) for name in ("heedful", "torch", "numpy", "spacy")}
    return found | {"python": platform.python_version()}


def read_progress(run: Run, progress: Progress, n_threads: int) -> tuple[TrainingState, int]:
    """Where an interrupted run stands, and its threads: other threads would round otherwise."""
    if run.finished:  # and yet to be done again, so it is damaged: `Executor` has said so
        run.reopen()
    if not run.interrupted:
        return TrainingState(), n_threads
    try:
        arrays, notes = run.checkpoint()
    except Damaged as damage:
        progress.say(f"{damage}; {run.name} is trained from the start")
        run.reopen()
        return TrainingState(), n_threads
    parts: dict[str, Weights] = {"weights": {}, "best": {}, "optimiser": {}}
    for key, array in arrays.items():
        part, name = key.split(":", 1)
        parts[part][name] = torch.from_numpy(array)
    return TrainingState([Epoch(**row) for row in notes["history"]], **parts), notes["threads"]


def test_scores(network: AttentiveClassifier, corpus: Corpus, text: WordEncoder) -> dict[str, Any]:
    """Scores on the test split, or on dev where there is none; what is undefined (nan) is None."""
    split = "test" if corpus["test"] else "dev"
    examples = corpus["test"] or corpus["dev"]
    encoded = encode(examples, text, len(corpus.labels), network.device)
    if encoded.labels is None:
        raise Mistake(f"{corpus.name}: the {split} split has texts without a label.")
    scores = performance(encoded.labels, predict(network, encoded))
    defined = {name: None if math.isnan(score) else score for name, score in scores.items()}
    return {"split": split, "examples": len(encoded), **defined}


def describe(epoch: Epoch, config: TrainingConfig) -> str:
    mark = " (best)" if epoch.best else ""
    score = "" if config.metric == "loss" else f" dev {epoch.score:.4f}"
    return f"epoch {epoch.epoch}/{config.epochs} loss {epoch.loss:.4f}{score}{mark}"


def load(run: Run, device: torch.device = CPU) -> Model:
    """The model that a folder is about, ready to read text: its own, or the one that was tried on other data."""
    return source_of(run).load(device)


def load_network(run: Run, device: torch.device = CPU) -> Model:
    """The model that was trained in this folder."""
    info, config = run.info, run.config
    vocabulary = Vocabulary(run.words)
    labels = tuple(info["labels"])
    sizes = config.model.with_vectors(info["embedding_dim"])
    network = build(sizes, len(vocabulary), len(labels), info["task"] != "classification")
    network.load_state_dict({name: torch.from_numpy(array) for name, array in run.weights().items()})
    network.to(device).eval()
    text = WordEncoder(vocabulary, info["tokenizer"], config.model.hierarchical)
    return Model(run.name, network, text, labels, info["task"], config.seed)
