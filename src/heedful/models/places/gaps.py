"""Masked language models: why this word in the gap, and not that one."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from heedful.errors import Mistake
from heedful.models.places.model import PlacesModel, Told, question
from heedful.models.places.tagging import PASSAGE
from heedful.models.places.text import GapEncoder
from heedful.records import Example


@dataclass(frozen=True, slots=True)
class GapModel(PlacesModel):
    text: GapEncoder

    def ask(self, example: Example, told: Told) -> list[Example]:
        """A question about each gap: why the word that the model finds best there, and no other?"""
        self.refuse(told, "target", why="has no labels; say names a word for the gap")
        self.refuse(told, "word", why="is asked about its gaps")
        gaps = self.text.gaps(example.passage)
        logits = self.logits(example)
        return [
            self._question(example, gap, logits[gap], told, f", gap {i + 1}" if len(gaps) > 1 else "")
            for i, gap in enumerate(gaps)
        ]

    def _question(self, example: Example, gap: int, logits: Tensor, told: Told, which: str) -> Example:
        this = int(logits.argmax()) if told.say is None else self._token(told.say, logits)
        that = None if told.instead is None else self._token(told.instead, logits)
        if that == this:
            raise Mistake(f"the model is asked why it says {told.say or told.instead!r} and not the same word.")
        names = (told.instead, told.say or self._name(this))
        return question(example, [(PASSAGE, gap)], [this], None if that is None else [that], names, example.id + which)

    def _token(self, word: str, logits: Tensor) -> int:
        """The token for a word; of several ways to write it, the one that the model finds better."""
        return max(self.text.tokens_of(word), key=lambda token: float(logits[token]))

    def _name(self, token: int) -> str:
        name = self.text.names([token])[0] or f"token {token}"  # outputs of a padded vocabulary have no name
        return name.lstrip("Ġ▁ ") or name
