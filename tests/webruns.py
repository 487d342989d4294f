"""Small run folders for the tests of `heedful serve`: random weights, real experiments, texts kept with the run."""

from __future__ import annotations

import csv
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn

from heedful.config import ModelConfig, RunConfig
from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vocabulary import Vocabulary, WordEncoder
from heedful.models import build
from heedful.models.model import Model
from heedful.records import Example, TaskType, Words
from heedful.server.app import create_app
from heedful.server.stored.library import Library
from heedful.store.run import Run
from heedful.store.texts import write_texts

EXPERIMENTS = ("correlation", "permutation", "adversarial")
SENTENCES = (
    "a waste of good time",
    "the film is warm and funny",
    "not a bad film but not good",
    "dull dull dull",
    "it is what it is , really",
    "charming from start to end",
)
HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)> good",
    "\"'><svg/onload=alert(3)> {{7*7}} ${7*7} bad",
    "left \u202eright\u202c \u2066hidden\u2069 \x1b[31m \x00 film",
    "a" * 100_000 + " film",
    "</textarea></title></style><iframe src=javascript:alert(4)></iframe> good",
    "javascript:alert(5) `x` -- ]]> <!-- --> film",
)


def examples(texts: Sequence[str], queries: Sequence[str] | None = None, labels: int = 2) -> list[Example]:
    split = tokenizer("whitespace")

    def made(i: int, text: str) -> Example:
        query: Words | None = None if queries is None else split(queries[i])
        return Example(id=f"made:{i}", passage=split(text), label=i % labels, query=query)

    return [made(i, text) for i, text in enumerate(texts)]


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """A real server of the runs in a folder, on loopback: its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(Library(folder)), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def make_trial(folder: Path, family: str, texts: Sequence[str], experiment: str = "heads", **options: Any) -> Run:
    """A small random transformer of the zoo on texts of one's own, with results of an experiment."""
    import heedful
    import transformer_zoo as zoo

    checkpoint, module = folder / f"{family}-model", zoo.module(family)
    names = ("no", "yes", "perhaps")[: module.config.num_labels]
    module.config.id2label = dict(enumerate(names))
    module.config.label2id = {name: i for i, name in enumerate(names)}
    module.save_pretrained(checkpoint)
    zoo.tokenizer_of(family).save_pretrained(checkpoint)
    with (folder / "reviews.csv").open("w", newline="", encoding="utf-8") as file:
        rows = [(text, ("no", "yes")[i % 2]) for i, text in enumerate(texts)]
        csv.writer(file).writerows([("text", "label"), *rows])
    runs = folder / "runs"
    heedful.run(experiment, checkpoint, data=folder / "reviews.csv", runs=runs, **options)
    (path,) = (path for path in runs.iterdir() if path.name.startswith(f"{family}-model"))
    return Run(path)


def make_run(
    folder: Path,
    name: str,
    given: Sequence[Example],
    labels: Sequence[str] = ("negative", "positive"),
    *,
    encoder: str = "average",
    task: TaskType = "classification",
    seed: int = 0,
    dataset: str = "made",
    experiments: Sequence[str] = EXPERIMENTS,
) -> Run:
    """A finished run, with results of some experiments on all of the texts."""
    from heedful.experiments import Result, find, summary_with_verdict, to_table

    sizes = ModelConfig.model_validate({"encoder": encoder, "embedding_dim": 8, "hidden_dim": 8})
    config = RunConfig(dataset=dataset, model=sizes, seed=seed)
    vocabulary = Vocabulary.build(w for e in given for w in (e.passage, e.query) if w is not None)
    network = build(sizes, len(vocabulary), len(labels), task != "classification", seed).eval()
    for parameter in network.parameters():
        parameter.data *= 4 if task == "classification" else 2  # predictions that differ from text to text
    info: dict[str, Any] = {
        "config": config.model_dump(mode="json"),
        "task": task,
        "labels": list(labels),
        "tokenizer": "whitespace",
        "embedding_dim": 8,
        "vectors": None,
        "data": {"name": dataset, "fingerprint": "f" * 64, "examples": {"test": len(given)}, "skipped": []},
        "versions": {"heedful": "0"},
    }
    run = Run(folder / name)
    (run.path / "results").mkdir(parents=True)
    run.write_description(info, vocabulary.words)
    weights = {key: tensor.numpy() for key, tensor in network.state_dict().items()}
    run.write_training(weights, [{"epoch": 1, "loss": 0.5, "score": 0.5, "best": True}])
    scores = {"split": "test", "examples": len(given), "accuracy": 0.75, "f1": 0.7, "roc_auc": 0.8}
    run.write_summary("performance", scores)
    write_texts(run.path, "test", enumerate(given))
    model = Model(name, network, WordEncoder(vocabulary, "whitespace"), tuple(labels), task)
    for experiment in experiments:
        found = find(experiment)
        rows = found.run(network, model.batches(given), found.config(), np.random.default_rng(0))
        table = to_table(rows)
        run.results.write_rows(experiment, "0" * 8, table, {"split": "test", "options": {}}, "w", 0.0)
        summary = summary_with_verdict(found, Result(experiment, table, {}, {}, labels, task))
        run.results.write_summary(experiment, "1" * 8, summary, {})
        run.results.publish(experiment, "0" * 8, "1" * 8)
    return run
