"""What `importance_sets` says about itself: columns, verdict, figures, texts worth a look, comparison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, mean_of, number, seeds
from heedful.experiments.framework.description import Column, Reason, Result, number_at, places_by
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, known, percent
from heedful.figures.figure import Figure, method_name
from heedful.measure.columns import Floats, column, rows_of
from heedful.measure.paired import sign_flip_test
from heedful.measure.statistics import Interval, between_seeds, resampled_means

QUESTION = "Does attention find the few items that the decision rests on?"
RANDOM = "random"
WELL, PARTLY = 0.8, 0.5  # of the way from a random order to the smallest set
RESAMPLES = 1000
RULE = (
    f"From {WELL:.0%} of the way from a random order to the smallest set on: attention finds them; from {PARTLY:.0%} "
    "on: partly; below: hardly."
)
CLAIM = "attention finds the items that decide sooner than a random order"
COLUMNS = {
    "share": Column(
        "share removed before the decision changes",
        0,
        1,
        "Near 0: a few items decide, and the ranking puts them first. Texts that never change are left out.",
    ),
    "removed": Column("items removed before the decision changes", 0, None, "The fewer the better the ranking."),
    "smallest_low": Column("smallest flipping set, at least", 0, None, "No set of fewer items is enough."),
    "smallest_high": Column("smallest flipping set, at most", 0, None, "A set of so many items is enough."),
}


def ranking_name(ranking: str) -> str:
    own = {"attention_gradient": "gradient of attention", "attention_x_gradient": "attention × gradient"}
    return ranking if ranking.startswith(f"{RANDOM} ") else own.get(ranking, method_name(ranking))


WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "finds the few items that the decision rests on"),
    "mixed": Wording("Only in part", "finds only some of the items that the decision rests on"),
    "against": Wording("Hardly", "hardly finds the items that the decision rests on"),
}


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (PARTLY, WELL))


def verdict(trial: Result) -> Verdict:
    """(random - attention) / (random - smallest) of the mean shares removed, over the texts that some set flips.

    A text that a ranking never flips counts as 1.0. Where the smallest set is only bounded, the best set found stands
    for it, so attention is if anything farther from the best.
    """
    shares = shares_by_text(trial.table)
    if shares is None:
        sentence = "Attention and random orders were not tested here: see the figures."
        return JUDGEMENT.unclear("Not asked", sentence, "was not ranked")
    attention, random, smallest = shares
    if not attention.size or (random - smallest).mean() <= 0:
        sentence = "No removal changes the decision of any text, or none does better than a random order."
        return JUDGEMENT.unclear("Undefined", sentence, "cannot be distinguished from chance")
    found = way_to_the_best(attention, random, smallest)
    sentence = (
        f"Until the decision changes, {attention.mean():.0%} of the items have to go if the most attended go first, "
        f"{random.mean():.0%} in a random order, and {smallest.mean():.0%} would be enough (means over "
        f"{attention.size:,} texts that some removal changes): attention gets {percent(found)} of the way from a "
        f"random order to the best."
    )
    p = known(sign_flip_test(random - attention))
    return JUDGEMENT.of(found, sentence, claim=CLAIM, p=p)


def shares_by_text(table: pa.Table) -> tuple[Floats, Floats, Floats] | None:
    """Shares removed by attention, by random orders (their mean) and by the smallest set, never as 1.0: of the texts
    that some set flips; None where one was not asked."""
    names = list(dict.fromkeys(table["ranking"].to_pylist()))
    draws = [name for name in names if name.startswith(RANDOM)]
    if "attention" not in names or not draws:
        return None

    def counted(name: str) -> Floats:
        share = column(rows_of(table, "ranking", name), "share")
        return np.where(np.isnan(share), 1.0, share)

    rows = rows_of(table, "ranking", "attention")
    smallest = column(rows, "smallest_high") / np.maximum(column(rows, "n_words"), 1)
    some = ~np.isnan(smallest)
    random = np.mean([counted(name) for name in draws], axis=0)
    return counted("attention")[some], random[some], smallest[some]


def way_to_the_best(attention: Floats, random: Floats, smallest: Floats) -> Interval:
    """With a bootstrap interval over texts."""

    saved = np.stack([random - attention, random - smallest])  # (2, texts)
    value = float(saved[0].sum() / saved[1].sum())
    if len(attention) < 2:
        return Interval(value, np.nan, np.nan)
    means = resampled_means(saved, RESAMPLES)
    low, high = np.quantile(means[0] / means[1], [0.025, 0.975])
    return Interval(value, float(low), float(high))


def figures(trial: Result) -> list[Figure]:
    """Figure 5 of Serrano & Smith 2019, with the smallest set, both ways of counting texts that never flip."""
    from heedful.experiments.erasure.figures import share_boxes

    rankings = trial.summary["rankings"]
    shown = [name for name in rankings if not name.startswith(f"{RANDOM} ")]
    names = {"smallest": "smallest set", **{name: ranking_name(name) for name in shown}}
    smallest = trial.summary["smallest"]["share"]
    made = []
    for key, title, told in (
        ("counted", "Items removed before the decision changes", "A text that never changes counts as 1."),
        ("flipped", "The same, without the texts that never change", "As published: those are left out."),
    ):
        lines = {"smallest": smallest, **{name: rankings[name]["overall"][key] for name in shown}}
        medians = "; ".join(f"{names[n]} {line['q50']:.2f}" for n, line in lines.items() if line["q50"] is not None)
        made.append(
            Figure(
                f"removed-{key}",
                title,
                "Boxes hold the middle half of the texts, thick lines are medians, thin lines reach from 5% to 95%. "
                f"The nearer a ranking is to the smallest set, the better it finds what the decision rests on. {told}",
                f"Median share removed: {medians}.",
                share_boxes(lines, names),
                wide=key == "counted",
            )
        )
    return made


def reasons(trial: Result) -> Iterator[Reason]:
    first = trial.table["ranking"].to_pylist()[:1]
    names = set(trial.table["ranking"].to_pylist())
    ranking = "attention" if "attention" in names else first[0]
    rows = rows_of(trial.table, "ranking", ranking)
    share, high, n = (column(rows, name) for name in ("share", "smallest_high", "n_words"))
    told = ranking_name(ranking)
    few = f"The smallest share of items, by {told}, whose removal changes the decision."
    yield Reason("Few items decide", few, places_by(rows, share))
    missed = np.where(np.isnan(share), 1.0, share) - high / np.maximum(n, 1)
    far = f"A few items would be enough, and the ranking by {told} removes many before it comes to them."
    yield Reason("What decides is missed", far, places_by(rows, -missed))


def compare(evidence: Evidence) -> Comparison:
    """Figure 5 in numbers."""
    rows = []
    for setting, found in evidence:
        for name in [name for name in found[0]["rankings"] if not name.startswith(f"{RANDOM} ")]:
            lines = [one["rankings"][name]["overall"] for one in found if name in one["rankings"]]
            counted = [line["counted"]["mean"] for line in lines if line["counted"]["mean"] is not None]
            if not counted:
                continue
            rest = [
                number(mean_of([number_at(line, path) for line in lines]))
                for path in ("counted.q50", "flipped.mean", "flipped.q50", "times_smallest.q50", "optimal")
            ]
            never = mean_of([100 * line["never"] / line["n"] for line in lines if line["n"]])
            effect = mean_of([number_at(one, f"paired.{name}/attention.effect_size") for one in found])
            cells = (seeds(between_seeds(counted)), *rest[:3], "-" if never is None else f"{never:.1f}%")
            rows.append((*setting, ranking_name(name), *cells, *rest[3:], number(effect)))
    header = (
        *SETTING,
        "ranking",
        "mean share (never = 1)",
        "median",
        "mean (flips only)",
        "median",
        "never",
        "times the smallest (median)",
        "smallest found",
        "effect size against attention",
    )
    note = (
        "Share of the items removed before the first decision flip (Serrano & Smith 2019, figure 5), and how many "
        "times as many as the smallest flipping set. Effect size: matched-pairs rank-biserial correlation, below 0 "
        "where fewer items have to go than by attention."
    )
    return Comparison(tables=(Table("Importance sets", header, tuple(rows), note),) if rows else ())
