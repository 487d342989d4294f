"""Experiments that compare with other runs: planned once for all that need them, trained first, handed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.config import Config, EvaluationConfig, RunConfig
from heedful.data.corpora import load as corpora
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import Plan, ask, plan
from heedful.engine.tasks.status import plan_status
from heedful.engine.tasks.task import Task
from heedful.errors import Mistake
from heedful.experiments import Chunk, Experiment
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import Takes
from heedful.models.training import predict
from heedful.registry import EXPERIMENTS
from planted_reviews import reviews

QUIET = Progress(quiet=True)


class TwinsConfig(Config):
    twins: int = 2


def twins(config: TwinsConfig, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
    """The same model with the seeds that follow."""
    if isinstance(about, EvaluationConfig):
        raise Mistake("twins: needs a run.")
    first = about.seed + 1
    return {f"seed {s}": about.model_copy(update={"seed": s}) for s in range(first, first + config.twins)}


def compare(
    model: Any, batches: Any, config: TwinsConfig, rng: np.random.Generator, others: Mapping[str, OtherRun]
) -> Iterator[Chunk]:
    """How far the probabilities of the others are from the model's own."""
    require_others(others, "twins")
    for places, batch in batches:
        with torch.no_grad():
            own = model(batch)
        far = np.zeros(len(places))
        for other in others.values():
            theirs = other.batch(places)
            assert torch.equal(theirs.passage.ids, batch.passage.ids)  # the same words on the same data
            with torch.no_grad():
                far += (other.network(theirs).probabilities - own.probabilities).abs().sum(-1).numpy()
        yield {"example": places, "predicted": own.predicted.numpy(), "far": far}


TWINS = Experiment(
    "twins",
    "Do twins agree?",
    "Nobody 2030",
    compare,
    config=TwinsConfig,
    needs=frozenset(),
    summarise=lambda table: {"mean": float(np.mean(table["far"].to_numpy()))},
    takes=Takes(runs=twins),
)


@pytest.fixture(autouse=True)
def experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EXPERIMENTS, "places", {**EXPERIMENTS.places, "twins": TWINS, "kin": TWINS})
    monkeypatch.setattr(EXPERIMENTS, "_loaded", {})


def small(file: str) -> RunConfig:
    return configure(
        file,
        data={"tokenizer": "whitespace"},
        model={"encoder": "average", "embedding_dim": 4, "hidden_dim": 4},
        training={"epochs": 1, "batch_size": 16},
    )


def planned(file: str, *asks: tuple[str, dict[str, Any]]) -> Plan:
    return plan([small(file)], [ask(name, options, limit=6) for name, options in asks])


def test_the_runs_are_planned_once_for_all_that_need_them(tmp_path: Path) -> None:
    made = planned(reviews(tmp_path / "reviews.csv", 80), ("twins", {}), ("kin", {"twins": 1}), ("erasure", {}))
    first, second, third = made.of("train")
    assert [task.config.seed for task in (first, second, third)] == [0, 1, 2]
    wide, narrow, erasure = made.of("experiment")
    assert set(wide.needs) == {first.key, second.key, third.key}
    assert wide.others == (("seed 1", second.run), ("seed 2", third.run))
    assert narrow.needs == (first.key, second.key)
    assert erasure.others == ()
    for task in made.tasks.values():
        assert Task.from_json(task.to_json()) == task


def test_they_are_trained_once_and_handed_over(tmp_path: Path) -> None:
    file, place = reviews(tmp_path / "reviews.csv", 80), Workspace(tmp_path / "runs")
    made = planned(file, ("twins", {}))
    assert execute(made, place, QUIET, "here", cores=1).complete
    (task,) = made.of("experiment")
    rows = place.run(task.run).results.rows("twins", task.key)
    models = [heedful.load(place.runs / train.run) for train in made.of("train")]
    corpus = corpora.load(file, options=task.config.data)
    examples = [corpus["test"][i] for i in rows["example"].to_pylist()]
    own, *others = [predict(model.network, model.encode(examples)) for model in models]
    expected = sum(np.abs(other - own).sum(1) for other in others)
    np.testing.assert_allclose(rows["far"].to_numpy(), expected, atol=1e-6)
    more = planned(file, ("twins", {}), ("kin", {"twins": 1}))
    report = execute(more, place, QUIET, "here", cores=1)
    assert {task.kind for task in report.done} == {"experiment", "summarise"}  # nothing is trained again


def test_a_damaged_one_is_trained_again(tmp_path: Path) -> None:
    place = Workspace(tmp_path / "runs")
    made = planned(reviews(tmp_path / "reviews.csv", 80), ("twins", {}))
    assert execute(made, place, QUIET, "here", cores=1).complete
    assert all(status.state == "finished" for status in plan_status(made, place).values())
    _, second, _ = made.of("train")
    weights = place.run(second.run).path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    report = execute(made, place, QUIET, "here", cores=1)  # the damaged one is trained again, to the same bits
    assert report.complete
    assert [task.key for task in report.done] == [second.key]


def test_a_model_in_memory_is_refused(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.csv", 80)
    place, made = Workspace(tmp_path / "runs"), planned(file)
    assert execute(made, place, QUIET, "here", cores=1).complete
    (train,) = made.of("train")
    model = heedful.load(place.runs / train.run)
    with pytest.raises(Mistake, match="not a model in memory"):
        heedful.run("twins", model, ["a good film"])
