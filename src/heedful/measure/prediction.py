"""How far a number of ours may be from a published one if both come from the same distribution of training runs.

The rule is fixed before looking, and has no number that was chosen: runs of ours vary by their seed, those of others by
what the several published sets of one number differ among themselves, and a 95% prediction interval (Student's t)
adds the two. What is beyond it is far.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from heedful.measure.statistics import Spread

Pair = tuple[Spread, Sequence[float | None]]  # ours over seeds, and what each source has published


@dataclass(frozen=True, slots=True)
class Variation:
    """Variances of one run, pooled over the cells of a table, and the degrees of freedom of each; nan where unknown."""

    ours: float
    ours_degrees: int
    theirs: float
    theirs_degrees: int

    def limit(self, runs: int, published: int, level: float = 0.95) -> float:
        """Half the width of the prediction interval of (mean of our runs) - (mean of so many published sets).

        Where one of the two variances is unknown, the other stands for it; nan where both are, and without numbers.
        """
        if not runs or not published:
            return math.nan
        known = [(v, d) for v, d in ((self.ours, self.ours_degrees), (self.theirs, self.theirs_degrees)) if d]
        if not known:
            return math.nan
        (ours, ours_degrees), (theirs, theirs_degrees) = known[0], known[-1]
        a, b = ours / runs, theirs / published
        if len(known) == 1:
            degrees: float = ours_degrees
        elif a + b == 0:
            return 0.0
        else:  # Satterthwaite 1946
            degrees = (a + b) ** 2 / (a**2 / ours_degrees + b**2 / theirs_degrees)
        return float(stdtrit(degrees, (1 + level) / 2)) * math.sqrt(a + b)


def variation(cells: Iterable[Pair]) -> Variation:
    """Pooled over cells: between our seeds, and between the published sets of one cell."""
    ours = theirs = 0.0
    ours_degrees = theirs_degrees = 0
    for spread, published in cells:
        if spread.seeds > 1 and not math.isnan(spread.std):
            ours += spread.std**2 * (spread.seeds - 1)
            ours_degrees += spread.seeds - 1
        known = [value for value in published if value is not None]
        if len(known) > 1:
            mean = sum(known) / len(known)
            theirs += sum((value - mean) ** 2 for value in known)
            theirs_degrees += len(known) - 1
    return Variation(
        ours / ours_degrees if ours_degrees else math.nan,
        ours_degrees,
        theirs / theirs_degrees if theirs_degrees else math.nan,
        theirs_degrees,
    )


def far(ours: Spread, published: Sequence[float | None], known: Variation) -> bool | None:
    """Whether our mean is beyond the prediction interval around the mean of the published sets; None: not told."""
    values = [value for value in published if value is not None]
    limit = known.limit(ours.seeds, len(values))
    return None if math.isnan(limit) else abs(ours.mean - sum(values) / len(values)) > limit
