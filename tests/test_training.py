"""Training: the loss of the paper, the best epoch, bitwise repetition, and going on after a stop."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from heedful.config import ModelConfig, TrainingAsPublished, TrainingConfig
from heedful.data.text.batching import CPU, Encoded, Texts
from heedful.models import AttentiveClassifier, build
from heedful.models.attentive.classifier import AttentiveOutput
from heedful.models.link import LOG_ODDS, SOFTMAX, Link
from heedful.models.objectives.objective import Loss, find_loss
from heedful.models.training import (
    Epoch,
    TrainingState,
    finished,
    fit,
    learning_rate,
    make_optimiser,
    parts,
    predict,
    take_step,
)
from heedful.records import Batch, Tokens
from zoo import network


def encoded(n: int, seed: int = 0, n_labels: int = 2, has_query: bool = False, device: torch.device = CPU) -> Encoded:
    """Texts whose label is told by one word: 10 + label."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_labels, n)

    def texts(cue: bool) -> Texts:
        lengths = rng.integers(4, 9, n)
        flat = []
        for length, label in zip(lengths, labels, strict=True):
            words = rng.integers(20, 40, length - 2)
            if cue:
                words[rng.integers(len(words))] = 10 + label
            flat += [2, *words.tolist(), 3]
        return Texts(np.array(flat), lengths, np.cumsum(lengths) - lengths)

    return Encoded(texts(True), texts(False) if has_query else None, None, labels, device)


def small(seed: int = 0, n_labels: int = 2, has_query: bool = False) -> AttentiveClassifier:
    return build(ModelConfig(embedding_dim=8, hidden_dim=8), 40, n_labels, has_query, seed)


def loss_function(model: AttentiveClassifier, train: Encoded, config: TrainingConfig) -> Loss:
    return find_loss(model, train, config, {})


def labelled(labels: torch.Tensor) -> Batch:
    """A batch of which only the labels count."""
    blank = torch.zeros(len(labels), 0)
    return Batch(Tokens(blank.long(), blank.bool(), blank.bool()), labels=labels)


def output_of(logits: torch.Tensor, link: Link) -> AttentiveOutput:
    """An output of which only the logits count."""
    blank = torch.zeros(0)
    return AttentiveOutput(logits, link, blank, blank, blank)


CONFIG = TrainingConfig(epochs=4, batch_size=16, learning_rate=0.01)


@pytest.mark.parametrize(("n_labels", "has_query"), [(2, False), (3, False), (2, True), (3, True)])
def test_it_learns(n_labels: int, has_query: bool) -> None:
    model = small(n_labels=n_labels, has_query=has_query)
    train, dev, test = (encoded(n, s, n_labels, has_query) for s, n in enumerate((300, 60, 100)))
    *_, last = fit(model, train, dev, CONFIG, seed=0)
    assert test.labels is not None
    assert (predict(model, test).argmax(1) == test.labels).mean() > 0.95
    assert last.history[0].loss > last.history[-1].loss


@pytest.mark.parametrize("has_query", [False, True])
def test_a_step_in_parts_is_the_same_step(monkeypatch: pytest.MonkeyPatch, has_query: bool) -> None:
    """Long texts are read a few at a time; the gradients add up to those of the whole batch."""

    def fitted() -> tuple[TrainingState, AttentiveClassifier]:
        model = small(has_query=has_query).double()
        *_, last = fit(model, encoded(100, has_query=has_query), encoded(40, 1, has_query=has_query), CONFIG, 0)
        return last, model

    whole, model = fitted()
    monkeypatch.setattr("heedful.models.training.STEP_TOKENS", 20)  # two or three texts, one with its query
    last, in_parts = fitted()
    assert [epoch.loss for epoch in last.history] == pytest.approx([epoch.loss for epoch in whole.history])
    for name, weights in model.state_dict().items():
        torch.testing.assert_close(in_parts.state_dict()[name], weights, msg=name)


def test_parts_are_few_and_whole() -> None:
    lengths = np.array([5_000] * 32 + [200_000])
    batch = np.arange(32)
    cut = parts(batch, lengths)
    assert [len(part) for part in cut] == [16, 16]
    np.testing.assert_array_equal(np.concatenate(cut), batch)
    assert [len(part) for part in parts(batch, lengths // 2)] == [32]  # a usual step is one
    assert [len(part) for part in parts(np.array([32]), lengths)] == [1]


def test_two_runs_with_one_seed_are_bitwise_equal_and_with_another_are_not() -> None:
    def weights(seed: int) -> dict[str, torch.Tensor]:
        model = small(seed)
        list(fit(model, encoded(100), encoded(40, 1), CONFIG, seed))
        return model.state_dict()

    one, two, other = weights(0), weights(0), weights(1)
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_stopped_training_goes_on_to_the_same_bits(stop: int) -> None:
    train, dev = encoded(100), encoded(40, 1)
    whole, first, second = small(), small(), small(seed=5)
    config = CONFIG.model_copy(update={"learning_rate": 1e-3})
    states = list(fit(whole, train, dev, config, seed=0))
    for state in fit(first, train, dev, config, seed=0):
        if len(state.history) == stop:
            break
    *_, resumed = fit(second, train, dev, config, seed=0, state=state)
    assert [e.loss for e in resumed.history] == [e.loss for e in states[-1].history]
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name])


def test_the_model_ends_with_its_best_epoch() -> None:
    model, dev = small(), encoded(40, 1)
    *_, last = fit(model, encoded(100), dev, CONFIG, seed=0)
    best = max(last.history, key=lambda epoch: epoch.score)
    assert best.best
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, last.best[name])


def test_training_stops_when_nothing_can_improve() -> None:
    def state(scores: list[float]) -> TrainingState:
        best = -1.0
        epochs = []
        for i, score in enumerate(scores):
            epochs.append(Epoch(i + 1, 1.0, {}, score, score > best, 0.0))
            best = max(best, score)
        return TrainingState(epochs)

    config = TrainingConfig(epochs=5, patience=2)
    assert not finished(state([]), config)
    assert finished(state([1.0]), config)
    assert not finished(state([0.5, 0.4]), config)
    assert finished(state([0.5, 0.4, 0.5]), config)
    assert finished(state([0.1, 0.2, 0.3, 0.4, 0.5]), config)


def test_the_loss_weighs_both_classes_the_same() -> None:
    model, train = small(), encoded(90)
    assert train.labels is not None
    train.labels[:] = np.arange(90) % 3 == 0  # 60 negatives, 30 positives
    z, y = torch.tensor([[0.3], [-1.0], [2.0]]), torch.tensor([1, 0, 0])
    loss = loss_function(model, train, CONFIG)(output_of(z, LOG_ODDS), labelled(y))
    p = z.sigmoid()[:, 0]
    expected = -(2.0 * p[0].log() + (1 - p[1]).log() + (1 - p[2]).log())  # N / N+ - 1 = 2
    torch.testing.assert_close(loss, expected)
    unweighted = loss_function(model, train, CONFIG.model_copy(update={"class_weights": False}))
    torch.testing.assert_close(
        unweighted(output_of(z, LOG_ODDS), labelled(y)), F.binary_cross_entropy(p, y.float(), reduction="sum")
    )


def test_several_classes_are_weighted_by_rarity_and_questions_not() -> None:
    train = encoded(60, n_labels=3)
    assert train.labels is not None
    train.labels[:] = [0] * 30 + [1] * 20 + [2] * 10
    logits, y = torch.randn(4, 3), torch.tensor([0, 1, 2, 2])
    output = output_of(logits, SOFTMAX)
    each = F.cross_entropy(logits, y, reduction="none")
    weights = torch.tensor([60 / 90, 1.0, 2.0])
    loss = loss_function(small(n_labels=3), train, CONFIG)(output, labelled(y))
    torch.testing.assert_close(loss, (weights[y] * each).sum())
    asked = loss_function(small(n_labels=3, has_query=True), train, CONFIG)(output, labelled(y))
    torch.testing.assert_close(asked, each.sum())


def test_attention_has_no_weight_decay_and_frozen_embeddings_stay() -> None:
    model = small()
    adam = make_optimiser(model, TrainingConfig())
    decay = {id(p): group["weight_decay"] for group in adam.param_groups for p in group["params"]}
    assert {decay[id(p)] for p in model.attention.parameters()} == {0.0}
    assert {decay[id(p)] for p in model.encoder.parameters()} == {1e-5}
    before = model.embedding.weight.detach().clone()
    list(fit(model, encoded(40), encoded(20, 1), CONFIG.model_copy(update={"train_embeddings": False}), 0))
    assert torch.equal(before, model.embedding.weight)


def test_padding_stays_zero() -> None:
    model = small()
    list(fit(model, encoded(40), encoded(20, 1), CONFIG, 0))
    assert model.embedding.weight[0].eq(0).all()


def test_the_uniform_model_has_nothing_to_learn_in_its_attention() -> None:
    assert len(make_optimiser(network(attention="uniform").float(), TrainingConfig()).param_groups) == 1


def test_a_model_is_described_in_words() -> None:
    from heedful.engine.tasks.begin import describe_model

    assert describe_model(ModelConfig()) == "a bidirectional LSTM with additive attention"
    assert describe_model(ModelConfig(encoder="cnn", attention="dot")).startswith("a convolutional network with dot")


DROPOUT = {"dropout_words": 0.3, "dropout_sentences": 0.2, "dropout_output": 0.4}


@pytest.mark.parametrize("hierarchical", [False, True])
def test_dropout_acts_in_training_only(hierarchical: bool) -> None:
    sizes = {"embedding_dim": 8, "hidden_dim": 8, "hierarchical": hierarchical}
    plain, dropped = (build(ModelConfig(**sizes, **more), 40, 2) for more in ({}, DROPOUT))  # type: ignore[arg-type]
    train = encoded(12)
    batch = train.batch(np.arange(12))
    if hierarchical:
        sentence = torch.arange(batch.passage.ids.shape[1]).expand_as(batch.passage.ids) // 3
        batch = replace(batch, passage=replace(batch.passage, sentence_index=sentence))
    assert plain.state_dict().keys() == dropped.state_dict().keys()
    assert torch.equal(plain.eval()(batch).logits, dropped.eval()(batch).logits)
    dropped.train()
    logits = torch.stack([dropped(batch).logits for _ in range(20)])
    assert (logits.std(0) > 0).all()


@pytest.mark.parametrize("stop", [1, 3])
def test_dropout_and_halved_rates_go_on_to_the_same_bits(stop: int) -> None:
    train, dev = encoded(100), encoded(40, 1)
    config = CONFIG.model_copy(update={"learning_rate": 1e-3, "halve_rate": True, "clip": 0.5})

    def fresh(seed: int) -> AttentiveClassifier:
        return build(ModelConfig(embedding_dim=8, hidden_dim=8, **DROPOUT), 40, 2, False, seed)  # type: ignore[arg-type]

    whole, first, second, before = fresh(0), fresh(0), fresh(5), torch.get_rng_state()
    states = list(fit(whole, train, dev, config, seed=0))
    assert torch.equal(before, torch.get_rng_state())
    state = next(s for s in fit(first, train, dev, config, seed=0) if len(s.history) == stop)
    *_, resumed = fit(second, train, dev, config, seed=0, state=state)
    assert [e.loss for e in resumed.history] == [e.loss for e in states[-1].history]
    for name, tensor in whole.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name])


def test_the_rate_is_halved_after_every_epoch_that_was_not_the_best() -> None:
    history = [Epoch(i + 1, 1.0, {}, 0.5, best, 0.0) for i, best in enumerate((True, False, False, True, False))]
    state = TrainingState(history)
    config = TrainingConfig(learning_rate=0.8, halve_rate=True)
    assert learning_rate(state, config) == pytest.approx(0.1)
    assert learning_rate(state, TrainingConfig(learning_rate=0.8)) == 0.8


def test_a_step_is_clipped_to_the_norm_of_its_mean_gradient() -> None:
    model, config = small(), TrainingConfig(clip=0.25)
    optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    before = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        p.grad = torch.full_like(p, 3.0)
    take_step(optimiser, config, rate=1.0, step=0, steps=1, examples=8)
    moved = torch.cat([(p - old).flatten() for p, old in zip(model.parameters(), before, strict=True)])
    assert float(moved.detach().norm()) == pytest.approx(8 * 0.25, rel=1e-4)


def test_the_mean_of_the_batch_is_a_smaller_gradient_and_weight_decay_may_be_on_attention() -> None:
    """One SGD-like look: the gradient of the mean is that of the sum over the number of texts."""
    train = encoded(8)
    norms = {}
    reductions: tuple[Literal["sum", "mean"], ...] = ("sum", "mean")
    for reduction in reductions:
        model, seen = small(), list[float]()
        config = TrainingConfig(
            epochs=1, batch_size=8, weight_decay=0.0, as_published=TrainingAsPublished(reduction=reduction)
        )

        def note(*_: object, model: AttentiveClassifier = model, seen: list[float] = seen) -> None:
            seen.append(float(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm()))

        list(fit(model, train, encoded(8, 1), config, 0, on_step=note))
        norms[reduction] = seen[0]
    assert norms["sum"] == pytest.approx(8 * norms["mean"], rel=1e-5)
    free, held = (
        make_optimiser(small(), TrainingConfig(as_published=TrainingAsPublished(attention_decay=on)))
        for on in (False, True)
    )
    assert [group["weight_decay"] for group in free.param_groups] == [1e-5, 0.0]
    assert [group["weight_decay"] for group in held.param_groups] == [1e-5]


def test_an_epoch_before_the_first_to_be_kept_is_not() -> None:
    train, dev, model = encoded(100), encoded(40, 1), small()
    config = CONFIG.model_copy(
        update={"learning_rate": 1e-3, "weight_decay": 0.0, "as_published": TrainingAsPublished(keep_from=3)}
    )
    states = list(fit(model, train, dev, config, seed=0))
    assert [epoch.best for epoch in states[-1].history[:3]] == [False, False, True]
    assert torch.equal(states[2].best["decoder.theta.weight"], states[2].weights["decoder.theta.weight"])


def test_a_copy_of_a_network_has_the_same_link() -> None:
    """Whether there is one logit for two labels is asked by `is`, of copies, too."""
    assert copy.deepcopy({"link": LOG_ODDS})["link"] is LOG_ODDS
