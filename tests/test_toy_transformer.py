"""The protocols, held by a network that is not ours: what is asked through them is what recomputing by hand gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import zoo
from heedful.experiments.attention.permutation import changes
from heedful.experiments.edited_attention.observe import EditedAttention, View, observer
from heedful.models.network import Differentiable, SelfAttends
from heedful.records import Batch
from toy_transformer import HEADS, LAYERS, Array, ToyTransformer, by_hand

LENGTHS = [4, 1, 6]
CASES = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]


def ids_of(batch: Batch, i: int) -> list[int]:
    ids: list[int] = batch.passage.ids[i][batch.passage.present[i]].tolist()
    return ids


def probabilities(logits: Array) -> Array:
    e = np.exp(logits - logits.max())
    result: Array = e / e.sum()
    return result


def test_it_computes_what_is_written_out() -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    keeps: tuple[Differentiable, SelfAttends] = (model, model)
    assert len(keeps) == 2
    output, states, weights = model(batch), model.states(batch), model.attentions(batch)
    for i in range(len(batch)):
        logits, by_layer, every = by_hand(model, ids_of(batch, i))
        n = len(by_layer[0])
        np.testing.assert_allclose(output.logits[i].detach(), logits, atol=1e-12)
        np.testing.assert_allclose(states[i, :, :n].detach(), np.stack(by_layer), atol=1e-12)
        np.testing.assert_allclose(weights[i, :, :, :n, :n].detach(), np.stack(every), atol=1e-12)
        assert weights[i, :, :, :n, n:].eq(0).all()
    assert torch.equal(model(batch, x=model.embed(batch.passage)).logits, output.logits)
    assert torch.equal(model(batch, edit=lambda layer, weights: weights).logits, output.logits)


@pytest.mark.parametrize(("layer", "head"), CASES)
def test_one_head_of_one_layer_edited(layer: int, head: int) -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)

    def edit(number: int, weights: Tensor) -> Tensor:
        if number != layer:
            return weights
        edited = weights.clone()
        edited[:, head] = weights[:, head].roll(1, -1) / 2
        return edited

    output, states = model(batch, edit=edit), model.states(batch, edit=edit)
    own = model.attentions(batch)
    for i in range(len(batch)):
        ids = ids_of(batch, i)
        rolled = (own[i, layer, head].roll(1, -1) / 2).detach().numpy()
        if len(ids) == batch.passage.ids.shape[1]:  # without padding what rolls in is the text's own
            logits, by_layer, _ = by_hand(model, ids, {(layer, head): rolled})
            np.testing.assert_allclose(output.logits[i].detach(), logits, atol=1e-12)
            np.testing.assert_allclose(states[i].detach(), np.stack(by_layer), atol=1e-12)


def shared(own: Array, words: list[int], alpha: Array) -> Array:
    """(to, from): what each row gives to words is given as alpha says; the rest stays."""
    edited = own.copy()
    for row in edited:
        row[words] = alpha * row[words].sum()
    return edited


def moved(own: Array, words: list[int], places: list[int]) -> Array:
    """(to, from): word t gets what word places[t] had, in every row."""
    edited = own.copy()
    for before, row in zip(own, edited, strict=True):
        for t, place in enumerate(places):
            row[words[t]] = before[words[place]]
    return edited


@pytest.mark.parametrize("heads", [None, (1,), (0, 2)])
@pytest.mark.parametrize("layer", [0, 1, -1])
def test_asked_under_other_weights(layer: int, heads: tuple[int, ...] | None) -> None:
    """`EditedAttention`, through which permutation and adversaries ask, for a layer and some of its heads."""
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    seen = observer(model, View(layer, heads))(np.arange(3), batch)
    assert isinstance(seen, EditedAttention)
    number, chosen = layer % LAYERS, range(HEADS) if heads is None else heads
    generator = np.random.default_rng(0)
    alphas = np.zeros((3, 4, max(LENGTHS)))
    places = np.tile(np.arange(max(LENGTHS)), (3, 4, 1))
    for i, n in enumerate(LENGTHS):
        alphas[i, :, :n] = generator.dirichlet(np.ones(n), 4)
        places[i, :, :n] = generator.permuted(places[i, :, :n], axis=1)
    decoded, permuted = seen.decode(torch.from_numpy(alphas)), seen.permute(torch.from_numpy(places))
    for i, n in enumerate(LENGTHS):
        ids, words = ids_of(batch, i), list(range(1, n + 1))
        logits, _, weights = by_hand(model, ids)
        row = np.mean([weights[number][head][0] for head in chosen], axis=0)[words]
        np.testing.assert_allclose(seen.alpha[i, :n], row / row.sum(), atol=1e-12)
        np.testing.assert_allclose(model(batch).probabilities[i].detach(), probabilities(logits), atol=1e-12)
        for k in range(4):
            own = weights[number]
            one = {(number, h): shared(own[h], words, alphas[i, k, :n]) for h in chosen}
            other = {(number, h): moved(own[h], words, places[i, k, :n].tolist()) for h in chosen}
            np.testing.assert_allclose(decoded[i, k], probabilities(by_hand(model, ids, one)[0]), atol=1e-12)
            np.testing.assert_allclose(permuted[i, k], probabilities(by_hand(model, ids, other)[0]), atol=1e-12)


def test_permutation_of_one_head() -> None:
    """The TVD of a permutation that leaves every weight where it is is 0; of others it is what `by_hand` says."""
    model, batch = ToyTransformer(), zoo.batch([5, 1])
    seen = observer(model, View(1, (2,)))(np.arange(2), batch)
    found = changes(seen, [np.random.default_rng(i) for i in range(2)], 6)
    assert found[1].max() < 1e-12  # one word: nothing can be moved
    ids, words = ids_of(batch, 0), list(range(1, 6))
    logits, _, weights = by_hand(model, ids)
    places = np.random.default_rng(0).permuted(np.tile(np.arange(5), (6, 1)), axis=1)
    for k, place in enumerate(places.tolist()):
        other = by_hand(model, ids, {(1, 2): moved(weights[1][2], words, place)})[0]
        expected = np.abs(probabilities(other) - probabilities(logits)).sum() / 2
        assert found[0, k] == pytest.approx(expected, abs=1e-12)
