"""Imitation and imposed attention: the losses written slowly, where gradients flow, and what stays as it was."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import heedful
import zoo
from distinct import distinct
from heedful.config import ModelConfig, RunConfig, TrainingConfig
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import Plan, plan
from heedful.errors import Mistake
from heedful.experiments.edited_attention.observe import observer
from heedful.models import AttentiveClassifier, build
from heedful.models.attentive.encoders import Average
from heedful.models.attentive.imposed import ImposedClassifier
from heedful.models.objectives.imitation import IMITATION, IMPOSED, ImitationOptions, attention_kl
from heedful.models.objectives.objective import BaseOptions
from heedful.registry import EXPLAINERS
from planted_reviews import reviews

QUIET = Progress(quiet=True)
LENGTHS = [5, 1, 11, 2, 8]


def small(file: str, model: dict[str, Any] | None = None, **training: Any) -> RunConfig:
    return configure(
        file,
        data={"tokenizer": "whitespace"},
        model=model or {"embedding_dim": 6, "hidden_dim": 8},
        training={"epochs": 2, "batch_size": 16, **training},
    )


def slow_loss(y_a: Tensor, y_b: Tensor, alpha_a: Tensor, alpha_b: Tensor, mask: Tensor, lam: float) -> float:
    """Wiegreffe & Pinter 2019, section 4, one text and one word at a time."""
    total = 0.0
    for i in range(len(y_a)):
        tvd = 0.5 * sum(abs(float(p) - float(q)) for p, q in zip(y_a[i], y_b[i], strict=True))
        kl = 0.0
        for t in range(mask.shape[1]):
            if mask[i, t]:
                kl += float(alpha_a[i, t]) * math.log(float(alpha_a[i, t]) / float(alpha_b[i, t]))
        total += tvd - lam * kl
    return total


def imitation_loss(fresh: AttentiveClassifier, base: AttentiveClassifier, lam: float) -> Any:
    options = ImitationOptions(base="base", lambda_=lam)
    return IMITATION.loss(fresh, None, TrainingConfig(), options, {"base": base})  # type: ignore[arg-type]


@pytest.mark.parametrize("task", zoo.TASK_NAMES)
@pytest.mark.parametrize("lam", [0.0, 0.3])
def test_the_loss_is_the_papers(task: zoo.TaskName, lam: float) -> None:
    base, fresh = zoo.network(task=task), zoo.network(task=task, seed=1)
    batch = distinct(zoo.batch(LENGTHS, task))
    with torch.no_grad():
        theirs, ours = base(batch), fresh(batch)
    found = imitation_loss(fresh, base, lam)(ours, batch)
    given = ours.probabilities, theirs.probabilities, ours.alpha, theirs.alpha, batch.passage.mask
    assert found.item() == pytest.approx(slow_loss(*given, lam), abs=1e-12)
    halves = [zoo.rows(batch, [0, 1]), zoo.rows(batch, [2, 3, 4])]  # a sum over texts: parts add up
    parts = [imitation_loss(fresh, base, lam)(fresh(part), part).item() for part in halves]
    assert sum(parts) == pytest.approx(found.item(), abs=1e-12)


def test_zero_weights_leave_the_loss_and_its_gradient_finite() -> None:
    alpha = torch.tensor([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]], requires_grad=True)
    base = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    kl = attention_kl(alpha, base)
    (gradient,) = torch.autograd.grad(kl.sum(), alpha)
    assert kl[0].item() == pytest.approx(-math.log(1e-10))
    assert kl[1].item() == 0
    assert torch.isfinite(gradient).all()


def test_gradients_reach_all_of_the_fresh_model_and_nothing_of_the_base() -> None:
    base, fresh = zoo.network(), zoo.network(seed=1)
    before = {name: value.clone() for name, value in base.state_dict().items()}
    batch = distinct(zoo.batch(LENGTHS))
    optimiser = torch.optim.Adam(fresh.parameters(), lr=0.1)
    imitation_loss(fresh, base, 0.3)(fresh(batch), batch).backward()
    assert all(p.grad is None for p in base.parameters())
    for name, p in fresh.named_parameters():
        assert p.grad is not None, name
        assert p.grad.abs().sum() > 0, name
    optimiser.step()
    assert all(torch.equal(before[name], value) for name, value in base.state_dict().items())


def test_the_two_terms_pull_at_what_they_are_about() -> None:
    """TVD is about the output, so the decoder learns from it alone; without it only what makes attention learns."""
    base, fresh = zoo.network(), zoo.network(seed=1)
    batch = distinct(zoo.batch(LENGTHS))
    kl = attention_kl(fresh(batch).alpha, base(batch).alpha).sum()
    decoder, attention = list(fresh.decoder.parameters()), list(fresh.attention.parameters())
    found = torch.autograd.grad(kl, [*decoder, *attention], allow_unused=True)
    assert all(one is None for one in found[: len(decoder)])
    assert all(one is not None for one in found[len(decoder) :])
    with_lambda, without = (
        torch.autograd.grad(imitation_loss(fresh, base, lam)(fresh(batch), batch), decoder) for lam in (5.0, 0.0)
    )
    assert all(torch.allclose(one, other) for one, other in zip(with_lambda, without, strict=True))


def imposed_network(base: AttentiveClassifier, seed: int = 3) -> ImposedClassifier:
    sizes = ModelConfig(encoder="bilstm", embedding_dim=6, hidden_dim=8)
    config = ModelConfig(
        encoder="average", attention="uniform", embedding_dim=6, hidden_dim=8, activation="tanh", imposed=sizes
    )
    network = build(config, zoo.N_WORDS, 2, seed=seed).double().eval()
    assert isinstance(network, ImposedClassifier)
    network.imposed.load_state_dict(base.state_dict())
    return network


def test_imposed_attention_is_the_bases_and_learns_nothing() -> None:
    base, batch = zoo.network(), distinct(zoo.batch(LENGTHS))
    network = imposed_network(base)
    output = network(batch)
    assert torch.equal(output.alpha, base(batch).alpha)
    assert isinstance(network.encoder, Average)
    assert network.decoder.theta is not None
    alpha = base(batch).alpha
    for i, text in enumerate(batch.passage.ids):  # theta . sum_t alpha_t tanh(W x_t + b) + bias, word by word
        slow = network.decoder.theta.bias.clone()
        for t, word in enumerate(text):
            state = network.encoder.linear(network.embedding.weight[word]).tanh()  # (hidden,)
            slow = slow + alpha[i, t] * (network.decoder.theta.weight @ state)
        assert torch.allclose(output.logits[i], slow)
    before = {name: value.clone() for name, value in network.imposed.state_dict().items()}
    train = zoo_encoded(batch)
    options = BaseOptions(base="base")
    loss = IMPOSED.loss(network, train, TrainingConfig(), options, {"base": base})
    loss(network(batch), batch).backward()  # type: ignore[no-untyped-call]
    learning = {name for name, p in network.named_parameters() if p.grad is not None}
    assert learning == {n for n, _ in network.named_parameters() if not n.startswith("imposed.")}
    assert all(torch.equal(before[name], value) for name, value in network.imposed.state_dict().items())


def zoo_encoded(batch: Any) -> Any:
    class Labels:
        labels = batch.labels.numpy()

    return Labels()


def test_a_model_with_imposed_attention_is_asked_or_refuses_by_name() -> None:
    """What works goes the general way, and gives what the network itself gives; the rest is refused in a sentence."""
    base, batch = zoo.network(), distinct(zoo.batch(LENGTHS))
    network = imposed_network(base)
    seen = observer(network)(np.arange(len(LENGTHS)), batch)
    assert torch.allclose(seen.y, network(batch).probabilities)
    works, refused = set(), dict[str, str]()
    for name in EXPLAINERS:
        try:
            EXPLAINERS.find(name).check(network.can)
            scores = EXPLAINERS.find(name).run(network, batch, network(batch).predicted)
        except Mistake as mistake:
            refused[name] = str(mistake)
        else:
            works.add(name)
            assert torch.isfinite(scores.passage).all(), name
    assert {"attention", "omission", "mask", "lime", "shap"} <= works
    assert all("needs a model" in sentence for sentence in refused.values()), refused
    assert not {"gradient", "integrated_gradients", "gradient_x_input", "lrp"} & works
    with pytest.raises(Mistake, match="no attention of its own"):
        network.attend(network(batch).h, batch.passage.mask)


def test_its_settings_are_written_only_where_they_are_set_and_are_checked() -> None:
    assert "imposed" not in ModelConfig().model_dump()
    sizes = {"encoder": "bilstm"}
    with pytest.raises(Mistake, match="attention must be 'uniform'"):
        ModelConfig.parse({"attention": "additive", "imposed": sizes}, "model")
    config = ModelConfig.parse({"attention": "uniform", "imposed": sizes}, "model")
    assert config.attention_name == "imposed"
    assert config.with_vectors(7).imposed == ModelConfig(embedding_dim=7)
    assert ModelConfig.model_validate(config.model_dump(mode="json")) == config


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, Workspace]:
    """A base, its imitation, and a token-wise model with the attention of each."""
    folder = tmp_path_factory.mktemp("imitation")
    made, place = plan(chain(reviews(folder / "reviews.csv", 100))), Workspace(folder / "runs")
    assert execute(made, place, QUIET, "here", cores=1).complete
    return made, place


def chain(file: str) -> list[RunConfig]:
    base = small(file)
    plain = base.model_dump(mode="json")
    imitation = small(
        file, metric="loss", epochs=4, objective="imitation", objective_options={"base": plain, "lambda_": 0.01}
    )
    model = {"encoder": "average", "attention": "uniform", "embedding_dim": 6, "hidden_dim": 8}
    imposed = []
    for one in (base, imitation):
        guide = {"objective": "imposed", "objective_options": {"base": one.model_dump(mode="json")}}
        imposed.append(small(file, model={**model, "imposed": one.model.model_dump(mode="json")}, **guide))
    return imposed


def test_a_chain_of_runs_is_planned_once_and_stays_as_it_is(trained: tuple[Plan, Workspace]) -> None:
    made, place = trained
    assert [task.config.training.objective for task in made.of("train")] == [  # type: ignore[union-attr]
        "cross_entropy",
        "imposed",
        "imitation",
        "imposed",
    ]
    base, first, imitation, second = (place.run(task.run) for task in made.of("train"))
    assert "-average-imposed-" in first.name
    assert first.attention == "imposed"
    assert "on which the attention of a bidirectional LSTM with additive attention is imposed" in first.description
    for run, guide in ((first, base), (second, imitation)):  # not one bit of the base has changed
        for name, array in guide.weights().items():
            assert array.tobytes() == run.weights()[f"imposed.{name}"].tobytes(), name
        mine, theirs = heedful.load(run), heedful.load(guide)
        texts = mine.examples(["a good story", "the film was bad , and long"])
        for (_, batch), (_, other) in zip(mine.batches(texts), theirs.batches(texts), strict=True):
            assert torch.equal(mine.network(batch).alpha, theirs.network(other).alpha)  # type: ignore[attr-defined]
    assert not execute(made, place, QUIET, "here", cores=1).done


def test_the_epoch_of_least_loss_is_kept(trained: tuple[Plan, Workspace]) -> None:
    made, place = trained
    (task,) = [t for t in made.of("train") if t.config.training.objective == "imitation"]  # type: ignore[union-attr]
    history = place.run(task.run).training()
    assert [row["score"] for row in history] == [-row["loss"] for row in history]
    best = [row["epoch"] for row in history if row["best"]][-1]
    assert best == min(history, key=lambda row: row["loss"])["epoch"]


def test_a_base_of_other_sizes_is_refused(tmp_path: Path) -> None:
    file = reviews(tmp_path / "reviews.csv", 60)
    base = small(file)
    wrong = {"encoder": "average", "attention": "uniform", "embedding_dim": 6, "hidden_dim": 8}
    wrong |= {"imposed": {**base.model.model_dump(mode="json"), "hidden_dim": 12}}
    options = {"objective": "imposed", "objective_options": {"base": base.model_dump(mode="json")}}
    for model, said in ((wrong, "does not have the sizes"), ({"hidden_dim": 8}, "needs a model with the setting")):
        config = small(file, model=model, **options)
        report = execute(plan([config]), Workspace(tmp_path / "runs"), QUIET, "here", cores=1)
        assert said in report.failed[0].error
