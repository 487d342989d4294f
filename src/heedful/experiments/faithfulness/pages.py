"""What `faithfulness` says about itself: columns, verdict, figures, texts worth a look, comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from heedful.experiments.faithfulness.orders import METRICS
from heedful.experiments.faithfulness.summary import MAIN, is_control, summarise
from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, mean_of, number, seeds
from heedful.experiments.framework.description import Column, Reason, Result, number_at, places_by
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, grade_at, percent
from heedful.figures.figure import Figure, join_words, method_name
from heedful.measure.columns import Floats, column, rows_of
from heedful.measure.statistics import Interval, between_seeds

QUESTION = "Which explanations point at the words that the prediction rests on?"
ATTENTION = "attention"
SOME, MUCH = 0.2, 0.5  # of the way from a random order to the best one found
RULE = (
    f"Attention, by comprehensiveness: from {MUCH:.0%} of the way from a random order to the best order found on: it "
    f"points at them; from {SOME:.0%} on: partly; below, or if it is not better than a random order: it does not."
)
CLAIM = "removing the most attended words changes the output more than removing words in a random order"
WAYS = {
    "delete": "words deleted",
    "mask": "words masked",
    "pad": "words hidden from attention",
    "zero": "embeddings set to zero",
    "soft": "elements of embeddings dropped",
}
METRIC_NAMES = {
    "comprehensiveness": "comprehensiveness",
    "sufficiency": "sufficiency",
    "deletion": "area over the deletion curve",
    "insertion": "area under the insertion curve",
    "flip_fraction": "share of words gone when the decision flips",
}
READINGS = {
    "comprehensiveness": "High: without its first words the output falls.",
    "sufficiency": "Near 0 or below: its first words alone are enough.",
    "deletion": "High: the output falls early when its first words go first.",
    "insertion": "High: the output comes early when its first words come first.",
    "flip_fraction": "Near 0: a few words decide, and they are put first; 1: it never flips.",
}
FORMS = {
    "floor": ("in a random order", "What chance gives."),
    "floor_error": ("in a random order, standard error", "0: exact."),
    "best": ("in the best order found", "What is known to be possible."),
}


def _columns() -> dict[str, Column]:
    found = {
        f"{name}_normalised": Column(
            f"{METRIC_NAMES[name]}, share of the best possible",
            None,
            1,
            "0: as a random order; 1: as the best order found; below 0: worse than chance.",
        )
        for name in METRICS
    }
    high = {"flip_fraction": 1.0}
    found |= {
        name: Column(
            METRIC_NAMES[name],
            None,
            high.get(name),
            READINGS[name],
            unit="" if name in high else "change of the output",
        )
        for name in METRICS
    }
    found["tau"] = Column("τ with leaving out each word", -1, 1, "1: the same order as leave-one-out gives.")
    for name in ("deletion", "insertion"):
        found[f"naopc_{name}"] = Column(
            f"NAOPC of the {name} curve", 0, 1, "0: as the worst order found; 1: as the best order found."
        )
    found |= {
        f"{name}_{form}": Column(f"{METRIC_NAMES[name]} {title}", None, None, reading, drawn=False)
        for name in METRICS
        for form, (title, reading) in FORMS.items()
    }
    found["soft_nc"] = Column(
        "soft normalised comprehensiveness", None, None, "As published; high is good.", drawn=False
    )
    found["soft_ns"] = Column("soft normalised sufficiency", None, None, "As published; high is good.", drawn=False)
    found["output"] = Column("output for the explained label", None, None, "Of the whole text.", drawn=False)
    return found


COLUMNS = _columns()


def title_of(group: str) -> str:
    method, _, operator = group.rpartition("/")
    return f"{method_name(method)}, {WAYS.get(operator, operator)}"


WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Attention does", "points at the words that the prediction rests on"),
    "mixed": Wording("Attention does, in part", "points at some of the words that the prediction rests on"),
    "against": Wording("Attention does not", "does not point at the words that the prediction rests on"),
}


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (SOME, MUCH))


def verdict(trial: Result) -> Verdict:
    """Graded is attention, by what it reaches under the first operator; the sentence tells of all methods."""
    summary = trial.summary or summarise(trial.table)
    operator = summary["reached"]["operator"]
    sentence = told(summary, operator)
    line = summary["methods"].get(ATTENTION, {}).get(operator, {}).get(MAIN)
    if line is None or line["normalised"]["mean"] is None:
        answer = "Attention was not asked" if line is None else "Undefined"
        return JUDGEMENT.unclear(answer, sentence, "was not ranked")
    reached = line["normalised"]
    better = line["against_random"]["better"]
    grade: Grade = grade_at(reached["mean"], *JUDGEMENT.bars, rising=True) if better else "against"
    found = Interval(reached["mean"], *(np.nan if reached[end] is None else reached[end] for end in ("low", "high")))
    return JUDGEMENT.of(found, sentence, grade, says_border=better, claim=CLAIM, p=line["against_random"]["p"])


def told(summary: Mapping[str, Any], operator: str) -> str:
    """Which methods are better than random, what they reach, what changes with the operator, what was left out."""
    lines = {method: by[operator][MAIN] for method, by in summary["methods"].items() if operator in by}
    controls = [method for method in lines if is_control(method)]
    better = [m for m, line in lines.items() if line["against_random"]["better"] and m not in controls]
    others = [method for method in lines if method not in better and method not in controls]
    better.sort(key=lambda method: -(lines[method]["normalised"]["mean"] or 0.0))
    texts = summary["texts"]["n"]
    parts = [f"With {WAYS.get(operator, operator)}, over {texts:,} texts: "]
    if better:
        told = [f"{method_name(method)} {_reach(lines[method])}" for method in better]
        parts.append(
            f"better than a random order by comprehensiveness, with these shares of the way to the best order found: "
            f"{join_words(told)}. "
        )
    if others:
        names = join_words([method_name(method) for method in others])
        parts.append(f"{names} {'was' if len(others) == 1 else 'were'} not found to be better than a random order. ")
    parts += [
        f"The control {method_name(control)}, which knows nothing, came out better than random: this is chance, and "
        "others may have come out so by chance, too. "
        for control in controls
        if lines[control]["against_random"]["better"]
    ]
    flags = summary["operators"]["flags"]
    if flags:
        parts.append(f"Depends on how words are removed: {'; '.join(flags)}. ")
    if summary["left_out"]:
        parts.append(f"Left out: {'; '.join(summary['left_out'])}.")
    return "".join(parts).strip()


def _reach(line: Mapping[str, Any]) -> str:
    reached = line["normalised"]
    if reached["mean"] is None:
        return "(undefined)"
    ends = [np.nan if reached[end] is None else reached[end] for end in ("low", "high")]
    return percent(Interval(reached["mean"], *ends))


def figures(trial: Result) -> list[Figure]:
    from heedful.experiments.faithfulness.figures import curve_lines, reached_bars

    operators = [operator for operator in dict.fromkeys(trial.table["operator"].to_pylist()) if operator != "soft"]
    made = []
    bars = [
        (method, operator, line[MAIN]["normalised"])
        for method, by in trial.summary["methods"].items()
        for operator, line in by.items()
        if line[MAIN]["normalised"]["mean"] is not None
    ]
    spoken = ", ".join(f"{title_of(f'{m}/{o}')} {line['mean']:.2f}" for m, o, line in bars) or "undefined"
    made.append(
        Figure(
            "reached",
            "How much of the best possible comprehensiveness each method reaches",
            "0 is a random order of the words, 1 the best order that was found; thin lines are 95% intervals. Where "
            "bars of one method differ, its score depends on how words are removed.",
            f"Normalised comprehensiveness: {spoken}.",
            reached_bars(bars),
            wide=True,
        )
    )
    for name, reading in (
        ("deletion", "The first words go first: the faster a line falls, the better the method."),
        ("insertion", "The first words come first: the faster a line rises, the better the method."),
    ):
        made += [
            Figure(
                f"{name}-{operator}",
                f"{name.capitalize()} curves, {WAYS[operator]}",
                f"{reading} Bands are 95% intervals of the mean over texts; the grey line is a random order.",
                f"Mean output along the {name} curve of {len(trial.summary['methods'])} methods.",
                curve_lines(trial.table, name, operator, trial.summary["scale"]),
                wide=True,
            )
            for operator in operators[:1]
        ]
    return made


def reasons(trial: Result) -> Iterator[Reason]:
    operator = trial.summary["reached"]["operator"]
    methods = [method for method in trial.summary["methods"] if method != "random"]
    groups = {method: rows_of(trial.table, "method_operator", f"{method}/{operator}") for method in methods}
    best = trial.summary["reached"]["method"] or next(iter(groups), None)
    if best is None or best not in groups:
        best = next(iter(groups), None)
    if best is None:
        return
    rows = groups[best]
    value = column(rows, f"{MAIN}_normalised")
    name = method_name(best)
    yield Reason(
        "Its words decide", f"Removing the first words of {name} does all that is possible.", places_by(rows, -value)
    )
    missed = f"Removing the first words of {name} does less than a random order, and others would do much."
    room = column(rows, f"{MAIN}_best") - column(rows, f"{MAIN}_floor")
    yield Reason("Its words do not matter", missed, places_by(rows, np.where(value < 0, -room, np.nan)))
    spread = _range_over(groups, rows)
    yield Reason(
        "Methods disagree most", "The difference between the best and the worst method.", places_by(rows, -spread)
    )


def _range_over(groups: Mapping[str, pa.Table], texts: pa.Table) -> Floats:
    """By text of these rows: of an audit, some methods have fewer."""
    values = np.full((len(groups), len(texts)), np.nan)
    for line, rows in zip(values, groups.values(), strict=True):
        known = dict(zip(rows["example"].to_pylist(), column(rows, f"{MAIN}_normalised").tolist(), strict=True))
        line[:] = [known.get(text, np.nan) for text in texts["example"].to_pylist()]
    undefined = np.isnan(values).any(0)
    return np.where(
        undefined, np.nan, np.where(undefined, 0.0, values).max(0) - np.where(undefined, 0.0, values).min(0)
    )


def compare(evidence: Evidence) -> Comparison:
    """Each method under the first operator: comprehensiveness, sufficiency, and what it reaches, over seeds."""
    rows = []
    for setting, found in evidence:
        operator = found[0]["reached"]["operator"]
        for method in found[0]["methods"]:
            path = f"methods.{method}.{operator}"
            means = [mean for one in found if (mean := number_at(one, f"{path}.{MAIN}.normalised.mean")) is not None]
            raw = [
                number(mean_of([number_at(one, f"{path}.{name}.mean") for one in found]))
                for name in ("comprehensiveness", "sufficiency")
            ]
            reached = seeds(between_seeds(means)) if means else "-"
            rows.append((*setting, method_name(method), *raw, reached))
    header = (*SETTING, "method", "comprehensiveness", "sufficiency", "share of the best possible")
    note = "0: a random order, 1: the best order found (by comprehensiveness, under the first operator)."
    return Comparison(tables=(Table("Faithfulness", header, tuple(rows), note),) if rows else ())
