"""A checkpoint that is trained further: a run like any other, and the checkpoint stays what it was."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from typer.testing import CliRunner

pytest.importorskip("transformers")

import heedful
import transformer_zoo as zoo
from heedful.cli import app
from heedful.config import FINE_TUNING, DataOptions, RunConfig, TrainingConfig
from heedful.data.generated.planted import generate
from heedful.data.text.batching import Encoded, cut
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.sources.models import find_source
from heedful.engine.tasks.commands import train_words
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.estimate import estimate
from heedful.engine.tasks.plan import ask, plan, plan_trial
from heedful.errors import Mistake
from heedful.models.huggingface import HuggingFaceNetwork
from heedful.models.huggingface.fine_tuning import begin
from heedful.models.network import AttendedOutput
from heedful.models.objectives.objective import CrossEntropy, Loss
from heedful.models.training import dropout_of, fit
from heedful.records import Batch
from heedful.registry import OBJECTIVES
from heedful.store.checks import sha256
from heedful.store.run import Run

QUIET = Progress(quiet=True)
LABELS = ("negative", "positive")


def save(folder: Path, family: str = "Bert", labels: tuple[str, ...] = LABELS, **options: Any) -> Path:
    given = {"id2label": dict(enumerate(labels)), "num_labels": len(labels), "max_position_embeddings": 200}
    options = {**given, **options}
    zoo.module(family, **options).save_pretrained(folder)
    zoo.tokenizer_of(family).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("saved") / "tiny")


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("data") / "reviews.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("text", "label", "evidence"))
        made = generate("single", 60, seed=0)
        rows.writerows((one.text, one.label, json.dumps(list(one.evidence))) for one in made)
    return str(path)


def fine_tuned(file: str, start: Path, **training: Any) -> RunConfig:
    data = {"tokenizer": "whitespace", "evidence_column": "evidence"}
    return configure(file, data=data, start=start, training={"epochs": 2, "batch_size": 16, **training})


def files_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256(path) for path in folder.rglob("*") if path.is_file()}


def train(config: RunConfig, runs: Path, **given: Any) -> Run:
    made, place = plan([config]), Workspace(runs, **given)
    assert execute(made, place, QUIET, "here", cores=1, strict=True).complete
    (task,) = made.of("train")
    return place.run(task.run)


@pytest.fixture(scope="module")
def finished(checkpoint: Path, reviews: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that began with the checkpoint, which stays what it was."""
    before = files_of(checkpoint)
    run = train(fine_tuned(reviews, checkpoint, learning_rate=1e-3), tmp_path_factory.mktemp("finished"))
    assert files_of(checkpoint) == before
    return run.path


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Run:
    """A copy, so that what a test leaves in it is its own."""
    shutil.copytree(finished, tmp_path / "runs" / finished.name)
    return Run(tmp_path / "runs" / finished.name)


def test_a_run_without_a_start_is_written_as_before() -> None:
    assert "start" not in RunConfig(dataset="sst").model_dump()
    assert {"optimiser", "warm_up", "clip"} & set(TrainingConfig().model_dump()) == set()


def test_it_is_configured(checkpoint: Path, reviews: str, tmp_path: Path) -> None:
    config = fine_tuned(reviews, checkpoint)
    assert config.start is not None
    assert config.training == FINE_TUNING.model_copy(update={"epochs": 2, "batch_size": 16})
    with pytest.raises(Mistake, match="'encoder' describes a model of our own"):
        configure(reviews, start=checkpoint, model={"encoder": "cnn"})
    with pytest.raises(Mistake, match="'vectors' describes"):
        configure(reviews, start=checkpoint, vectors="word2vec")
    moved = save(tmp_path / "moved" / "tiny")  # the same files elsewhere: the same key, so the same run
    ours, theirs = (plan([fine_tuned(reviews, place)]).of("train")[0] for place in (checkpoint, moved))
    assert (ours.key, ours.run) == (theirs.key, theirs.run)
    other = save(tmp_path / "other", seed=1)
    assert plan([fine_tuned(reviews, other)]).of("train")[0].key != ours.key
    words = train_words(config)
    assert words[:5] == ["heedful", "train", reviews, "--start", config.start.place]
    assert {"epochs=2", "batch_size=16", "evidence_column=evidence"} <= set(words)
    assert not {"--encoder", "learning_rate=2e-05"} & set(words)


def test_the_run_is_a_run_and_the_checkpoint_stays(checkpoint: Path, run: Run, tmp_path: Path) -> None:
    assert run.name.startswith("reviews-tiny-s0-")
    assert run.architecture == "BertForSequenceClassification"
    assert "fine-tuned" in run.description
    assert not [p for p in run.path.rglob("*") if p.suffix in (".bin", ".pt", ".pkl")]
    assert run.summary("performance")["examples"] == 12
    model = heedful.load(run)
    network = model.network
    assert isinstance(network, HuggingFaceNetwork)
    assert model.labels == LABELS
    own = heedful.load(checkpoint)
    assert np.abs(model.predict(zoo.SOME) - own.predict(zoo.SOME)).max() > 1e-4  # it has learnt something
    moved = Run(run.path.rename(tmp_path / "elsewhere"))
    np.testing.assert_array_equal(heedful.load(moved).predict(zoo.SOME), model.predict(zoo.SOME))
    found = heedful.explain(moved.path, ["a good film"], ["attention", "gradient_x_input", "omission"])
    assert len(found) == 1


def test_experiments_and_report_of_it(run: Run, tmp_path: Path) -> None:
    heedful.run("permutation", run, limit=4, permutations=3, progress=QUIET)
    heedful.run("correlation", run, limit=4, progress=QUIET)
    assert Run(run.path).summary("permutation")
    page = tmp_path / "report.html"
    assert CliRunner().invoke(app, ["report", str(run.path), "-o", str(page)]).exit_code == 0
    assert "tiny (BertForSequenceClassification), fine-tuned" in page.read_text()
    path = run.path / "pretrained" / "tokenizer.json"
    path.write_text(path.read_text() + " ")
    with pytest.raises(Exception, match=r"tokenizer\.json is damaged"):
        Run(run.path).check()


@pytest.mark.parametrize(
    ("experiment", "options"),
    [
        ("retrain", {"methods": ["omission"], "fractions": [0.5]}),
        pytest.param("masked_twin", {"methods": ["omission"], "fractions": [0.5]}, marks=pytest.mark.long),
        pytest.param("planted", {"methods": ["omission"], "plant": "single"}, marks=pytest.mark.long),
    ],
)
def test_copies_of_a_checkpoint_are_trained_for_experiments(
    checkpoint: Path, reviews: str, tmp_path: Path, experiment: str, options: dict[str, Any]
) -> None:
    """Asked about a file: each copy begins with the checkpoint's weights, and the checkpoint stays as it is."""
    before = files_of(checkpoint)
    source = find_source(checkpoint)
    place = Workspace(tmp_path / "runs")
    data = DataOptions.parse({"only": "test"}, "the test")
    made = plan_trial(source, reviews, data, [ask(experiment, options, "test", 6)], place.runs, (), sha256)
    copies = [task.config for task in made.of("train")]
    edited = {"retrain": [False, True, True], "masked_twin": [False], "planted": [True]}[experiment]
    for config in copies:
        assert isinstance(config, RunConfig)
        assert config.start is not None
        assert config.start.fingerprint == source.fingerprint
    assert [config.data.edit is not None for config in copies if isinstance(config, RunConfig)] == edited
    assert execute(made, place, QUIET, "here", cores=1, strict=True).complete
    (*_, task) = made.of("experiment")
    rows = place.run(task.run).results.rows(experiment, task.key)
    assert len(set(rows["example"].to_pylist())) == 6
    assert files_of(checkpoint) == before


def test_a_resumed_training_ends_with_the_same_bits(reviews: str, tmp_path: Path) -> None:
    """Killed after two of three epochs; with dropout, a rate that falls, and moments of AdamW."""
    start = save(tmp_path / "with_dropout", hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
    config = fine_tuned(reviews, start, epochs=3, learning_rate=1e-3)
    whole = train(config, tmp_path / "whole")

    class Stop(Progress):
        def say(self, text: str) -> None:
            if text.startswith("epoch 2/"):
                raise KeyboardInterrupt

    place = Workspace(tmp_path / "half")
    with pytest.raises(KeyboardInterrupt):
        execute(plan([config]), place, Stop(quiet=True), "here", cores=1, strict=True)
    half = place.run(whole.name)
    assert half.interrupted
    assert len(half.training()) == 2
    assert heedful.load(half).predict(zoo.SOME).shape == (3, 2)  # what there is can be used
    again = train(config, tmp_path / "half")
    ours, theirs = again.check(), whole.check()
    assert [name for name in theirs if ours[name] != theirs[name]] == ["training.parquet"]  # it holds seconds


def test_dropout_draws_from_the_seed(tmp_path: Path) -> None:
    start = save(tmp_path / "with_dropout", hidden_dropout_prob=0.5)
    weights = []
    for seed in (0, 0, 1):
        begun = begin(start, LABELS, 0)
        encoded = begun.model.encode(begun.model.examples(zoo.SOME))
        labelled = Encoded(encoded.passages, None, None, np.array([0, 1, 1]))
        torch.rand(1)  # the process's own generator is elsewhere each time, and stays where it is
        state = torch.get_rng_state()
        list(fit(begun.network, labelled, labelled, TrainingConfig(epochs=1, batch_size=3), seed))
        assert torch.equal(torch.get_rng_state(), state)
        weights.append(begun.network.module.classifier.weight.detach().clone())
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_the_loop_is_what_anybody_would_write(checkpoint: Path) -> None:
    """AdamW without decay on biases and norms, a mean loss, clipped, the rate rising and falling: the same weights."""
    texts, labels = [*zoo.TEXTS[:3], *zoo.SOME] * 3, np.arange(18) % 2
    begun = begin(checkpoint, LABELS, 0)
    begun.network.module.double()  # Adam makes a step of rounding, where a gradient is nothing else
    encoded = begun.model.encode(begun.model.examples(texts))
    data = Encoded(encoded.passages, None, None, labels)
    config = TrainingConfig.model_validate(
        FINE_TUNING.model_dump() | {"epochs": 3, "batch_size": 6, "learning_rate": 1e-3}
    )
    (*_, state) = fit(begun.network, data, data, config, seed=7)
    module = begin(checkpoint, LABELS, 0).network.module.double().train()
    named = dict(module.named_parameters())
    groups = [
        {"params": [p for p in named.values() if p.dim() > 1], "weight_decay": 0.01},
        {"params": [p for p in named.values() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=1e-3)
    steps = 3 * 3
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / (0.1 * steps + 1), (steps - step) / steps)
    )
    tokens = zoo.tokenizer_of("Bert")
    for epoch in (1, 2, 3):
        with dropout_of(7, epoch):
            for indices in cut(data.lengths, 6, np.random.default_rng([7, epoch])):
                given = tokens([texts[i] for i in indices], padding=True, return_tensors="pt")
                optimiser.zero_grad()
                loss = F.cross_entropy(module(**given).logits, torch.from_numpy(labels[indices]))
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
                optimiser.step()
                schedule.step()
    for name, weight in module.state_dict().items():
        torch.testing.assert_close(state.weights[name], weight, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_a_step_is_the_modules_own(family: str) -> None:
    """Loss and gradients of one step, against the module called as anybody would, one text at a time."""
    made = zoo.model(family)
    network, batch = zoo.network(made), zoo.batch(made)
    labels = torch.tensor([0, 2, 1])
    module = network.module
    module.zero_grad()
    F.cross_entropy(network.learn(batch).logits, labels, reduction="sum").backward()  # type: ignore[no-untyped-call]
    ours = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    module.zero_grad()
    tokens = zoo.tokenizer_of(family)
    for text, label in zip(zoo.SOME, labels, strict=True):
        given = tokens(text, return_tensors="pt")
        if family not in ("Bert", "Albert", "Electra"):
            given.pop("token_type_ids", None)
        loss = F.cross_entropy(module(**given).logits, label.unsqueeze(0), reduction="sum")
        loss.backward()  # type: ignore[no-untyped-call]
    theirs = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    module.zero_grad()
    assert ours.keys() == theirs.keys()
    for name, gradient in theirs.items():
        torch.testing.assert_close(ours[name], gradient, atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("family", [name for name in zoo.FAMILIES if name not in zoo.UNEDITED])
def test_attention_has_gradients_and_no_dropout(family: str) -> None:
    made = zoo.model(family)
    network, batch = zoo.network(made), zoo.batch(made)
    output = network.learn(batch, attention=True)
    assert isinstance(output, AttendedOutput)
    torch.testing.assert_close(output.attentions.detach(), network.attentions(batch))
    torch.testing.assert_close(output.logits, network(batch).logits, atol=1e-5, rtol=1e-4)
    network.module.zero_grad()
    output.attentions[:, -1, 0, 2, 1].sum().backward()  # type: ignore[no-untyped-call]
    last = [name for name, p in network.module.named_parameters() if p.grad is not None and p.grad.any()]
    network.module.zero_grad()
    assert last
    assert not any(name.startswith(("classifier", "score", "head")) for name in last)  # they come after it


def test_attention_under_dropout_sums_to_one() -> None:
    module = zoo.module("Bert", attention_probs_dropout_prob=0.5)
    made = heedful.wrap(module, zoo.tokenizer_of("Bert"))
    network, batch = zoo.network(made), zoo.batch(made)
    module.train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        ours = network.learn(batch, attention=True)
        assert isinstance(ours, AttendedOutput)
        rows = ours.attentions.sum(-1)[0, :, :, 0]
        torch.testing.assert_close(rows, torch.ones_like(rows))
        torch.manual_seed(0)
        module.set_attn_implementation("eager")
        theirs = network.learn(batch)  # the same places are dropped in the eager attention
        torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-5, rtol=1e-4)


class OnEvidence(CrossEntropy):
    """All of the last layer's attention on the words that decide."""

    reads_attention = True

    def loss(self, *given: Any, **named: Any) -> Loss:
        def loss(output: AttendedOutput, batch: Batch) -> Tensor:
            width = output.attentions.shape[-1]
            on = F.pad(batch.targets["evidence"].float(), (0, width - batch.targets["evidence"].shape[1]))
            mass = output.attentions[:, -1, :, 0] @ on.unsqueeze(-1)  # (batch, heads, 1)
            return -mass.clamp(min=1e-6).log().sum()

        return loss


def test_an_objective_that_reads_attention(
    checkpoint: Path, reviews: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a checkpoint and for one of ours alike."""
    places: Mapping[str, Any] = {**OBJECTIVES.places, "attention_on_evidence": OnEvidence()}
    monkeypatch.setattr(OBJECTIVES, "places", places)
    config = fine_tuned(
        reviews, checkpoint, objective="attention_on_evidence", epochs=6, batch_size=4, learning_rate=5e-3
    )
    losses = [row["loss"] for row in train(config, tmp_path / "runs").training()]
    assert losses[-1] < 0.8 * losses[0]
    ours = configure(
        reviews,
        data={"tokenizer": "whitespace", "evidence_column": "evidence"},
        model={"embedding_dim": 6, "hidden_dim": 8},
        training={"objective": "attention_on_evidence", "epochs": 1},
    )
    assert train(ours, tmp_path / "runs").finished


def test_heads_are_kept_where_labels_have_the_same_names(tmp_path: Path) -> None:
    start = save(tmp_path / "three", labels=("bad", "good", "so so"))
    own = heedful.load(start)
    batch = zoo.batch(own)
    for labels in (("bad", "good", "so so"), ("so so", "bad", "good"), ("good", "bad")):
        begun = begin(start, labels, 0)
        rows = [("bad", "good", "so so").index(label) for label in labels]
        assert begun.drawn == ()
        assert begun.model.labels == labels
        torch.testing.assert_close(begun.network(batch).logits, own.network(batch).logits[:, rows])
    for others in (["yes", "no"], ["a", "b", "c", "d"]):
        first, again, other = (begin(start, others, seed) for seed in (0, 0, 1))
        assert first.drawn == ("classifier.bias", "classifier.weight")
        weights = [each.network.module.classifier.weight for each in (first, again, other)]
        assert torch.equal(weights[0], weights[1])
        assert not torch.equal(weights[0], weights[2])


def test_a_checkpoint_without_a_head(tmp_path: Path, reviews: str) -> None:
    zoo.module("Bert").bert.save_pretrained(tmp_path / "bare")
    zoo.tokenizer_of("Bert").save_pretrained(tmp_path / "bare")
    with pytest.raises(Mistake, match=r"is not a trained classifier: .* Fine-tune a copy .*: heedful train"):
        heedful.load(tmp_path / "bare")
    run = train(fine_tuned(reviews, tmp_path / "bare", epochs=1), tmp_path / "runs")
    assert run.info["model"]["drawn"] == ["classifier.bias", "classifier.weight"]
    with pytest.raises(Mistake, match="training can only start from those"):
        fine_tuned(reviews, run.path)


def test_what_it_would_take(checkpoint: Path, reviews: str, tmp_path: Path) -> None:
    made = plan([fine_tuned(reviews, checkpoint)])
    assert "time left" in estimate(made, Workspace(tmp_path / "runs")).describe()
