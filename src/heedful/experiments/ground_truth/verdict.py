"""What known evidence says of a model's attention: columns, verdict, figures, texts worth a look.

The three experiments with evidence differ in what it is and in which measure is judged: `Claim` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from heedful.experiments.erasure.importance_pages import way_to_the_best
from heedful.experiments.framework.description import Column, Reason, Result, places_by
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, border, grade_at, percent
from heedful.experiments.ground_truth.evidence import ATTENTION, CONTROLS, FIRST_WORDS, chance_p, methods_of
from heedful.figures.figure import Figure, method_name
from heedful.measure.columns import Floats, column, rows_of
from heedful.measure.statistics import Interval, mean_interval

COLUMNS = {
    "precision": Column(
        "precision at k", 0, 1, "1: the k strongest words are the evidence, k being how many words it has."
    ),
    "hit": Column("strongest word is evidence", 0, 1, "1: it is; 0: it is not; between: a tie.", bins=10),
    "auprc": Column("AUPRC", 0, 1, "1: every word of the evidence stands above every other word."),
    "iou_f1": Column("IOU F1", 0, 1, "1: the runs of strongest words are the runs of evidence, or half of each."),
    "best_f1": Column("F1 at the best threshold", 0, 1, "The best that any threshold could do: nobody knows it."),
    "rank": Column("mean rank of the evidence", 0, None, "1: the evidence is the strongest word."),
    "auc": Column("evidence above the rest", 0, 1, "1: above all other words; .5: as in a random order; 0: below all."),
    "chance": Column("share of words that are evidence", 0, 1, "What a random order gets.", drawn=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Judgement):
    """What is judged (`bars` are of the way from chance to everything), and how it is told."""

    measure: str  # hit or precision
    told: str  # with {value}, {chance} and {p}


def method_title(method: str) -> str:
    return "first words" if method == FIRST_WORDS else method_name(method)


def verdict_of(claim: Claim, rows: Callable[[pa.Table], pa.Table] = lambda table: table) -> Callable[[Result], Verdict]:
    """How far attention gets on the way from a random order to all of the evidence; `rows` are those that count."""

    def judge(trial: Result) -> Verdict:
        counted = rows(trial.table)
        table = counted.filter(pa.array(column(counted, "chance") < 1))  # of the rest nothing can be found or missed
        if ATTENTION not in methods_of(trial.table):
            best = _others(table, claim.measure)
            sentence = f"This model has no attention to judge, or attention was not tested.{best}"
            return claim.unclear("Not asked", sentence, "was not asked")
        own = rows_of(table, "method", ATTENTION)
        value, chance = column(own, claim.measure), column(own, "chance")
        known = ~np.isnan(value) & (chance < 1)
        value, chance = value[known], chance[known]
        if not value.size:
            sentence = "No text has evidence beside which there are other words."
            return claim.unclear("Undefined", sentence, "has nothing to be found")
        found = way_to_the_best(value, chance, np.ones_like(chance))
        mean = Interval(float(value.mean()), *mean_interval(value))
        low = mean_interval(value - chance)[0] if value.size > 1 else np.nan
        beaten = not low > 0  # nan is not proof either
        grade: Grade = "against" if beaten else grade_at(found.value, *claim.bars, rising=True)
        answer, clause = claim.wordings[grade]
        if beaten:
            answer, clause = "No better than chance", "finds them no better than a random order"
        without = len(rows_of(counted, "method", ATTENTION)) - value.size
        silent = f"; in the {without:,} others nothing is known that could be found" if without else ""
        p = chance_p(own, claim.measure)
        p_ = f"p = {p:.2g}" if not p < 1e-4 else "p < 0.0001"
        sentence = (
            f"{claim.told.format(value=percent(mean), chance=f'{chance.mean():.0%}', p=p_)} That is {percent(found)} "
            f"of the way from chance to all, in {value.size:,} texts{silent}.{_others(table, claim.measure)}"
            f"{border(found, *claim.bars)}"
        )
        low_, high_ = np.fmin(found.low, found.value), np.fmax(found.high, found.value)
        graded = Interval(found.value, float(low_), float(high_))
        graded_by_bars = claim.of(graded, sentence, grade, says_border=False)
        return replace(graded_by_bars, answer=answer, clause=clause)

    return judge


def _others(table: pa.Table, name: str) -> str:
    """The other methods, the best first; then the controls, which know nothing."""
    means = {m: column(rows_of(table, "method", m), name) for m in methods_of(table) if m != ATTENTION}
    known = {m: float(np.nanmean(v)) for m, v in means.items() if not np.isnan(v).all()}
    best_first = sorted(known, key=lambda m: -known[m])
    others, controls = (
        ", ".join(f"{method_title(m)} {known[m]:.0%}" for m in best_first if (m in CONTROLS) == control)
        for control in (False, True)
    )
    return (f" Others: {others}." if others else "") + (f" Controls: {controls}." if controls else "")


def figures_of(measures: Sequence[str]) -> Callable[[Result], list[Figure]]:
    """For each measure the methods side by side, with intervals and the line of chance."""

    def draw(trial: Result) -> list[Figure]:
        from heedful.figures.charts import intervals

        made = []
        for name in measures:
            title = COLUMNS[name].title
            lines = {
                method_title(method): found["overall"][name]
                for method, found in trial.summary["methods"].items()
                if found["overall"][name]["mean"] is not None
            }
            chance = trial.summary["chance"].get(name)
            told = "; ".join(f"{method} {line['mean']:.2f}" for method, line in lines.items())
            controls = ", ".join(method_title(method) for method in CONTROLS)
            made.append(
                Figure(
                    f"evidence-{name}",
                    f"{title[0].upper()}{title[1:]}, by method",
                    f"{COLUMNS[name].reading} Points are means over the texts, lines 95% intervals; {controls} know "
                    "nothing of the model." + ("" if chance is None else " Dashed: what a random order gets, exactly."),
                    f"{title}: {told or 'undefined for all texts'}.",
                    intervals(
                        {name: (line["mean"], line["low"], line["high"]) for name, line in lines.items()},
                        title,
                        {} if chance is None else {"chance": chance},
                        whole=(0.0, 1.0),
                    ),
                    wide=name == measures[0],
                )
            )
        return made

    return draw


def reasons(trial: Result) -> Iterator[Reason]:
    """By attention, where it was asked, else by the first method."""
    methods = methods_of(trial.table)
    method = ATTENTION if ATTENTION in methods else methods[0]
    rows = rows_of(trial.table, "method", method)
    precision, auc = column(rows, "precision"), column(rows, "auc")
    told = method_title(method)
    yield Reason(
        "The evidence is found", f"By {told} it stands above the other words.", places_by(rows, -precision, -auc)
    )
    yield Reason("The evidence is missed", f"By {told} other words stand above it.", places_by(rows, precision, auc))
    others = [m for m in methods if m != method and m not in CONTROLS]
    if others:
        best: Floats = np.fmax.reduce([column(rows_of(trial.table, "method", m), "precision") for m in others])
        gap = np.where(best > precision, precision - best, np.nan)
        why = f"Another method finds what {told} misses."
        yield Reason("Found by another method only", why, places_by(rows, gap))
