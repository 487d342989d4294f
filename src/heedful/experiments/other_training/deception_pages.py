"""What `deception` says about itself: columns, verdict, figures, texts worth a look, its table beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, mean_of
from heedful.experiments.framework.description import Column, Reason, Result, number_at, places_by, value_at
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording
from heedful.experiments.other_training.deception_summary import CONTROL, names_of, rows_of, summarise
from heedful.figures.figure import Figure, join_words, method_name
from heedful.measure.columns import Floats, column
from heedful.measure.statistics import Interval, resampled_means

QUESTION = "Can it be trained to hide from its attention the words that it uses?"
COLUMNS = {
    "share": Column("share of the scores on hidden words", 0, 1, "At 1 only hidden words have a score."),
    "auc": Column("hidden words above others", 0, 1, "A random order would get .5, one that finds them all 1."),
    "hit": Column("the highest score is a hidden word's", 0, 1, "1: it is.", bins=2),
    "precision": Column("hidden words among the k highest", 0, 1, "At 1 the k highest are the k hidden words."),
    "chance": Column("share of the words that are hidden ones", 0, 1, "What a random order would get."),
    "attention_mass": Column("attention on hidden words", 0, 1, "Near 0: the attention does not show them."),
    "max_attention_mass": Column(
        "attention of one head on hidden words", 0, 1, "Of the head that attends to them most."
    ),
    "deceived_mass": Column(
        "attention left on hidden words", 0, 1, "With the strongest penalty; near 0: it does not show them."
    ),
    "correct": Column("right", 0, 1, "1: the label of the text is predicted.", bins=2),
    "control_correct": Column("right without the hidden words", 0, 1, "1: the label is predicted.", bins=2),
}
KEEPS = 0.02  # of accuracy that a deceived copy may lose, and less than this a control (Pruthi et al. 2020)
HARDLY, PARTLY = 0.1, 0.5  # of the attention that was there
NOTHING = 0.05  # attention on hidden words below which there is nothing to hide
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("No", "cannot be trained away from the words that are used"),
    "mixed": Wording("To a degree", "can to a degree be trained away from the words that are used"),
    "against": Wording("Yes", "can be trained to hide the words that are used"),
}
RULE = (
    f"Of the copies that lose at most {KEEPS:.0%} of accuracy, the one whose attention to the hidden words is least: "
    f"with less than {HARDLY:.0%} of what was there, they are hidden; with less than {PARTLY:.0%}, in part. Not told "
    f"where the control without these words does as well, or where attention was not on them anyway."
)


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (HARDLY, PARTLY))
UNKNOWN = Interval(np.nan, np.nan, np.nan)


def verdict(trial: Result) -> Verdict:
    """The attention left on the hidden words by the best deceiver, as a share of what was there before."""
    summary = summarise(trial.table)  # the rows decide, whether or not a summary is there
    own, *deceived = list(summary["by_model"])
    lines, control = summary["by_model"], summary[CONTROL]
    before = column(rows_of(trial.table, own), "attention_mass")

    def unclear(sentence: str) -> Verdict:
        return JUDGEMENT.unclear("Not told", sentence, "has nothing to hide")

    if control["change"] is None or not (~np.isnan(before)).any():
        return unclear("No text has a label and a word that could be hidden.")
    if control["change"] > -KEEPS:
        return unclear(
            f"A copy that was trained without these words is right in {control['mean']:.1%} of the texts, the model in "
            f"{lines[own]['accuracy']['mean']:.1%}: the words are not needed, so nothing is hidden."
        )
    if np.nanmean(before) < NOTHING:
        return unclear(f"The model gives them {np.nanmean(before):.1%} of its attention: there is nothing to hide.")
    able = [name for name in deceived if lines[name]["accuracy"]["change"] >= -KEEPS]
    if not able:
        worst = max(lines[name]["accuracy"]["mean"] for name in deceived)
        told = (
            f"Every copy that was trained to look away loses more than {KEEPS:.0%}: at most {worst:.1%} of the texts "
            f"are right, and {lines[own]['accuracy']['mean']:.1%} before."
        )
        return JUDGEMENT.of(UNKNOWN, told, "for")
    best = min(able, key=lambda name: lines[name]["attention_mass"]["mean"])
    after = column(rows_of(trial.table, best), "attention_mass")
    found = ratio(after, before)
    seen = _still_seen(summary, best)
    sentence = (
        f"The copy with {best} is right in {lines[best]['accuracy']['mean']:.1%} of the texts (before: "
        f"{lines[own]['accuracy']['mean']:.1%}; without these words: {control['mean']:.1%}) and leaves them "
        f"{100 * found.value:.2g}% (95% CI {100 * found.low:.2g}% to {100 * found.high:.2g}%) of the attention that "
        f"they had.{seen}"
    )
    return JUDGEMENT.of(found, sentence)


def _still_seen(summary: Mapping[str, Any], model: str) -> str:
    """The methods that put hidden words above others, in words."""
    lines = {m: by[model]["auc"] for m, by in summary["by_method"].items() if m != "attention"}
    found = [f"{method_name(m)} ({line['mean']:.2f})" for m, line in lines.items() if (line["low"] or 0) > 0.5]
    if not lines:
        return ""
    if not found:
        return " No other method tested ranks them above other words more often than chance."
    return f" Above other words, more often than chance (.5), they still stand with {join_words(found)}."


def ratio(after: Floats, before: Floats) -> Interval:
    """Mean after / mean before, with an interval from texts drawn again."""
    both = ~np.isnan(after) & ~np.isnan(before)
    after, before = after[both], before[both]
    means = resampled_means(np.stack([after, before]), 1000)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = means[0] / means[1]
    value = float(after.mean() / before.mean())
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Interval(value, min(value, float(low)), max(value, float(high)))


def figures(trial: Result) -> list[Figure]:
    from heedful.experiments.other_training.deception_figures import accuracy_and_mass, seen_by_methods

    lines = trial.summary["by_model"]
    told = "; ".join(
        f"{name}: {_of(line, 'accuracy')} right, {_of(line, 'attention_mass')} of the attention on hidden words"
        for name, line in lines.items()
    )
    made = [
        Figure(
            "deception",
            "Accuracy and attention under the penalty",
            "A copy for each penalty. If attention could not be moved off the words that are used, accuracy would fall "
            "with the attention on them, towards that of the control, which was trained without these words. Thin "
            "lines are 95% intervals.",
            f"{told}; without the words {trial.summary[CONTROL]['mean'] or 0:.1%} right.",
            accuracy_and_mass(lines, trial.summary[CONTROL]),
        )
    ]
    best = list(lines)[-1]
    by = {method: models[best] for method, models in trial.summary["by_method"].items()}
    seen = ", ".join(f"{method_name(m)} {line['auc']['mean'] or 0:.2f}" for m, line in by.items())
    made.append(
        Figure(
            "hidden-words",
            "What methods see of the hidden words",
            "How often a hidden word has a higher score than another one, by method and model: .5 is a random order, 1 "
            "finds them all. Thin lines are 95% intervals.",
            f"With the strongest penalty ({best}): {seen}.",
            seen_by_methods(trial.summary["by_method"]),
            wide=True,
        )
    )
    return made


def _of(line: Mapping[str, Any], name: str) -> str:
    found = line[name]["mean"]
    return "-" if found is None else f"{found:.1%}"


def reasons(trial: Result) -> Iterator[Reason]:
    own, *deceived = names_of(trial.table, "model")
    before, after = (column(rows_of(trial.table, name), "attention_mass") for name in (own, (deceived or [own])[-1]))
    rows = rows_of(trial.table, own)
    moved = "The attention that the model gives to these words, and its deceived copy does not."
    yield Reason("Hidden from attention", moved, places_by(rows, after - before))
    kept = "The deceived copy still attends to them most."
    yield Reason("Not hidden", kept, places_by(rows, -after))


def compare(evidence: Evidence) -> Comparison:
    """Table 3 of Pruthi et al. 2020, ours beside what was published, and what methods see of the hidden words."""
    rows: list[tuple[str, ...]] = []
    methods = list(dict.fromkeys(m for _, found in evidence for one in found for m in one["by_method"]))
    for setting, found in evidence:
        paths: dict[str, tuple[str, str | None]] = {f"{CONTROL}: words replaced": (f"{CONTROL}.percent", None)}
        for name in found[0]["by_model"]:
            paths[name] = (f"by_model.{name}.accuracy.percent", f"by_model.{name}.attention_mass.percent")
        for name, pair in paths.items():
            ours = [_mean(found, path) for path in pair]
            nothing: list[float | None] = [None] * len(evidence.sources)
            theirs = [nothing if path is None else evidence.theirs(setting, path) for path in pair]
            beside = [value for both in zip(*theirs, strict=True) for value in both]
            seen = [_seen(found, f"by_method.{method}.{name}") for method in methods]
            rows.append((*setting, name, *map(_digits, [*ours, *beside]), *seen))
    if not rows:
        return Comparison()
    published = [f"{source}: {what}" for source in evidence.sources for what in ("accuracy", "mass")]
    seeds = max(len(found) for _, found in evidence)
    note = (
        "Percent of the test texts that are right, and percent of the attention that falls to impermissible words "
        f"(Pruthi et al. 2020, table 3), mean of {seeds} seed{'s' * (seeds > 1)} of ours. For each method: how often "
        "an impermissible word has a higher score than another one, with the 95% interval over the texts of the first "
        "seed (a random order: .50), and the share of all scores that is on such words (in brackets: of equal scores)."
    )
    header = (*SETTING, "model", "ours: accuracy", "ours: mass", *published, *map(method_name, methods))
    return Comparison(tables=(Table("Deceived attention", header, tuple(rows), note),))


def _mean(found: Sequence[Mapping[str, Any]], path: str | None) -> float | None:
    return None if path is None else mean_of([number_at(one, path) for one in found])


def _digits(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if value >= 1 or value == 0 else f"{value:.2g}"


def _seen(found: Sequence[Mapping[str, Any]], path: str) -> str:
    """ "0.93 (0.92 to 0.94), 45% (6%)"; what a model was not asked is "-"."""
    first = value_at(found[0], path)
    if first is None or first["auc"]["mean"] is None:
        return "-"
    auc, share = first["auc"], _mean(found, f"{path}.share.mean") or 0.0
    told = f"{_mean(found, f'{path}.auc.mean') or 0.0:.2f}"
    ends = "" if auc["low"] is None else f" ({auc['low']:.2f} to {auc['high']:.2f})"
    return f"{told}{ends}, {share:.0%} ({first['chance'] or 0.0:.0%})"
