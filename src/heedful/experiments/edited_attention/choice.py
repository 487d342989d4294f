"""Which attention an experiment is about, where a model has several. Settings only: no torch is needed to read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from heedful.config import Config
from heedful.measure.statistics import Range

if TYPE_CHECKING:
    from heedful.experiments.edited_attention.observe import View


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
        from heedful.experiments.edited_attention.observe import View

        return View(self.layer, self.heads, self.row, self.level)


# What verdicts' numbers are in models whose attention is known to be right, or irrelevant: beside the bars.
#
# Printed by `python checks/bars_from_planted.py`: nine models of planted texts whose attention was trained
# towards the words that decide, and seven whose attention nobody has trained. A question in which the two overlap
# cannot tell one from the other, and has no say in the headline.


class PlantedRange(NamedTuple):
    """The least and the greatest number of the models."""

    right: Range
    irrelevant: Range

    @property
    def tells(self) -> bool:
        """Whether every right model is apart from every irrelevant one."""
        return self.right[0] > self.irrelevant[1] or self.right[1] < self.irrelevant[0]


KNOWN: Mapping[str, PlantedRange] = {
    "correlation": PlantedRange((0.61, 1.20), (-0.06, 0.17)),
    "permutation": PlantedRange((0.17, 0.51), (0.00, 0.09)),
    "adversarial": PlantedRange((0.68, 0.97), (0.95, 0.99)),
    "erasure": PlantedRange((1.00, 1.00), (0.56, 0.81)),
    "flips": PlantedRange((0.43, 0.55), (0.00, 0.03)),
    "importance_sets": PlantedRange((0.50, 0.91), (-0.19, 0.24)),
}


def beside_bars(name: str) -> str:
    """The sentence of an experiment; "" where no such models were asked."""
    if name not in KNOWN:
        return ""
    (right, irrelevant), apart = KNOWN[name], KNOWN[name].tells
    no_say = "" if apart else " The two overlap: this does not distinguish them, and does not count in the headline."
    return (
        f"The thresholds are heedful's own. For comparison, models of planted texts get {right[0]:.2f} to "
        f"{right[1]:.2f} where their attention is known to be right, and {irrelevant[0]:.2f} to "
        f"{irrelevant[1]:.2f} where it is irrelevant.{no_say}"
    )
