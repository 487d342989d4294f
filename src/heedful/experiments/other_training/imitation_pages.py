"""What the rows of `imitation` add up to and say: the curve of JSD and TVD over lambda, its verdict and figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from heedful.experiments.framework.beside import seed_floor
from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, number
from heedful.experiments.framework.description import Column, Reason, Result, places_by
from heedful.experiments.framework.experiment import Summary
from heedful.experiments.framework.summary import Line, quantiles, share, spread
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, interval
from heedful.figures.figure import Figure
from heedful.measure.columns import column, rows_of
from heedful.measure.statistics import Interval, mean_interval

if TYPE_CHECKING:
    pass


def summarise(table: pa.Table) -> Summary:
    """By lambda: mean, interval and quantiles of `jsd` and `tvd`, and how often the imitator stays below the text's
    optimum; the same adversary for all; and all imitators together (`overall`)."""
    lambdas = dict.fromkeys(table["lambda"].to_pylist())
    rows = {one: rows_of(table, "lambda", one) for one in lambdas}
    first = next(iter(rows.values()))
    return {
        "by_lambda": {one: _line(here) for one, here in rows.items()},
        "adversary": spread(column(first, "adversary")),
        "overall": {name: spread(column(table, name)) for name in ("jsd", "tvd")},
    }


def _line(table: pa.Table) -> Line:
    jsd, best, tvd, adversary = (column(table, name) for name in ("jsd", "optimum", "tvd", "adversary"))
    return {
        "jsd": spread(jsd) | quantiles(jsd),
        "tvd": spread(tvd) | quantiles(tvd),
        "kl": spread(column(table, "kl")),
        "optimum": spread(best),
        "below_optimum": share(jsd <= best, ~np.isnan(jsd) & ~np.isnan(best)),
        "below_adversary": share(jsd <= adversary, ~np.isnan(jsd) & ~np.isnan(adversary)),
    }


QUESTION = "Can a model be trained that says the same and attends elsewhere?"
LN2 = float(np.log(2))
AWAY = 0.35  # nats of JSD, about half of what is possible: an attention that is elsewhere
CHEAP, DEAR = 0.02, 0.1  # of TVD, beyond that of an imitator that is not driven away
RULE = (
    f"Of the imitators whose attention is {AWAY} nats of JSD away or more (0.69 is the most possible), the one that is "
    f"nearest in its outputs: beyond the TVD of an imitator with λ = 0, less than {CHEAP}: yes; from {DEAR} on: no; "
    "between: at a price."
)
COLUMNS = {
    "jsd": Column("JSD of the attentions", 0, LN2, "Right: the imitator attends elsewhere.", unit="nats"),
    "tvd": Column("TVD of the outputs", 0, 1, "Left: the imitator says the same."),
    "kl": Column("KL of the attentions", 0, None, "What the imitator was trained to make large.", unit="nats"),
    "adversary": Column(
        "ε-max JSD", 0, LN2, "How far weights can be moved, text by text, without moving the prediction.", unit="nats"
    ),
    "optimum": Column(
        "greatest JSD at the same TVD",
        0,
        LN2,
        "How far weights can be moved when the output may change as much as the imitator's.",
        unit="nats",
    ),
}
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("No", "cannot be trained away without changing the predictions"),
    "mixed": Wording("At a price", "can be trained away at a price in predictions"),
    "against": Wording("Yes", "can be trained away while the predictions stay"),
    "unclear": Wording("Not told", "was not trained far enough away to tell what it costs"),
}
Lines = Mapping[str, Mapping[str, Any]]  # of a summary, by lambda


def nearest_elsewhere(lines: Lines) -> str | None:
    """Of the imitators that attend elsewhere, the one whose outputs are nearest."""
    away = [name for name, line in lines.items() if (line["jsd"]["mean"] or 0.0) >= AWAY]
    return min(away, key=lambda name: float(lines[name]["tvd"]["mean"]), default=None)


def not_driven(lines: Lines) -> str:
    """The imitator with the least lambda: what imitation alone does."""
    return min(lines, key=float)


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (CHEAP, DEAR), rising=False)


def verdict(trial: Result) -> Verdict:
    lines = summarise(trial.table)["by_lambda"]
    still, moved = not_driven(lines), nearest_elsewhere(lines)
    first = lines[still]
    if moved is None:
        farthest = max((line["jsd"]["mean"] or 0.0) for line in lines.values())
        sentence = (
            f"No imitator's attention is {AWAY} nats of JSD away or more; the farthest is {farthest:.3f} away. Ask "
            "again with greater λ."
        )
        answer, clause = WORDINGS["unclear"]
        return JUDGEMENT.unclear(answer, sentence, clause)
    cost = column(rows_of(trial.table, "lambda", moved), "tvd") - column(rows_of(trial.table, "lambda", still), "tvd")
    low, high = mean_interval(cost)
    found = Interval(float(cost.mean()), low, high)
    line = lines[moved]
    beyond = (
        ""
        if line["below_optimum"] is None
        else (
            f" In {line['below_optimum']:.0%} of the texts its attention is nearer to the model's than the farthest "
            f"one that changes the output as little (whose mean JSD is {line['optimum']['mean']:.3f})."
        )
    )
    sentence = (
        f"With λ = {moved} an imitator's attention is {line['jsd']['mean']:.3f} nats of JSD away, at a mean TVD of "
        f"{line['tvd']['mean']:.3f}; with λ = {still} it is {first['jsd']['mean']:.3f} away at "
        f"{first['tvd']['mean']:.3f}. That is {interval(found, 3)} of TVD more, over {len(cost):,} texts.{beyond}"
    )
    return JUDGEMENT.of(found, sentence)


def curve_points(trial: Result) -> list[dict[str, Any]]:
    """(mean JSD, mean TVD) of each imitator; and of other seeds, where they are known."""
    points = [
        {"kind": "imitators", "name": f"λ = {name}", "x": line["jsd"]["mean"], "y": line["tvd"]["mean"]}
        for name, line in sorted(trial.summary["by_lambda"].items(), key=lambda item: float(item[0]))
    ]
    floor = seed_floor(trial)
    for seed, line in (floor.by_seed if floor else {}).items():
        points.append({"kind": "other seeds", "name": f"seed {seed}", "x": line["jsd"], "y": line["tvd"]})
    return [point for point in points if point["x"] is not None and point["y"] is not None]


def figures(trial: Result) -> list[Figure]:
    """The curve of Wiegreffe & Pinter 2019, section 4: mean JSD against mean TVD; and each text against its optimum."""
    from heedful.figures.charts import curve
    from heedful.figures.drawing import against, dots, groups_of, some

    adversary = trial.summary["adversary"]["mean"]
    lines = {} if adversary is None else {"exact adversary of each text": adversary}
    floor = seed_floor(trial)
    seeds = "" if floor is None else " Other seeds of the same model stand beside it: what chance alone does."
    points = curve_points(trial)
    told = "; ".join(f"{p['name']}: JSD {p['x']:.3f}, TVD {p['y']:.3f}" for p in points)
    made = [
        Figure(
            "imitation-curve",
            "What it costs to attend elsewhere",
            "Each point is a model that was trained to say the same and to attend elsewhere, more so with greater λ. "
            "A flat curve: attention can be manipulated at no cost in predictions. A convex and steep one: it "
            f"cannot. The line is how far weights can be moved text by text, without a model that attends so.{seeds}",
            f"Mean TVD against mean JSD: {told}.",
            curve(
                points,
                ("distance of the attentions (mean JSD)", "distance of the outputs (mean TVD)"),
                (0.0, 0.7),
                lines,
            ),
            wide=True,
        )
    ]
    moved = nearest_elsewhere(trial.summary["by_lambda"]) or max(trial.summary["by_lambda"], key=float)
    frame, best = trial.frame("jsd", "lambda", moved), trial.frame("optimum", "lambda", moved)
    drawn = some(np.flatnonzero(~np.isnan(frame.value) & ~np.isnan(best.value)))
    if len(drawn):
        groups, names = groups_of(frame.predicted, trial.labels)
        made.append(
            Figure(
                "imitation-optimum",
                "The imitator against the optimum of each text",
                f"Each point is a text under the imitator with λ = {moved}; above the line: weights could be moved "
                "farther than a trained model moves them, at the same change of the output.",
                f"Greatest JSD at the same TVD against the imitator's JSD, λ = {moved}.",
                against(
                    dots(frame.example, frame.value, best.value, drawn, groups, names),
                    names,
                    ("imitator (JSD)", "exact optimum at the same TVD (JSD)"),
                    (0.0, 0.7),
                    "Exact optimum at the same TVD against the imitator's JSD",
                ),
            )
        )
    return made


def reasons(trial: Result) -> Iterator[Reason]:
    """Under the imitator that attends elsewhere at the least cost, or the one with the greatest lambda."""
    lines = trial.summary["by_lambda"]
    name = nearest_elsewhere(lines) or max(lines, key=float)
    rows = rows_of(trial.table, "lambda", name)
    jsd, tvd = column(rows, "jsd"), column(rows, "tvd")
    yield Reason(
        "Attention was trained away",
        f"The imitator with λ = {name} says the same (TVD below .05) and attends elsewhere.",
        places_by(rows, np.where(tvd < 0.05, -jsd, np.nan)),
    )
    yield Reason("Attention would not move", f"The lowest JSD of the imitator with λ = {name}.", places_by(rows, jsd))


def compare(evidence: Evidence) -> Comparison:
    """The curve in numbers, and its slopes."""
    rows = []
    for setting, found in evidence:
        for one in found:
            lines = dict(sorted(one["by_lambda"].items(), key=lambda item: float(item[0])))
            slopes = ["-", *(slope(a, b) for a, b in pairwise(lines.values()))]
            for (name, line), steep in zip(lines.items(), slopes, strict=True):
                means = [_with_interval(line[which]) for which in ("tvd", "jsd")]
                share = "-" if line["below_optimum"] is None else f"{line['below_optimum']:.1%}"
                best, exact = number(line["optimum"]["mean"]), number(one["adversary"]["mean"])
                rows.append((*setting, name, *means, steep, best, share, exact))
    header = (*SETTING, "λ", "TVD", "JSD", "slope", "optimum at the same TVD", "texts below their optimum", "ε-max JSD")
    note = (
        "Fresh models trained for TVD(y, y_base) - λ KL(α ‖ α_base) (Wiegreffe & Pinter 2019, section 4): means over "
        "test texts with 95% intervals over texts. Slope: TVD paid for each nat of JSD since the λ before. Optimum: "
        "the greatest JSD of another attention over the base's states that changes each output as little as the "
        "imitator does; ε-max JSD: the same at TVD ≤ ε (the exact adversary)."
    )
    return Comparison(tables=(Table("Imitation", header, tuple(rows), note),) if rows else ())


def slope(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """TVD for each nat of JSD; where JSD did not grow there is none."""
    tvd, jsd = (after[name]["mean"] - before[name]["mean"] for name in ("tvd", "jsd"))
    return f"{tvd / jsd:.2f}" if jsd > 0.005 else "-"


def _with_interval(line: Mapping[str, Any]) -> str:
    return f"{line['mean']:.3f} ({line['low']:.3f} to {line['high']:.3f})"
