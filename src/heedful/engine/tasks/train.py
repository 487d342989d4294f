"""From a training task to a finished run folder.

A run that was interrupted goes on after its last checkpoint and ends with the same bits. Ctrl-C leaves a run
that can be loaded: the best epoch so far.
"""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.config import TrainingConfig
from heedful.data.corpora import locate
from heedful.data.corpora.assemble import spread_places
from heedful.data.corpora.describe import describe_reading, repeated_texts
from heedful.data.text.batching import CPU, Encoded, TextEncoder, encode
from heedful.data.text.vocabulary import Vocabulary, WordEncoder
from heedful.engine.running.processors import find_device, threads
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.sources.models import ModelSource, source_of
from heedful.engine.tasks.begin import Beginning, begin
from heedful.engine.tasks.kinds import run_config
from heedful.engine.tasks.task import Task
from heedful.errors import Mistake
from heedful.measure.performance import performance
from heedful.models import build_network
from heedful.models.model import Model
from heedful.models.network import Network, Trainable
from heedful.models.objectives.objective import Bases
from heedful.models.training import TOKEN_BUDGET, Epoch, TrainingState, Weights, finished, fit, predict
from heedful.records import Corpus, Example
from heedful.store.checks import Damaged
from heedful.store.new_runs import create
from heedful.store.run import PRETRAINED, Run


def train(
    task: Task,
    corpus: Corpus,
    bases: Mapping[str, Run],
    workspace: Workspace,
    progress: Progress,
    source: ModelSource | None = None,
) -> Run:
    """Train what the task describes, going on where an interrupted run stands.

    `bases` is what its objective needs, `source` the checkpoint that it begins with.
    """
    run, config = workspace.run(task.run), run_config(task)
    state, n_threads = read_progress(run, progress, task.threads)
    for split in ("train", "dev"):
        if not corpus[split]:
            raise Mistake(f"{corpus.name} has no {split} texts ({config.dataset}); training needs some of both.")
    progress.say(str(describe_reading(corpus)))
    begun = begin(config, corpus, source, workspace.data_dirs)
    network, device = begun.network, find_device(workspace)
    network.module.to(device)
    for sentence in begun.says:
        progress.say(sentence)
    info = run_info(task, corpus, begun, device)
    info["data"]["folders"] = remember_folders(workspace.data_dirs)
    sets = [encode(corpus[split], begun.text, len(corpus.labels), device) for split in ("train", "dev")]
    networks = {name: load_base(base, name, begun.words, corpus, device) for name, base in bases.items()}
    with threads(n_threads):
        save = Saver(run, info, begun)
        state = fit_all(task, network, sets, networks, state, n_threads, save, workspace, progress)
        run.write_description(info, begun.words, begun.pretrained)
        run.write_summary("performance", test_scores(network, corpus, begun.text))
    run.finish()
    return run


class Saver:
    """Writes checkpoints of one run: the folder appears with the first of them."""

    def __init__(self, run: Run, info: dict[str, Any], begun: Beginning) -> None:
        self.run, self.info, self.begun = run, info, begun

    def __call__(self, state: TrainingState, n_threads: int) -> None:
        notes: dict[str, Any] = {"history": [asdict(epoch) for epoch in state.history], "threads": n_threads}
        arrays = {
            f"{part}:{name}": tensor.numpy()
            for part in ("weights", "best", "optimiser")
            for name, tensor in getattr(state, part).items()
        }
        best = {name: tensor.numpy() for name, tensor in state.best.items()}
        if not self.run.path.exists():
            begun = self.begun
            create(self.run.path, self.info, begun.words, best, arrays, notes, begun.pretrained)
            return
        self.run.write_checkpoint(arrays, notes)
        self.run.write_training(best, notes["history"])


def fit_all(
    task: Task,
    network: Trainable,
    sets: list[Encoded],
    bases: Bases,
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


def load_base(run: Run, name: str, words: tuple[str, ...], corpus: Corpus, device: torch.device) -> Network:
    """A trained network that an objective looks at. It reads the same batches, so it must know the same words."""
    base = load(run, device)
    if run.words != words or base.labels != corpus.labels:
        raise Mistake(
            f"{run.path}, which the objective needs as {name!r}, does not have the words and labels of {corpus.name}: "
            "train it on the same data."
        )
    network: Any = base.network
    network.module.requires_grad_(False)
    return base.network


def run_info(task: Task, corpus: Corpus, begun: Beginning, device: torch.device) -> dict[str, Any]:
    """What config.json holds."""
    config = run_config(task)
    words = {
        split: sum(len(e.passage) + len(e.query or ()) for e in examples) for split, examples in corpus.splits.items()
    }
    return {
        "key": task.key,
        "config": config.model_dump(mode="json"),
        "model": dict(begun.about),
        "task": corpus.task,
        "labels": list(corpus.labels),
        "tokenizer": corpus.tokenizer,
        "embedding_dim": begun.embedding_dim,
        "vectors": None if begun.vectors is None else dict(begun.vectors),
        "data": {
            "name": corpus.name,
            "fingerprint": task.source,
            "examples": {split: len(examples) for split, examples in corpus.splits.items()},
            "words": words,
            "skipped": list(corpus.skipped),
            "warnings": list(repeated_texts(corpus)),
        },
        **({} if task.edited is None else {"edited": list(task.edited)}),
        "versions": library_versions(config.start is not None),
        "device": str(device),
    }


def remember_folders(data_dirs: Sequence[Path]) -> list[str]:
    """Where data were looked for, and where the command was given: there the run's data are found again later."""
    folders = [folder.absolute() for folder in locate.data_dirs(data_dirs) if folder.is_dir()]
    return [str(folder) for folder in dict.fromkeys([*folders, Path.cwd()])]


def library_versions(checkpoint: bool = False) -> dict[str, str]:
    names = ("heedful", "torch", "numpy", "spacy", *(["transformers"] if checkpoint else []))
    found = {name: version(name) for name in names}
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


def test_scores(network: Network, corpus: Corpus, text: TextEncoder) -> dict[str, Any]:
    """Scores on the test split, or on dev where there is none; what is undefined (nan) is None."""
    split = "test" if corpus["test"] else "dev"
    examples = corpus["test"] or corpus["dev"]
    encoded = encode(examples, text, len(corpus.labels), network.device)
    if encoded.labels is None:
        raise Mistake(f"{corpus.name}: the {split} split has texts without a label.")
    scores = performance(encoded.labels, predict(network, encoded))
    defined: dict[str, Any] = {name: None if math.isnan(score) else score for name, score in scores.items()}
    if "selects" in network.can:
        defined["selection"] = selection(network, encoded)
    beside = bag_of_words(corpus, split)
    return {"split": split, "examples": len(encoded), **defined} | ({} if beside is None else {"baseline": beside})


@torch.no_grad()
def selection(network: Any, encoded: Encoded) -> dict[str, Any]:
    """How much a model selects (the mean over texts of their share), how much it was to select, and whether training
    failed."""
    shares = []
    for _, batch in encoded.batches(512, token_budget=TOKEN_BUDGET):
        n = batch.passage.mask.sum(1)
        shares += (network.select(batch).sum(1)[n > 0] / n[n > 0]).tolist()
    return {"share": float(np.mean(shares)), "rate": network.rate, "failure": network.failure}


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
    labels = tuple(info["labels"])
    if config.start is not None:
        return load_fine_tuned(run, device)
    vocabulary = Vocabulary(run.words)
    sizes = config.model.with_vectors(info["embedding_dim"])
    text = WordEncoder.of(vocabulary, info["tokenizer"], config.model)
    network = build_network(sizes, text.n_ids, len(labels), info["task"] != "classification")
    network.load_state_dict({name: torch.from_numpy(array) for name, array in run.weights().items()})
    network.to(device).eval()
    # Every word of the training texts is known where min_df is 1: then only hidden words make it learn the unknown one.
    shown = (config.data.min_df or 1) > 1 or config.training.mask_words > 0
    return Model(run.name, network, text, labels, info["task"], config.seed, shown)


def load_fine_tuned(run: Run, device: torch.device) -> Model:
    """A checkpoint that was trained in this folder. The one that it began with is not needed any more."""
    from heedful.models.huggingface.fine_tuning import reopen

    weights = {name: torch.from_numpy(array) for name, array in run.weights().items()}
    query = run.info["task"] != "classification"
    model = reopen(run.path / PRETRAINED, weights, query=query, long=run.info["model"]["long"])
    network: Any = model.network
    network.module.to(device)
    return replace(model, labels=run.labels, task=run.info["task"], seed=run.config.seed)


# What a bag of words gets on the same data: TF-IDF and logistic regression, beside every model that is trained.
#
# Whoever explains a model should know whether a model without word order and attention does as well. Features are
# the words that the classifier reads (passage and query apart), 1 + log tf times idf, normed; the strength of the
# penalty is the one that does best on dev. Seconds, also on large corpora: more than `MOST` training texts are
# thinned out evenly.


NAME = "TF-IDF and logistic regression"
VERSION = "1"  # of what is written into a run's performance
PENALTIES = (1.0, 10.0, 100.0)  # C of scikit-learn: the less, the stronger
MOST = 20_000  # training texts
MOST_LABELS = 50  # a question of which any word may be the answer is not a classification


def bag_of_words(corpus: Corpus, split: str) -> dict[str, Any] | None:
    """Its scores on a split, under the names of `performance`; None where there is nothing to compare with."""
    labels = {example.label for example in corpus["train"]}
    if corpus.task == "qa" or not 2 <= len(labels) <= MOST_LABELS or None in labels:
        return None
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    places = spread_places(len(corpus["train"]), MOST)
    train = [corpus["train"][place] for place in places]
    if len({example.label for example in train}) < 2:
        return None
    vectorizer = TfidfVectorizer(analyzer=words_of, sublinear_tf=True)
    x = {"train": vectorizer.fit_transform(train)}
    x |= {name: vectorizer.transform(corpus[name]) for name in {"dev", split}}  # type: ignore[index]
    y = {name: np.array([e.label for e in some]) for name, some in [("train", train), ("dev", corpus["dev"])]}

    def fitted(C: float) -> Any:
        return LogisticRegression(C=C, max_iter=200, tol=1e-3).fit(x["train"], y["train"])

    models = [fitted(C) for C in PENALTIES]
    right = [float((model.predict(x["dev"]) == y["dev"]).mean()) for model in models]
    best = int(np.argmax(right))  # the strongest penalty of those that are as good
    p = np.zeros((x[split].shape[0], len(corpus.labels)))
    p[:, models[best].classes_] = models[best].predict_proba(x[split])
    scores = performance(np.array([e.label for e in corpus[split]]), p)  # type: ignore[index]
    told = {name: None if math.isnan(value) else value for name, value in scores.items()}
    return {"name": NAME, "version": VERSION, "train_texts": len(train), "C": PENALTIES[best], **told}


def words_of(example: Example) -> Sequence[str]:
    """A word of the query is another than the same word of the passage."""
    query = () if example.query is None else example.query.forms
    return [*example.passage.forms, *(f"query: {word}" for word in query)]
