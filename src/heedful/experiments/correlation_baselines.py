"""What the agreement with Table 2 is worth: how well rules without any model of ours would do on the same cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from statistics import fmean

from heedful.experiments.comparison import nearest
from heedful.experiments.correlation_cells import Cell
from heedful.experiments.correlation_verdict import ATTENTION_PAIRS

CLOSE = 0.12  # a mean tau this near to any published set counts as reproduced
ORDER = ("bilstm", "cnn", "average")  # the rule: the less an encoder mixes words, the better gradients agree

Value = Callable[[Cell], float | None]


def ours(cell: Cell) -> float:
    return cell.ours.mean


def by_rule(cell: Cell) -> float | None:
    """average > CNN > BiLSTM, whatever the data; None for another encoder."""
    encoder = cell.setting[1]
    return float(ORDER.index(encoder)) if encoder in ORDER else None


def constant(found: Sequence[Cell]) -> Value:
    """One number for each encoder and measure: the mean of what was published for it, so it has seen the answers."""
    values: dict[tuple[str, str], list[float]] = {}
    for cell in found:
        known = [value for value in cell.means if value is not None]
        if known:
            values.setdefault((cell.setting[1], cell.pair), []).append(fmean(known))
    means = {key: fmean(some) for key, some in values.items()}
    return lambda cell: means.get((cell.setting[1], cell.pair))


def reproduced(found: Sequence[Cell], value: Value = ours) -> tuple[int, int]:
    """(cells within CLOSE of any published set, cells that have a published number)."""
    near = [
        abs(guess - their) <= CLOSE
        for cell in found
        if (guess := value(cell)) is not None and (their := nearest(guess, cell.means)) is not None
    ]
    return sum(near), len(near)


def same_order(found: Sequence[Cell], value: Value = ours) -> tuple[int, int]:
    """(pairs of encoders in the order of any published set, pairs whose order was published).

    By mean tau_g and tau_loo, for each dataset, attention and class.
    """
    by_encoder: dict[tuple[str, ...], list[Cell]] = {}
    for cell in found:
        dataset, _, attention = cell.setting
        if cell.pair in ATTENTION_PAIRS:
            by_encoder.setdefault((dataset, attention, cell.pair, cell.label), []).append(cell)
    same = known = 0
    for encoders in by_encoder.values():
        for a, b in combinations(encoders, 2):
            both = [(x, y) for x, y in zip(a.means, b.means, strict=True) if x is not None and y is not None]
            first, second = value(a), value(b)
            known += bool(both)
            if first is not None and second is not None:
                same += any((first - second) * (x - y) > 0 for x, y in both)
    return same, known


def error(found: Sequence[Cell], source: int, value: Value = ours) -> float | None:
    """Mean absolute error against one source; None where it has published nothing."""
    errors = [
        abs(guess - their)
        for cell in found
        if (their := cell.means[source]) is not None and (guess := value(cell)) is not None
    ]
    return fmean(errors) if errors else None
