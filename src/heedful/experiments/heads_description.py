"""What the rows of `heads` say: the verdict, the map of heads, the texts worth a look. Pure, without torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow.compute import field

from heedful.experiments.description import Column, Reason, Trial, places_by
from heedful.experiments.summary import column
from heedful.experiments.verdict import Grade, Verdict, Wording, border, ends, grade_at, percent
from heedful.figures.figure import Figure
from heedful.measure.columns import Floats
from heedful.measure.statistics import Interval, resampled_means

QUESTION = "Does the output change when one head of attention is made uniform or shut off?"
NEGLIGIBLE = 0.01  # TVD: a head whose change moves the output by less on average hardly matters
SOME, MOST = 0.2, 0.5  # share of heads that hardly matter
RULE = (
    f"Share of heads that can be changed while the output moves by less than {NEGLIGIBLE:g} on average (made uniform, "
    f"where that was tried): below {SOME:.0%}: yes; below {MOST:.0%}: for many heads; from there on: for few."
)
TITLES = {"off": "Heads shut off", "uniform": "Heads made uniform"}
DONE = {"off": "shut off", "uniform": "made uniform"}
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "has heads that nearly all matter"),
    "mixed": Wording("For many heads", "has many heads whose weights hardly matter"),
    "against": Wording("For few heads", "is mostly made of heads whose weights hardly matter"),
}
COLUMNS = {
    "tvd": Column(
        "change of the output",
        0,
        1,
        "Near 0: the head can be changed and the prediction stays where it was.",
        unit="TVD",
    ),
    "logit": Column(
        "change of the predicted label's logit",
        reading="Below 0: the head speaks for the predicted label, above 0 against it.",
    ),
}


def judged_operation(operations: list[str]) -> str:
    """A uniform head still reads values, so it says most about the weights; else what was tried first."""
    return "uniform" if "uniform" in operations else operations[0]


def operations_of(table: pa.Table) -> list[str]:
    return list(dict.fromkeys(table["operation"].to_pylist()))


def changes_by_head(table: pa.Table, operation: str) -> Floats:
    """TVD by text and head: (texts, heads)."""
    rows = table.filter(field("operation") == operation)
    order = np.lexsort([column(rows, name) for name in ("head", "layer", "example")])
    texts = len(set(rows["example"].to_pylist()))
    return column(rows, "tvd")[order].reshape(texts, -1)


def worth_of_heads(summary: Mapping[str, Any]) -> dict[tuple[int, int, str], dict[str, Any]]:
    """By layer, head and operation what a summary has of it: mean, low, high, n of the change of the output."""
    return {
        (line["layer"], line["head"], operation): line
        for operation, found in summary.get("by_operation", {}).items()
        for line in found["heads"]
    }


def share_negligible(changes: Floats) -> Interval:
    """The share of heads whose mean is below NEGLIGIBLE, with a 95% interval from texts drawn again.

    Texts for which a change is undefined do not count.
    """
    changes = changes[~np.isnan(changes).any(1)]
    n = len(changes)
    if not n:
        return Interval(np.nan, np.nan, np.nan)
    draws = int(np.clip(4_000_000 // n, 200, 1000))
    found = (resampled_means(changes.T, draws) < NEGLIGIBLE).mean(0)
    value = float((changes.mean(0) < NEGLIGIBLE).mean())
    low, high = np.quantile(found, [0.025, 0.975])
    return Interval(value, min(value, float(low)), max(value, float(high)))


def verdict(trial: Trial) -> Verdict:
    operation = judged_operation(operations_of(trial.table))
    changes = changes_by_head(trial.table, operation)
    found = share_negligible(changes)
    if np.isnan(found.value):
        none = "There is no text whose prediction could be asked for again."
        return Verdict(QUESTION, "unclear", "Undefined", none, RULE, "is empty", bars=(SOME, MOST))
    grade = grade_at(found.value, SOME, MOST, rising=False)
    answer, clause = WORDINGS[grade]
    n, heads = changes.shape
    sentence = (
        f"{percent(found)} of the {heads} heads can be {DONE[operation]}, one at a time, while the prediction moves by "
        f"less than {NEGLIGIBLE:g} in the mean of {n:,} texts.{border(found, SOME, MOST)}"
    )
    return Verdict(
        QUESTION, grade, answer, sentence, RULE, clause, *ends(found), bars=(SOME, MOST), rising=False
    )


def figures(trial: Trial) -> Iterator[Figure]:
    """A map for each operation: layers by heads, the mean change of the output in each cell."""
    from heedful.figures.grid import grid

    for operation in operations_of(trial.table):
        heads = trial.summary["by_operation"][operation]["heads"]
        cells = [(line["head"], line["layer"], line["mean"] or 0.0) for line in heads]
        best = max(heads, key=lambda line: line["mean"] or 0.0)
        yield Figure(
            f"heads-{operation}",
            TITLES[operation],
            f"Each cell is a head, {DONE[operation]} while the others stay: the number is the mean change of the "
            "output (total variation distance), and a strong colour is a head that is needed.",
            f"The head that is needed most is head {best['head']} of layer {best['layer']}: the output moves by "
            f"{best['mean'] or 0.0:.3f} on average.",
            grid(cells, ("head", "layer", "mean change of the output"), TITLES[operation]),
        )


def reasons(trial: Trial) -> Iterator[Reason]:
    operation = judged_operation(operations_of(trial.table))
    most = changes_by_head(trial.table, operation).max(1)  # (texts,), nan where one is undefined
    texts = pa.table({"example": sorted(set(trial.table["example"].to_pylist()))})
    one = f"The prediction that a single head changes most when it is {DONE[operation]}."
    yield Reason("One head matters", one, places_by(texts, -most))
    none = f"Whichever head is {DONE[operation]}, the prediction stays where it is."
    yield Reason("No head matters", none, places_by(texts, most))
