"""Which figures a page shows, in which order, and how each is to be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from heedful.explanation import Explanation
from heedful.heatmap import visible
from heedful.report import figures, sample
from heedful.report.drawing import Spec
from heedful.report.findings import Findings
from heedful.report.naming import pair_name
from heedful.report.published import published_tau
from heedful.report.verdicts import ATTENTION_PAIRS, CEILING, FLOOR

LABELS_WITH_WORDS = 4  # of which the words are shown


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing with the sentence on how to read it; `spoken` is what a screen reader says instead of it."""

    id: str
    title: str
    read: str
    spoken: str
    spec: Spec
    wide: bool = False
    label: str = ""
    top: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    figures: tuple[Figure, ...]


def chapters(findings: Findings) -> list[Group]:
    """The figures that the results allow, by question."""
    groups = []
    if "correlation" in findings.tables:
        groups.append(Group("Does attention agree with other explanations?", _agreement(findings)))
    if "permutation" in findings.tables:
        groups.append(Group("Does it matter which word gets which weight?", (_permutation(findings),)))
    if "adversarial" in findings.tables:
        groups.append(Group("Could attention have been another?", _adversarial(findings)))
    return groups


def _agreement(findings: Findings) -> tuple[Figure, ...]:
    table, summary = findings.tables["correlation"], findings.summaries["correlation"]
    published = published_tau(findings)
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
            figures.agreement(summary, published),
            wide=True,
        )
    ]
    named: Mapping[str, str] = {FLOOR: "chance", CEILING: "ceiling"}
    for pair in summary:
        references = {
            name: means[other]
            for other, name in named.items()
            if pair in ATTENTION_PAIRS and means.get(other) is not None
        }
        what = {FLOOR: " (chance)", CEILING: " (the ceiling)"}.get(pair, "")
        lines = (
            " Better than chance is right of the first line; as good as can be is at the second."
            if references
            else ""
        )
        made.append(
            Figure(
                "tau-" + pair.replace("/", "-"),
                f"{pair_name(pair).capitalize()}{what}",
                f"Each bar counts the texts whose two rankings of words agree this much.{lines}",
                f"Histogram of Kendall's tau between {pair_name(pair)}; {_spread(summary[pair]['overall']['tau'])}.",
                figures.tau_histogram(table, pair, findings.labels, references),
            )
        )
    return tuple(made)


def _permutation(findings: Findings) -> Figure:
    line = findings.summaries["permutation"]["overall"]
    return Figure(
        "permutation",
        "Change of the prediction when attention is shuffled",
        "Each point is a text: the sharper its attention (right), the more a shuffle should change the prediction "
        "(up). Boxes hold the middle half of the texts, thick lines are medians. Points at the bottom right are "
        "texts with sharp attention that does not matter.",
        f"Change of the output under shuffled attention against the largest weight; {_quartiles(line)}.",
        figures.change_by_max_attention(findings.tables["permutation"], findings.labels),
    )


def _adversarial(findings: Findings) -> tuple[Figure, ...]:
    table, line = findings.tables["adversarial"], findings.summaries["adversarial"]["overall"]
    made = [
        Figure(
            "jsd",
            "How far attention can be moved",
            "Each bar counts the texts for which the most different attention with the same prediction is this far "
            "from the model's own. Right: attention could have been anything.",
            f"Histogram of the epsilon-max JSD; {_quartiles(line)}.",
            figures.jsd_histogram(table, findings.labels),
        ),
        Figure(
            "jsd-max-attention",
            "… and where attention is sharp",
            "The same distance against the largest weight. Points at the top right are texts with sharp attention that "
            "could be replaced by another.",
            f"Epsilon-max JSD against the largest attention weight; {_quartiles(line)}.",
            figures.jsd_by_max_attention(table, findings.labels),
        ),
    ]
    if "gap" in table.column_names:
        made.append(
            Figure(
                "exact-adam",
                "What the published search missed",
                "Each point is a text; above the line, the search of the paper (Adam) found less than there is.",
                f"True maximum against Adam's; the mean gap is {line['gap']['mean']:.3f}.",
                figures.exact_against_adam(table, findings.labels),
            )
        )
    return tuple(made)


def words_figures(explained: Explanation) -> list[Figure]:
    """One for each predicted label, the most frequent labels first where there are many."""
    if not len(explained) or not {"omission", "attention"} <= set(explained.methods):
        return []
    relied = sample.relied_on(explained)
    often = [e.predicted for e in explained]
    labels = sorted(relied, key=lambda label: -often.count(label))[:LABELS_WITH_WORDS]
    made = []
    for i, label in enumerate(sorted(labels)):
        rows, shown = relied[label], visible(label, 40)
        if rows:
            told = ", ".join(visible(str(row["word"]), 40) for row in rows)
            made.append(
                Figure(
                    f"words-{i}",
                    f"Predicted “{shown}”",
                    f"From {often.count(label)} texts with this prediction.",
                    f"Words whose deletion weakens the prediction {shown} most: {told}.",
                    figures.words(rows, "mean fall of the probability"),
                    label=shown,
                    top=tuple(visible(str(row["word"]), 40) for row in rows[:4]),
                )
            )
    return made


def _spread(tau: Mapping[str, float | None]) -> str:
    if tau["mean"] is None:
        return "undefined for all texts"
    return f"mean {tau['mean']:.2f}, standard deviation {tau['std']:.2f}, {tau['n']} texts"


def _quartiles(line: Mapping[str, float | None]) -> str:
    if line["q50"] is None:
        return "undefined for all texts"
    return f"median {line['q50']:.3f}, a quarter below {line['q25']:.3f}, a quarter above {line['q75']:.3f}"
