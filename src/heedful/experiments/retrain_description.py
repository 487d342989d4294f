"""What the rows of `retrain` add up to and say: curves of accuracy, each method against random words, the verdict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from heedful.experiments.description import Column, Reason, Trial, places_by
from heedful.experiments.experiment import Summary
from heedful.experiments.summary import Line, column, plain, spread
from heedful.experiments.verdict import Grade, Verdict, Wording, border, ends, grade_at, interval
from heedful.figures.figure import Figure
from heedful.figures.names import method_name
from heedful.measure.columns import Floats, rows_of
from heedful.measure.discovery import benjamini_hochberg
from heedful.measure.paired import paired
from heedful.measure.statistics import Interval

QUESTION = "Is a model worse when it is trained again without the words that attention points at?"
ATTENTION, RANDOM, NONE = "attention", "random", "none"
BARS = (0.02, 0.1)
RULE = (
    f"Accuracy lost beyond what random words cost, mean over the fractions removed: {BARS[1]:g} or more: yes; from "
    f"{BARS[0]:g} on: somewhat; below, or no more than chance can do: no."
)
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "points at words that a model needs to learn from"),
    "mixed": Wording("Somewhat", "points at words that a model needs somewhat more than others"),
    "against": Wording("No", "points at words that a model can as well be trained without"),
}
COLUMNS = {
    "correct": Column("predicted rightly after training again", 0, 1, "1: rightly, 0: wrongly.", bins=2),
    "probability": Column("probability of the label", 0, 1, "1: the new model is sure of the text's label."),
    "fraction": Column("share of the words removed", 0, 1, "Of every text, before training.", drawn=False),
}


def group_title(removal: str) -> str:
    method, _, fraction = removal.rpartition(" ")
    return "nothing removed" if method == NONE else f"{float(fraction):.0%} by {method_name(method)}"


def methods_of(table: pa.Table) -> list[str]:
    return [name for name in dict.fromkeys(table["method"].to_pylist()) if name != NONE]


def by_text(table: pa.Table, method: str) -> Floats:
    """The mean of `correct` over the fractions, of each text in the order of their places."""
    rows = rows_of(table, "method", method)
    _, place = np.unique(rows["example"].to_numpy(), return_inverse=True)
    return np.asarray(np.bincount(place, column(rows, "correct")) / np.bincount(place))


def summarise(table: pa.Table) -> Summary:
    """`none`: accuracy of the model itself; `curves`: by method and fraction; `against_random`: accuracy after random
    words were removed minus after those of the method, mean over the fractions, with a permutation test over texts, q
    over the methods (Benjamini & Hochberg) and the effect size. Intervals are over texts: another seed of training is
    another curve."""
    found = {name: _against_random(table, name) for name in methods_of(table) if name != RANDOM}
    adjusted = benjamini_hochberg([np.nan if line["p"] is None else line["p"] for line in found.values()])
    return {
        "overall": spread(column(table, "correct"), yes_or_no=True),
        "none": spread(column(rows_of(table, "method", NONE), "correct"), yes_or_no=True),
        "curves": {name: _curve(rows_of(table, "method", name)) for name in methods_of(table)},
        "against_random": {
            name: line | plain({"q": float(q)})
            for (name, line), q in zip(found.items(), adjusted, strict=True)
        },
    }


def _curve(rows: pa.Table) -> list[Line]:
    fraction = column(rows, "fraction")
    return [
        {"fraction": float(one)} | spread(column(rows, "correct")[fraction == one], yes_or_no=True)
        for one in np.unique(fraction)
    ]


def _against_random(table: pa.Table, method: str) -> Line:
    random, ours = by_text(table, RANDOM), by_text(table, method)
    test = paired(random, ours)
    line = {"n": test.n, "mean": test.difference, "low": test.low, "high": test.high, "p": test.p}
    return plain(line | {"effect_size": test.rank_biserial})


def verdict(trial: Trial) -> Verdict:
    table = trial.table
    if ATTENTION not in methods_of(table):
        told = "The words of highest attention were not removed: see the figures."
        return Verdict(QUESTION, "unclear", "Not asked", told, RULE, "was not asked", bars=BARS)
    line = _against_random(table, ATTENTION)
    if line["low"] is None or line["high"] is None:
        told = "One text is too little to compare by."
        return Verdict(QUESTION, "unclear", "Undefined", told, RULE, "was not asked", bars=BARS)
    found = Interval(line["mean"], min(line["low"], line["mean"]), max(line["high"], line["mean"]))
    grade: Grade = "against" if found.low <= 0 else grade_at(found.value, *BARS, rising=True)
    answer, clause = WORDINGS[grade]
    means = {name: float(by_text(table, name).mean()) for name in methods_of(table)}
    own = float(column(rows_of(table, "method", NONE), "correct").mean())
    fractions = np.unique(column(rows_of(table, "method", ATTENTION), "fraction"))
    others = ", ".join(f"{method_name(n)} {m:.2f}" for n, m in means.items() if n not in (ATTENTION, RANDOM))
    sentence = (
        f"Trained again without {fractions.min():.0%} to {fractions.max():.0%} of the words, the model predicts "
        f"{means[RANDOM]:.2f} of the texts rightly where random words are gone and {means[ATTENTION]:.2f} where the "
        f"most attended are ({own:.2f} with all words): {interval(found)} are lost beyond chance, in {line['n']:,} "
        f"texts and one training for each point.{f' Others: {others}.' if others else ''}{border(found, *BARS)}"
    )
    return Verdict(QUESTION, grade, answer, sentence, RULE, clause, *ends(found), bars=BARS)


def figures(trial: Trial) -> list[Figure]:
    """Figure 4 of Hooker et al. 2019: accuracy against the share removed, a line for each method."""
    from heedful.figures.curves import curves

    none = {"fraction": 0.0, **trial.summary["none"]}
    lines = {method_name(name): [none, *found] for name, found in trial.summary["curves"].items()}
    told = "; ".join(f"{name} {points[-1]['mean'] or 0.0:.2f}" for name, points in lines.items())
    return [
        Figure(
            "retrain",
            "Accuracy after training without words",
            "Each point is a model that was trained without that share of the words of every text. The lower a curve "
            "is below that of random words, the more the method removed of what there is to learn from. Bands are 95% "
            "intervals over texts.",
            f"Accuracy at the largest share removed: {told}.",
            curves(lines, ("share of the words removed", "accuracy")),
            wide=True,
        )
    ]


def reasons(trial: Trial) -> Iterator[Reason]:
    methods = methods_of(trial.table)
    method = ATTENTION if ATTENTION in methods else methods[0]
    texts = pa.table({"example": np.unique(trial.table["example"].to_numpy())})
    lost = by_text(trial.table, RANDOM) - by_text(trial.table, method)
    told = method_name(method)
    why = f"Predicted rightly without random words, and not without those that {told} ranks highest."
    yield Reason("Its words are needed", why, places_by(texts, -np.where(lost > 0, lost, np.nan)))
    odd = f"Predicted rightly without the words that {told} ranks highest."
    yield Reason("Its words are not needed", odd, places_by(texts, -by_text(trial.table, method)))
