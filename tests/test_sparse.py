"""Sparse attention: the mappings by their definitions, and words without weight, whose erasure changes nothing."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats

import zoo
from heedful.config import ModelConfig
from heedful.experiments import find, to_table
from heedful.experiments.edited_attention.observe import observer
from heedful.experiments.erasure.smallest_set import attention_gradient
from heedful.explainers import EXPLAINERS
from heedful.explainers.lrp.decomposition import decompose
from heedful.explanation.attribution import Attribution
from heedful.models import AttentiveClassifier, build
from heedful.models.attentive.sparse import entmax15, sparsemax
from heedful.records import Batch
from heedful.registry import ATTENTIONS
from test_hierarchical import documents

SPARSE = [name for name in ATTENTIONS if name.endswith(("sparsemax", "entmax"))]
SCORES = st.lists(st.floats(-4, 4), min_size=1, max_size=6)
each_attention = pytest.mark.parametrize("attention", SPARSE)


def projection(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """argmin ||p - z||^2: for each possible support the only candidate (p = z - tau on it), of these the nearest."""
    best, found = np.inf, z
    for size in range(1, len(z) + 1):
        for support in map(list, combinations(range(len(z)), size)):
            p = np.zeros(len(z))
            p[support] = z[support] - (z[support].sum() - 1) / size
            if (p >= 0).all() and ((p - z) ** 2).sum() < best:
                best, found = ((p - z) ** 2).sum(), p
    return found


def by_root(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """entmax-1.5: p = [z / 2 - tau]_+^2, with the tau at which p sums to 1 (Peters et al. 2019, equation 6)."""
    tau = optimize.brentq(
        lambda t: (np.maximum(z / 2 - t, 0) ** 2).sum() - 1, z.max() / 2 - 1 - 1e-9, z.max() / 2, xtol=1e-14
    )
    p: NDArray[np.float64] = np.maximum(z / 2 - tau, 0) ** 2
    return p


@given(SCORES, st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_the_mappings_by_their_definitions_and_whatever_is_masked(scores: list[float], padding: int) -> None:
    z = torch.tensor([*scores, *[9.0] * padding]).double()
    mask = torch.arange(len(z)) < len(scores)
    for mapping, slow in ((sparsemax, projection), (entmax15, by_root)):
        p = mapping(z, mask)
        assert p[~mask].eq(0).all()
        np.testing.assert_allclose(p[mask].numpy(), slow(np.array(scores)), atol=1e-7)


@pytest.mark.parametrize("mapping", [sparsemax, entmax15])
def test_nothing_to_attend_to_gives_zeros_and_gradients_are_finite(mapping: Any) -> None:
    z = torch.randn(3, 4, requires_grad=True)
    mask = torch.tensor([[False] * 4, [True] * 4, [False, True, False, False]])
    p = mapping(z, mask)
    assert p[0].eq(0).all()
    assert p[2].tolist() == [0, 1, 0, 0]
    assert torch.autograd.grad(p.sin().sum(), z)[0].isfinite().all()
    assert mapping(torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool)).shape == (2, 0)


def sparse_model(
    attention: str, batch: Batch, task: zoo.TaskName = "binary", encoder: str = "bilstm"
) -> AttentiveClassifier:
    """Its scores are spread so far that some words of the batch have no weight, and several have some."""
    model = zoo.network(encoder, attention, task)
    phi = model.attention.phi
    with torch.no_grad():
        output = model(batch)
        scale = float(phi(output.h, output.query)[batch.passage.mask].std())
    model.attention.phi = lambda h, query: phi(h, query) / scale  # type: ignore[method-assign]
    return model


@each_attention
@pytest.mark.parametrize("task", ["binary", "several", "nli"])
@pytest.mark.parametrize("general", [False, True])
def test_erasing_a_word_without_weight_changes_nothing(attention: str, task: zoo.TaskName, general: bool) -> None:
    """Bit for bit, by itself, with others, and as the beginning of an order."""
    batch = zoo.batch([8, 3, 11, 1], task)
    model = sparse_model(attention, batch, task)
    seen = observer(model, general=general)(np.arange(4), batch)
    none = seen.real & seen.alpha.eq(0)
    assert none.any()
    one = torch.diag_embed(none)  # (B, T, T): each by itself
    every = torch.cat([one, none.unsqueeze(1)], dim=1)
    found = seen.erase(every)
    assert torch.equal(found, seen.y.unsqueeze(1).expand_as(found))
    order = torch.where(seen.real, seen.alpha, torch.inf).argsort(dim=1, stable=True)  # those without weight first
    along = seen.erase_along(order)
    for text, n in enumerate(none.sum(1).tolist()):
        assert torch.equal(along[text, :n], seen.y[text].expand(n, -1))
        if n + 1 < int(seen.real[text].sum()):
            assert not torch.equal(along[text, n], seen.y[text])


@each_attention
def test_the_network_itself_does_not_read_a_word_without_weight(attention: str) -> None:
    """Another state in the place of a word without weight: the logits are the same bits."""
    batch = zoo.batch([9, 4])
    model = sparse_model(attention, batch)
    output = model(batch)
    none = batch.passage.mask & output.alpha.eq(0)
    assert none.any()
    other = torch.where(none.unsqueeze(-1), 7.0, output.h)
    assert torch.equal(model.decode(other, output.alpha), model.decode(output.h, output.alpha))


@each_attention
@pytest.mark.parametrize("encoder", ["lstm", "average"])
def test_a_gradient_with_attention_held_says_nothing_of_words_without_weight(attention: str, encoder: str) -> None:
    """To an average a word matters through its own state alone. Through the weights themselves it may matter."""
    batch = zoo.batch([9, 4])
    model = sparse_model(attention, batch, encoder=encoder)
    alpha = model(batch).alpha
    x = model.embed(batch.passage).detach().requires_grad_()
    f = model(batch, x=x, alpha=alpha.detach()).logits.sum()
    slope = torch.autograd.grad(f, x)[0].norm(dim=-1)
    none = batch.passage.mask & alpha.eq(0)
    assert none.any()
    if encoder == "average":
        assert slope[none].eq(0).all()
    assert slope[alpha > 0].gt(0).all()


@pytest.mark.parametrize("task", ["binary", "several"])
def test_importance_of_words_without_weight(task: zoo.TaskName) -> None:
    """They come last by attention; by gradient they have the place that a first weight would earn them."""
    batch = zoo.batch([8, 11], task)
    model = sparse_model("additive_sparsemax", batch, task)
    seen = observer(model)(np.arange(2), batch)
    slope, h = attention_gradient(seen), 1e-6
    for text, place in seen.real.nonzero().tolist():
        delta = torch.zeros(2, 1, seen.alpha.shape[1], dtype=torch.float64)
        delta[text, 0, place] = h
        p = seen.shift(delta)[text, 0] - seen.shift(-delta)[text, 0]
        assert float(slope[text, place]) == pytest.approx(float(p[seen.y[text].argmax()]) / (2 * h), abs=1e-7)
    rows = to_table(
        find("importance_sets").run(
            model, [(np.arange(2), batch)], find("importance_sets").config(), np.random.default_rng(0)
        )
    ).to_pylist()
    for row in rows:
        support = int((seen.alpha[row["example"]] > 0).sum())
        if row["ranking"] == "attention" and row["removed"] is not None:
            assert row["smallest_high"] <= row["removed"] < support  # when all weight is gone nothing has flipped


def test_rank_correlation_counts_words_without_weight_as_ties() -> None:
    batch = zoo.batch([10, 14])
    model = sparse_model("dot_sparsemax", batch)
    experiment = find("correlation")
    rows = to_table(
        experiment.run(model, [(np.arange(2), batch)], experiment.config(), np.random.default_rng(0))
    ).to_pylist()
    alpha = model(batch).alpha.detach().numpy()
    options = {"of": "probability"}
    scores = EXPLAINERS["omission"].run(model, batch, model(batch).predicted, **options).passage.abs().numpy()
    assert (alpha[batch.passage.mask.numpy()] == 0).sum() > 2
    found = {row["example"]: row["tau"] for row in rows if row["pair"] == "attention/omission"}
    for i, mask in enumerate(batch.passage.mask.numpy()):
        assert found[i] == pytest.approx(stats.kendalltau(alpha[i, mask], scores[i, mask]).statistic, abs=1e-9)


@each_attention
def test_a_hierarchical_model_is_taken_apart_with_its_weights_as_gates(attention: str) -> None:
    config = ModelConfig(encoder="average", attention=attention, embedding_dim=6, hidden_dim=8, hierarchical=True)
    model, batch = build(config, zoo.N_WORDS, 2).double().eval(), documents([[3, 5], [4, 1, 2]])
    with torch.no_grad():
        for parameter in (*model.attention.parameters(), *model.sentence_attention.parameters()):  # type: ignore[union-attr]
            parameter.mul_(20)
    assert (batch.passage.mask & model(batch).alpha.eq(0)).any()
    found = decompose(model, batch, torch.tensor([0, 1]))
    assert found.missing.max() < 1e-9


def test_the_support_is_told() -> None:
    scores = np.array([0.7, 0.0, 0.3, 0.0])
    sparse = Attribution("attention", "attention", False, "pos", {"passage": scores})
    assert sparse.about_support() == "weight on 2 of 4 words"
    full = Attribution("attention", "attention", False, "pos", {"passage": scores + 0.1})
    other = Attribution("lrp", "saliency", True, "pos", {"passage": scores})
    assert full.about_support() == other.about_support() == ""


def test_the_support_is_summarised() -> None:
    batch = zoo.batch([8, 11])
    model = sparse_model("additive_sparsemax", batch)
    experiment = find("adversarial")
    table = to_table(experiment.run(model, [(np.arange(2), batch)], experiment.config(), np.random.default_rng(0)))
    alpha, mask = model(batch).alpha.detach(), batch.passage.mask
    shares = [float((alpha[i][mask[i]] > 0).double().mean()) for i in range(2)]
    assert experiment.summarise(table)["overall"]["support"] == pytest.approx(np.mean(shares))
    assert np.mean(shares) < 0.9
    assert all(row["jsd"] <= row["bound"] + 1e-9 and row["exact"] for row in table.to_pylist())
