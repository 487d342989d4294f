"""Scores of a classifier against counts made by hand."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful.measure.performance import performance

NAMES = ["accuracy", "f1", "macro_f1", "micro_f1", "roc_auc", "pr_auc"]


def made_up(classes: int, n: int = 300) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    generator = np.random.default_rng(classes)
    labels = generator.integers(0, classes, n)
    logits = generator.normal(size=(n, classes)) + 1.5 * np.eye(classes)[labels]
    return labels, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def f1_by_hand(true: NDArray[np.bool_], said: NDArray[np.bool_]) -> float:
    hits = int((true & said).sum())
    return 2 * hits / (int(true.sum()) + int(said.sum()))


def roc_by_hand(true: NDArray[np.bool_], score: NDArray[np.float64]) -> float:
    """The chance that a positive scores above a negative; ties count half."""
    gap = score[true][:, None] - score[~true][None, :]
    return float((gap > 0).mean() + 0.5 * (gap == 0).mean())


def pr_by_hand(true: NDArray[np.bool_], score: NDArray[np.float64]) -> float:
    """Precision at each positive, from the highest score down (no ties here)."""
    ranked = true[np.argsort(-score)]
    return float((np.cumsum(ranked) / np.arange(1, len(ranked) + 1))[ranked].mean())


def test_two_classes() -> None:
    labels, p = made_up(2)
    said, result = p.argmax(axis=1), performance(labels, p)
    assert list(result) == NAMES
    f1 = [f1_by_hand(labels == c, said == c) for c in (0, 1)]
    assert result["accuracy"] == result["micro_f1"] == pytest.approx((labels == said).mean())
    assert result["f1"] == pytest.approx(f1[1])
    assert result["macro_f1"] == pytest.approx(np.mean(f1))
    assert result["roc_auc"] == pytest.approx(roc_by_hand(labels == 1, p[:, 1]))
    assert result["pr_auc"] == pytest.approx(pr_by_hand(labels == 1, p[:, 1]))


def test_several_classes() -> None:
    labels, p = made_up(4)
    said, result = p.argmax(axis=1), performance(labels, p)
    assert list(result) == NAMES
    f1 = [f1_by_hand(labels == c, said == c) for c in range(4)]
    assert result["f1"] == result["macro_f1"] == pytest.approx(np.mean(f1))
    assert result["roc_auc"] == pytest.approx(np.mean([roc_by_hand(labels == c, p[:, c]) for c in range(4)]))
    assert result["pr_auc"] == pytest.approx(np.mean([pr_by_hand(labels == c, p[:, c]) for c in range(4)]))


@pytest.mark.parametrize("only", [0, 1])
@pytest.mark.parametrize("classes", [2, 3])
def test_one_class_alone_has_no_area_and_raises_no_warning(only: int, classes: int) -> None:
    p = np.eye(classes)[[only, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = performance([only, only], p)
    assert math.isnan(result["roc_auc"])
    assert math.isnan(result["pr_auc"])
    assert result["accuracy"] == (1.0 if only == 0 else 0.5)


def test_classes_that_never_occur_are_left_out_of_the_means_without_a_warning() -> None:
    labels = np.array([0, 3, 0, 3])
    p = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.1, 0.7], [0.6, 0.1, 0.1, 0.2], [0.4, 0.1, 0.2, 0.3]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = performance(labels, p)
    assert result["macro_f1"] == pytest.approx((0.8 + 2 / 3) / 2)
    assert result["roc_auc"] == 1.0


@pytest.mark.parametrize(
    ("labels", "p", "message"),
    [
        ([0, 1], [[0.5, 0.5]], r"given \(2,\) and \(1, 2\)"),
        ([], np.zeros((0, 2)), r"given \(0,\) and \(0, 2\)"),
        ([0], [0.5], r"given \(1,\) and \(1,\)"),
        ([2], [[0.5, 0.5]], "from 0 to 1; given int64 from 2 to 2"),
        ([0.0], [[0.5, 0.5]], "given float64"),
        ([0], [[0.5, math.nan]], "1 are not"),
    ],
)
def test_wrong_input_is_shown(labels: object, p: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        performance(labels, p)  # type: ignore[arg-type]
