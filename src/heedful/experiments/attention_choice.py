"""Which attention an experiment is about, where a model has several. Settings only: no torch is needed to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from heedful.config import Config

if TYPE_CHECKING:
    from heedful.experiments.observe import View


class AttentionChoice(Config):
    """The base of the settings of experiments that ask under other weights."""

    level: Literal["word", "sentence"] | None = None  # None: sentences where a model attends to sentences
    layer: int = -1  # of a transformer; -1: the last
    heads: tuple[int, ...] | None = None  # None: all of the layer
    row: Literal["first", "last", "mean"] = "first"  # the position that attends

    def view(self) -> View:
        from heedful.experiments.observe import View

        return View(self.layer, self.heads, self.row, self.level)
