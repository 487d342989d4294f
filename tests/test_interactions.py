"""Interactions against their definitions: the published double integral, all subsets, and shapiq."""

from __future__ import annotations

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import zoo
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS, Scores
from heedful.explainers.gradients.integrated import integrated_gradients
from heedful.explainers.interactions.archipelago import islands
from heedful.explainers.interactions.integrated_hessians import integrated_hessians
from heedful.explainers.interactions.log_rule import log_rule
from heedful.explainers.interactions.shapley import subsets
from heedful.explainers.interactions.words import Asking, WordGame, without
from heedful.explainers.perturbation.occlusion import omission
from heedful.explainers.perturbation.one_word import delete_two_words, has_structure
from heedful.models import AttentiveClassifier
from heedful.records import Batch

ALL = ("integrated_hessians", "removal_interactions", "shapley_interactions", "archipelago")


def run(name: str, model: AttentiveClassifier, texts: Batch, **given: Any) -> Scores:
    return EXPLAINERS[name].run(model, texts, model(texts).predicted, **given)


def whole(pairs: Tensor) -> Tensor:
    """Both halves of a matrix of pairs."""
    return pairs + pairs.triu(1).transpose(-1, -2)


def f_of(model: AttentiveClassifier, texts: Batch) -> Any:
    """f_c of subsets of the words of a text alone."""
    asking = Asking(model, texts, model(texts).predicted, "logit", "delete", None, None)
    return WordGame(asking, 0, ("passage", "query") if texts.query is not None else ("passage",))


# The Gauss rule


@pytest.mark.parametrize("m", [1, 2, 5, 12, 40])
def test_the_rule_is_exact_for_polynomials(m: int) -> None:
    t, weights = log_rule(m)
    assert ((t > 0) & (t < 1) & (np.diff(t, prepend=0) > 0)).all()
    for k in range(2 * m):
        assert weights @ t**k == pytest.approx(1 / (k + 1) ** 2, rel=1e-12)
    assert abs(weights @ t ** (2 * m) - 1 / (2 * m + 1) ** 2) > 0


def test_the_rule_is_fast_where_the_published_sum_is_slow() -> None:
    """int int a c exp(3 a c) da dc: 8 points against 20 x 20 of the published right Riemann sum."""
    a = (np.arange(4000) + 0.5) / 4000
    truth = float((np.outer(a, a) * np.exp(3 * np.outer(a, a))).mean())
    t, weights = log_rule(8)
    right = np.arange(1, 21) / 20
    published = float((np.outer(right, right) * np.exp(3 * np.outer(right, right))).mean())
    assert weights @ (t * np.exp(3 * t)) == pytest.approx(truth, rel=1e-6)
    assert abs(published - truth) > 0.1 * truth


# Integrated Hessians


def double_integral(model: AttentiveClassifier, texts: Batch, target: int, points: int = 400) -> Tensor:
    """Janizek et al.'s definition for one text, by the midpoint rule over alpha and beta: (all, all)."""
    moving = [(tokens, model.embed(tokens).detach()) for tokens in (texts.passage, texts.query) if tokens is not None]
    sizes = [x.shape[1] for _, x in moving]
    d = torch.cat([x * tokens.mask.unsqueeze(-1) for tokens, x in moving], 1)[0]  # (all, dim)
    stays = torch.cat([x * ~tokens.mask.unsqueeze(-1) for tokens, x in moving], 1)[0]

    def f(x: Tensor) -> Tensor:
        given = dict(zip(("x", "x_query"), (part.unsqueeze(0) for part in torch.split(x, sizes)), strict=False))
        return model(texts, **given).score(torch.tensor([target]))[0]

    middle = (np.arange(points) + 0.5) / points
    # a x c takes few different values where points are equally spaced: each is asked once, weighted by how often
    product, count = np.unique(np.round(np.outer(middle, middle) * 4 * points**2).astype(int), return_counts=True)
    at = product / (4 * points**2)
    # of these 60,000 those between which f is smooth are interpolated: 60 Chebyshev points hold 1e-10 (checked below)
    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(60) + 0.5) / 60)
    gamma, slope = [], []
    for t in nodes:
        x = (stays + t * d).requires_grad_()
        first = torch.autograd.grad(f(x), x, create_graph=True)[0]
        along = (first * d).sum(-1)
        gamma.append(torch.stack([(torch.autograd.grad(a, x, retain_graph=True)[0] * d).sum(-1) for a in along]))
        slope.append(along.detach())
    fit = np.linalg.pinv(np.polynomial.chebyshev.chebvander(2 * nodes - 1, 59))
    basis = np.polynomial.chebyshev.chebvander(2 * at - 1, 59) @ fit  # (products, nodes)
    share = count / count.sum()
    of_bend = torch.from_numpy((share * at) @ basis)
    of_slope = torch.from_numpy(share @ basis)
    found = torch.einsum("k,kij->ij", of_bend, torch.stack(gamma))
    return found + torch.diag(torch.einsum("k,ki->i", of_slope, torch.stack(slope)))


@pytest.mark.parametrize(("encoder", "task"), [("bilstm", "binary"), ("lstm", "several"), ("bilstm", "nli")])
def test_integrated_hessians_are_the_double_integral(encoder: Any, task: zoo.TaskName) -> None:
    model, texts = zoo.network(encoder, task=task), zoo.batch([4], task)
    with torch.no_grad():
        model.embedding.weight.mul_(2)  # away from where it is linear
    target = int(model(texts).predicted)
    found = run("integrated_hessians", model, texts, n_steps=20)
    expected = double_integral(model, texts, target)
    assert found.pairs is not None
    assert expected.triu(1).abs().max() > 1e-4
    expected = expected.triu() + expected.tril(-1).T
    torch.testing.assert_close(found.pairs[0], expected, atol=1e-4 * float(expected.abs().max()), rtol=1e-4)


@pytest.mark.parametrize("encoder", ["bilstm", "transformer", "lstm"])
def test_rows_are_integrated_gradients_and_all_is_the_change(encoder: Any) -> None:
    model, texts = zoo.network(encoder, task="nli"), zoo.batch([5, 2, 7], "nli")
    found = run("integrated_hessians", model, texts, n_steps=40, softplus_beta=0.0)
    gradients = integrated_gradients(model, texts, model(texts).predicted, n_steps=100)
    torch.testing.assert_close(found.passage, gradients.passage, atol=1e-6, rtol=1e-4)
    assert found.query is not None
    assert gradients.query is not None
    torch.testing.assert_close(found.query, gradients.query, atol=1e-6, rtol=1e-4)
    assert found.pairs is not None
    assert found.gap is not None
    assert found.scale is not None
    torch.testing.assert_close(found.pairs.sum((1, 2)) - found.gap, _change(gradients))
    assert (found.gap.abs() < 1e-4 * found.scale).all()


def _change(gradients: Scores) -> Tensor:
    """f(x) - f(b), from what integrated gradients say of it."""
    assert gradients.query is not None
    assert gradients.gap is not None
    return gradients.passage.sum(1) + gradients.query.sum(1) - gradients.gap


def test_texts_may_travel_apart_and_points_be_added() -> None:
    model, texts = zoo.network("bilstm"), zoo.batch([5, 9, 2])
    together = run("integrated_hessians", model, texts, n_steps=10)
    apart = run("integrated_hessians", model, texts, n_steps=10, internal_batch_size=4)
    assert together.pairs is not None
    assert apart.pairs is not None
    torch.testing.assert_close(together.pairs, apart.pairs, atol=1e-12, rtol=0)
    with torch.no_grad():
        model.embedding.weight.mul_(8)
    few = run("integrated_hessians", model, texts, n_steps=2)
    more = run("integrated_hessians", model, texts, n_steps=2, tolerance=1e-3, max_steps=64)
    assert few.gap is not None
    assert more.gap is not None
    assert more.gap.abs().max() < 0.1 * few.gap.abs().max()
    assert isinstance(more.forward_passes, Tensor)
    assert int(more.forward_passes.max()) > 4


def test_relu_has_no_second_derivative_and_softplus_takes_its_place() -> None:
    model, texts = zoo.network("cnn", "uniform"), zoo.batch([6])
    kinked = run("integrated_hessians", model, texts, softplus_beta=0.0)
    smooth = run("integrated_hessians", model, texts)
    assert kinked.pairs is not None
    assert smooth.pairs is not None
    assert kinked.pairs[0].triu(1).abs().max() == 0
    assert smooth.pairs[0].triu(1).abs().max() > 1e-3
    sharper = run("integrated_hessians", model, texts, softplus_beta=200.0, n_steps=100)
    assert smooth.gap is not None
    assert sharper.gap is not None
    assert sharper.gap.abs() < smooth.gap.abs()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n_steps": 0}, "n_steps must be from 1 to 200, not 0"),
        ({"max_steps": 201}, "max_steps must be from 1 to 200"),
        ({"softplus_beta": -1.0}, "softplus_beta must be 0"),
        ({"tolerance": 0.0}, "tolerance must be more than 0"),
    ],
)
def test_what_integrated_hessians_refuse(given: dict[str, Any], said: str) -> None:
    model, texts = zoo.network(), zoo.batch([3])
    with pytest.raises(Mistake, match=said):
        integrated_hessians(model, texts, model(texts).predicted, **given)


# Removal


@pytest.mark.parametrize("encoder", zoo.ENCODER_NAMES)
@pytest.mark.parametrize("attention", ["additive", "dot"])
def test_two_words_deleted_through_the_encoder(encoder: Any, attention: Any) -> None:
    model, texts = zoo.network(encoder, attention), zoo.batch([7])
    if not has_structure(model):
        return
    slow = f_of(model, texts)(without(7))
    fast = model.link.score(delete_two_words(model, texts), model(texts).predicted.expand(29), "logit")
    np.testing.assert_allclose(fast.numpy(), slow, atol=1e-12)
    few = model.link.score(delete_two_words(model, texts, 3), model(texts).predicted.expand(29), "logit")
    np.testing.assert_allclose(few.numpy(), slow, atol=1e-12)


@pytest.mark.parametrize("task", ["binary", "nli"])
def test_removal_by_its_definition(task: zoo.TaskName) -> None:
    model, texts = zoo.network(task=task), zoo.batch([5], task)
    f, found = f_of(model, texts), run("removal_interactions", model, texts)
    n, mask = f.n_words, texts.passage.mask
    if texts.query is not None:
        mask = torch.cat([mask, texts.query.mask], 1)
    assert found.pairs is not None
    pairs = found.pairs[0][mask[0]][:, mask[0]].numpy()

    def gone(*words: int) -> float:
        keep = np.ones((1, n), dtype=np.bool_)
        keep[0, list(words)] = False
        return float(f(keep)[0])

    for i, j in combinations(range(n), 2):
        assert pairs[i, j] == pytest.approx(gone() - gone(i) - gone(j) + gone(i, j), abs=1e-12)
        assert pairs[j, i] == 0
    alone = omission(model, texts, model(texts).predicted)
    torch.testing.assert_close(found.passage, alone.passage, atol=1e-12, rtol=0)
    torch.testing.assert_close(found.pairs[0].diagonal()[: mask.shape[1]], parts(found)[0], atol=1e-12, rtol=0)


def parts(scores: Scores) -> Tensor:
    return scores.passage if scores.query is None else torch.cat([scores.passage, scores.query], 1)


# Shapley


def brute_force(f: Any, n: int) -> np.ndarray:
    """I_ij by the definition, set by set."""
    value = {s: float(f(np.array([[i in s for i in range(n)]]))[0]) for k in range(n + 1) for s in sets(n, k)}
    found = np.zeros((n, n))
    for i, j in combinations(range(n), 2):
        for s in value:
            if i not in s and j not in s:
                weight = factorial(len(s)) * factorial(n - len(s) - 2) / factorial(n - 1)
                found[i, j] += weight * (value[s | {i, j}] - value[s | {i}] - value[s | {j}] + value[s])
    return found


def sets(n: int, k: int) -> list[frozenset[int]]:
    return [frozenset(s) for s in combinations(range(n), k)]


def test_shapley_by_its_definition_and_by_shapiq() -> None:
    shapiq = pytest.importorskip("shapiq")
    model, texts = zoo.network(), zoo.batch([6])
    f, found = f_of(model, texts), run("shapley_interactions", model, texts)
    assert found.pairs is not None
    pairs = found.pairs[0, 1:7, 1:7].numpy()
    np.testing.assert_allclose(np.triu(pairs, 1), brute_force(f, 6), atol=1e-12)
    computer = shapiq.ExactComputer(n_players=6, game=lambda there: f(np.asarray(there, dtype=bool)))
    theirs = computer(index="k-SII", order=2)
    for i, j in combinations(range(6), 2):
        assert pairs[i, j] == pytest.approx(theirs[(i, j)], abs=1e-10)
    for i in range(6):
        assert pairs[i, i] == pytest.approx(theirs[(i,)], abs=1e-10)
    both = f(np.array([[True] * 6, [False] * 6]))
    assert pairs.sum() == pytest.approx(both[0] - both[1], abs=1e-10)  # efficiency
    assert float(found.passage.sum()) == pytest.approx(both[0] - both[1], abs=1e-10)


def test_beyond_twelve_words_it_is_sampled_and_says_how_well() -> None:
    pytest.importorskip("shapiq")
    model, texts = zoo.network(), zoo.batch([13])
    with torch.no_grad():
        model.embedding.weight.mul_(4)
    found = run("shapley_interactions", model, texts, n_samples=3000, max_samples=3000)
    from heedful.explainers.interactions.shapley import exact_interactions

    value = f_of(model, texts)(subsets(13))
    exact = exact_interactions(value, 13)
    assert found.pairs is not None
    assert found.spread is not None
    pairs = np.triu(found.pairs[0, 1:14, 1:14].numpy(), 1)
    assert np.corrcoef(pairs[exact != 0], exact[exact != 0])[0, 1] > 0.95
    assert 0 < float(found.spread[0]) < 1
    again = run("shapley_interactions", model, texts, n_samples=3000, max_samples=3000)
    assert torch.equal(found.pairs, again.pairs)  # type: ignore[arg-type]


# Archipelago


def test_archipelago_by_its_definition() -> None:
    model, texts = zoo.network(), zoo.batch([5])
    f, found = f_of(model, texts), run("archipelago", model, texts, n_pairs=1)

    def only(*words: int) -> float:
        return float(f(np.array([[i in words for i in range(5)]]))[0])

    assert found.pairs is not None
    pairs = found.pairs[0, 1:6, 1:6].numpy()
    for i, j in combinations(range(5), 2):
        rest = [k for k in range(5) if k not in (i, j)]
        among = [only(*c, i, j) - only(*c, i) - only(*c, j) + only(*c) for c in (rest, [])]
        assert abs(pairs[i, j]) == pytest.approx(np.sqrt((among[0] ** 2 + among[1] ** 2) / 2), abs=1e-12)
        assert (pairs[i, j] < 0) == (sum(among) < 0)
    joined = islands(pairs, 1)
    assert sorted(map(len, joined)) == [1, 1, 1, 2]
    for island in joined:
        phi = only(*island) - only()
        assert [float(found.passage[0, 1 + i]) for i in island] == pytest.approx([phi / len(island)] * len(island))


def test_islands_are_joined_where_they_share_a_word() -> None:
    pairs = np.zeros((5, 5))
    pairs[0, 1], pairs[1, 4], pairs[2, 3] = 3.0, -2.0, 1.0
    assert islands(pairs, 0) == [(0,), (1,), (2,), (3,), (4,)]
    assert islands(pairs, 2) == [(0, 1, 4), (2,), (3,)]
    assert islands(pairs, 9) == [(0, 1, 4), (2, 3)]  # what is 0 joins nothing


# All of them


@pytest.mark.parametrize("name", ALL)
def test_pairs_of_two_texts_and_of_one(name: str) -> None:
    model, texts = zoo.network(task="nli"), zoo.batch([3, 2], "nli")
    assert texts.query is not None
    lengths = texts.passage.ids.shape[1], texts.query.ids.shape[1]
    both, one = run(name, model, texts), run(name, model, texts, parts="passage")
    other = run(name, model, texts, parts="query")
    assert both.pairs is not None
    assert one.pairs is not None
    assert other.pairs is not None
    assert both.pairs.shape == (2, sum(lengths), sum(lengths)) == other.pairs.shape
    assert one.pairs.shape == (2, lengths[0], lengths[0])
    assert one.query is None
    across = both.pairs[:, : lengths[0], lengths[0] :]
    assert across.abs().max() > 1e-9
    assert other.pairs[:, : lengths[0]].abs().max() == 0
    assert both.pairs.tril(-1).abs().max() == 0
    words = torch.cat([texts.passage.mask, texts.query.mask], 1)
    assert (both.pairs[~(words.unsqueeze(1) & words.unsqueeze(2))] == 0).all()
