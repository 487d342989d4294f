"""Li et al.'s dataset view against loops over examples, words and dimensions."""

from __future__ import annotations

import math

import pytest
import torch

import zoo
from heedful.errors import Mistake
from heedful.explainers.perturbation.corpus_view import erase_words, surprise
from heedful.models import AttentiveClassifier
from heedful.models.link import LOG_ODDS
from heedful.records import Batch


def S(model: AttentiveClassifier, batch: Batch, label: int) -> float:
    with torch.no_grad():
        return -math.log(float(model(batch).probabilities[0, label]))


@pytest.mark.parametrize("task", ["binary", "several"])
def test_what_erasing_a_word_does_is_the_difference_of_two_surprises(task: zoo.TaskName) -> None:
    model, batch = zoo.network("bilstm", "additive", task), zoo.batch([30, 1, 4], task, seed=1)
    assert batch.labels is not None
    found = erase_words(model, batch)
    for i in range(len(batch)):
        one, label = zoo.row(batch, i), int(batch.labels[i])
        before = S(model, one, label)
        for t in one.passage.mask[0].nonzero().flatten().tolist():
            change = S(model, Batch(zoo.without(one.passage, t)), label) - before
            assert float(found.difference[i, t]) == pytest.approx(change, rel=1e-9)
            assert float(found.relative[i, t]) == pytest.approx(change / before, rel=1e-9)


def test_predicted_labels() -> None:
    model, batch = zoo.network("cnn", "dot", "several"), zoo.batch([6, 3], "several")
    with torch.no_grad():
        predicted = model(batch).predicted
    labelled = Batch(batch.passage, labels=predicted)
    by_model = erase_words(model, batch, label="predicted")
    assert torch.equal(by_model.relative, erase_words(model, labelled).relative)
    with pytest.raises(Mistake, match="predicted"):
        erase_words(model, Batch(batch.passage))
    with pytest.raises(Mistake, match="label"):
        erase_words(model, batch, label="best")  # type: ignore[arg-type]


def test_surprise_is_finite_where_the_model_is_certain() -> None:
    z = torch.tensor([[200.0], [-200.0]])
    S = surprise(LOG_ODDS, z, torch.tensor([1, 1]))
    assert S[0] > 0
    assert S[1] == pytest.approx(200)
