"""What follows from the answers to all subsets of a few units: one table of 2^u numbers, and everything is exact.

    Shapley         sum over S without i of |S|! (u - |S| - 1)! / u!  (f(S and i) - f(S))
    Banzhaf         mean over S without i of  f(S and i) - f(S)
    leave-one-out   f(all) - f(all without i)
    best removal    of all sets of k units the one without which f is lowest

Subset number s holds unit i where bit i of s is set, so f(all) is the last.
"""

from __future__ import annotations

from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Value = Literal["shapley", "banzhaf", "leave_one_out"]
VALUES = ("shapley", "banzhaf", "leave_one_out")


def all_subsets(units: int) -> Bools:
    """Which units each subset holds: (2^u, u)."""
    return (np.arange(2**units)[:, None] >> np.arange(units) & 1).astype(np.bool_)


def values_of(table: Floats, value: Value) -> Floats:
    """A number for each unit, from f of every subset (2^u,)."""
    units = len(table).bit_length() - 1
    number = np.arange(len(table))
    if value == "leave_one_out":
        found: Floats = table[-1] - table[(len(table) - 1) ^ (1 << np.arange(units))]
        return found
    size = np.bitwise_count(number)
    if value == "shapley":
        weight = np.array([1 / (units * comb(units - 1, k)) for k in range(units)])
    else:
        weight = np.full(units, 2.0 ** (1 - units))
    found = np.empty(units)
    for i in range(units):
        without = number[number >> i & 1 == 0]
        found[i] = (weight[size[without]] * (table[without | 1 << i] - table[without])).sum()
    return found


def best_removals(table: Floats) -> list[tuple[tuple[int, ...], float]]:
    """For each number of units the set whose removal lowers f most, and by how much: sizes 1 to u."""
    units = len(table).bit_length() - 1
    number = np.arange(len(table))
    gone = units - np.bitwise_count(number)
    best = []
    for k in range(1, units + 1):
        of_size = number[gone == k]
        kept = int(of_size[table[of_size].argmin()])
        best.append((tuple(i for i in range(units) if not kept >> i & 1), float(table[-1] - table[kept])))
    return best
