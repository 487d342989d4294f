"""Task kinds: one dictionary answers everything the engine asks; an explainer that learns is fitted by a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import heedful
from heedful.data.corpora import load as corpora
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.kinds import TASK_KINDS, Kind
from heedful.engine.tasks.plan import Plan, ask, plan
from heedful.engine.tasks.status import plan_status
from heedful.engine.tasks.task import Task, TaskKind
from heedful.errors import Mistake
from heedful.explainers import Explainer, Scores
from heedful.models import AttentiveClassifier
from heedful.records import Batch
from heedful.registry import EXPLAINERS
from heedful.store.run import Run
from planted_reviews import reviews

QUIET = Progress(quiet=True)
PASSES: list[int] = []  # one entry for each pass that `count_words` makes over the training texts


def count_words(
    network: AttentiveClassifier, batches: Iterable[tuple[Any, Batch]], rng: np.random.Generator
) -> Mapping[str, NDArray[Any]]:
    """How often each word stands in the training texts. Two passes, as something that learns would make."""
    counts = np.zeros(network.n_words, dtype=np.int64)
    for _ in range(2):
        PASSES.append(0)
        for _, batch in batches:
            PASSES[-1] += len(batch)
            np.add.at(counts, batch.passage.ids[batch.passage.mask].numpy(), 1)
    return {"counts": counts // 2, "drawn": rng.random(3)}


def rarity(network: AttentiveClassifier, batch: Batch, target: Tensor, *, state: Mapping[str, NDArray[Any]]) -> Scores:
    """A word's score is 1 / (1 + how often it was seen): (batch, length)."""
    seen = torch.from_numpy(state["counts"])[batch.passage.ids]
    return Scores((1 / (1 + seen.float())) * batch.passage.mask)


RARITY = Explainer("rarity", "saliency", False, "none", rarity, fit=count_words)


@pytest.fixture(autouse=True)
def explainers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EXPLAINERS, "places", {**EXPLAINERS.places, "rarity": RARITY})
    monkeypatch.setattr(EXPLAINERS, "_loaded", {})
    PASSES.clear()


def small(file: str) -> Plan:
    config = configure(
        file,
        data={"tokenizer": "whitespace"},
        model={"encoder": "average", "embedding_dim": 4, "hidden_dim": 4},
        training={"epochs": 1, "batch_size": 16},
    )
    pairs = {"pairs": [["attention", "rarity"], ["rarity", "gradient_x_input"]]}
    return plan([config], [ask("correlation", pairs, limit=6), ask("permutation", limit=6)])


def test_every_kind_has_all_that_is_asked_of_it() -> None:
    assert list(TASK_KINDS) == list(get_args(TaskKind))
    for kind in TASK_KINDS.values():
        for asked in ("title", "status", "do"):
            assert getattr(type(kind), asked) is not getattr(Kind, asked), (kind, asked)


def test_what_an_explainer_learns_is_planned_once_and_only_where_it_is_used(tmp_path: Path) -> None:
    made = small(reviews(tmp_path / "reviews.csv", 80))
    (fit,) = made.of("fit")
    (train,) = made.of("train")
    assert fit.needs == (train.key,)
    correlation, permutation = made.of("experiment")
    assert correlation.needs == (train.key, fit.key)
    assert correlation.inputs == (("rarity", fit.key),)
    assert permutation.needs == (train.key,)
    for task in made.tasks.values():
        assert Task.from_json(task.to_json()) == task
    newer = replace(RARITY, version="2")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EXPLAINERS.places, "rarity", newer)
        patch.setattr(EXPLAINERS, "_loaded", {})
        other = small(train.config.dataset)
    assert other.of("fit")[0].key != fit.key
    assert other.of("experiment")[0].key != correlation.key  # rows of what was learnt before do not count
    assert other.of("experiment")[1].key == permutation.key


def test_it_learns_once_is_kept_and_damage_is_seen(tmp_path: Path) -> None:
    made, place = small(reviews(tmp_path / "reviews.csv", 80)), Workspace(tmp_path / "runs")
    assert execute(made, place, QUIET, "here", cores=1).complete
    (fit,) = made.of("fit")
    run = place.run(fit.run)
    corpus = corpora.load(run.config.dataset, options=run.config.data)
    assert [len(corpus["train"])] * 2 == PASSES
    expected: dict[str, int] = {}
    for example in corpus["train"]:
        for form in example.passage.forms:
            expected[form] = expected.get(form, 0) + 1
    learnt = run.fitted("rarity", fit.key)["counts"]
    assert {word: int(n) for word, n in zip(run.words, learnt, strict=True) if n} == expected
    assert not execute(made, place, QUIET, "here", cores=1).done
    path, before = run.fitted_path("rarity", fit.key), run.fitted("rarity", fit.key)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    found = plan_status(made, place)
    assert found[fit.key].state == "damaged"
    assert str(path) in found[fit.key].note
    report = execute(made, place, QUIET, "here", cores=1)
    assert report.complete
    after = run.fitted("rarity", fit.key)  # the header of the file has no order: its content counts
    assert {name: array.tobytes() for name, array in after.items()} == {
        name: array.tobytes() for name, array in before.items()
    }


def test_explain_uses_what_was_learnt(tmp_path: Path) -> None:
    made, place = small(reviews(tmp_path / "reviews.csv", 80)), Workspace(tmp_path / "runs")
    (train,) = made.of("train")
    assert execute(Plan({train.key: train}, made.sources), place, QUIET, "here", cores=1).complete
    run = Run(place.runs / train.run)
    text = " ".join(run.words[10:14])
    (explained,) = heedful.explain(run, [text], ["rarity", "attention"])
    (fit,) = made.of("fit")
    counts = run.fitted("rarity", fit.key)["counts"]
    assert explained.attribution("rarity").scores["passage"] == pytest.approx(1 / (1 + counts[10:14]))
    heedful.explain(run.path, [text], ["rarity"])
    assert len(PASSES) == 2  # learnt once
    with pytest.raises(Mistake, match="rarity learns from training texts: give the run folder"):
        heedful.explain(heedful.load(run), [text], ["rarity"])


def test_other_data_have_nothing_to_learn_from(tmp_path: Path) -> None:
    made, place = small(reviews(tmp_path / "reviews.csv", 80)), Workspace(tmp_path / "runs")
    (train,) = made.of("train")
    assert execute(Plan({train.key: train}, made.sources), place, QUIET, "here", cores=1).complete
    other = reviews(tmp_path / "other.csv", 10)
    with pytest.raises(Mistake, match="rarity learns from a run's own training texts"):
        heedful.run("correlation", place.runs / train.run, data=other, pairs=[["attention", "rarity"]])
