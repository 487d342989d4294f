"""Extractive question answering: which words of question and passage made the model mark this answer.

    P(span) = P(it begins at s) P(it ends at e)

each over the words of the passage and the place that stands for "no answer", as the library's own pipeline has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from heedful.errors import Mistake, short
from heedful.models.places.model import PlacesModel, Told, question
from heedful.models.places.text import first_tokens, last_tokens
from heedful.records import Example, Part

NO_ANSWER = "no answer"
LONGEST = 30  # words of an answer that the model is looked for
BEGIN, END = 0, 1  # the outputs
FIRST: tuple[Part, int] = ("query", 0)  # the token that stands for no answer


class Span(NamedTuple):
    begin: int  # words, both included
    end: int


@dataclass(frozen=True, slots=True)
class SpanModel(PlacesModel):
    """`none`: whether it was trained to say that there is no answer."""

    none: bool = True

    def ask(self, example: Example, told: Told) -> list[Example]:
        self.refuse(told, "target", why="has no labels; say names words of the passage")
        self.refuse(told, "word", why="is asked about answers (say)")
        encoded = self.text.encode([example.passage], "passage")
        n = len(example.passage)
        ends = first_tokens(encoded, n), last_tokens(encoded, n)
        logits = self.logits(example)  # (places, 2) of passage, then question
        begins, stops = (
            torch.stack([logits.new_tensor(-torch.inf) if t is None else logits[t, which] for t in tokens])
            for which, tokens in ((BEGIN, ends[0]), (END, ends[1]))
        )  # (words,) each
        this = best(begins, stops) if told.say is None else self._span(example, told.say, begins, stops)
        if told.say is None and self.none and self._says_nothing(logits, len(encoded.flat), begins, stops):
            this = None
        places = self._places(this, ends)
        that = self._span(example, told.instead, begins, stops) if told.instead is not None else this
        if told.instead is not None:
            if that == this:
                raise Mistake(f"the model is asked why it marks {told.instead!r} and not {told.instead!r}.")
            places = [*places, *self._places(that, ends)]
        shown = [NO_ANSWER if span is None else surface(example, span) for span in (that, this)]
        foil = None if told.instead is None else (BEGIN, END)
        names = (None if told.instead is None else shown[0], shown[1])
        return [question(example, places, (BEGIN, END), foil, names, example.id)]

    def _says_nothing(self, logits: Tensor, passage: int, begins: Tensor, stops: Tensor) -> bool:
        span = best(begins, stops)
        first = logits[passage]  # (2,) the first token of the question's part
        return bool(first.sum() > begins[span.begin] + stops[span.end])

    def _places(self, span: Span | None, ends: Sequence[list[int | None]]) -> list[tuple[Part, int]]:
        if span is None:
            return [FIRST, FIRST]
        begin, end = ends[0][span.begin], ends[1][span.end]
        assert begin is not None
        assert end is not None
        return [("passage", begin), ("passage", end)]

    def _span(self, example: Example, text: str, begins: Tensor, stops: Tensor) -> Span | None:
        """Where words stand in the passage; of several places the one that the model finds best."""
        if text == NO_ANSWER:
            if not self.none:
                raise Mistake(f"{self.name} was not trained to say that there is no answer: give words of the passage.")
            return None
        found = places_of(example, text)
        if not found:
            raise Mistake(
                f"{short(text)} does not stand in the passage as whole words: give words of it, or {NO_ANSWER!r}."
            )
        return max(found, key=lambda span: float(begins[span.begin] + stops[span.end]))


def best(begins: Tensor, stops: Tensor) -> Span:
    """The most probable span of at most LONGEST words."""
    both = begins.unsqueeze(1) + stops.unsqueeze(0)  # (begin, end)
    ahead = torch.ones_like(both, dtype=torch.bool)
    both = both.masked_fill(~(ahead.triu() & ahead.tril(LONGEST - 1)), -torch.inf)
    at = int(both.argmax())
    return Span(at // both.shape[1], at % both.shape[1])


def surface(example: Example, span: Span) -> str:
    """As it stands in the passage."""
    begin, end = (int(example.passage.offsets[word, side]) for side, word in enumerate(span))
    return example.passage.text[begin:end]


def places_of(example: Example, text: str) -> list[Span]:
    """Whole words of the passage that read so."""
    passage, wanted = example.passage, text.strip()
    spans = []
    at = passage.text.find(wanted) if wanted else -1
    while at >= 0:
        begin = [i for i, (a, _) in enumerate(passage.offsets.tolist()) if a == at]
        end = [i for i, (_, b) in enumerate(passage.offsets.tolist()) if b == at + len(wanted)]
        if begin and end:
            spans.append(Span(begin[0], end[0]))
        at = passage.text.find(wanted, at + 1)
    return spans
