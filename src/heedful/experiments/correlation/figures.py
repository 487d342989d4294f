"""Figures of correlation: every pair at a glance, and Kendall's tau of each pair text by text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from heedful.experiments.correlation.published import overall_means
from heedful.experiments.correlation.verdict import ATTENTION_PAIRS, REFERENCE
from heedful.experiments.framework.beside import seed_floor
from heedful.experiments.framework.description import Column, Result
from heedful.figures.drawing import Data, chart, draws, finish, histogram
from heedful.figures.figure import Figure, Spec, pair_name
from heedful.figures.theme import variable


def figures(trial: Result, tau: Column) -> tuple[Figure, ...]:
    """All pairs, then each: with chance and the reference as lines where attention is one of the two."""
    summary, published = trial.summary, overall_means(trial)
    means = {pair: lines["overall"]["tau"]["mean"] for pair, lines in summary.items()}
    told = "; ".join(f"{pair_name(pair)} {mean:.2f}" for pair, mean in means.items() if mean is not None)
    orange = " Orange ticks: published by Jain & Wallace 2019." if published else ""
    made = [
        Figure(
            "agreement",
            "All pairs at a glance",
            "1: the two put the words of a text into the same order; 0: no relation. The further a blue dot is from "
            f"the random order, and the nearer to the pair without attention, the better attention does.{orange}",
            f"Mean Kendall's tau: {told}.",
            agreement(summary, published),
            wide=True,
        )
    ]
    floor = seed_floor(trial)
    for pair in summary:
        references, lines = {}, ""
        if pair in ATTENTION_PAIRS:
            references["chance"] = 0.0  # the mean of a random order, by its law
            lines = " Better than chance is right of the line."
            if (mean := means.get(REFERENCE)) is not None:
                references["reference"] = mean
                lines = (
                    " Better than chance is right of the first line; as well as the two others agree with each other "
                    "is at the second."
                )
        what = {"attention/random": " (chance)", REFERENCE: " (the reference)"}.get(pair, "")
        if floor is not None and floor.tau is not None and pair in ATTENTION_PAIRS:
            references |= floor.line(floor.tau)
            lines += (
                f" Between seeds: attention agrees with that of the same model trained with another seed by "
                f"{floor.tau:.2f} (mean of {floor.seeds} seeds)."
            )
        made.append(
            Figure(
                "tau-" + pair.replace("/", "-"),
                f"{pair_name(pair).capitalize()}{what}",
                f"Each bar counts the texts whose two rankings of words agree this much.{lines}",
                f"Histogram of Kendall's tau between {pair_name(pair)}; {_spread(summary[pair]['overall']['tau'])}.",
                tau_histogram(trial, pair, tau, references),
            )
        )
    return tuple(made)


def tau_histogram(trial: Result, pair: str, tau: Column, references: Mapping[str, float] | None = None) -> Spec:
    """Figure 2 of Jain & Wallace 2019: Kendall's tau of one pair by predicted class, with lines to compare."""
    frame = trial.frame("tau", "pair", pair)
    return histogram(
        frame,
        trial.labels,
        tau.edges_of(frame.value).tolist(),
        f"tau:{pair}",
        "Kendall's τ of one text",
        references=references,
        description=f"Histogram of Kendall's tau between {pair_name(pair)}",
    )


@draws
def agreement(summary: Mapping[str, Any], published: Mapping[str, float] | None = None) -> Spec:
    """The mean tau of every pair with its 95% interval; orange ticks where a study has published one."""
    rows: Data = []
    for pair, lines in summary.items():
        tau = lines["overall"]["tau"]
        if tau["mean"] is not None:
            numbers = {key: tau[key] and round(tau[key], 4) for key in ("mean", "low", "high")}
            rows.append({"pair": pair_name(pair), "role": _role(pair), **numbers})
    rows.sort(key=lambda row: -row["mean"])
    order = [row["pair"] for row in rows]
    title = "mean Kendall's τ, with 95% interval"
    scale = alt.Scale(domain=[-0.2, 1], nice=False)
    x, y = alt.X("mean:Q", title=title, scale=scale), alt.Y("pair:N", sort=order, title=None, axis=None)
    tip = [alt.Tooltip("pair:N"), alt.Tooltip("mean:Q", title="mean τ", format=".3f")]
    ends = [alt.Tooltip(f"{end}:Q", title=end, format=".3f") for end in ("low", "high")]
    base = chart(rows).encode(y=y)
    colours = alt.Scale(domain=["attention", "reference"], range=[variable("c0"), variable("quiet")])
    colour = alt.Color("role:N", scale=colours, legend=None)
    name = base.mark_text(align="left", dy=-17).encode(x=alt.value(2), text="pair:N")
    interval = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", title=title, scale=scale), x2="high:Q", color=colour
    )
    mean = base.mark_point(size=110, filled=True, opacity=1).encode(x=x, color=colour, tooltip=tip + ends)
    number = base.mark_text(align="left", dx=13, fontWeight="bold").encode(x=x, text=alt.Text("mean:Q", format=".2f"))
    theirs = [
        {"pair": pair_name(pair), "mean": value}
        for pair, value in (published or {}).items()
        if pair_name(pair) in order
    ]
    tick = chart(theirs).mark_tick(thickness=3, height=22, color=variable("c1"))
    layers = [*([tick.encode(x=x, y=y, tooltip=tip)] if theirs else []), interval, mean, name, number]
    return finish(layers, 50 * max(1, len(order)), "Mean Kendall's tau of every pair")


def _role(pair: str) -> str:
    first, second = pair.split("/")
    return "attention" if first == "attention" and second != "random" else "reference"


def _spread(tau: Mapping[str, float | None]) -> str:
    if tau["mean"] is None:
        return "undefined for all texts"
    return f"mean {tau['mean']:.2f}, standard deviation {tau['std']:.2f}, {tau['n']} texts"
