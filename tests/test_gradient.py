"""Gradients against their equations, one text at a time, and against Captum."""

from __future__ import annotations

import pytest
import torch
from captum.attr import InputXGradient, Saliency
from torch import Tensor

from heedful.config import AttentionName, EncoderName
from heedful.errors import Mistake
from heedful.explainers.attention.weights import attention
from heedful.explainers.gradients.gradient import JAIN_WALLACE, gradient, gradient_x_input
from heedful.models import AttentiveClassifier
from heedful.models.link import Of
from heedful.records import Batch
from zoo import ENCODER_NAMES, KINDS, TaskName, batch, network, row

LENGTHS = [5, 1, 9]


def f(model: AttentiveClassifier, text: Batch, x: Tensor, label: int, of: Of) -> Tensor:
    return model(text, x=x).score(torch.tensor([label]), of)[0]


def slope_by_differences(model: AttentiveClassifier, text: Batch, label: int, of: Of) -> Tensor:
    """df/dx of one text, one number of x at a time: (length, dim)."""
    x = model.embed(text.passage).detach()
    slope = torch.zeros_like(x[0])
    for t in range(x.shape[1]):
        for d in range(x.shape[2]):
            step = torch.zeros_like(x)
            step[0, t, d] = 1e-5
            change = f(model, text, x + step, label, of) - f(model, text, x - step, label, of)
            slope[t, d] = (change / 2e-5).detach()
    return slope


@pytest.mark.parametrize("of", ["logit", "probability"])
@pytest.mark.parametrize("encoder", ENCODER_NAMES)
def test_equations_2_and_3_by_finite_differences(encoder: EncoderName, of: Of) -> None:
    model, texts = network(encoder), batch([4, 1])
    target = torch.tensor([0, 1])
    norm = gradient(model, texts, target, of=of).passage
    dot = gradient_x_input(model, texts, target, of=of).passage
    for i in range(2):
        text = row(texts, i)
        slope = slope_by_differences(model, text, int(target[i]), of)
        x, mask = model.embed(text.passage)[0].detach(), text.passage.mask[0]
        n = len(mask)
        torch.testing.assert_close(norm[i, :n], slope.norm(dim=-1) * mask, atol=1e-8, rtol=1e-6)
        torch.testing.assert_close(dot[i, :n], (slope * x).sum(-1) * mask, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize(("encoder", "attention_name", "task"), KINDS)
def test_captum_agrees(encoder: EncoderName, attention_name: AttentionName, task: TaskName) -> None:
    model, texts = network(encoder, attention_name, task), batch(LENGTHS, task)
    assert texts.labels is not None
    labels = texts.labels
    inputs = [model.embed(texts.passage).detach()]
    masks = [texts.passage.mask]
    if texts.query is not None:
        inputs.append(model.embed(texts.query).detach())
        masks.append(texts.query.mask)

    def forward(x: Tensor, x_query: Tensor | None = None) -> Tensor:
        return model(texts, x=x, x_query=x_query).score(labels)

    leaves = tuple(x.requires_grad_() for x in inputs)
    slopes = Saliency(forward).attribute(leaves, abs=False)
    products = InputXGradient(forward).attribute(leaves)
    norm, dot = gradient(model, texts, labels), gradient_x_input(model, texts, labels)
    for ours, their, mask in zip((norm.passage, norm.query), slopes, masks, strict=False):
        torch.testing.assert_close(ours, their.norm(dim=-1) * mask)
    for ours, their, mask in zip((dot.passage, dot.query), products, masks, strict=False):
        torch.testing.assert_close(ours, their.detach().sum(-1) * mask)


@pytest.mark.parametrize("encoder", ENCODER_NAMES)
def test_jain_and_wallace_hold_attention_constant(encoder: EncoderName) -> None:
    """|sum_d dp/dx_d x_d| with the attention weights as given numbers."""
    model, texts = network(encoder, "dot"), batch(LENGTHS)
    target = model(texts).predicted
    alpha = attention(model, texts, target).passage
    x = model.embed(texts.passage).detach().requires_grad_()
    p = model(texts, x=x, alpha=alpha).score(target, "probability")
    (slope,) = torch.autograd.grad(p.sum(), x)
    expected = (slope * x.detach()).sum(-1).abs() * texts.passage.mask
    ours = gradient_x_input(model, texts, target, **JAIN_WALLACE).passage
    torch.testing.assert_close(ours, expected)
    free = gradient_x_input(model, texts, target, of="probability", absolute=True).passage
    assert not torch.allclose(ours[0], free[0], rtol=1e-3)


def test_uniform_attention_is_constant_already() -> None:
    model, texts = network("bilstm", "uniform", "nli"), batch(LENGTHS, "nli")
    target = model(texts).predicted
    free = gradient_x_input(model, texts, target)
    held = gradient_x_input(model, texts, target, hold_attention=True)
    torch.testing.assert_close(free.passage, held.passage)
    torch.testing.assert_close(free.query, held.query)


def test_attention_is_the_model_s_own() -> None:
    model, texts = network(task="nli"), batch(LENGTHS, "nli")
    scores = attention(model, texts, torch.zeros(3, dtype=torch.long))
    torch.testing.assert_close(scores.passage, model(texts).alpha.detach())
    torch.testing.assert_close(scores.passage.sum(1), torch.ones(3, dtype=torch.float64))
    assert scores.query is None


def test_parts() -> None:
    model, texts = network(task="qa"), batch(LENGTHS, "qa")
    target = model(texts).predicted
    both = gradient_x_input(model, texts, target)
    passage = gradient_x_input(model, texts, target, parts="passage")
    query = gradient_x_input(model, texts, target, parts="query")
    torch.testing.assert_close(passage.passage, both.passage)
    torch.testing.assert_close(query.query, both.query)
    assert passage.query is None
    assert query.passage.eq(0).all()


def test_the_scores_of_the_other_label_are_their_opposite() -> None:
    model, texts = network(), batch(LENGTHS)
    one = torch.ones(3, dtype=torch.long)
    torch.testing.assert_close(
        gradient_x_input(model, texts, one).passage, -gradient_x_input(model, texts, 1 - one).passage
    )


def test_gradients_can_be_asked_for_where_torch_records_none() -> None:
    model, texts = network(), batch(LENGTHS)
    target = torch.zeros(3, dtype=torch.long)
    expected = gradient(model, texts, target).passage
    with torch.no_grad():
        assert torch.equal(gradient(model, texts, target).passage, expected)
        assert not torch.is_grad_enabled()


def test_mistakes() -> None:
    model, texts = network(), batch([2])
    target = torch.tensor([0])
    with pytest.raises(Mistake, match="reads no query"):
        gradient(model, texts, target, parts="query")
    with pytest.raises(Mistake, match="passage, query, both"):
        gradient(model, texts, target, parts="premise")  # type: ignore[arg-type]
    with pytest.raises(Mistake, match="Did you mean 'logit'"):
        gradient_x_input(model, texts, target, of="logits")  # type: ignore[arg-type]
