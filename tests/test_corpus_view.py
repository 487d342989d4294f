"""Li et al.'s dataset view against loops over examples, words and dimensions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import zoo
from heedful.errors import Mistake
from heedful.explainers.perturbation.corpus_view import dimension_importance, surprise, word_importance
from heedful.explainers.perturbation.edits import Operator
from heedful.models import AttentiveClassifier
from heedful.models.link import LOG_ODDS
from heedful.records import Batch


def S(model: AttentiveClassifier, batch: Batch, label: int) -> float:
    with torch.no_grad():
        return -math.log(float(model(batch).probabilities[0, label]))


@pytest.mark.parametrize("task", ["binary", "several"])
def test_word_importance_is_the_mean_over_occurrences(task: zoo.TaskName) -> None:
    model = zoo.network("bilstm", "additive", task)
    batches = [zoo.batch([6, 3], task), zoo.batch([30, 1, 4], task, seed=1)]
    relative: dict[int, list[float]] = {}
    difference: dict[int, list[float]] = {}
    for batch in batches:
        assert batch.labels is not None
        for i in range(len(batch)):
            one, label = zoo.row(batch, i), int(batch.labels[i])
            before = S(model, one, label)
            for t in one.passage.mask[0].nonzero().flatten().tolist():
                shorter = zoo.without(one.passage, t)
                change = S(model, Batch(shorter), label) - before
                word = int(one.passage.ids[0, t])
                difference.setdefault(word, []).append(change)
                relative.setdefault(word, []).append(change / before)
    found = word_importance(model, batches)
    assert found.count.sum() == 44
    for word in range(zoo.N_WORDS):
        assert found.count[word] == len(relative.get(word, []))
        if word in relative:
            np.testing.assert_allclose(found.relative[word], np.mean(relative[word]), rtol=1e-9)
            np.testing.assert_allclose(found.difference[word], np.mean(difference[word]), rtol=1e-9)
        else:
            assert math.isnan(found.relative[word])


def test_predicted_labels_and_other_operators() -> None:
    model, batch = zoo.network("cnn", "dot", "several"), zoo.batch([6, 3], "several")
    with torch.no_grad():
        predicted = model(batch).predicted
    labelled = Batch(batch.passage, labels=predicted)
    operators: tuple[Operator, ...] = ("delete", "replace", "zero")
    for operator in operators:
        by_model = word_importance(model, [batch], operator=operator, label="predicted")
        by_label = word_importance(model, [labelled], operator=operator)
        np.testing.assert_array_equal(by_model.relative, by_label.relative)
    with pytest.raises(Mistake, match="predicted"):
        word_importance(model, [Batch(batch.passage)])
    with pytest.raises(Mistake, match="label"):
        word_importance(model, [batch], label="best")  # type: ignore[arg-type]


@pytest.mark.parametrize("task", ["binary", "nli"])
def test_dimension_importance_is_the_mean_over_examples(task: zoo.TaskName) -> None:
    model = zoo.network("bilstm", "additive", task)
    batches = [zoo.batch([6, 3], task), zoo.batch([5], task, seed=1)]
    found = dimension_importance(model, batches)
    assert found.count == 3
    for d in range(6):
        erased = zoo.network("bilstm", "additive", task)
        with torch.no_grad():
            erased.embedding.weight[:, d] = 0
        pairs = [
            (S(model, zoo.row(batch, i), int(label)), S(erased, zoo.row(batch, i), int(label)))
            for batch in batches
            if batch.labels is not None
            for i, label in enumerate(batch.labels)
        ]
        np.testing.assert_allclose(found.difference[d], np.mean([b - a for a, b in pairs]), atol=1e-12)
        np.testing.assert_allclose(found.relative[d], np.mean([(b - a) / a for a, b in pairs]), rtol=1e-9)


def test_a_dimension_that_is_always_zero_has_no_importance() -> None:
    model = zoo.network()
    with torch.no_grad():
        model.embedding.weight[:, 2] = 0
    found = dimension_importance(model, [zoo.batch([4, 5])])
    assert found.difference[2] == 0
    assert (found.difference[[0, 1, 3, 4, 5]] != 0).all()
    with pytest.raises(Mistake, match="no examples"):
        dimension_importance(model, [])


def test_surprise_is_finite_where_the_model_is_certain() -> None:
    z = torch.tensor([[200.0], [-200.0]])
    S = surprise(LOG_ODDS, z, torch.tensor([1, 1]))
    assert S[0] > 0
    assert S[1] == pytest.approx(200)
