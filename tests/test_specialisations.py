"""Every fast or exact way is a specialisation of a general path that needs less of a model: both agree.

The general path sees only what the protocols of models/network.py promise, so whatever holds here also holds for
models that have nothing but these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import zoo
from adversaries import strong
from heedful.experiments.adversarial.exact import exact_adversary
from heedful.experiments.adversarial.general import general_adversary
from heedful.experiments.attention.permutation import changes
from heedful.experiments.edited_attention.observe import EditedAttention, observer
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.explainers.gradients.path import PathGradient, gradients_of
from heedful.explainers.gradients.recurrent import BiLSTMPathGradient
from heedful.explainers.perturbation.one_word import CONTEXTS, change_each_word, has_structure
from heedful.models import AttentiveClassifier
from heedful.models.network import CAPABILITIES, token_budget
from heedful.registry import ENCODERS

LENGTHS = [4, 1, 9, 6]
each_task = pytest.mark.parametrize("task", zoo.TASK_NAMES)


def test_every_registered_context_is_tried_below() -> None:
    tried = {type(zoo.network(name).encoder) for name in ENCODERS}
    assert set(CONTEXTS) <= tried
    assert [has_structure(zoo.network(name)) for name in ENCODERS] == [
        type(zoo.network(name).encoder) in CONTEXTS for name in ENCODERS
    ]


@pytest.mark.parametrize("operator", ["delete", "replace", "zero"])
@pytest.mark.parametrize("encoder", zoo.ENCODER_NAMES)
@each_task
def test_one_word_changed(encoder: str, task: zoo.TaskName, operator: Any) -> None:
    model, batch = zoo.network(encoder, task=task), zoo.batch(LENGTHS, task)
    for part in ("passage", "query") if batch.query is not None else ("passage",):
        fast = change_each_word(model, batch, operator, part)
        slow = change_each_word(model, batch, operator, part, general=True)
        torch.testing.assert_close(fast.original, slow.original, atol=1e-12, rtol=0)
        torch.testing.assert_close(fast.changed, slow.changed, atol=1e-10, rtol=0)


@pytest.mark.parametrize("hold_attention", [False, True])
@each_task
def test_gradients_along_a_path(task: zoo.TaskName, hold_attention: bool) -> None:
    model, batch = zoo.network("bilstm", task=task), zoo.batch(LENGTHS, task)
    assert gradients_of(model) is BiLSTMPathGradient
    zero = torch.zeros((), dtype=torch.float64)
    target, a = torch.tensor([0, 1, 0, 1]), torch.tensor([0.2, 0.7, 1.0], dtype=torch.float64)
    for starts in ((zero, zero if batch.query else None), (zero, None)):
        fast, slow = (
            way(model, batch, target, "probability", starts, hold_attention)
            for way in (BiLSTMPathGradient, PathGradient)
        )
        torch.testing.assert_close(fast.change(zero), slow.change(zero), atol=1e-12, rtol=0)
        pairs = zip(fast.by_step(a, 2), slow.by_step(a, 3), strict=True)
        for ours, theirs in pairs:
            assert (ours is None) == (theirs is None)
            if ours is not None:
                torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


@pytest.mark.parametrize("family", ["GPT2", "Llama", "T5"])
def test_all_steps_of_a_continuation_at_once(family: str) -> None:
    """In full for every family and method: tests/test_language_steps.py."""
    pytest.importorskip("transformers")
    import language_zoo
    from heedful.explainers.gradients.steps import StepsPathGradient

    model = language_zoo.model(family)
    prompt = model.prompt("the keys to the cabinet")
    examples = model.steps(prompt, model.tokens_of(prompt, " are on the table"))
    batch, target = model.encode(examples).batch(range(len(examples))), torch.ones(len(examples), dtype=torch.long)
    zero, a = torch.zeros(()), torch.tensor([0.3, 1.0])
    ways = [way(model.network, batch, target, "logit", (zero, zero)) for way in (StepsPathGradient, PathGradient)]
    for ours, theirs in zip(ways[0].by_step(a, 1), ways[1].by_step(a, 2), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
    one_word = [change_each_word(model.network, batch, "delete")]
    model.network.share = False
    try:
        one_word.append(change_each_word(model.network, batch, "delete"))
    finally:
        model.network.share = True
    torch.testing.assert_close(one_word[0].changed, one_word[1].changed, atol=1e-5, rtol=1e-4)


@each_task
def test_asked_under_other_weights(task: zoo.TaskName) -> None:
    model, batch = strong(task), zoo.batch(LENGTHS, task)
    fast, slow = (observer(model, general=general)(np.arange(4), batch) for general in (False, True))
    assert type(fast) is PooledStates
    assert type(slow) is EditedAttention
    torch.testing.assert_close(fast.alpha, slow.alpha, atol=1e-15, rtol=0)
    assert np.array_equal(fast.predicted, slow.predicted)
    alphas = torch.rand(4, 5, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * fast.real[:, None]
    alphas = alphas / alphas.sum(-1, keepdim=True)
    torch.testing.assert_close(fast.decode(alphas), slow.decode(alphas), atol=1e-12, rtol=0)
    one, other = (changes(seen, [np.random.default_rng(i) for i in range(4)], 7) for seen in (fast, slow))
    np.testing.assert_allclose(one, other, atol=1e-12)
    torch.testing.assert_close(fast.y, slow.y, atol=1e-12, rtol=0)
    np.testing.assert_allclose(slow[1:3].decode(alphas[1:3]), slow.decode(alphas)[1:3], atol=1e-12)


@pytest.mark.parametrize("general", [False, True])
def test_the_exact_adversary(general: bool) -> None:
    """For two labels the general search tries all pairs of words where there are few: it finds the exact answer."""
    model, batch = strong(), zoo.batch([2, 3, 6, 8])
    seen = observer(model)(np.arange(4), batch)
    assert isinstance(seen, PooledStates)
    assert seen.decoder.theta is not None
    s, bias = seen.projected.squeeze(-1).numpy(), seen.decoder.theta.bias.item()
    exact = exact_adversary(seen.alpha.numpy(), s, bias, seen.real.numpy(), 0.01)
    found = general_adversary(observer(model, general=general)(np.arange(4), batch), 0.01)
    assert (found.jsd <= exact.jsd + 1e-9).all()
    np.testing.assert_allclose(found.jsd, exact.jsd, atol=1e-6)
    assert (found.delta_y <= 0.01).all()
    assert (found.bound >= exact.jsd - 1e-12).all()


def test_a_network_can_what_it_says() -> None:
    model, batch = zoo.network(), zoo.batch(LENGTHS)
    assert model.can == frozenset(CAPABILITIES) - {"self_attends", "generates", "compares", "selects"}
    own = model(batch)
    x = model.embed(batch.passage)
    assert torch.equal(model(batch, x=x).logits, own.logits)
    weights = model.attentions(batch)  # (batch, layers, heads, to, from)
    assert weights.shape == (4, 1, 1, 1, batch.passage.ids.shape[1])
    assert torch.equal(model(batch, edit=lambda layer, weights: weights).logits, own.logits)
    even = model(batch, edit=lambda layer, weights: batch.passage.mask[:, None, None] / weights.new_tensor(3.0))
    assert not torch.equal(even.logits, own.logits)
    assert isinstance(model, AttentiveClassifier)


def test_batches_are_smaller_where_layers_keep_more() -> None:
    model = zoo.network()
    assert token_budget(model, 8192) == 8192

    class Deep:
        bytes_per_token, n_layers = 50_000, 12

    assert token_budget(Deep(), 8192) == 2**30 // (50_000 * 12)  # type: ignore[arg-type]
