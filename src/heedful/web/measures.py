"""What pages draw: which column of which experiment, its range, and how to read it."""

from __future__ import annotations

import math
from dataclasses import dataclass

LN2 = math.log(2)


@dataclass(frozen=True, slots=True)
class Column:
    """A number that rows have."""

    title: str
    low: float
    high: float
    reading: str  # one sentence: how to read a histogram of it


COLUMNS: dict[str, Column] = {
    "tau": Column(
        "Kendall's τ", -1, 1, "1: both rank the words alike; 0: no relation; −1: they rank them in reverse."
    ),
    "spearman": Column("Spearman's ρ", -1, 1, "As τ, on ranks: 1 is full agreement, 0 none."),
    "weighted_tau": Column(
        "top-weighted τ", -1, 1, "As τ, but agreement about the strongest words counts most."
    ),
    "overlap": Column(
        "overlap of the strongest words", 0, 1, "The share of the strongest words that both name."
    ),
    "median": Column(
        "median change of the output",
        0,
        1,
        "Near 0: shuffling the attention weights over the words leaves the prediction where it was.",
    ),
    "mean": Column("mean change of the output", 0, 1, "The mean over all permutations."),
    "max": Column("largest change of the output", 0, 1, "What the most harmful permutation did."),
    "jsd": Column(
        "ε-max JSD",
        0,
        LN2,
        "How far attention can be moved without moving the prediction; 0.69 (ln 2) is as far as anything can be.",
    ),
    "bound": Column(
        "upper bound of the ε-max JSD", 0, LN2, "No attention that keeps the prediction is farther."
    ),
    "ceiling": Column("largest JSD at all", 0, LN2, "What could be had if the prediction did not matter."),
    "jsd_exact": Column("ε-max JSD, exact", 0, LN2, "The true maximum."),
    "jsd_adam": Column("ε-max JSD, found by Adam", 0, LN2, "What the published search finds."),
    "gap": Column("exact − Adam", 0, LN2, "What the published search missed."),
    "delta_y": Column("change of the output", 0, 1, "At most ε, by construction."),
}
DEFAULT_COLUMN = {"correlation": "tau", "permutation": "median", "adversarial": "jsd"}
NOT_DRAWN = {"example", "predicted", "max_attention", "n_words", "p", "overlap_expected"}


@dataclass(frozen=True, slots=True)
class Measure:
    """What a cell of the overview shows of each run."""

    title: str
    short: str
    experiment: str
    column: str
    pair: str | None = None

    @property
    def low(self) -> float:
        return COLUMNS[self.column].low

    @property
    def high(self) -> float:
        return COLUMNS[self.column].high


MEASURES: dict[str, Measure] = {
    "tau_g": Measure(
        "τ of attention and gradient × input",
        "τ gradient",
        "correlation",
        "tau",
        "attention/gradient_x_input",
    ),
    "tau_loo": Measure(
        "τ of attention and leave-one-out", "τ leave-one-out", "correlation", "tau", "attention/omission"
    ),
    "tau_ceiling": Measure(
        "τ of gradient × input and leave-one-out",
        "τ of the two",
        "correlation",
        "tau",
        "gradient_x_input/omission",
    ),
    "tau_random": Measure(
        "τ of attention and a random order", "τ random", "correlation", "tau", "attention/random"
    ),
    "permutation": Measure("output change under shuffled attention", "Δŷ shuffled", "permutation", "median"),
    "adversarial": Measure("ε-max JSD of adversarial attention", "ε-max JSD", "adversarial", "jsd"),
}
