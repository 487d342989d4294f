"""Units: groups of words that are explained, left out and shown as one. Sentences, paragraphs, passages of a list.

A unit is a word to everything that reads words: its tokens have its number (`Tokens.word_index`), so their scores add
up to it, and what edits a word edits all of it. Words of no unit stay as they are, like special tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.data.text.sentences import sentence_begins
from heedful.errors import Mistake, short
from heedful.records import Example, Words

KINDS = ("word", "sentence", "paragraph")
BLANK_LINE = re.compile(r"\n[^\S\n]*\n\s*")
Span = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Units(Words):
    """A text as its units; `words` are what they are made of."""

    words: Words

    @property
    def of(self) -> NDArray[np.int64]:
        """The unit of each word, -1: none."""
        first = self.words.offsets[:, 0]
        unit = np.searchsorted(self.offsets[:, 0], first, side="right") - 1
        return np.where((unit >= 0) & (first < self.offsets[unit.clip(0), 1]), unit, -1).astype(np.int64)

    def whole(self) -> NDArray[np.int64]:
        """The same, of a model that reads nothing but words: each must be of a unit."""
        of = self.of
        if (of < 0).any():
            left = self.words.surface(int(np.flatnonzero(of < 0)[0]))
            raise Mistake(
                f"the word {left!r} is in no unit, and this model reads nothing else: give units of all of it."
            )
        return of


def in_units(words: Words, kind: str | Sequence[str]) -> Words:
    """The same text as units of a kind, or as these passages of it; words are their own units."""
    if kind == "word":
        return words
    return with_spans(words, spans_of(words, kind))


def example_in_units(example: Example, kind: str | Sequence[str]) -> Example:
    """An example whose passage is in units: evidence is then the units that hold any of it."""
    try:
        units = in_units(example.passage, kind)
    except Mistake as mistake:
        raise Mistake(f"{example.id}: {mistake}") from None
    if not isinstance(units, Units) or example.evidence is None:
        return replace(example, passage=units)
    of = units.of[list(example.evidence)]
    return replace(example, passage=units, evidence=tuple(sorted({*of[of >= 0].tolist()})))


def with_spans(words: Words, spans: Sequence[Span]) -> Units:
    """The same text, its units being what stands at these characters."""
    forms = tuple(words.text[a:b] for a, b in spans)
    return Units(words.text, forms, np.array(spans, np.int32).reshape(-1, 2), words)


def spans_of(words: Words, kind: str | Sequence[str]) -> list[Span]:
    """Where the units of a kind are. One alone is refused: there is nothing that it could be told from."""
    if not isinstance(kind, str):
        return passages(words.text, kind)
    if kind not in KINDS:
        raise Mistake(f"units={short(kind)}: they are word, sentence or paragraph, or a list of passages of the text.")
    if not len(words):
        raise Mistake(f"the text has no words: {short(words.text)}.")
    starts = _sentences(words) if kind == "sentence" else _paragraphs(words)
    ends = [*starts[1:], len(words)]
    spans = [(int(words.offsets[a, 0]), int(words.offsets[b - 1, 1])) for a, b in zip(starts, ends, strict=True)]
    if len(spans) == 1:
        smaller = " Give sentences, or words." if kind == "paragraph" else " Give words."
        raise Mistake(f"the text is one {kind}, so no {kind} can be told from another: {short(words.text)}.{smaller}")
    return spans


def passages(text: str, given: Iterable[str]) -> list[Span]:
    """Where each of these passages stands, one after the other."""
    spans: list[Span] = []
    at = 0
    for passage in given:
        wanted = passage.strip()
        begin = text.find(wanted, at) if wanted else -1
        if begin < 0:
            where = "again further on" if wanted and text.find(wanted) >= 0 else "in the text"
            raise Mistake(f"the unit {short(passage)} does not stand {where}: give passages of it, in their order.")
        at = begin + len(wanted)
        spans.append((begin, at))
    if not spans:
        raise Mistake("there are no units: give at least one passage of the text.")
    return spans


def read_units(given: str) -> str | list[str]:
    """`--units`: a kind, or a file that lists passages, one a line or as a list in JSON."""
    if given in KINDS:
        return given
    try:
        text = Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or "it is not UTF-8"
        raise Mistake(
            f"--units {short(given)}: give word, sentence or paragraph, or a file that lists passages ({told})."
        ) from None
    if text.lstrip().startswith("["):
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, list) and all(isinstance(one, str) for one in found):
            return found
    return [line for line in text.splitlines() if line.strip()]


def _sentences(words: Words) -> list[int]:
    """The first word of each: a line that ends, ends a sentence, too."""
    return sorted({*sentence_begins(words), *_after(words, re.compile(r"\n"))})


def _paragraphs(words: Words) -> list[int]:
    return [0, *_after(words, BLANK_LINE)]


def _after(words: Words, mark: re.Pattern[str]) -> list[int]:
    """The words before which a mark stands."""
    edges = words.offsets.tolist()
    return [i + 1 for i, (a, b) in enumerate(pairwise(edges)) if mark.search(words.text, a[1], b[0])]
