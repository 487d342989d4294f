"""Do scores point at marked words? Of one text, with what a random order would get: scores (words,), marked (words,).

Scores count by their size, whichever sign they have. Equal scores are in no order, so what depends on their order is
the mean over all orders of them. A text without marked words, or with nothing else, is undefined (nan).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pointing:
    """Under a random order: auc .5, and `chance` for the others (`share`: of equal scores)."""

    share: float  # of the sum of |scores| that falls to marked words
    auc: float  # how often a marked word is above another one
    first: float  # 1 where the highest score is that of a marked word
    precision: float  # of the k highest, the share that is marked, with k = number of marked words
    chance: float  # k / n


UNDEFINED = Pointing(*[float("nan")] * 5)


def point(scores: ArrayLike, marked: ArrayLike) -> Pointing:
    size, where = np.abs(np.asarray(scores, dtype=np.float64)), np.asarray(marked, dtype=np.bool_)
    n, k = len(size), int(where.sum())
    if k in (0, n) or not np.isfinite(size).all():
        return UNDEFINED
    total = float(size.sum())
    return Pointing(
        share=float(size[where].sum()) / total if total > 0 else float("nan"),
        auc=area_under_curve(size, where),
        first=precision_at(size, where, 1),
        precision=precision_at(size, where, k),
        chance=k / n,
    )


def area_under_curve(size: Floats, marked: Bools) -> float:
    """P(a marked word's score > another's) + P(equal) / 2, from the rank sum (Mann & Whitney 1947)."""
    k, others = int(marked.sum()), int((~marked).sum())
    return float((rankdata(size)[marked].sum() - k * (k + 1) / 2) / (k * others))


def precision_at(size: Floats, marked: Bools, k: int) -> float:
    """Of the k highest the share that is marked; the last places are dealt evenly among equal scores."""
    bar = np.sort(size)[-k]
    above, level = size > bar, size == bar
    left = k - int(above.sum())
    return float((marked & above).sum() + left * marked[level].mean()) / k
