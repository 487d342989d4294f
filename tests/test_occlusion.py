"""Occlusion and masking: equation 5 by hand, Captum's FeatureAblation, every kind of model."""

from __future__ import annotations

import pytest
import torch
from captum.attr import FeatureAblation
from torch import Tensor

import zoo
from heedful.config import AttentionName, EncoderName
from heedful.data.text.vocabulary import UNK
from heedful.errors import Mistake
from heedful.explainers.perturbation.occlusion import mask, occlusion, omission
from heedful.models import AttentiveClassifier
from heedful.records import Batch
from zoo import score


def by_hand(model: AttentiveClassifier, batch: Batch, target: Tensor, new: Tensor) -> tuple[Tensor, Tensor | None]:
    """f_c(x) - f_c(x with x_i = new), one text and one word at a time."""
    passage = torch.zeros(batch.passage.ids.shape, dtype=torch.float64)
    query = None if batch.query is None else torch.zeros(batch.query.ids.shape, dtype=torch.float64)
    with torch.no_grad():
        for i in range(len(batch)):
            one, c = zoo.row(batch, i), target[i : i + 1]
            f = score(model(one).logits, c)
            for t in one.passage.mask[0].nonzero().flatten().tolist():
                x = model.embed(one.passage).clone()
                x[:, t] = new
                passage[i, t] = f - score(model(one, x=x).logits, c)
            if one.query is None or query is None:
                continue
            for t in one.query.mask[0].nonzero().flatten().tolist():
                x = model.embed(one.query).clone()
                x[:, t] = new
                query[i, t] = f - score(model(one, x_query=x).logits, c)
    return passage, query


@pytest.mark.parametrize(("encoder", "attention", "task"), zoo.KINDS)
def test_every_kind_of_model_equals_equation_5(
    encoder: EncoderName, attention: AttentionName, task: zoo.TaskName
) -> None:
    model, batch = zoo.network(encoder, attention, task, seed=3), zoo.batch([4, 1, 9], task)
    assert batch.labels is not None
    with torch.no_grad():
        for method, new in (
            (occlusion, torch.zeros(model.embedding.embedding_dim)),
            (mask, model.embedding.weight[UNK]),
        ):
            found = method(model, batch, batch.labels)
            passage, query = by_hand(model, batch, batch.labels, new)
            torch.testing.assert_close(found.passage, passage, atol=1e-12, rtol=0)
            assert (found.query is None) == (query is None)
            if found.query is not None and query is not None:
                torch.testing.assert_close(found.query, query, atol=1e-12, rtol=0)


def test_masking_takes_any_token() -> None:
    model, batch = zoo.network(), zoo.batch([5, 7])
    target = torch.tensor([0, 1])
    with torch.no_grad():
        expected = by_hand(model, batch, target, model.embedding.weight[17])[0]
    torch.testing.assert_close(mask(model, batch, target, token=17).passage, expected, atol=1e-12, rtol=0)
    with pytest.raises(Mistake, match="from 0 to 49"):
        mask(model, batch, target, token=50)


@pytest.mark.parametrize("encoder", zoo.ENCODER_NAMES)
def test_occlusion_equals_captum_feature_ablation(encoder: EncoderName) -> None:
    model, batch = zoo.network(encoder, "additive", "several"), zoo.batch([6, 3], "several")
    target = torch.tensor([1, 3])
    x = model.embed(batch.passage).detach()
    features = torch.arange(x.shape[1]).view(1, -1, 1).expand_as(x)  # a word is one feature
    ablation = FeatureAblation(lambda x: model(batch, x=x).logits)
    expected = ablation.attribute(x, target=target, feature_mask=features)[..., 0]
    found = occlusion(model, batch, target).passage
    torch.testing.assert_close(found, expected.detach() * batch.passage.mask, atol=1e-12, rtol=0)


@pytest.mark.parametrize("method", [occlusion, mask, omission])
@pytest.mark.parametrize("encoder", zoo.ENCODER_NAMES)
def test_a_text_has_the_same_scores_alone_and_in_any_batch(encoder: EncoderName, method: type) -> None:
    model, batch = zoo.network(encoder, "general", "nli"), zoo.batch([4, 11, 2, 4], "nli")
    target = torch.tensor([0, 1, 2, 1])
    whole = method(model, batch, target, internal_batch_size=9)
    for i in range(4):
        one = method(model, zoo.row(batch, i), target[i : i + 1])
        n, m = one.passage.shape[1], one.query.shape[1]
        torch.testing.assert_close(whole.passage[i, :n], one.passage[0], atol=1e-12, rtol=0)
        torch.testing.assert_close(whole.query[i, :m], one.query[0], atol=1e-12, rtol=0)
        assert not whole.passage[i, n:].any()
        assert not whole.passage[i, [0, n - 1]].any()


@pytest.mark.parametrize("method", [occlusion, mask, omission])
def test_model_and_batch_are_left_as_they_were(method: type) -> None:
    model, batch = zoo.network().train(), zoo.batch([4, 2])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    ids, state = batch.passage.ids.clone(), torch.get_rng_state()
    scores = method(model, batch, torch.tensor([0, 1]))
    assert not scores.passage.requires_grad
    assert not scores.passage.is_inference()
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.parameters())
    assert all(module.training for module in model.modules())
    assert torch.equal(ids, batch.passage.ids)
    assert torch.equal(state, torch.get_rng_state())


def test_a_word_that_is_not_read_gets_nothing() -> None:
    """The average's state of a word with a zero embedding does not change when it is zeroed."""
    model, batch = zoo.network("average"), zoo.batch([5])
    with torch.no_grad():
        model.embedding.weight[batch.passage.ids[0, 3]] = 0
    assert occlusion(model, batch, torch.tensor([1])).passage[0, 3] == 0
