"""The figures of an audit: each explainer as a point with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import altair as alt

from heedful.auditing.outcome.findings import Finding
from heedful.auditing.outcome.recommend import ANSWERS, percent
from heedful.auditing.outcome.standings import Standings
from heedful.figures.drawing import Data, chart, draws, finish
from heedful.figures.figure import Figure, Spec, method_name
from heedful.figures.theme import variable

COLOURS = {"better": "for", "no better": "against", "worse": "against", "cannot tell": "mixed"}


def audit_figures(standings: Standings) -> Iterator[Figure]:
    """How the explainers stand; then each measure, all explainers under all conditions."""
    known = [one for one in standings.order if not math.isnan(one.share.mean)]
    if known:
        unit = math.isnan(known[0].share.worth)
        title = (
            "better than a random order by" if unit else "score"  # short: it is cut off where the screen is narrow
        )
        rows: Data = [
            {
                "method": method_name(one.method),
                "value": one.share.mean,
                "low": _end(one.share.low, one.share.mean),
                "high": _end(one.share.high, one.share.mean),
                "answer": ANSWERS[one.answer],
                "colour": variable(COLOURS[one.answer]),
            }
            for one in known
        ]
        told, controls = (
            "; ".join(f"{row['method']} {percent(row['value'])}" for row in rows if (row["method"] in names) == control)
            for names in [{method_name(one.method) for one in known if one.explained.kind == "control"}]
            for control in (False, True)
        )
        controls = f" The control: {controls}." if controls else ""
        yield Figure(
            "standings",
            "How the explainers stand",
            "Each point is an explainer, its line the 95% interval over texts: 0% is a random order (the dashed line), "
            "100% the best order found. An explainer whose line crosses 0% was not found to be better than random.",
            f"The explainers, the best first: {told}.{controls}",
            points_with_intervals(rows, title),
            wide=True,
        )
    names = dict.fromkeys((one.experiment, one.measure) for one in standings.findings)
    for experiment, measure in names:
        some = [one for one in standings.findings if (one.experiment, one.measure) == (experiment, measure)]
        yield _measure(experiment, measure, some)


def _measure(experiment: str, measure: str, findings: Sequence[Finding]) -> Figure:
    rows: Data = [
        {
            "method": method_name(one.method),
            "condition": one.condition or experiment,
            "value": one.value.value,
            "low": _end(one.value.low, one.value.value),
            "high": _end(one.value.high, one.value.value),
            "chance": None if math.isnan(one.chance) else one.chance,
        }
        for one in findings
        if not math.isnan(one.value.value)
    ]
    title = findings[0].title
    told = "; ".join(f"{row['method']} ({row['condition']}) {row['value']:.3f}" for row in rows)
    return Figure(
        f"{experiment}-{measure}",
        f"{title[:1].upper()}{title[1:]}",
        "Means over the texts with 95% intervals; the thin mark is what a random order gets on the same texts.",
        f"{title}: {told}.",
        measure_points(rows, title),
    )


def _end(end: float, value: float) -> float:
    return value if math.isnan(end) else end


@draws
def points_with_intervals(rows: Data, title: str) -> Spec:
    order = [row["method"] for row in rows]
    x, y = (alt.X("value:Q", title=title, axis=alt.Axis(format=".0%")), alt.Y("method:N", sort=order, title=None))
    base = chart(rows).encode(y=y)
    zero = chart([{"value": 0.0}]).mark_rule(color=variable("quiet"), strokeDash=[4, 4]).encode(x=x)
    colour = alt.Color("colour:N", scale=None)
    line = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title), x2="high:Q", color=colour)
    tip = [
        alt.Tooltip("method:N"),
        alt.Tooltip("value:Q", title="score", format=".1%"),
        alt.Tooltip("low:Q", format=".1%"),
        alt.Tooltip("high:Q", format=".1%"),
        alt.Tooltip("answer:N", title="better than random?"),
    ]
    point = base.mark_point(size=70, filled=True, opacity=1).encode(x=x, color=colour, tooltip=tip)
    return finish([zero, line, point], 28 * max(2, len(rows)), "How the explainers stand")


@draws
def measure_points(rows: Data, title: str) -> Spec:
    order = list(dict.fromkeys(row["method"] for row in rows))
    conditions = list(dict.fromkeys(row["condition"] for row in rows))
    colours = [variable(name) for name in ("c0", "c1", "c2", "c3", "quiet")]
    y = alt.Y("method:N", sort=order, title=None)
    offset = alt.YOffset("condition:N", sort=conditions)
    colour = alt.Color(
        "condition:N",
        title=None,
        legend=alt.Legend(orient="top") if len(conditions) > 1 else None,
        scale=alt.Scale(domain=conditions, range=(colours * len(conditions))[: len(conditions)]),
    )
    base = chart(rows).encode(y=y, yOffset=offset, color=colour)
    line = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    tip = [
        alt.Tooltip("method:N"),
        alt.Tooltip("condition:N"),
        alt.Tooltip("value:Q", title="mean", format=".4f"),
        alt.Tooltip("low:Q", format=".4f"),
        alt.Tooltip("high:Q", format=".4f"),
        alt.Tooltip("chance:Q", title="random order", format=".4f"),
    ]
    point = base.mark_point(size=40, filled=True, opacity=1).encode(x=alt.X("value:Q", title=title), tooltip=tip)
    chance = base.mark_tick(thickness=1, size=9).encode(
        x=alt.X("chance:Q", title=title), color=alt.value(variable("ink"))
    )
    height = max(60, len(order) * (8 + 9 * len(conditions)))
    return finish([line, chance, point], height, title)
