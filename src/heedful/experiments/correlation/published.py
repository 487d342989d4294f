"""The cells of Table 2 of Jain & Wallace 2019: one mean tau of ours, and what was published of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from heedful.experiments.correlation.verdict import ATTENTION_PAIRS, REFERENCE
from heedful.experiments.framework.comparison import (
    SETTING,
    Comparison,
    Evidence,
    Point,
    Table,
    difference,
    mean_of,
    nearest,
    seeds,
)
from heedful.experiments.framework.description import Result, Setting, number_at, value_at
from heedful.measure.prediction import far, variation
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
                        *(evidence.theirs(setting, f"{pair}.{where}.tau.{name}") for name in NUMBERS), strict=True
                    )
                    theirs = [None if None in row else row for row in columns]
                    std, sig = (sum(tau[key] for tau in taus) / len(taus) for key in NUMBERS[1:])
                    positive, negative = (
                        mean_of([number_at(tau, f"significant.{sign}") for tau in taus]) for sign in SIGNS
                    )
                    ours = between_seeds([tau["mean"] for tau in taus])
                    yield Cell(setting, pair, label, ours, std, sig, positive, negative, theirs)


# What the agreement with Table 2 is worth: how well rules without any model of ours would do on the same cells.


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


# Correlation beside published numbers: Table 2 of Jain & Wallace 2019, cell by cell.
#
# How many of our means are near a published one, and how often two encoders stand in the published order, each
# beside what simple rules get (correlation_baselines.py).


def compare(evidence: Evidence) -> Comparison:
    found = list(cells(evidence))
    if not found:
        return Comparison()
    agreed = Agreement.of(found, evidence.sources)
    tables = (table(found, evidence.sources),)
    if not agreed.known:  # nothing of it was published
        return Comparison(tables=tables)
    return Comparison(tuple(agreed.sentences()), tables, agreed.columns(), tuple(points(found)))


def points(found: Sequence[Cell]) -> Iterator[Point]:
    """Each cell that was published: the mean of the published sets, and ours."""
    for cell in found:
        published = mean_of(cell.means)
        if published is not None:
            yield Point(cell.setting, f"{SYMBOLS[cell.pair]}, {cell.label}", published, cell.ours.mean)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well our cells agree with the published ones, each number beside what a rule gets that needs no model: so it
    can be seen what it is worth."""

    known: int  # cells that were published
    near: int  # within CLOSE of either published set; then of one constant for each encoder and measure
    near_constant: int
    # source -> mean absolute error of our means, and of the constants; None where it has none of these cells
    errors: Mapping[str, tuple[float, float] | None]
    each_other: float | None  # mean absolute difference of the published sets
    inside: int  # the prediction interval, of so many that have one
    told: int
    same: int  # pairs of encoders in the published order, by ours and by a rule, of so many
    same_rule: int
    pairs: int

    @classmethod
    def of(cls, found: Sequence[Cell], sources: Sequence[str]) -> Agreement:
        guess = constant(found)
        near, known = reproduced(found)
        errors: dict[str, tuple[float, float] | None] = {}
        for at, source in enumerate(sources):
            ours, constants = error(found, at), error(found, at, guess)
            errors[source] = None if ours is None or constants is None else (ours, constants)
        between = [abs(x - y) for cell in found for x, y in combinations([m for m in cell.means if m is not None], 2)]
        varied = variation((cell.ours, cell.means) for cell in found)
        told = [beyond for cell in found if (beyond := far(cell.ours, cell.means, varied)) is not None]
        same, pairs = same_order(found)
        return cls(
            known,
            near,
            reproduced(found, guess)[0],
            errors,
            fmean(between) if between else None,
            told.count(False),
            len(told),
            same,
            same_order(found, by_rule)[0],
            pairs,
        )

    def sentences(self) -> Iterator[str]:
        yield (
            f"**{self.near} of {self.known}** mean correlations that were published are within {CLOSE} of either "
            f"published set ({self.near / self.known:.0%}). One constant for each encoder and measure, the mean of the "
            f"published numbers themselves, gets {self.near_constant}."
        )
        errors = [f"to `{name}` {e[0]:.3f} (the constants {e[1]:.3f})" for name, e in self.errors.items() if e]
        if errors:
            between = self.each_other
            each_other = "" if between is None else f"; of the published sets to each other {between:.3f}"
            yield f"Mean absolute error of our means: {', '.join(errors)}{each_other}."
        if self.told:
            yield (
                f"**{self.inside} of {self.told}** are inside the 95% prediction interval that our seeds and the "
                "spread between the published sets allow; 95% would be expected if nothing but chance were different."
            )
        yield (
            f"Which of two encoders has the higher τ_g or τ_loo, on one dataset with one attention, is as published in "
            f"**{self.same} of {self.pairs}** comparisons. The rule “average > CNN > BiLSTM”, without any model, gets "
            f"{self.same_rule}."
        )

    def columns(self) -> dict[str, str]:
        """Without the constants: on one dataset they would be the published numbers themselves."""
        errors = {f"error to `{name}`": f"{e[0]:.3f}" if e else "-" for name, e in self.errors.items()}
        return {
            f"within {CLOSE}": f"{self.near} of {self.known}",
            **errors,
            "inside the prediction interval": f"{self.inside} of {self.told}",
            "encoders in order": f"{self.same} of {self.pairs}",
            "by the rule alone": str(self.same_rule),
        }


def table(found: Sequence[Cell], sources: Sequence[str]) -> Table:
    """Table 2: mean tau ± std, fraction significant, by predicted class and overall."""
    known = variation((cell.ours, cell.means) for cell in found)
    rows = [
        (
            *(*cell.setting, SYMBOLS[cell.pair], cell.label),
            f"{seeds(cell.ours)} ± {cell.std:.2f}",
            significant(cell),
            *("-" if row is None else f"{row[0]:.2f} ± {row[1]:.2f}, {row[2]:.2f}" for row in cell.theirs),
            difference(cell.ours, cell.means, known),
            "far" if far(cell.ours, cell.means, known) else "",
        )
        for cell in found
    ]
    header = (
        *(*SETTING, "tau", "class", "ours: mean ± std", "sig. (+/−)"),
        *(f"{source}: mean ± std, sig." for source in sources),
        *("ours - published (± expected)", ""),
    )
    note = (
        "Kendall tau between explanations over the words of each test text (Table 2), mean ± standard deviation "
        "over texts; the share that is significant, above and below 0. Where we have several seeds, the mean is "
        "theirs, and the spread between them stands in brackets. `far`: beyond the 95% prediction interval around the "
        "mean of the published sets, from the variance between our seeds and between those sets, pooled over the table."
    )
    return Table("Correlation of attention with other measures", header, tuple(rows), note)


def significant(cell: Cell) -> str:
    """The share that is significant; by sign where it is known."""
    signs = "" if cell.positive is None else f" ({cell.positive:.2f}/{cell.negative or 0.0:.2f})"
    return f"{cell.sig_frac:.2f}{signs}"


def overall_means(trial: Result) -> dict[str, float]:
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
