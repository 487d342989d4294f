"""What verdicts' numbers are in models whose attention is known to be right, or irrelevant: beside the bars.

Printed by `python benchmarks/bars_from_planted.py`: nine models of planted texts whose attention was trained towards
the words that decide, and seven whose attention nobody has trained. A question in which the two overlap cannot tell one
from the other, and has no say in the headline.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from heedful.measure.statistics import Range


class Known(NamedTuple):
    """The least and the greatest number of the models."""

    right: Range
    irrelevant: Range

    @property
    def tells(self) -> bool:
        """Whether every right model is apart from every irrelevant one."""
        return self.right[0] > self.irrelevant[1] or self.right[1] < self.irrelevant[0]


KNOWN: Mapping[str, Known] = {
    "correlation": Known((0.61, 1.20), (-0.06, 0.17)),
    "permutation": Known((0.17, 0.51), (0.00, 0.09)),
    "adversarial": Known((0.68, 0.97), (0.95, 0.99)),
    "erasure": Known((1.00, 1.00), (0.56, 0.81)),
    "flips": Known((0.43, 0.55), (0.00, 0.03)),
    "importance_sets": Known((0.50, 0.91), (-0.19, 0.24)),
}


def beside_bars(name: str) -> str:
    """The sentence of an experiment; "" where no such models were asked."""
    if name not in KNOWN:
        return ""
    (right, irrelevant), apart = KNOWN[name], KNOWN[name].tells
    no_say = "" if apart else " The two overlap: this cannot tell them apart, and has no say in the headline."
    return (
        f"The bars are heedful's own; beside them, models of planted texts get {right[0]:.2f} to {right[1]:.2f} where "
        f"their attention is known to be right, and {irrelevant[0]:.2f} to {irrelevant[1]:.2f} where it is "
        f"irrelevant.{no_say}"
    )
