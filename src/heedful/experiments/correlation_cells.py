"""The cells of Table 2 of Jain & Wallace 2019: one mean tau of ours, and what was published of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heedful.experiments.comparison import Evidence, mean_of
from heedful.experiments.correlation_verdict import ATTENTION_PAIRS, REFERENCE
from heedful.experiments.description import Setting, number_at, value_at
from heedful.measure.statistics import Spread, between_seeds

SYMBOLS = dict(zip((*ATTENTION_PAIRS, REFERENCE), ("τ_g", "τ_loo", "gradient/loo"), strict=True))
NUMBERS = ("mean", "std", "sig_frac")

SIGNS = ("positive", "negative")


@dataclass(frozen=True, slots=True)
class Cell:
    """The tau of one pair and class in one setting: ours over the seeds, and that of each source."""

    setting: Setting
    pair: str
    label: str  # a class, or "overall"
    ours: Spread
    std: float  # over texts
    sig_frac: float
    positive: float | None  # of these, significantly above 0, and below; None in summaries of older versions
    negative: float | None
    theirs: Sequence[tuple[float, float, float] | None]  # NUMBERS

    @property
    def means(self) -> list[float | None]:
        return [None if row is None else row[0] for row in self.theirs]


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
                    positive, negative = (
                        mean_of([number_at(tau, f"significant.{sign}") for tau in taus]) for sign in SIGNS
                    )
                    ours = between_seeds([tau["mean"] for tau in taus])
                    yield Cell(setting, pair, label, ours, std, sig, positive, negative, theirs)
