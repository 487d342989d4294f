"""A source, what it is in another language, and the links between their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from heedful.data.formats.rows import Raw, Spans, word_spans
from heedful.data.prompts import SAID
from heedful.data.translation import DIAGONAL, POSSIBLE
from heedful.records import Saying, Split

Links = tuple[tuple[int, int], ...]  # (source word, target word), from 0; words are what white space separates


@dataclass(frozen=True, slots=True)
class SentencePair:
    """`sure` None: nobody has said which words belong together. () of a target word: it has none."""

    id: str
    source: str
    target: str
    split: Split | None = None
    sure: Links | None = None
    possible: Links = ()  # without the sure ones


def diagonal(word: int, sources: int, targets: int) -> int:
    """The source word at the same share of its sentence as a target word of its: what needs no model."""
    return min(sources - 1, int((word + 0.5) / targets * sources))


def decisions_of(pairs: Iterable[SentencePair], usual: Split) -> Iterator[Raw]:
    """A row for each word that is said: the source is the prompt, and the words before it have been said.

    Evidence are the sure links of the word. What else may be linked to it, and the word on the diagonal, are marks.
    """
    for pair in pairs:
        spans, said = word_spans(pair.source), pair.target.split()

        def at(words: Iterable[int], spans: list[tuple[int, int]] = spans) -> Spans:
            return tuple(spans[i] for i in sorted(set(words)))

        for place, word in enumerate(said):
            sure = None if pair.sure is None else at(i for i, j in pair.sure if j == place)
            marks = [(DIAGONAL, at([diagonal(place, len(spans), len(said))]))]
            if pair.sure is not None:
                marks.append((POSSIBLE, at(i for i, j in (*pair.sure, *pair.possible) if j == place)))
            yield Raw(
                f"{pair.id}, word {place + 1}",
                pair.source,
                SAID,
                pair.split or usual,
                evidence=sure,
                saying=Saying(word, after=" ".join(said[:place])),
                marks=tuple(marks),
            )
