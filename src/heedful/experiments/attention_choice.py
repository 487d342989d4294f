"""Which attention an experiment is about, where a model has several. Settings only: no torch is needed to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from heedful.config import Config

if TYPE_CHECKING:
    from heedful.experiments.observe import View


class AttentionChoice(Config):
    """The base of the settings of experiments that ask under other weights.

    level None: sentences where a model attends to sentences. row: the position that attends; None: the one that the
    model's classifier reads.
    """

    # Defaults are left out when settings are hashed: most experiments are older than these settings.
    level: Literal["word", "sentence"] | None = Field(default=None, exclude_if=lambda value: value is None)
    layer: int = Field(default=-1, exclude_if=lambda value: value == -1)  # of a transformer; -1: the last
    heads: tuple[int, ...] | None = Field(default=None, exclude_if=lambda value: value is None)  # None: all
    row: Literal["first", "last", "mean"] | None = Field(default=None, exclude_if=lambda value: value is None)

    def view(self) -> View:
        from heedful.experiments.observe import View

        return View(self.layer, self.heads, self.row, self.level)
