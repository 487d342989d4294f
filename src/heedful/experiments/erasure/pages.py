"""What `erasure` and `flips` say about themselves: columns, verdicts, figures, texts worth a look, comparisons."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, mean_of, number, seeds
from heedful.experiments.framework.description import Column, Reason, Result, number_at, places_by
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, known, percent
from heedful.figures.figure import Figure
from heedful.measure.columns import Floats, column
from heedful.measure.paired import mcnemar
from heedful.measure.statistics import between_seeds, proportion

LN2 = float(np.log(2))
MARGINS = {"< .1": (0.0, 0.1), ".1 to .5": (0.1, 0.5), "≥ .5": (0.5, 1.1)}  # of the two most probable labels
CELLS = {
    "both": "both change it",
    "only_top": "only the most attended one does",
    "only_random": "only the other one does",
    "neither": "neither does",
}
COLUMNS = {
    "delta_js": Column(
        "ΔJS",
        -LN2,
        LN2,
        "Above 0: removing the most attended item changes the output more than removing another one.",
        unit="nats",
    ),
    "delta_alpha": Column("Δα", -1, 1, "How much more weight the most attended item has than the other one."),
    "js_top": Column("change without the most attended item", 0, LN2, "Near 0: it could as well go.", unit="JS"),
    "js_random": Column("change without a random item", 0, LN2, "Near 0: it could as well go.", unit="JS"),
    "flip_top": Column("decision changed without the most attended item", 0, 1, "1: it is another one.", bins=2),
    "margin": Column("how far the decision is ahead", 0, 1, "Probability of the decided label minus that of the next."),
    "flip_random": Column("decision changed without a random item", 0, 1, "1: it is another one.", bins=2),
}

ERASURE_QUESTION = "Does removing the most attended item change the output more than removing another one?"
ERASURE_WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "points at items that matter more than others"),
    "mixed": Wording("Mostly", "mostly points at items that matter more than others"),
    "against": Wording("Not reliably", "does not reliably point at items that matter more than others"),
}
OFTEN, MOSTLY = 0.75, 0.9  # of the texts; half of them would be chance
ERASURE_RULE = (
    f"In {MOSTLY:.0%} of the texts or more: yes; from {OFTEN:.0%} on: mostly; below: not reliably. By chance it would "
    "be half of them."
)


ERASURE_JUDGEMENT = Judgement(ERASURE_QUESTION, ERASURE_RULE, ERASURE_WORDINGS, (OFTEN, MOSTLY))


def erasure_verdict(trial: Result) -> Verdict:
    """The share of the texts in which delta JS is above zero."""
    delta = column(trial.table, "delta_js")
    delta = delta[~np.isnan(delta)]
    if not delta.size:
        sentence = "No text has two items: there is none to compare the most attended one with."
        return ERASURE_JUDGEMENT.unclear("Undefined", sentence, "has no alternative")
    found = proportion(int((delta > 0).sum()), delta.size)
    sentence = (
        f"In {percent(found)} of {delta.size:,} texts the output changes more without the most attended item than "
        f"without a random other one; the median of the difference is {np.median(delta):.4f} nats "
        f"(of at most {LN2:.2f})."
    )
    claim = "removing the most attended item matters more often than removing another one"
    p = mcnemar(int((delta > 0).sum()), int((delta < 0).sum()))
    return ERASURE_JUDGEMENT.of(found, sentence, claim=claim, p=known(p))


def erasure_figures(trial: Result) -> list[Figure]:
    """Figure 3 of Serrano & Smith 2019: delta JS against delta alpha."""
    from heedful.experiments.erasure.figures import difference_points

    values = column(trial.table, "delta_js")
    below = float((values[~np.isnan(values)] < 0).mean()) if (~np.isnan(values)).any() else 0.0
    return [
        Figure(
            "delta-js",
            "Difference of effect against difference of weight",
            "Each point is a text: the most attended item and a random other one are removed, one at a time. Right: "
            "the first has far more weight. Up: removing it changes the output more. If weight were importance, points "
            "would rise to the right; those below the line are texts in which the other item mattered more.",
            f"ΔJS against Δα; {below:.0%} of the texts are below zero.",
            difference_points(trial),
            wide=True,
        )
    ]


def erasure_reasons(trial: Result) -> Iterator[Reason]:
    rows = trial.table
    delta, gap = column(rows, "delta_js"), column(rows, "delta_alpha")
    most = "Removing the most attended item changes the output most, compared with another one."
    yield Reason("The weight that matters most", most, places_by(rows, -delta))
    calm = "The most attended item has at least half of the weight more than the other, and removing it does less."
    yield Reason("Much weight, less effect", calm, places_by(rows, np.where((gap >= 0.5) & (delta < 0), delta, np.nan)))
    yield Reason("The other item matters more", "The lowest ΔJS.", places_by(rows, delta))


def erasure_compare(evidence: Evidence) -> Comparison:
    """Figure 3 in numbers."""
    rows = []
    for setting, found in evidence:
        means = between_seeds([one["overall"]["mean"] for one in found])
        rest = [
            number(mean_of([number_at(one, f"overall.{name}") for one in found]))
            for name in ("q50", "js_top", "js_random", "negative", "spearman")
        ]
        rows.append((*setting, seeds(means), *rest))
    header = (*SETTING, "mean ΔJS", "median", "JS of i*", "JS of r", "ΔJS < 0", "Spearman of ΔJS and Δα")
    note = "The most attended item i* and a random other one r removed (Serrano & Smith 2019, figure 3), in nats."
    return Comparison(tables=(Table("Erased attention", header, tuple(rows), note),) if rows else ())


FLIPS_QUESTION = "How often does removing the most attended item change the decision, and removing another one?"
SOMETIMES, USUALLY = 0.25, 0.5  # of the texts
FLIPS_WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Usually", "usually puts its largest weight on what decides"),
    "mixed": Wording("Sometimes", "puts its largest weight on what decides in some texts only"),
    "against": Wording("Seldom", "seldom puts its largest weight on what decides"),
}
FLIPS_RULE = (
    f"Without the most attended item the decision is another one in {USUALLY:.0%} of the texts or more: it rests on "
    f"it; from {SOMETIMES:.0%} on: sometimes; below: seldom."
)


FLIPS_JUDGEMENT = Judgement(FLIPS_QUESTION, FLIPS_RULE, FLIPS_WORDINGS, (SOMETIMES, USUALLY))


def flips_verdict(trial: Result) -> Verdict:
    """The share of the texts whose decision changes without i*, and McNemar's test against r."""
    top, random = column(trial.table, "flip_top"), column(trial.table, "flip_random")
    defined = ~np.isnan(top) & ~np.isnan(random)
    if not defined.any():
        sentence = "No text has two items: there is none to compare the most attended one with."
        return FLIPS_JUDGEMENT.unclear("Undefined", sentence, "has no alternative")
    i, r = top[defined] > 0, random[defined] > 0
    found, other = proportion(int(i.sum()), len(i)), proportion(int(r.sum()), len(r))
    p = mcnemar(int((i & ~r).sum()), int((~i & r).sum()))
    sentence = (
        f"Without its most attended item the decision changes in {percent(found)} of {len(i):,} texts, without a "
        f"random other item in {percent(other)}: {compared(found.value, other.value, p)}."
    )
    claim = "removing the most attended item changes the decision more often than removing another one"
    return FLIPS_JUDGEMENT.of(found, sentence, claim=claim, p=known(p))


def compared(top: float, random: float, p: float) -> str:
    """In words, at the 5% level."""
    if np.isnan(p) or p > 0.05:
        told = "" if np.isnan(p) else f" (McNemar's test, p = {p:.2g})"
        return f"which of the two is removed makes no measurable difference{told}"
    return f"{'more' if top > random else 'less'} often (McNemar's test, p = {p:.2g})"


def flips_figures(trial: Result) -> list[Figure]:
    """Table 2 of Serrano & Smith 2019 as bars."""
    from heedful.experiments.erasure.figures import flip_bars

    line = trial.summary["overall"]
    told = ", ".join(f"{name} {(line[cell]['percent'] or 0):.1f}%" for cell, name in CELLS.items())
    return [
        Figure(
            "flips",
            "Does the decision change when an item is removed?",
            "Each text is in one bar. If the largest weight marked what decides, the second bar would be the longest. "
            "Thin lines are 95% intervals.",
            f"Decision flips: {told}.",
            flip_bars(trial.summary),
            wide=True,
        )
    ]


def flips_reasons(trial: Result) -> Iterator[Reason]:
    rows = trial.table
    top, random, peak = (column(rows, name) for name in ("flip_top", "flip_random", "max_attention"))
    yield _where(trial, "Decided by its largest weight", "Without it the decision changes.", top > random, peak)
    calm = "Without its most attended item the decision stays as it is."
    yield _where(trial, "Its largest weight decides nothing", calm, (top == 0) & ~np.isnan(top), -peak)
    odd = "Only without the other item, drawn at random, the decision changes."
    yield _where(trial, "Decided by another item", odd, random > top, -peak)


def _where(trial: Result, title: str, reason: str, which: np.ndarray, by: Floats) -> Reason:
    return Reason(title, reason, places_by(trial.table, np.where(which, by, np.nan)))


def flips_compare(evidence: Evidence) -> Comparison:
    """Table 2, ours above what was published."""
    rows: list[tuple[str, ...]] = []
    for setting, found in evidence:
        means = [mean_of([number_at(one, f"overall.{cell}.percent") for one in found]) for cell in CELLS]
        p = mean_of([number_at(one, "overall.p") for one in found])
        near = [
            _percent(mean_of([number_at(one, f"by_margin.{name}.top.percent") for one in found])) for name in MARGINS
        ]
        told = "-" if p is None else f"{p:.2g}" if p > 0 else "< 1e-300"
        rows.append((*setting, f"ours ({len(found)} seed{'s' * (len(found) > 1)})", *map(_percent, means), told, *near))
        for source, *theirs in zip(
            evidence.sources, *(evidence.theirs(setting, f"overall.{cell}.percent") for cell in CELLS), strict=True
        ):
            if any(value is not None for value in theirs):
                rows.append((*setting, source, *map(_percent, theirs), "-", *["-"] * len(MARGINS)))
    cells = ("both", "only i*", "only r", "neither", "p (McNemar, mean over seeds)")
    header = (*SETTING, "", *cells, *(f"i* flips, margin {m}" for m in MARGINS))
    note = (
        "Percent of the texts whose decision changes without the most attended item i*, without a random other one r "
        "(Serrano & Smith 2019, table 2); and how often i* flips where the decision is ahead of the next label by a "
        "margin of so much."
    )
    return Comparison(tables=(Table("Decision flips", header, tuple(rows), note),) if rows else ())


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
