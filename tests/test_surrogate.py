"""LIME and SHAP: checked on functions whose answer is known, and by their own libraries."""

from __future__ import annotations

import sys
from itertools import permutations

import numpy as np
import pytest
import torch

import zoo
from heedful.errors import Mistake
from heedful.explainers.perturbation.edits import Edits
from heedful.explainers.perturbation.perturb import predict
from heedful.explainers.perturbation.surrogate import lime, shap
from heedful.records import Batch, Tokens
from zoo import score


def same_word_twice() -> Batch:
    ids = torch.tensor([[2, 9, 12, 9, 7, 3]])
    mask = torch.tensor([[False, True, True, True, True, False]])
    return Batch(Tokens(ids, torch.ones_like(mask), mask))


def test_shap_is_exact_for_few_words() -> None:
    """Against the definition: the mean gain of a word over all orders, of which two words have two."""
    model = zoo.network("bilstm", "additive", "several")
    for n in (1, 2):
        batch = zoo.batch([n], "several")
        subsets = np.array(list(np.ndindex(*(2,) * n)), dtype=bool)  # (2^n, n)
        keep = np.ones((len(subsets), n + 2), dtype=bool)
        keep[:, 1:-1] = subsets
        logits = predict(model, batch, Edits.keeping(batch.passage, np.zeros(len(keep), dtype=np.int64), keep))
        f = dict(zip(map(tuple, subsets.tolist()), score(logits, torch.tensor([2] * len(keep))).tolist(), strict=True))
        expected = np.zeros(n)
        for order in permutations(range(n)):
            there = [False] * n
            for word in order:
                before = f[tuple(there)]
                there[word] = True
                expected[word] += (f[tuple(there)] - before) / len(list(permutations(range(n))))
        found = shap(model, batch, torch.tensor([2]), of="logit", n_permutations=2)
        np.testing.assert_allclose(found.passage[0, 1:-1].numpy(), expected, atol=1e-12)


def test_shap_is_complete() -> None:
    model, batch = zoo.network("cnn", "dot", "nli"), zoo.batch([6, 3], "nli")
    target = torch.tensor([0, 2])
    found = shap(model, batch, target, of="probability", n_permutations=3)
    assert found.gap is not None
    assert found.scale is not None
    none = Edits.keeping(batch.passage, np.array([0, 1]), np.zeros(tuple(batch.passage.ids.shape), dtype=bool))
    with torch.no_grad():
        change = model(batch).score(target, "probability") - score(predict(model, batch, none), target, "probability")
    torch.testing.assert_close(found.passage.sum(1), change, atol=1e-12, rtol=0)
    torch.testing.assert_close(found.scale, found.passage.abs().amax(1), atol=1e-12, rtol=0)
    assert found.query is not None
    assert batch.query is not None
    assert (found.query != 0).equal(batch.query.mask)


def test_shap_says_how_uncertain_it_is() -> None:
    """Exact for few words; else the spread of its halves, which is about its true error, and shrinks with more."""
    model, batch, target = zoo.network("bilstm"), zoo.batch([9]), torch.tensor([1])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    exact = shap(model, batch, target, n_permutations=40)  # 2^9 <= 40 * 19
    assert exact.gap is not None
    assert exact.gap[0] == 0
    errors, told = [], []
    for seed in range(12):
        few = shap(model, batch, target, n_permutations=2, seed=seed)
        assert few.gap is not None
        errors.append(float((few.passage - exact.passage).abs().max()))
        told.append(float(few.gap[0]))
    assert 0.3 < np.mean(told) / np.mean(errors) < 3
    more = shap(model, batch, target, n_permutations=2, max_permutations=26, tolerance=0.01, seed=0)
    assert isinstance(more.forward_passes, torch.Tensor)
    assert int(more.forward_passes[0]) > 2 * 19
    assert float((more.passage - exact.passage).abs().max()) < np.mean(errors)


def test_lime_finds_the_line_where_there_is_one() -> None:
    """A uniform average with words replaced by one of embedding zero is linear in which words are there."""
    model, batch = zoo.network("average", "uniform"), zoo.batch([6, 4])
    with torch.no_grad():
        model.encoder.linear.bias.zero_()  # type: ignore[union-attr, operator]
    target = torch.tensor([1, 1])
    found = lime(model, batch, target, of="logit", n_samples=3000, operator="replace", token=0)
    assert found.gap is not None
    assert found.scale is not None
    with torch.no_grad():
        out = model(batch)
        expected = model.decoder.project(out.h)[..., 0] * out.alpha
    assert found.gap.abs().max() < 0.01
    assert found.scale.tolist() == [1, 1]
    torch.testing.assert_close(found.passage, expected, atol=2e-3, rtol=0)


def test_lime_says_how_badly_a_line_fits() -> None:
    model, batch = zoo.network("bilstm", "additive"), zoo.batch([6])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    found = lime(model, batch, torch.tensor([1]), n_samples=500)
    assert found.gap is not None
    assert 0.02 < found.gap[0] < 1


@pytest.mark.parametrize("method", [lime, shap])
def test_positions_not_words_and_seeded_for_each_text(method: type) -> None:
    few = {"n_samples": 60} if method is lime else {"n_permutations": 1}
    model, batch = zoo.network(), same_word_twice()
    target = torch.tensor([1])
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state(legacy=False)["state"]["key"].tolist()  # noqa: NPY002
    first = method(model, batch, target, seed=3, **few)
    assert np.random.get_state(legacy=False)["state"]["key"].tolist() == before  # noqa: NPY002
    assert first.passage[0, 1] != first.passage[0, 3]
    assert not first.passage[0, [0, 5]].any()
    assert torch.equal(first.passage, method(model, batch, target, seed=3, **few).passage)
    assert not torch.equal(first.passage, method(model, batch, target, seed=4, **few).passage)
    others = zoo.tokens([4, 4], seed=9)
    ids = torch.cat([others.ids[:1], batch.passage.ids])
    together = Batch(Tokens(ids, others.present, others.mask))
    found = method(model, together, torch.tensor([0, 1]), seed=3, **few)
    torch.testing.assert_close(found.passage[1], first.passage[0], atol=1e-12, rtol=0)


@pytest.mark.parametrize(("method", "package"), [(lime, "lime.lime_base"), (shap, "shap")])
def test_a_missing_library_is_named(method: type, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Mistake, match=r"pip install 'heedful\[surrogate\]'"):
        method(zoo.network(), zoo.batch([2]), torch.tensor([0]))


def test_what_is_wrong_is_said() -> None:
    model, batch, target = zoo.network(), zoo.batch([2]), torch.tensor([0])
    with pytest.raises(Mistake, match="n_samples"):
        lime(model, batch, target, n_samples=1)
    with pytest.raises(Mistake, match="n_permutations"):
        shap(model, batch, target, n_permutations=0)
    with pytest.raises(Mistake, match="operator"):
        lime(model, batch, target, operator="zap")  # type: ignore[arg-type]
    with pytest.raises(Mistake, match="part"):
        lime(model, batch, target, parts="title")  # type: ignore[arg-type]
