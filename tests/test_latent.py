"""Attention as a latent choice: the marginal by trying every choice, the variational bound, and exact questions."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import heedful
import zoo
from heedful.config import ModelConfig, RunConfig, TrainingConfig
from heedful.data.text.batching import Encoded
from heedful.engine.running.execute import execute
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.plan import plan
from heedful.errors import Mistake
from heedful.experiments import find
from heedful.experiments.adversarial.adversarial import AdversarialConfig, search
from heedful.experiments.edited_attention.mixed import MixedStates
from heedful.experiments.edited_attention.observe import EditedAttention, observer
from heedful.experiments.erasure.erase import decision
from heedful.experiments.erasure.smallest_set import smallest_sets
from heedful.experiments.framework.experiment import generators
from heedful.measure.distance import jsd
from heedful.models import AttentiveClassifier, build
from heedful.models.attentive.classifier import AttentiveOutput
from heedful.models.attentive.latent import LatentClassifier
from heedful.models.objectives.objective import CROSS_ENTROPY
from heedful.models.objectives.variational import VARIATIONAL, divergence, expected, sampled
from heedful.records import Batch
from test_objectives import QUIET, reviews, small

LENGTHS = [5, 1, 8]
each_task = pytest.mark.parametrize("task", zoo.TASK_NAMES)


def latent(task: zoo.TaskName = "binary", attention: str = "variational", by: float = 3.0) -> LatentClassifier:
    """With a decoder that is sure of what it reads, so that choices differ."""
    model = zoo.network("bilstm", attention, task)
    assert isinstance(model, LatentClassifier)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.startswith(("decoder", "embedding", "attention")):
                parameter.mul_(by)
    return model


def by_choice(model: LatentClassifier, batch: Batch, output: AttentiveOutput) -> Tensor:
    """p(y | h_i): what a soft model says that attends to word i alone, choice by choice: (batch, length, labels)."""
    found = []
    for i in range(output.alpha.shape[1]):
        alone = torch.zeros_like(output.alpha)
        alone[:, i] = 1
        logits = AttentiveClassifier.decode(model, output.h, alone, output.query, batch.candidates)
        found.append(model.link.probabilities(logits))
    return torch.stack(found, dim=1)


def labels_as_texts(labels: Tensor) -> Any:
    """All that an objective asks of the training texts."""
    return type("Texts", (Encoded,), {"__init__": lambda self: None, "labels": labels.numpy()})()


@each_task
def test_the_marginal_likelihood_is_the_sum_over_all_choices(task: zoo.TaskName) -> None:
    model, batch = latent(task), zoo.batch(LENGTHS, task)
    assert batch.labels is not None
    output = model(batch)
    slow = (output.alpha.unsqueeze(-1) * by_choice(model, batch, output)).sum(1)  # (batch, labels)
    torch.testing.assert_close(output.probabilities, slow)
    pooled = AttentiveClassifier.decode(model, output.h, output.alpha, output.query, batch.candidates)
    assert not torch.allclose(output.probabilities, model.link.probabilities(pooled), atol=1e-4)
    training = TrainingConfig(class_weights=False)
    loss = CROSS_ENTROPY.loss(model, labels_as_texts(batch.labels), training, CROSS_ENTROPY.config(), {})
    exact = loss(output, batch)
    brute = -slow.gather(1, batch.labels.unsqueeze(1)).log().sum()
    torch.testing.assert_close(exact, brute)
    weights = [parameter for name, parameter in model.named_parameters() if "posterior" not in name]
    for ours, theirs in zip(
        torch.autograd.grad(exact, weights, retain_graph=True, materialize_grads=True),
        torch.autograd.grad(brute, weights, materialize_grads=True),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-6)


def test_a_choice_of_very_improbable_words_keeps_its_digits() -> None:
    model, batch = latent(by=1.0).float(), zoo.batch([4])
    with torch.no_grad():
        model.decoder.theta.weight.mul_(1e3)  # type: ignore[union-attr]
        output = model(batch)
        loss = -model.link.log_probabilities(output.logits)
    double = model.double()(batch)
    torch.testing.assert_close(loss.double(), -double.link.log_probabilities(double.logits), rtol=1e-3, atol=1e-3)
    assert loss.isfinite().all()


@each_task
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_bound_is_below_and_is_reached_by_the_posterior(task: zoo.TaskName, seed: int) -> None:
    model, batch = latent(task), zoo.batch(LENGTHS, task, seed)
    assert batch.labels is not None
    with torch.no_grad():
        output = model(batch)
        chosen = by_choice(model, batch, output)
        label = batch.labels.view(-1, 1, 1).expand(-1, chosen.shape[1], 1)
        p = chosen.gather(2, label).squeeze(2)  # (batch, length): p(y | h_i)
        marginal = (output.alpha * p).sum(1)
        log_p = p.log()
        truth = output.alpha * p / marginal.unsqueeze(1)
        at_posterior = expected(truth, log_p) - divergence(truth, output.alpha)
        torch.testing.assert_close(at_posterior, marginal.log())
        drawn = torch.rand(truth.shape, generator=torch.Generator().manual_seed(seed)).double()
        q = drawn * batch.passage.mask / (drawn * batch.passage.mask).sum(1, keepdim=True)
        assert (expected(q, log_p) - divergence(q, output.alpha) <= marginal.log() + 1e-12).all()


@each_task
def test_the_objective_by_a_plain_loop(task: zoo.TaskName) -> None:
    model, batch = latent(task), zoo.batch(LENGTHS, task)
    assert batch.labels is not None
    assert model.posterior is not None
    loss = VARIATIONAL.loss(model, labels_as_texts(batch.labels), TrainingConfig(), VARIATIONAL.config(), {})
    output = model(batch)
    p = by_choice(model, batch, output)
    slow: Any = 0.0
    counts = np.maximum(np.bincount(batch.labels.numpy(), minlength=model.n_labels), 1)
    for row, label in enumerate(batch.labels.tolist()):
        query = model.posterior.label.weight[label]
        query = query if output.query is None else query + output.query[row]
        scores = model.posterior.attention.phi(output.h[row : row + 1], query.unsqueeze(0))[0]
        words = batch.passage.mask[row].nonzero().flatten().tolist()
        q = scores[words].softmax(0)
        bound = sum(
            q[k] * (p[row, t, label].log() - q[k].log() + output.alpha[row, t].log()) for k, t in enumerate(words)
        )
        weight = 1.0
        if not model.has_query:
            weight = counts.sum() / (model.n_labels * counts[label])
            if model.n_labels == 2:
                weight = counts[0] / counts[1] if label else 1.0
        slow = slow - bound * weight
    torch.testing.assert_close(loss(output, batch), slow)
    torch.autograd.grad(loss(output, batch), [*model.posterior.parameters()])


def test_reinforce_is_right_on_average_whatever_the_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of each draw times its probability, summed, is that of the expectation."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 4, generator=generator, dtype=torch.float64).requires_grad_()
    log_p = (-torch.rand(2, 4, generator=generator, dtype=torch.float64)).requires_grad_()
    q = scores.softmax(1)
    exact = torch.autograd.grad(expected(q, log_p).sum(), [scores, log_p], retain_graph=True)
    for baseline in (torch.zeros(2, 1), torch.tensor([[0.7], [-3.0]])):
        mean = [torch.zeros_like(part) for part in exact]
        value = torch.zeros(2, dtype=torch.float64)
        for i in range(4):
            draw = torch.full((2, 1), i)
            monkeypatch.setattr(torch, "multinomial", lambda *given, draw=draw, **named: draw)
            one = sampled(q, log_p, baseline.double(), 1)
            value += (q[:, i] * one).detach()
            found = torch.autograd.grad((q[:, i].detach() * one).sum(), [scores, log_p], retain_graph=True)
            mean = [a + b for a, b in zip(mean, found, strict=True)]
        torch.testing.assert_close(value, expected(q, log_p).detach())
        for ours, theirs in zip(mean, exact, strict=True):
            torch.testing.assert_close(ours, theirs)


def test_without_words_nothing_is_read() -> None:
    model, batch = latent(), zoo.batch([3, 2])
    empty = replace(batch, passage=replace(batch.passage, mask=torch.zeros_like(batch.passage.mask)))
    output = model(empty)
    assert model.decoder.theta is not None
    torch.testing.assert_close(output.logits, model.decoder.theta.bias.expand(2, 1))
    assert torch.autograd.grad(output.logits.sum(), model.decoder.theta.bias)[0].isfinite().all()
    loss = VARIATIONAL.loss(
        model, labels_as_texts(torch.tensor([0, 1])), TrainingConfig(), VARIATIONAL.config(estimator="sample"), {}
    )
    assert loss(output, empty).isfinite()


@each_task
def test_other_weights_are_one_product_and_agree_with_the_network(task: zoo.TaskName) -> None:
    model, batch = latent(task), zoo.batch(LENGTHS, task)
    fast, slow = (observer(model, general=general)(np.arange(3), batch) for general in (False, True))
    assert type(fast) is MixedStates
    assert type(slow) is EditedAttention
    torch.testing.assert_close(fast.y, slow.y, atol=1e-12, rtol=0)
    alphas = torch.rand(3, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * fast.real[:, None]
    alphas = alphas / alphas.sum(-1, keepdim=True)
    torch.testing.assert_close(fast.decode(alphas), slow.decode(alphas), atol=1e-12, rtol=0)
    order = torch.where(fast.real, fast.alpha, -1.0).argsort(dim=1, descending=True)
    torch.testing.assert_close(fast.erase_along(order), slow.erase_along(order), atol=1e-12, rtol=0, equal_nan=True)


@pytest.mark.parametrize("task", ["binary", "several", "nli"])
def test_the_adversary_of_a_mixture(task: zoo.TaskName) -> None:
    """Two labels: nothing on a fine grid of feasible weights is farther. More: found, feasible, and below the bound."""
    epsilon = 0.05
    model, batch = latent(task), zoo.batch([3, 3, 2], task)
    seen = observer(model)(np.arange(3), batch)
    found, _ = search(seen, AdversarialConfig(epsilon=epsilon), generators(np.random.default_rng(0)))
    assert found is not None
    assert (found.delta_y <= epsilon).all()
    assert (found.jsd <= found.bound + 1e-9).all()
    if task == "binary":
        assert found.exact.all()
    steps = np.linspace(0, 1, 61)
    grid = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-12]).clip(0)
    for text in range(3):
        n = int(seen.n_words[text])
        tried = grid[grid[:, 2] <= 1e-12] if n == 2 else grid  # (tried, 3)
        alphas = torch.from_numpy(tried).unsqueeze(0).expand(3, -1, -1)
        change = seen.distance(seen.decode(alphas), seen.y.unsqueeze(1))[text].numpy()
        far = jsd(tried, np.broadcast_to(seen.alpha[text].numpy(), tried.shape))
        assert far[change <= epsilon].max(initial=0.0) <= found.bound[text] + 1e-9
        if task == "binary":
            assert far[change <= epsilon].max(initial=0.0) <= found.jsd[text] + 1e-9


@each_task
def test_the_smallest_flipping_set_of_a_mixture_is_exact(task: zoo.TaskName) -> None:
    model, batch = latent(task, by=6.0), zoo.batch([6, 5, 7, 4], task)
    seen = observer(model)(np.arange(4), batch)
    decided = decision(seen)
    exact = smallest_sets(seen, decided, np.full(4, np.nan))
    np.testing.assert_array_equal(exact.low, exact.high)
    for text, n in enumerate(seen.n_words.tolist()):
        slow = np.nan
        for k in range(1, n):
            sets = torch.tensor(list(combinations(range(n), k)))
            gone = torch.zeros(4, len(sets), 7, dtype=torch.bool)
            gone[text] = gone[text].scatter(1, sets, True)
            if (seen.erase(gone)[text].argmax(-1) != decided[text]).any():
                slow = k
                break
        assert exact.low[text] == slow or (np.isnan(slow) and np.isnan(exact.low[text]))


def test_what_does_not_fit_is_refused() -> None:
    config = ModelConfig(attention="latent", hierarchical=True, embedding_dim=6, hidden_dim=8)
    with pytest.raises(Mistake, match="hierarchical must be false"):
        build(config, 9, 2)
    texts = labels_as_texts(torch.tensor([0, 1]))
    for model in (zoo.network(), latent(attention="latent")):
        with pytest.raises(Mistake, match="attention='variational'"):
            VARIATIONAL.loss(model, texts, TrainingConfig(), VARIATIONAL.config(), {})
    run = RunConfig(dataset="planted", model=ModelConfig(attention="latent"))
    with pytest.raises(Mistake, match="chooses one word in place of pooling"):
        find("uniform").takes.runs(find("uniform").config(), run)


def test_both_are_trained_saved_and_asked_again(tmp_path: Any) -> None:
    file = reviews(tmp_path)
    variational = {"objective": "variational", "objective_options": {"estimator": "sample", "samples": 2}}
    configs = [
        small(file, epochs=8, learning_rate=0.02).model_copy(
            update={"model": ModelConfig(encoder="lstm", attention="latent", embedding_dim=6, hidden_dim=8)}
        ),
        small(file, epochs=8, learning_rate=0.02, **variational).model_copy(
            update={"model": ModelConfig(encoder="lstm", attention="variational", embedding_dim=6, hidden_dim=8)}
        ),
    ]
    made, place = plan(configs), Workspace(tmp_path / "runs")
    assert execute(made, place, QUIET, "here", cores=1).complete
    for task in made.of("train"):
        run = place.run(task.run)
        losses = [row["loss"] for row in run.training()]
        assert losses[-1] < 0.95 * losses[0]
        assert isinstance(heedful.load(run).network, LatentClassifier)
