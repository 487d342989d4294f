"""Chunks without a blank that no person wrote: cut before spaCy sees them.

spaCy takes signs off the ends of a chunk one at a time, and looks at all of the rest each time: 19,000 equals signs
take minutes, in one call. No text of the real corpora has such a chunk (tests/test_tokenise.py).
"""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

MOST_SIGNS = 100  # one after the other that spaCy is given at once
LONGEST_CHUNK = 1_000  # characters without a blank that spaCy is given at once

# Signs that spaCy takes off one at a time; of the others (a row of dots or hyphens) it makes one word.
_SIGNS = re.compile(rf"(?:[^\w\s./@\\^|~-]|_){{{MOST_SIGNS + 1},}}")
_CHUNK = re.compile(rf"\S{{{MOST_SIGNS + 1},}}")


def places_to_cut(text: str) -> list[int]:
    """Where a text is cut before spaCy sees it: rows of signs, each of which is a word anyway, and after that chunks
    that are still longer than any word."""
    places: list[int] = []
    for chunk in _CHUNK.finditer(text):
        begin, end = chunk.span()
        rows = (row.span() for row in _SIGNS.finditer(text, begin, end))
        of_signs = [place for first, last in rows for place in range(first + MOST_SIGNS, last, MOST_SIGNS)]
        for left, right in pairwise([begin, *of_signs, end]):
            places += [*([left] if left > begin else []), *range(left + LONGEST_CHUNK, right, LONGEST_CHUNK)]
    return places


def cut_long(
    text: str, begins: NDArray[np.int32], ends: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Pieces of a text, of which the long ones are cut (`places_to_cut`)."""
    long = np.flatnonzero(ends - begins > MOST_SIGNS).tolist()
    cuts = [begins[i] + place for i in long for place in places_to_cut(text[begins[i] : ends[i]])]
    if not cuts:
        return begins, ends
    more = np.array(cuts, dtype=np.int32)
    return np.sort(np.concatenate([begins, more])), np.sort(np.concatenate([ends, more]))
