"""Correlation beside published numbers: Table 2 of Jain & Wallace 2019, cell by cell.

How many of our means are near a published one, and how often two encoders stand in the published order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from heedful.experiments.comparison import SETTING, Comparison, Evidence, Table, difference, nearest, seeds
from heedful.experiments.correlation_verdict import ATTENTION_PAIRS, REFERENCE
from heedful.experiments.description import Setting, Trial, value_at
from heedful.measure.statistics import Spread, between_seeds

SYMBOLS = dict(zip((*ATTENTION_PAIRS, REFERENCE), ("τ_g", "τ_loo", "gradient/loo"), strict=True))
CLOSE = 0.12  # a mean tau this near to any published set counts as reproduced
NUMBERS = ("mean", "std", "sig_frac")


@dataclass(frozen=True, slots=True)
class Cell:
    """The tau of one pair and class in one setting: ours over the seeds, and that of each source."""

    setting: Setting
    pair: str
    label: str  # a class, or "overall"
    ours: Spread
    std: float  # over texts
    sig_frac: float
    theirs: Sequence[tuple[float, float, float] | None]  # NUMBERS

    @property
    def means(self) -> list[float | None]:
        return [None if row is None else row[0] for row in self.theirs]


def compare(evidence: Evidence) -> Comparison:
    found = list(cells(evidence))
    if not found:
        return Comparison()
    near, known = reproduced(found)
    same, pairs = same_order(found)
    headlines = (
        f"**{near} of {known}** mean correlations that were published are within {CLOSE} of either published set"
        + (f" ({near / known:.0%})." if known else "."),
        f"Which of two encoders has the higher τ_g or τ_loo, on one dataset with one attention, is as published in "
        f"**{same} of {pairs}** comparisons.",
    )
    return Comparison(headlines, (table(found, evidence.sources),) if found else ())


def cells(evidence: Evidence) -> Iterator[Cell]:
    """One for each setting, pair and class that we have."""
    for setting, found in evidence:
        for pair in SYMBOLS:
            here = [one[pair] for one in found if pair in one]
            classes = sorted({label for one in here for label in one["by_class"]}, key=int)
            few = len(classes) <= 3  # QA has an answer set, not classes: overall only
            for label in [*(classes if few else ()), "overall"]:
                where = label if label == "overall" else f"by_class.{label}"
                taus = [value_at(one, f"{where}.tau") for one in here]
                taus = [tau for tau in taus if tau and tau["mean"] is not None]
                if taus:
                    columns = zip(
                        *(evidence.theirs(setting, f"{pair}.{where}.tau.{name}") for name in NUMBERS),
                        strict=True,
                    )
                    theirs = [None if None in row else row for row in columns]
                    std, sig = (sum(tau[key] for tau in taus) / len(taus) for key in NUMBERS[1:])
                    ours = between_seeds([tau["mean"] for tau in taus])
                    yield Cell(setting, pair, label, ours, std, sig, theirs)


def reproduced(found: Sequence[Cell]) -> tuple[int, int]:
    """(cells within CLOSE of any published set, cells that have a published number)."""
    near = [
        abs(cell.ours.mean - their) <= CLOSE
        for cell in found
        if (their := nearest(cell.ours.mean, cell.means)) is not None
    ]
    return sum(near), len(near)


def same_order(found: Sequence[Cell]) -> tuple[int, int]:
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
            known += bool(both)
            same += any((a.ours.mean - b.ours.mean) * (x - y) > 0 for x, y in both)
    return same, known


def table(found: Sequence[Cell], sources: Sequence[str]) -> Table:
    """Table 2: mean tau ± std, fraction significant, by predicted class and overall."""
    rows = []
    for cell in found:
        their = nearest(cell.ours.mean, cell.means)
        rows.append(
            (
                *cell.setting,
                SYMBOLS[cell.pair],
                cell.label,
                f"{seeds(cell.ours)} ± {cell.std:.2f}",
                f"{cell.sig_frac:.2f}",
                *(
                    "-" if row is None else f"{row[0]:.2f} ± {row[1]:.2f}, {row[2]:.2f}"
                    for row in cell.theirs
                ),
                difference(cell.ours, cell.means),
                "" if their is None or abs(cell.ours.mean - their) <= CLOSE else "far",
            )
        )
    header = (
        *(*SETTING, "tau", "class", "ours: mean ± std", "sig."),
        *(f"{source}: mean ± std, sig." for source in sources),
        *("ours - nearest", ""),
    )
    note = (
        "Kendall tau between explanations over the words of each test text (Table 2), mean ± standard deviation "
        f"over texts. `far`: more than {CLOSE} from both published sets. Where we have several seeds, the mean is "
        "theirs, and the spread between them stands in brackets."
    )
    return Table("Correlation of attention with other measures", header, tuple(rows), note)


def overall_means(trial: Trial) -> dict[str, float]:
    """The published mean tau of each pair over all texts, from the first source that has it.

    The paper gives some of them by class only; then it is their mean, weighted by our texts of each class.
    """
    known = {(row.source, row.statistic): row.value for row in trial.published}
    found: dict[str, float] = {}
    for pair in SYMBOLS:
        lines = trial.summary.get(pair, {}).get("by_class", {})
        sizes = {label: line["tau"]["n"] for label, line in lines.items()}
        for source in trial.sources:
            overall = known.get((source, f"{pair}.overall.tau.mean"))
            by_class = {label: known.get((source, f"{pair}.by_class.{label}.tau.mean")) for label in sizes}
            if overall is not None:
                found.setdefault(pair, overall)
            elif sizes and None not in by_class.values():
                weighted = sum((by_class[label] or 0.0) * n for label, n in sizes.items())
                found.setdefault(pair, round(weighted / max(1, sum(sizes.values())), 4))
    return found
