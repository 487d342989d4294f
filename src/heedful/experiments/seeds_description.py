"""What `seeds` says about itself: columns, verdict, figures, texts worth a look, comparison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heedful.experiments.beside import by_run
from heedful.experiments.comparison import SETTING, Comparison, Evidence, Table, number
from heedful.experiments.description import Column, Reason, Trial, places_by, quartiles
from heedful.experiments.verdict import Grade, Verdict, Wording, border, ends, grade_at, interval
from heedful.figures.figure import Figure
from heedful.measure.columns import BINS, Floats
from heedful.measure.levels import over_runs
from heedful.measure.statistics import Interval

QUESTION = "How much does attention vary with the seed of training?"
LN2 = float(np.log(2))
LITTLE, MUCH = 0.05, 0.2  # nats of JSD
RULE = f"Mean JSD below {LITTLE}: little; from {MUCH} on: much; between: somewhat. At most 0.69 is possible."
COLUMNS = {
    "jsd": Column(
        "JSD of the attentions", 0, LN2, "Left: another seed attends to the same words.", unit="nats"
    ),
    "tvd": Column("TVD of the outputs", 0, 1, "Left: another seed says the same."),
    "tau": Column("τ of the attentions", -1, 1, "Right: another seed puts the words into the same order."),
    "same": Column("same decision", 0, 1, "1: another seed decides alike.", bins=2),
}
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Little", "hardly varies with the seed of training"),
    "mixed": Wording("Somewhat", "varies with the seed of training"),
    "against": Wording("A lot", "varies a lot with the seed of training"),
}


def verdict(trial: Trial) -> Verdict:
    """The mean JSD between the attention of the run and those of other seeds."""
    found = over_runs(by_run(trial.table, "jsd", "seed"))
    bars = (LITTLE, MUCH)
    if np.isnan(found.mean):
        sentence = "No text has words: there is nothing to attend to."
        return Verdict(QUESTION, "unclear", "Undefined", sentence, RULE, "has no words", bars=bars)
    grade = grade_at(found.mean, *bars, rising=False)
    answer, clause = WORDINGS[grade]
    mean = Interval(found.mean, max(found.low, 0.0), found.high)  # few seeds: a wide interval
    alike = float(by_run(trial.table, "same", "seed").mean())
    sentence = (
        f"The attention of {found.runs} models that differ in nothing but their seed is {interval(mean, 3)} nats of "
        f"JSD away from that of this one, over {found.texts:,} texts; they decide alike in {alike:.0%} of them."
        f"{border(mean, *bars)} Another attention that is no farther away differs by no more than chance."
    )
    return Verdict(
        QUESTION,
        grade,
        answer,
        sentence,
        RULE,
        clause,
        *ends(mean),
        bars=bars,
        rising=False,
        contains=found.contains,
    )


def figures(trial: Trial) -> list[Figure]:
    """The violins of Wiegreffe & Pinter 2019, section 3.2: JSD between seeds in bins of the largest weight."""
    from heedful.figures.drawing import histogram
    from heedful.figures.violin import violins

    frame, tvd = trial.frame("jsd"), trial.frame("tvd")
    line = trial.summary["overall"]
    return [
        Figure(
            "seeds-jsd",
            "How far the attention of another seed is",
            "A violin for each bin of the largest weight: wide where many pairs of text and seed are; the line is the "
            "median. Violins at the left: whatever the seed, attention is on the same words.",
            f"JSD between the attentions of seeds by the largest weight; {quartiles(line)}.",
            violins(frame, "distance from another seed's attention (JSD)", (0.0, LN2)),
        ),
        Figure(
            "seeds-tvd",
            "… and what it says",
            "Each bar counts pairs of a text and another seed: how far the outputs of the two models are apart.",
            f"TVD between the outputs of seeds; {quartiles(line['tvd'])}.",
            histogram(
                tvd, trial.labels, COLUMNS["tvd"].edges_of(tvd.value).tolist(), "tvd",
                "distance of the outputs (TVD)",
            ),
        ),
    ]  # fmt: skip


def reasons(trial: Trial) -> Iterator[Reason]:
    """By the mean over seeds."""
    rows = trial.table
    first = rows.filter(rows["seed"].to_numpy(zero_copy_only=False) == rows["seed"][0].as_py())
    jsd: Floats = by_run(rows, "jsd", "seed").mean(0)
    yield Reason(
        "Every seed attends to the same", "The lowest mean JSD between seeds.", places_by(first, jsd)
    )
    yield Reason(
        "Every seed attends elsewhere", "The greatest mean JSD between seeds.", places_by(first, -jsd)
    )


def compare(evidence: Evidence) -> Comparison:
    """The violins in numbers."""
    rows = []
    for setting, found in evidence:
        for one in found:
            overall, bins = one["overall"], one["by_max_attention"]
            cells = [number(bins[name]["q50"]) for name in BINS]
            rest = [number(overall[name]["mean"]) for name in ("tau", "tvd", "same")]
            mean = f"{overall['mean']:.3f} ({overall['low']:.3f} to {overall['high']:.3f})"
            rows.append((*setting, str(overall["runs"]), mean, *cells, *rest))
    header = (
        *SETTING, "seeds", "mean JSD", *(f"median, max α in {name}" for name in BINS), "τ", "TVD", "same decision",
    )  # fmt: skip
    note = (
        "Attention of models that differ in their seed alone, against that of the first: the noise floor (Wiegreffe & "
        "Pinter 2019, section 3.2). JSD in nats, at most 0.693; intervals hold other texts and other seeds."
    )
    return Comparison(tables=(Table("Variance by seed", header, tuple(rows), note),) if rows else ())
