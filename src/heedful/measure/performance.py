"""How well a classifier does, under names that do not change with the number of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def performance(labels: ArrayLike, probabilities: ArrayLike) -> dict[str, float]:
    """accuracy, f1, macro_f1, micro_f1, roc_auc and pr_auc of probabilities (n, classes) for labels (n,).

    The prediction is the most probable class (the first of equals). `f1` is that of the positive class 1
    for two classes (Jain & Wallace 2019, table 2), else macro F1. Macro F1 averages the classes that occur
    in labels or predictions. The areas under the curves are those of class 1 for two classes, else the
    mean over the classes that occur, each against the rest; pr_auc is the average precision. An area is
    nan where the labels are all of one class.
    """
    from sklearn.metrics import f1_score

    y, p = _checked(labels, probabilities)
    predicted = p.argmax(axis=1)
    macro, micro = (float(f1_score(y, predicted, average=how, zero_division=0)) for how in ("macro", "micro"))
    binary = p.shape[1] == 2
    f1 = float(f1_score(y, predicted, pos_label=1, zero_division=0)) if binary else macro
    roc, pr = _areas(y, p)
    return {
        "accuracy": float((y == predicted).mean()),
        "f1": f1,
        "macro_f1": macro,
        "micro_f1": micro,
        "roc_auc": roc,
        "pr_auc": pr,
    }


def f1_of_labels(labels: ArrayLike, predicted: ArrayLike) -> float:
    """The `f1` of `performance` from labels and predictions (n,) alone: of class 1 where there is none above it, else
    macro F1; nan where one is unknown, and without examples."""
    from sklearn.metrics import f1_score

    y, p = np.asarray(labels, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if not y.size or np.isnan(y).any() or np.isnan(p).any():
        return float("nan")
    if max(y.max(), p.max()) <= 1:
        return float(f1_score(y, p, pos_label=1, zero_division=0))
    return float(f1_score(y, p, average="macro", zero_division=0))


def _areas(y: NDArray[np.int64], p: NDArray[np.float64]) -> tuple[float, float]:
    """ROC-AUC and PR-AUC; nan for labels of one class only."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    occurring = np.unique(y)
    if len(occurring) < 2:
        return float("nan"), float("nan")
    positive = [1] if p.shape[1] == 2 else occurring.tolist()
    roc = [float(roc_auc_score(y == c, p[:, c])) for c in positive]
    pr = [float(average_precision_score(y == c, p[:, c])) for c in positive]
    return float(np.mean(roc)), float(np.mean(pr))


def _checked(labels: ArrayLike, probabilities: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    y, p = np.asarray(labels), np.asarray(probabilities, dtype=np.float64)
    if y.ndim != 1 or p.ndim != 2 or len(y) != len(p) or len(y) == 0 or p.shape[1] < 2:
        raise ValueError(
            "labels need the shape (examples,) and probabilities (examples, classes), with at least one"
            f" example and two classes; given {y.shape} and {p.shape}"
        )
    if not np.issubdtype(y.dtype, np.integer) or y.min() < 0 or y.max() >= p.shape[1]:
        raise ValueError(
            f"labels need to be integers from 0 to {p.shape[1] - 1}; given {y.dtype} from {y.min()} to {y.max()}"
        )
    if not np.isfinite(p).all():
        raise ValueError(f"probabilities need to be finite; {int((~np.isfinite(p)).sum())} are not")
    return y.astype(np.int64), p
