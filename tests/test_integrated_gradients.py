"""Integrated gradients against equation 4 done one text and one step at a time, Captum, and its axioms."""

from __future__ import annotations

import copy
import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from heedful.config import AttentionName, EncoderName
from heedful.data.text.vocabulary import UNK
from heedful.errors import Mistake
from heedful.explainers import Scores
from heedful.explainers.gradients import recurrence
from heedful.explainers.gradients.integrated import METHODS, Baseline, Method, integrated_gradients, nodes
from heedful.explainers.gradients.path import PathGradient
from heedful.models import AttentiveClassifier
from heedful.models.attentive.encoders import BiLSTM, Encoder
from heedful.records import Batch, Tokens
from heedful.registry import ENCODERS
from zoo import ENCODER_NAMES, KINDS, PLAIN, TaskName, batch, network, row

LENGTHS = [4, 1, 11]


def equation_4(model: AttentiveClassifier, text: Batch, label: int, baseline: Tensor, m: int) -> Tensor:
    """1/m sum_k df/dx (b + k/m (x - b)) . (x - b) for one text without a query: (length,)."""
    x = model.embed(text.passage).detach()
    b = torch.where(text.passage.mask.unsqueeze(-1), baseline, x)
    total = torch.zeros_like(x)
    for k in range(1, m + 1):
        point = (b + k / m * (x - b)).requires_grad_()
        f = model(text, x=point).score(torch.tensor([label]))
        total += torch.autograd.grad(f.sum(), point)[0]
    return (total / m * (x - b)).sum(-1)[0]


@pytest.mark.parametrize("baseline", ["zero", "unk"])
@pytest.mark.parametrize("encoder", ENCODER_NAMES)
def test_equation_4(encoder: EncoderName, baseline: Baseline) -> None:
    model, texts = network(encoder, task="several"), batch(LENGTHS, "several")
    target = torch.tensor([0, 3, 1])
    ours = integrated_gradients(model, texts, target, n_steps=7, method="riemann_right", baselines=baseline).passage
    b = model.embedding.weight.detach()[UNK] * (baseline == "unk")
    for i in range(3):
        slow = equation_4(model, row(texts, i), int(target[i]), b, 7)
        torch.testing.assert_close(ours[i, : len(slow)], slow)


@pytest.mark.parametrize(
    ("encoder", "attention", "task", "method"),
    [
        *((*kind, "gausslegendre") for kind in KINDS if kind[1] in ("additive", "dot")),
        *(
            (encoder, "general", "nli", method)
            for encoder in ENCODER_NAMES
            for method in [m for m in METHODS if m != "fejer"]
        ),
    ],
)
def test_captum_agrees(encoder: EncoderName, attention: AttentionName, task: TaskName, method: Method) -> None:
    model, texts = network(encoder, attention, task), batch(LENGTHS, task)
    assert texts.labels is not None
    parts = [texts.passage] if texts.query is None else [texts.passage, texts.query]
    inputs = tuple(model.embed(part).detach() for part in parts)
    baselines = tuple(x * ~part.mask.unsqueeze(-1) for part, x in zip(parts, inputs, strict=True))

    def forward(*given: Any) -> Tensor:
        *x, labels, candidates, ids = given
        steps = len(ids) // len(texts)  # Captum repeats the texts, once for each step

        def again(part: Tokens) -> Tokens:
            ids, present, mask = (t.repeat(steps, 1) for t in (part.ids, part.present, part.mask))
            return Tokens(ids, present, mask)

        query = None if texts.query is None else again(texts.query)
        repeated = Batch(again(texts.passage), query, candidates)
        return model(repeated, x=x[0], x_query=x[1] if len(x) == 2 else None).score(labels)

    theirs = IntegratedGradients(forward).attribute(
        inputs,
        baselines=baselines,
        additional_forward_args=(texts.labels, texts.candidates, texts.passage.ids),
        n_steps=6,
        method=method,
    )
    ours = integrated_gradients(model, texts, texts.labels, n_steps=6, method=method)
    for our, their in zip((ours.passage, ours.query), theirs, strict=False):
        torch.testing.assert_close(our, their.detach().sum(-1))


@pytest.mark.parametrize(("encoder", "attention", "task"), KINDS)
def test_completeness(encoder: EncoderName, attention: AttentionName, task: TaskName) -> None:
    """sum_i IG_i = f(x) - f(b). ReLU and sparse weights bend the path where no node may lie: more steps are needed."""
    model, texts = network(encoder, attention, task), batch(LENGTHS, task)
    assert texts.labels is not None
    smooth = encoder in ("bilstm", "transformer") and attention in PLAIN
    n_steps = 40 if smooth else 300 if encoder in ENCODERS.places else 1000
    scores = integrated_gradients(model, texts, texts.labels, n_steps=n_steps)
    x = model.embed(texts.passage) * ~texts.passage.mask.unsqueeze(-1)
    x_query = None
    total = scores.passage.sum(1)
    if texts.query is not None and scores.query is not None:
        x_query = model.embed(texts.query) * ~texts.query.mask.unsqueeze(-1)
        total = total + scores.query.sum(1)
    with torch.no_grad():
        f_x = model(texts).score(texts.labels)
        f_b = model(texts, x=x, x_query=x_query).score(texts.labels)
    torch.testing.assert_close(total, f_x - f_b, atol=1e-8 if smooth else 1e-3, rtol=0)
    torch.testing.assert_close(scores.gap, total - (f_x - f_b), atol=1e-12, rtol=0)
    torch.testing.assert_close(scores.scale, (f_x - f_b).abs(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("encoder", ["bilstm", "cnn"])
@pytest.mark.parametrize("part", ["passage", "query"])
def test_a_part_alone_is_complete_too(encoder: EncoderName, part: Any) -> None:
    model, texts = network(encoder, task="nli"), batch(LENGTHS, "nli")
    assert texts.labels is not None
    scores = integrated_gradients(model, texts, texts.labels, parts=part, n_steps=400)
    assert scores.gap is not None
    assert scores.gap.abs().max() < 1e-3
    if part == "passage":
        assert scores.query is None
        assert scores.passage.abs().sum() > 0
    else:
        assert scores.query is not None
        assert scores.passage.eq(0).all()
        assert scores.query.abs().sum() > 0


def test_implementation_invariance() -> None:
    """The same function with its hidden units in another order has the same scores."""
    model, texts = network(), batch(LENGTHS)
    other = copy.deepcopy(model)
    assert isinstance(other.encoder, BiLSTM)
    order = torch.tensor([2, 0, 3, 1])
    gates = torch.cat([order + 4 * k for k in range(4)])
    states = torch.cat([order, order + 4])
    with torch.no_grad():
        for lstm in (other.encoder.forwards, other.encoder.backwards):
            for name, weight in lstm.named_parameters():
                moved = weight[gates][:, order] if name == "weight_hh_l0" else weight[gates]
                weight.copy_(moved)
        for linear in (other.decoder.theta, other.attention.W1):
            assert isinstance(linear, nn.Linear)
            linear.weight.copy_(linear.weight[:, states])
    target = torch.tensor([0, 1, 1])
    torch.testing.assert_close(model(texts).logits, other(texts).logits)
    assert not torch.equal(model(texts).h, other(texts).h)
    torch.testing.assert_close(
        integrated_gradients(model, texts, target).passage, integrated_gradients(other, texts, target).passage
    )


def test_a_linear_model_needs_one_step() -> None:
    """theta . mean(x_t) + b: each word's part of the logit is known."""
    model, texts = network("average", "uniform"), batch(LENGTHS)
    encoder = model.encoder = Linear(6, 8).double()
    target = torch.ones(3, dtype=torch.long)
    scores = integrated_gradients(model, texts, target, n_steps=1)
    assert model.decoder.theta is not None
    with torch.no_grad():
        h = encoder.map(model.embed(texts.passage))  # (batch, length, hidden)
        parts = h @ model.decoder.theta.weight[0]  # (batch, length)
    mask = texts.passage.mask
    torch.testing.assert_close(scores.passage, parts * mask / mask.sum(1, keepdim=True))


class Linear(Encoder):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.map = nn.Linear(dim, hidden, bias=False)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.map(x)
        return h


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(1, 9), st.integers(1, 40))
@settings(max_examples=20, deadline=None)
def test_internal_batch_size_changes_nothing(lengths: list[int], n_steps: int, size: int) -> None:
    model, texts = network(task="nli"), batch(lengths, "nli")
    assert texts.labels is not None
    free = integrated_gradients(model, texts, texts.labels, n_steps=n_steps)
    cut = integrated_gradients(model, texts, texts.labels, n_steps=n_steps, internal_batch_size=size)
    torch.testing.assert_close(free.passage, cut.passage)
    torch.testing.assert_close(free.query, cut.query)
    torch.testing.assert_close(free.gap, cut.gap)


def passes_of(scores: Scores) -> list[int]:
    """Backward passes for each text."""
    assert isinstance(scores.backward_passes, torch.Tensor)
    return [int(n) for n in scores.backward_passes]


def test_tolerance_doubles_the_steps_of_those_that_need_it() -> None:
    model, texts = network("average", "general"), batch([4, 1, 30, 7])
    target = torch.ones(4, dtype=torch.long)
    coarse = integrated_gradients(model, texts, target, n_steps=2)
    fine = integrated_gradients(model, texts, target, n_steps=2, tolerance=0.01)
    assert coarse.gap is not None
    assert fine.gap is not None
    assert fine.scale is not None
    assert (fine.gap.abs() <= 0.01 * fine.scale).all()
    true = integrated_gradients(model, texts, target, n_steps=1600)
    assert ((fine.passage - true.passage).abs().amax(1) <= 0.01 * fine.scale).all()
    assert passes_of(coarse) == [2, 2, 2, 2]
    assert 2 < min(passes_of(fine)) < max(passes_of(fine))
    capped = integrated_gradients(model, texts, target, n_steps=2, tolerance=1e-9, max_steps=5)
    assert passes_of(capped) == [2 + 4 + 5] * 4


def test_points_of_a_nested_rule_are_asked_once() -> None:
    """Doubled steps give what as many steps give at once, and cost no more."""
    like = torch.zeros(0, dtype=torch.float64)
    for n in (1, 4, 13):
        coarse, fine = nodes(n, "fejer", like)[0], nodes(2 * n + 1, "fejer", like)[0]
        torch.testing.assert_close(fine[1::2], coarse, atol=1e-15, rtol=0)
    model, texts = network(task="nli"), batch(LENGTHS, "nli")
    target = torch.zeros(len(texts), dtype=torch.long)
    at_once = integrated_gradients(model, texts, target, n_steps=27, method="fejer")
    doubled = integrated_gradients(model, texts, target, n_steps=6, method="fejer", tolerance=1e-12, max_steps=40)
    torch.testing.assert_close(doubled.passage, at_once.passage, atol=1e-12, rtol=0)
    torch.testing.assert_close(doubled.query, at_once.query, atol=1e-12, rtol=0)
    torch.testing.assert_close(doubled.gap, at_once.gap, atol=1e-12, rtol=0)
    assert passes_of(doubled) == passes_of(at_once) == [27] * len(texts)
    some = integrated_gradients(model, texts, target, n_steps=3, method="fejer", tolerance=1e-3)
    assert some.gap is not None
    assert some.scale is not None
    assert (some.gap.abs() <= 1e-3 * some.scale).all()


def test_errors_that_cancel_in_the_gap_are_seen() -> None:
    """Two words with kinks of opposite sign: their errors sum to nothing, and completeness holds at any step."""
    model, texts = network("average", "additive"), batch([2])
    target = torch.zeros(1, dtype=torch.long)

    class Kinks(PathGradient):
        def change(self, like: Tensor) -> Tensor:
            return torch.ones_like(super().change(like))

        def by_step(self, a: Tensor, room: int) -> list[Tensor | None]:
            kink = torch.exp(-(((a - 0.4) / 0.05) ** 2))  # (steps,)
            slope = torch.zeros(1, len(a), texts.passage.ids.shape[1], dtype=a.dtype)
            slope[0, :, 1], slope[0, :, 2] = 0.5 + 20 * kink, 0.5 - 20 * kink
            return [slope, None]

    with pytest.MonkeyPatch.context() as patch:
        module = import_module("heedful.explainers.gradients.integrated")
        patch.setattr(module, "gradients_of", lambda _: Kinks)
        how: dict[str, Any] = {"n_steps": 3, "method": "fejer"}
        coarse = integrated_gradients(model, texts, target, **how)
        found = integrated_gradients(model, texts, target, **how, tolerance=1e-3)
    true = 0.5 + 20 * 0.05 * math.sqrt(math.pi)
    assert coarse.gap is not None
    assert float(coarse.gap.abs().max()) < 1e-12
    assert abs(float(coarse.passage[0, 1]) - true) > 0.1
    assert abs(float(found.passage[0, 1]) - true) < 1e-3


def test_baselines_are_given_in_many_ways() -> None:
    model, texts = network(task="nli"), batch(LENGTHS, "nli")
    assert texts.labels is not None
    labels = texts.labels

    def run(baselines: Any) -> Tensor:
        scores = integrated_gradients(model, texts, labels, baselines=baselines, n_steps=5)
        assert scores.query is not None
        return torch.cat([scores.passage, scores.query], dim=1)

    x, unk = model.embed(texts.passage).detach(), model.embedding.weight.detach()[UNK]
    torch.testing.assert_close(run("zero"), run(0))
    torch.testing.assert_close(run("unk"), run(unk))
    torch.testing.assert_close(run("unk"), run((unk.expand_as(x), "unk")))
    assert run(("unk", "zero")).ne(run("unk")).any()
    assert run((x, model.embed(texts.query).detach() if texts.query else 0)).eq(0).all()  # nothing moves


@pytest.mark.parametrize("method", METHODS)
def test_nodes_integrate(method: Method) -> None:
    a, weights = nodes(40, method, torch.zeros(0, dtype=torch.float64))
    assert ((a > 0) & (a <= 1)).all()
    torch.testing.assert_close(weights.sum(), torch.tensor(1.0, dtype=torch.float64))
    integral = float((weights * a.exp()).sum())
    assert integral == pytest.approx(np.e - 1, rel=0.02 if method == "riemann_right" else 1e-4)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_the_recurrence_is_nn_lstm(lengths: list[int], seed: int) -> None:
    """States and input gradients, for any lengths."""
    model, texts = network(seed=seed), batch(lengths, seed=seed)
    encoder, present = model.encoder, texts.passage.present
    assert isinstance(encoder, BiLSTM)
    x = model.embed(texts.passage).detach().requires_grad_()
    weights = recurrence.LstmWeights.of(encoder)
    p = recurrence.turn(weights.project(x), present) + weights.b.unsqueeze(1)
    h = recurrence.turn(recurrence.states(p, weights.W_hh), present).permute(2, 0, 1, 3).flatten(2)
    h, expected = (states * present.unsqueeze(-1) for states in (h, encoder(x, present)))
    torch.testing.assert_close(h, expected)
    ours, theirs = (torch.autograd.grad(states.sin().sum(), x)[0] for states in (h, expected))
    torch.testing.assert_close(ours, theirs)


def test_mistakes() -> None:
    model, texts = network(), batch([2])
    target = torch.tensor([0])
    for options, message in (
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"method": "simpson"}, "riemann_right, riemann_middle, gausslegendre"),
        ({"baselines": "blank"}, "zero, unk"),
        ({"baselines": torch.zeros(5)}, r"shape \(5,\); it must be \(6,\) or \(1, 4, 6\)"),
        ({"internal_batch_size": 0}, "internal_batch_size"),
        ({"tolerance": 2.0}, "between 0 and 1"),
        ({"tolerance": 0.1, "max_steps": 10}, "max_steps must be at least n_steps"),
        ({"parts": "query"}, "reads no query"),
        ({"of": "odds"}, "logit, probability"),
    ):
        with pytest.raises(Mistake, match=message):
            integrated_gradients(model, texts, target, **options)
