"""Many statements on one page: of those that are called findings, how many are expected to be chance?

Twenty tests at the 5% level find one thing where there is nothing. Benjamini & Hochberg 1995 adjust the p-values of
all statements together: those with q <= .05 are findings, and at most 5% of these are expected to be wrong. It holds
for independent and for positively dependent tests, as tests on the same texts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from heedful.measure.statistics import SIGNIFICANT, Floats


@dataclass(frozen=True, slots=True)
class Statement:
    """What is claimed, by name, and its p-value; nan: it could not be tested."""

    name: str
    p: float


@dataclass(frozen=True, slots=True)
class Discovery:
    """A statement among all of its report: `q` is the share of wrong ones among those at least as sure as this."""

    name: str
    p: float
    q: float
    found: bool  # q <= level: may be said as a finding


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """q-values of p-values of any shape: q_(i) = min over j >= i of m p_(j) / j, for the i-th smallest of m.

    nan stays nan and does not count as a test.
    """
    p = np.asarray(p, dtype=np.float64)
    q = np.full(p.shape, np.nan)
    defined = ~np.isnan(p)
    tested = p[defined]
    if ((tested < 0) | (tested > 1)).any():
        raise ValueError(f"p-values are between 0 and 1; given {tested.min():g} to {tested.max():g}")
    order, m = np.argsort(tested), tested.size
    scaled = tested[order] * m / np.arange(1, m + 1)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(1, np.minimum.accumulate(scaled[::-1])[::-1])
    q[defined] = adjusted
    return q


def discoveries(statements: Sequence[Statement], *, level: float = SIGNIFICANT) -> tuple[Discovery, ...]:
    """Each statement with its q-value among all that are given, in their order."""
    q = benjamini_hochberg([statement.p for statement in statements])
    return tuple(
        Discovery(s.name, s.p, float(at), bool(at <= level)) for s, at in zip(statements, q, strict=True)
    )
