"""The engine asks about each different text once, within its budget, and recovers when memory runs out."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import zoo
from heedful.data.text.vocabulary import UNK
from heedful.errors import Mistake
from heedful.explainers.perturbation.edits import Edits, Operator, edit
from heedful.explainers.perturbation.perturb import evaluating, predict
from heedful.models import AttentiveClassifier
from heedful.models.attentive.classifier import AttentiveOutput
from heedful.records import Batch, Part, Tokens


class Counting(AttentiveClassifier):
    """Remembers the sizes of the batches it read, and runs out of memory above `room` texts."""

    sizes: list[int]
    room = 10**9
    complaint: Exception = RuntimeError("DefaultCPUAllocator: can't allocate memory")

    def forward(self, batch: Batch, **given: Any) -> AttentiveOutput:
        if len(batch) > self.room:
            raise self.complaint
        self.sizes.append(len(batch))
        return super().forward(batch, **given)


def counting(task: zoo.TaskName = "binary") -> Counting:
    model = zoo.network(task=task)
    model.__class__ = Counting
    assert isinstance(model, Counting)
    object.__setattr__(model, "sizes", [])
    return model


def by_hand(tokens: Tokens, row: int, words: list[int], operator: Operator, token: int) -> tuple[Tokens, list[int]]:
    """One edited text alone, made with Python lists; and where its embedding is to be zero."""
    n = int(tokens.present[row].sum())
    ids, mask = tokens.ids[row, :n].tolist(), tokens.mask[row, :n].tolist()
    if operator == "replace":
        ids = [token if i in words else t for i, t in enumerate(ids)]
    if operator == "delete":
        ids, mask = ([v for i, v in enumerate(values) if i not in words] for values in (ids, mask))
    present = torch.ones(1, len(ids), dtype=torch.bool)
    return Tokens(torch.tensor([ids]), present, torch.tensor([mask])), words if operator == "zero" else []


def alone(model: AttentiveClassifier, batch: Batch, row: int, part: Part, tokens: Tokens, zero: list[int]) -> Tensor:
    one = zoo.row(batch, row)
    x = model.embed(tokens)
    x[:, zero] = 0
    if part == "query":
        return model(Batch(one.passage, tokens, one.candidates), x_query=x).logits[0]
    return model(Batch(tokens, one.query, one.candidates), x=x).logits[0]


@pytest.mark.parametrize("operator", ["delete", "replace", "zero"])
@pytest.mark.parametrize("part", ["passage", "query"])
@given(seed=st.integers(0, 99), lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4))
@settings(max_examples=10, deadline=None)
def test_any_subset_of_words_equals_the_text_edited_by_hand(
    operator: Operator, part: Part, seed: int, lengths: list[int]
) -> None:
    model, batch = zoo.network("bilstm", "additive", "qa", seed), zoo.batch(lengths, "qa", seed)
    tokens = batch.passage if part == "passage" else batch.query
    assert tokens is not None
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(lengths), size=12)
    keep = rng.random((12, tokens.ids.shape[1])) < 0.6
    with torch.no_grad():
        logits = predict(model, batch, Edits.keeping(tokens, rows, keep), operator, part, token=7)
        for e, row in enumerate(rows.tolist()):
            words = [i for i in range(tokens.ids.shape[1]) if tokens.mask[row, i] and not keep[e, i]]
            edited, zero = by_hand(tokens, row, words, operator, 7)
            expected = alone(model, batch, row, part, edited, zero)
            torch.testing.assert_close(logits[e], expected, atol=1e-12, rtol=0)


def test_markers_stay_when_every_word_is_deleted() -> None:
    tokens = zoo.tokens([3])
    edited = edit(tokens, Edits.keeping(tokens, np.array([0]), np.zeros((1, 5), dtype=bool)), np.array([0]), "delete")
    assert edited.tokens.ids.tolist() == [[2, 3]]
    assert edited.tokens.mask.tolist() == [[False, False]]


def test_equal_edited_texts_are_asked_once() -> None:
    model = counting()
    ids = torch.tensor([[2, 9, 9, 9, 5, 3], [2, 9, 9, 9, 5, 3]])
    mask = torch.tensor([[False, True, True, True, True, False]] * 2)
    batch = Batch(Tokens(ids, torch.ones_like(mask), mask))
    seen: list[tuple[int, int]] = []
    logits = predict(model, batch, Edits.each_word(batch.passage), progress=lambda *done: seen.append(done))
    assert sum(model.sizes) == 2  # "9 9 5" three times in each text, and "9 9 9"
    assert seen[-1] == (2, 2)
    assert logits.shape == (8, 1)
    assert torch.equal(logits[0], logits[6])
    assert not torch.equal(logits[0], logits[3])


def test_texts_that_differ_only_in_query_or_candidates_are_not_the_same() -> None:
    model = counting("qa")
    passage = zoo.tokens([1, 1, 1])
    passage = Tokens(passage.ids[:1].expand(3, -1), passage.present, passage.mask)
    query = zoo.tokens([2, 2, 2], seed=5)
    query = Tokens(query.ids[[0, 1, 0]], query.present, query.mask)
    candidates = torch.ones(3, 5, dtype=torch.bool)
    candidates[2, 0] = False
    predict(model, Batch(passage, query, candidates), Edits.each_word(passage))
    assert sum(model.sizes) == 3


@pytest.mark.parametrize("complaint", [RuntimeError("CUDA out of memory."), MemoryError()])
def test_batches_are_halved_when_memory_runs_out(complaint: Exception) -> None:
    model, batch = counting(), zoo.batch([9, 7, 8])
    edits = Edits.each_word(batch.passage)
    expected = predict(model, batch, edits)
    different = sum(model.sizes)
    model.sizes.clear()
    model.room, model.complaint = 5, complaint
    torch.testing.assert_close(predict(model, batch, edits), expected, atol=1e-12, rtol=0)
    assert sum(model.sizes) == different
    assert max(model.sizes) <= 5
    model.room = 0
    with pytest.raises(type(complaint)):
        predict(model, batch, edits)


def test_other_errors_are_not_swallowed() -> None:
    model, batch = counting(), zoo.batch([4])
    model.room, model.complaint = 0, RuntimeError("shapes do not match")
    with pytest.raises(RuntimeError, match="shapes"):
        predict(model, batch, Edits.each_word(batch.passage))


def test_batches_keep_to_the_limits() -> None:
    model, batch = counting(), zoo.batch([20, 3, 11])
    edits = Edits.each_word(batch.passage)
    whole = predict(model, batch, edits)
    for limits in ({"internal_batch_size": 4}, {"memory": 20_000}):
        model.sizes.clear()
        torch.testing.assert_close(predict(model, batch, edits, **limits), whole, atol=1e-12, rtol=0)  # type: ignore[arg-type]
        assert len(model.sizes) > 5
    assert max(model.sizes) > min(model.sizes)  # more short texts fit than long ones


def test_what_cannot_be_asked_is_said() -> None:
    model, batch = zoo.network(), zoo.batch([3])
    with pytest.raises(Mistake, match="no query"):
        predict(model, batch, Edits.each_word(batch.passage), part="query")
    with pytest.raises(Mistake, match="internal_batch_size"):
        predict(model, batch, Edits.each_word(batch.passage), internal_batch_size=0)
    with pytest.raises(ValueError, match="keep is"):
        Edits.keeping(batch.passage, np.array([0]), np.ones((1, 2), dtype=bool))


def test_no_edits_no_answers() -> None:
    batch = zoo.batch([3])
    none = Edits.keeping(batch.passage, np.zeros(0, dtype=np.int64), np.ones((0, 5), dtype=bool))
    assert predict(zoo.network(), batch, none).shape == (0, 1)
    assert predict(zoo.network(task="several"), batch, none).shape == (0, 4)


def test_replacing_uses_the_unknown_word_by_default() -> None:
    tokens = zoo.tokens([2])
    assert edit(tokens, Edits.each_word(tokens), np.array([0]), "replace").tokens.ids[0, 1] == UNK


def test_every_module_is_in_its_own_mode_again() -> None:
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), nn.Linear(1, 1)))
    model.train()
    model[1].eval()
    before = [module.training for module in model.modules()]
    with evaluating(cast(Any, model)):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == before

    def fails() -> None:
        with evaluating(cast(Any, model)):
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert [module.training for module in model.modules()] == before
