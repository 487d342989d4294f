"""What training makes small: one of one's own, which needs another run, planned, trained and resumed like any other."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

import heedful
from heedful.config import Config, RunConfig, TrainingConfig
from heedful.data.corpora import load as corpora
from heedful.data.generated.planted import generate
from heedful.data.text.batching import Encoded
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.commands import train_words
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import Plan, ask, plan
from heedful.errors import Mistake
from heedful.models import AttentiveClassifier
from heedful.models.attentive.classifier import AttentiveOutput
from heedful.models.objectives.objective import Bases, CrossEntropy, Loss
from heedful.records import Batch
from heedful.registry import OBJECTIVES
from heedful.store.run import Run

QUIET = Progress(quiet=True)


class ImitationConfig(Config):
    base: RunConfig | str
    away: float = Field(default=0.5, ge=0)  # from the base's attention


class Imitation:
    """Say what the base says, and look elsewhere: a sketch of Wiegreffe & Pinter 2019, section 4."""

    config = ImitationConfig
    version = "1"

    def bases(self, options: ImitationConfig) -> Mapping[str, RunConfig | str]:
        return {"base": options.base}

    def loss(
        self,
        network: AttentiveClassifier,
        train: Encoded,
        training: TrainingConfig,
        options: ImitationConfig,
        bases: Bases,
    ) -> Loss:
        base = bases["base"]

        def loss(output: AttentiveOutput, batch: Batch) -> Tensor:
            with torch.no_grad():
                theirs = base(batch)
            said: Tensor = F.mse_loss(output.probabilities, theirs.probabilities, reduction="sum")
            looked: Tensor = (output.alpha * theirs.alpha).sum()
            return said + options.away * looked

        return loss


class OnEvidence(CrossEntropy):
    """All attention on the words that decide: reads the per-token targets of a batch."""

    def loss(self, *given: Any, **named: Any) -> Loss:
        def loss(output: AttentiveOutput, batch: Batch) -> Tensor:
            on = (output.alpha * batch.targets["evidence"]).sum(1)  # (batch,)
            return -on.clamp(min=1e-6).log().sum()

        return loss


@pytest.fixture(autouse=True)
def objectives(monkeypatch: pytest.MonkeyPatch) -> None:
    places: dict[str, Any] = {"imitates": Imitation(), "on_evidence": OnEvidence()}
    monkeypatch.setattr(OBJECTIVES, "places", {**OBJECTIVES.places, **places})


def reviews(folder: Path, texts: int = 100) -> str:
    path = folder / "reviews.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "label", "evidence"))
        made = generate("single", texts, seed=0)
        rows.writerows((one.text, one.label, json.dumps(list(one.evidence))) for one in made)
    return str(path)


def small(file: str, **training: Any) -> RunConfig:
    return configure(
        file,
        data={"tokenizer": "whitespace", "evidence_column": "evidence"},
        model={"embedding_dim": 6, "hidden_dim": 8},
        training={"epochs": 3, "batch_size": 16, **training},
    )


def imitating(file: str, base: RunConfig | str, **options: Any) -> RunConfig:
    plain = base.model_dump(mode="json") if isinstance(base, RunConfig) else base
    return small(file, objective="imitates", objective_options={"base": plain, **options})


def test_the_default_is_not_written() -> None:
    """Runs keep their names."""
    assert set(TrainingConfig().model_dump()) & {"objective", "objective_options"} == set()
    with pytest.raises(Mistake, match="no objective 'cross_entropi'"):
        configure("planted", training={"objective": "cross_entropi"})
    with pytest.raises(Mistake, match="cross_entropy has no setting 'away'"):
        configure("planted", training={"objective_options": {"away": 1}})
    with pytest.raises(Mistake, match="there is no setting 'aways'"):
        imitating("planted", "runs/x", aways=1)


def test_what_an_objective_needs_is_planned_first_and_decides_the_key(tmp_path: Path) -> None:
    file = reviews(tmp_path)
    base = small(file)
    config = imitating(file, base)
    assert config.training.objective_options["away"] == 0.5  # every default is there: it decides the weights
    made = plan([config], [ask("permutation")])
    before, imitation = made.of("train")
    assert before.config == base
    assert imitation.needs == (before.key,)
    assert imitation.inputs == (("base", before.run),)
    assert [task.run for task in made.of("experiment")] == [imitation.run]  # the base is not asked
    assert list(plan([base]).tasks) == [before.key]
    keys = {
        plan([other]).of("train")[-1].key
        for other in (config, imitating(file, base, away=0.1), imitating(file, small(file, epochs=2)))
    }
    assert len(keys) == 3
    assert plan([base, config]).of("train") == [before, imitation]


@pytest.fixture
def trained(tmp_path: Path) -> tuple[Plan, Workspace]:
    file = reviews(tmp_path)
    made, place = plan([imitating(file, small(file))]), Workspace(tmp_path / "runs")
    assert execute(made, place, QUIET, "here", cores=1).complete
    return made, place


def test_a_run_imitates_another_which_stays_as_it_is(trained: tuple[Plan, Workspace], tmp_path: Path) -> None:
    made, place = trained
    base, imitation = (place.run(task.run) for task in made.of("train"))
    alone = Workspace(tmp_path / "alone")
    assert execute(plan([base.config]), alone, QUIET, "here", cores=1).complete
    assert base.check()["model.safetensors"] == alone.run(base.name).check()["model.safetensors"]
    assert imitation.check()["model.safetensors"] != base.check()["model.safetensors"]
    assert imitation.config.training.objective == "imitates"
    assert heedful.load(imitation).labels == heedful.load(base).labels
    again = execute(made, place, QUIET, "here", cores=1)
    assert not again.done


def test_the_base_can_be_a_run_folder(trained: tuple[Plan, Workspace], tmp_path: Path) -> None:
    made, place = trained
    base, imitation = (place.run(task.run) for task in made.of("train"))
    config = imitating(imitation.config.dataset, str(base.path))
    other = Workspace(tmp_path / "other")
    planned = plan([config])
    assert len(planned.of("train")) == 1  # it is there
    assert execute(planned, other, QUIET, "here", cores=1).complete
    (task,) = planned.of("train")
    assert other.run(task.run).weights().keys() == imitation.weights().keys()
    for name, array in other.run(task.run).weights().items():
        assert array.tobytes() == imitation.weights()[name].tobytes(), name
    with pytest.raises(Mistake, match=r"there is no run folder|is not a run folder"):
        plan([imitating(imitation.config.dataset, str(tmp_path / "nowhere"))])


def test_a_base_that_knows_other_words_is_refused(trained: tuple[Plan, Workspace], tmp_path: Path) -> None:
    made, place = trained
    base = place.run(made.of("train")[0].run)
    (tmp_path / "b").mkdir()
    config = imitating(reviews(tmp_path / "b", 60), str(base.path))
    report = execute(plan([config]), Workspace(tmp_path / "other"), QUIET, "here", cores=1)
    assert "does not have the words and labels" in report.failed[0].error


def test_it_goes_on_after_a_stop_with_the_same_bits(trained: tuple[Plan, Workspace], tmp_path: Path) -> None:
    made, place = trained
    whole = place.run(made.of("train")[-1].run)

    class StopsAfterTwo(Progress):
        def bar(self, name: str, total: int) -> Any:
            made_bar = super().bar(name, total)
            return Stopping(made_bar) if name.startswith(f"train {whole.name}") else made_bar

    class Stopping:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __enter__(self) -> Any:
            bar = self.inner.__enter__()
            notes: list[str] = []

            def note(text: str) -> None:
                notes.append(text)
                if len(notes) == 2:
                    raise KeyboardInterrupt

            bar.note = note
            return bar

        def __exit__(self, *given: Any) -> Any:
            return self.inner.__exit__(*given)

    other = Workspace(tmp_path / "stopped")
    with pytest.raises(KeyboardInterrupt):
        execute(made, other, StopsAfterTwo(quiet=True), "here", cores=1)
    half = other.run(whole.name)
    assert half.interrupted
    assert len(half.training()) == 2
    assert execute(made, other, QUIET, "here", cores=1).complete
    assert Run(half.path).check()["model.safetensors"] == whole.check()["model.safetensors"]


def test_an_objective_reads_targets_of_words(tmp_path: Path) -> None:
    """Attention that is told where the evidence is goes there."""
    file = reviews(tmp_path)
    config = small(file, objective="on_evidence", epochs=12, learning_rate=0.02)
    made, place = plan([config, small(file, epochs=1)]), Workspace(tmp_path / "runs")
    assert execute(made, place, QUIET, "here", cores=1).complete
    shares = []
    for task in made.of("train"):
        model = heedful.load(place.run(task.run))
        corpus = corpora.load(file, options=config.data)
        for _, batch in model.batches(corpus["train"]):
            with torch.no_grad():
                output = model.network(batch)
            assert isinstance(output, AttentiveOutput)
            alpha = output.alpha
            shares.append(float((alpha * batch.targets["evidence"]).sum(1).mean()))
    assert shares[0] > 2 * shares[1]


def test_the_printed_command_has_the_objective(tmp_path: Path) -> None:
    words = train_words(imitating("reviews.csv", "runs/base", away=0.25))
    assert "objective=imitates" in words
    (options,) = (word.partition("=")[2] for word in words if word.startswith("objective_options="))
    assert json.loads(options) == {"base": "runs/base", "away": 0.25}
