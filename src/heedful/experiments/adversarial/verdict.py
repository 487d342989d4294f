"""The verdict of the adversarial experiment, its figures, and the texts that are worth a look."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heedful.experiments.framework.beside import seed_floor
from heedful.experiments.framework.description import Column, Reason, Result, places_by, quartiles
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, border, grade_at, percent
from heedful.figures.figure import Figure
from heedful.measure.columns import column
from heedful.measure.statistics import Interval, mean_interval

QUESTION = "Could a very different attention have given the same prediction?"
LN2 = float(np.log(2))
PINNED, FREE = 0.4, 0.8  # of the distance that is possible
RESAMPLES = 1000
RULE = (
    f"From {FREE:.0%} of the greatest possible distance on: yes; from {PINNED:.0%} on: partly; below: no. "
    "Distance: Jensen-Shannon divergence from the model's own attention."
)
COLUMNS = {
    "jsd": Column(
        "ε-max JSD",
        0,
        LN2,
        "How far attention can be moved without moving the prediction; 0.69 (ln 2) is as far as anything can be.",
        edges=(*(round(0.025 * i, 3) for i in range(28)), LN2),
    ),
    "bound": Column("upper bound of the ε-max JSD", 0, LN2, "No attention that keeps the prediction is farther."),
    "ceiling": Column("largest JSD at all", 0, LN2, "What could be had if the prediction did not matter."),
    "jsd_exact": Column("ε-max JSD, exact", 0, LN2, "The true maximum."),
    "jsd_adam": Column("ε-max JSD, found by Adam", 0, LN2, "What the published search finds."),
    "gap": Column("exact − Adam", 0, LN2, "What the published search missed."),
    "delta_y": Column("change of the output", 0, 1, "At most ε, by construction.", unit="TVD"),
}


WORDINGS: dict[Grade, Wording] = {
    "for": Wording("No", "cannot be changed much without changing the prediction"),
    "mixed": Wording("Up to a point", "can be changed a good deal before the prediction changes"),
    "against": Wording("Yes", "can be replaced by a very different one while the prediction stays the same"),
    "unclear": Wording("None was found", "was not found to be replaceable, but the search proves nothing"),
}


def epsilon_of(given: float | None, has_query: bool) -> float:
    """The epsilon that was meant: the one given, or the paper's for this kind of model."""
    return given if given is not None else 0.05 if has_query else 0.01


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (PINNED, FREE), rising=False)


def verdict(trial: Result) -> Verdict:
    """The mean of jsd / ceiling: how much of the possible distance is free while the prediction stays."""
    jsd, ceiling = column(trial.table, "jsd"), column(trial.table, "ceiling")
    defined = ~np.isnan(jsd) & (ceiling > 0)
    if not defined.any():
        sentence = "No text has two words or more: there is no other attention."
        return JUDGEMENT.unclear("Undefined", sentence, "has no alternative")
    shares, most = jsd[defined] / ceiling[defined], column(trial.table, "bound")[defined] / ceiling[defined]
    low, high = mean_interval(shares, resamples=RESAMPLES, within=(0.0, 1.0))
    found = Interval(float(shares.mean()), low, high)
    exact = bool((column(trial.table, "exact")[defined] > 0).all())
    bound = None if exact else mean_interval(np.minimum(most, 1.0), resamples=RESAMPLES, within=(0.0, 1.0))[1]
    grade = grade_of_freedom(found.value, exact)
    epsilon = epsilon_of(trial.options.get("epsilon"), trial.task != "classification")
    within = f"while the prediction changes by at most {epsilon:g}"
    least = "" if exact else "at least "
    beyond = "" if exact else f"; by the upper bounds, no more than {np.minimum(most, 1.0).mean():.0%}"
    above = float((jsd[defined] > 0.5).mean())
    sentence = (
        f"Attention can be moved {least}{percent(found)} of the way to the most different attention there is, "
        f"{within} (mean of {int(defined.sum()):,} texts{beyond}). In {above:.0%} of the texts the distance is above "
        f"0.5, where ln 2 = 0.69 is the most possible.{border(found, PINNED, FREE)}"
    )
    # What was found is a lower bound: the truth is between the interval's lower end and that of the upper bounds.
    known = found if bound is None else Interval(found.value, low, max(high, bound))
    return JUDGEMENT.of(known, sentence, grade, says_border=False)


def grade_of_freedom(share: float, exact: bool) -> Grade:
    """Of the mean share of the possible distance; a search that finds little proves little."""
    grade = grade_at(share, PINNED, FREE, rising=False)
    if exact or grade == "against":
        return grade
    return "mixed" if share >= PINNED else "unclear"


def figures(trial: Result) -> list[Figure]:
    """Figures 4 and 5, and what the published search missed."""
    from heedful.figures.drawing import against, by_max_attention, dots, groups_of, histogram, some

    line, frame, floor = trial.summary["overall"], trial.frame("jsd"), seed_floor(trial)
    references = {"most possible: ln 2": LN2} | (floor.line(floor.jsd) if floor else {})
    chance = floor.sentence(line["mean"]) if floor and line["mean"] is not None else ""
    made = [
        Figure(
            "jsd",
            "How far attention can be moved",
            "Each bar counts the texts for which the most different attention with the same prediction is this far "
            f"from the model's own. Right: attention could have been anything.{chance}",
            f"Histogram of the epsilon-max JSD; {quartiles(line)}.",
            histogram(
                frame,
                trial.labels,
                COLUMNS["jsd"].edges_of(frame.value).tolist(),
                "jsd",
                "distance of the farthest attention (JSD)",
                references=references,
                domain=(0.0, 0.7),
                description="Histogram of the epsilon-max JSD of each text",
            ),
        ),
        Figure(
            "jsd-max-attention",
            "… and where attention is sharp",
            "The same distance against the largest weight. Points at the top right are texts with sharp attention that "
            "could be replaced by another.",
            f"Epsilon-max JSD against the largest attention weight; {quartiles(line)}.",
            by_max_attention(frame, trial.labels, "farthest attention (JSD)", (0.0, 0.7)),
        ),
    ]
    if "gap" in trial.table.column_names:
        exact, adam = column(trial.table, "jsd_exact"), column(trial.table, "jsd_adam")
        groups, names = groups_of(frame.predicted, trial.labels)
        drawn = some(np.flatnonzero(~np.isnan(exact) & ~np.isnan(adam)))
        made.append(
            Figure(
                "exact-adam",
                "What the published search missed",
                "Each point is a text; above the line, the search of the paper (Adam) found less than there is.",
                f"True maximum against Adam's; the mean gap is {line['gap']['mean']:.3f}.",
                against(
                    dots(frame.example, adam, exact, drawn, groups, names),
                    names,
                    ("found by the published search (JSD)", "true maximum (JSD)"),
                    (0.0, 0.7),
                    "True epsilon-max JSD against what Adam found",
                ),
            )
        )
    return made


def reasons(trial: Result) -> Iterator[Reason]:
    rows = trial.table
    jsd, peak = column(rows, "jsd"), column(rows, "max_attention")
    most = "The most different attention that gives the same prediction, where the model's own is sharpest."
    yield Reason("Attention can be replaced", most, places_by(rows, -np.round(jsd, 2), -peak))
    least = "The prediction allows the least change of attention here."
    yield Reason("Attention is pinned down", least, places_by(rows, jsd))
