"""A padded batch of two scores in sorted form, and what rank measures count on it.

Rows are sorted by length and cut into chunks: beside one flat copy of the real scores, the memory needed
does not grow with the number of texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_CELLS = 1 << 16  # cells (rows x tokens) sorted at once: a few MB of working memory, near the cache
_LEAF = 256  # up to this length, positions and counts fit into one byte


@dataclass(frozen=True, slots=True, eq=False)
class Sorted:
    """Some rows with their tokens in ascending order of (a, b); padding comes last, tied with itself."""

    length: Ints  # (n,) real tokens, all >= 2
    real: Bools  # (n, length) False for padding
    a_rank: NDArray[np.int32]  # (n, length) dense ranks from 0: equal scores, equal rank
    b_rank: NDArray[np.int32]

    def crossing(self) -> NDArray[np.intp]:
        """(n, length) where the tokens in the order of (b, a) stand in the order of (a, b).

        Exactly the discordant pairs are inverted: a pair tied in one score is ordered by the other in
        both orders, and a pair tied in both by position.
        """
        small = self.b_rank.astype(np.min_scalar_type(self.b_rank.shape[1]))  # radix sort up to 16 bits
        return np.argsort(small, axis=1, kind="stable")

    def joint_rank(self) -> NDArray[np.int32]:
        """(n, length) dense ranks of the pairs (a, b)."""
        return _steps((np.diff(self.a_rank) != 0) | (np.diff(self.b_rank) != 0))


def sorted_batches(a: Floats, b: Floats, mask: Bools) -> Iterator[tuple[Ints, Sorted]]:
    """The rows with at least two tokens and no nan, in sorted form, rows of similar length together."""
    length = mask.sum(axis=1, dtype=np.int64)  # (n,)
    usable = (length >= 2) & ~((np.isnan(a) | np.isnan(b)) & mask).any(axis=1)
    rows = np.flatnonzero(usable)
    rows = rows[np.argsort(length[rows], kind="stable")]
    a, b = _finite(a[mask]), _finite(b[mask])  # (all real tokens,) row after row
    start = np.cumsum(length) - length
    while len(rows):
        # From the longest down, so that the width of a chunk is known when it is cut.
        size = max(1, _CELLS // int(length[rows[-1]]))
        chunk, rows = rows[-size:], rows[:-size]
        n_real = length[chunk]
        width = int(n_real[-1])
        real = np.arange(width) < n_real[:, None]  # (n, width)
        at = np.minimum(np.arange(width), n_real[:, None] - 1)
        at += start[chunk, None]
        a_order, a_rank = _ordered(a[at], real)
        b_order, b_rank = _ordered(b[at], real)
        a_in_place = np.empty_like(a_rank)
        np.put_along_axis(a_in_place, a_order, a_rank, axis=1)
        # Both ranks in one integer: sorting it sorts by (a, b).
        bits = width.bit_length()
        small = np.dtype("i4" if bits < 16 else "i8")
        key = np.take_along_axis(a_in_place, b_order, axis=1).astype(small)
        key <<= bits
        key |= b_rank
        key.sort(axis=1)
        yield chunk, Sorted(n_real, real, key >> bits, key & ((1 << bits) - 1))


def _ordered(scores: Floats, real: Bools) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The order (n, width) that sorts the scores, padding last, and their dense ranks in that order.

    Sorting integers is several times faster than asking for the order of floats. So the position is
    written over the last bits of each float, read as an integer. Where two scores of a row differ in
    those bits only (never for float32), the result can be out of order: that is seen, and done again.
    """
    np.copyto(scores, np.inf, where=~real)
    width = scores.shape[1]
    bits = width.bit_length()
    order = scores.copy().view(np.int64)
    order ^= (order >> 63) & np.iinfo(np.int64).max  # negative floats count down
    order >>= bits
    order <<= bits
    order |= np.arange(width)
    order.sort(axis=1)
    order &= (1 << bits) - 1
    values = np.take_along_axis(scores, order, axis=1)
    if (values[:, 1:] < values[:, :-1]).any():
        order = np.argsort(scores, axis=1)
        values = np.take_along_axis(scores, order, axis=1)
    return order, _steps(values[:, 1:] != values[:, :-1])


def before_and_greater(permutation: NDArray[np.intp]) -> NDArray[np.int32]:
    """(n, length) for each position j of a permutation of 0..length-1, how many i < j hold a greater value.

    Long rows are halved by value, which keeps both halves permutations in their own right: a low value
    is preceded by every earlier high one, and the rest is counted inside the halves (O(T log T)).
    Short rows compare all pairs, one distance at a time, in bytes.
    """
    n, width = permutation.shape
    if width <= _LEAF:
        return _before_and_greater_short(permutation.astype(np.uint8))
    if width % 2:  # an even width, by one more value that is in order
        last = np.full((n, 1), width)
        return before_and_greater(np.hstack([permutation, last]))[:, :-1]
    half = width // 2
    values = permutation.ravel()
    high = values >= half  # exactly half of each row
    low_at, high_at = np.flatnonzero(~high), np.flatnonzero(high)
    halves = np.concatenate([values[low_at], values[high_at] - half]).reshape(2 * n, half)
    inside = before_and_greater(halves).ravel()
    count = np.empty(n * width, dtype=np.int32)
    earlier_high = np.cumsum(high.reshape(n, width), axis=1, dtype=np.int32).ravel()
    count[low_at] = earlier_high[low_at] + inside[: n * half]
    count[high_at] = inside[n * half :]
    return count.reshape(n, width)


def _before_and_greater_short(permutation: NDArray[np.uint8]) -> NDArray[np.int32]:
    n, width = permutation.shape
    count = np.empty((n, width), dtype=np.int32)
    at_once = max(1, (1 << 17) // width)  # three arrays of bytes that stay in the cache
    for start in range(0, n, at_once):
        values = np.ascontiguousarray(permutation[start : start + at_once].T)  # (width, rows)
        greater = np.zeros(values.shape, dtype=np.bool_)
        total = np.zeros(values.shape, dtype=np.uint8)  # at most 255 of 256 positions come before
        for distance in range(1, width):
            np.greater(values[:-distance], values[distance:], out=greater[distance:])
            total[distance:] += greater[distance:].view(np.uint8)
        count[start : start + at_once] = total.T
    return count


def group_size(rank: NDArray[np.int32]) -> Ints:
    """(n, length) how many positions of the row share this one's rank."""
    flat, count = _counted(rank)
    return np.take(count, flat)


def mean_rank(rank: NDArray[np.int32]) -> Floats:
    """(n, length) ranks from 0 where equal scores share the mean of the places they take."""
    flat, count = _counted(rank)
    before = np.cumsum(count, axis=1) - count
    return np.take(before + (count - 1) / 2, flat)


def _counted(rank: NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Dense ranks as indices into a flat table, and the table (n, length): how often each rank occurs."""
    n, width = rank.shape
    flat = rank + width * np.arange(n, dtype=np.int64)[:, None]
    return flat, np.bincount(flat.ravel(), minlength=n * width).reshape(n, width)


def _steps(rises: Bools) -> NDArray[np.int32]:
    """(n, length - 1) where the next value is another one -> (n, length) dense ranks."""
    rank = np.zeros((len(rises), rises.shape[1] + 1), dtype=np.int32)
    np.cumsum(rises, axis=1, out=rank[:, 1:])
    return rank


def inverse(permutation: NDArray[np.intp]) -> NDArray[np.intp]:
    """(n, length) where each value of the row's permutation stands."""
    place = np.empty_like(permutation)
    np.put_along_axis(place, permutation, np.arange(permutation.shape[1])[None, :], axis=1)
    return place


def checked(a: ArrayLike, b: ArrayLike, mask: ArrayLike | None) -> tuple[Floats, Floats, Bools]:
    """Scores as floats and a mask, all of one shape (n, length); without a mask every token is real."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    keep = np.ones(a.shape, dtype=np.bool_) if mask is None else np.asarray(mask, dtype=np.bool_)
    if a.ndim != 2 or a.shape != b.shape or a.shape != keep.shape:
        raise ValueError(f"scores and mask need one shape (texts, tokens); given {a.shape}, {b.shape} and {keep.shape}")
    return a, b, keep


def _finite(scores: Floats) -> Floats:
    """The scores; where some are infinite, their ranks instead, which sort below the infinity of padding."""
    if not np.isposinf(scores).any():
        return scores
    _, place = np.unique(scores, return_inverse=True)
    return place.astype(np.float64)
