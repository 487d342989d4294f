"""What is each head of attention worth? How the output changes when one head is made uniform, or shut off.

Michel et al. 2019 (section 3) mask one head at a time and find that most heads of a transformer can be taken away and
hardly anything changes. Here one head at a time attends to all it may attend to alike
(`uniform`: its values are still read, its choice is gone) or contributes nothing (`off`: all its weights are zero). The
cost is one forward pass of the text for each head and operation; questions about several heads go in one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow.compute import field
from pydantic import Field

from heedful.config import Config
from heedful.experiments.attention.head_changes import Operation, change_heads, layers_and_heads
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic, places_by
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Summary
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.summary import Line, column, mean, plain, quantiles, spread
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, percent
from heedful.figures.figure import Figure
from heedful.measure.columns import Floats
from heedful.measure.statistics import Interval, resampled_means

if TYPE_CHECKING:
    from heedful.models.network import Attends


# What the rows of `heads` say: the verdict, the map of heads, the texts worth a look. Pure, without torch.


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


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (SOME, MOST), rising=False)


def verdict(trial: Result) -> Verdict:
    operation = judged_operation(operations_of(trial.table))
    changes = changes_by_head(trial.table, operation)
    found = share_negligible(changes)
    if np.isnan(found.value):
        none = "No text could be predicted again."
        return JUDGEMENT.unclear("Undefined", none, "is empty")
    n, heads = changes.shape
    sentence = (
        f"{percent(found)} of the {heads} heads can be {DONE[operation]}, one at a time, while the prediction moves by "
        f"less than {NEGLIGIBLE:g} in the mean of {n:,} texts."
    )
    return JUDGEMENT.of(found, sentence)


def figures(trial: Result) -> Iterator[Figure]:
    """A map for each operation: layers by heads, the mean change of the output in each cell."""
    from heedful.figures.charts import grid

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


def reasons(trial: Result) -> Iterator[Reason]:
    operation = judged_operation(operations_of(trial.table))
    most = changes_by_head(trial.table, operation).max(1)  # (texts,), nan where one is undefined
    texts = pa.table({"example": sorted(set(trial.table["example"].to_pylist()))})
    one = f"The prediction that a single head changes most when it is {DONE[operation]}."
    yield Reason("One head matters", one, places_by(texts, -most))
    none = f"Whichever head is {DONE[operation]}, the prediction stays where it is."
    yield Reason("No head matters", none, places_by(texts, most))


TOKENS = 2**12  # of one forward pass


class HeadsConfig(Config):
    operations: tuple[Operation, ...] = Field(default=("off", "uniform"), min_length=1)
    layers: tuple[int, ...] | None = None  # None: all


def run(model: Attends, batches: Batches, config: HeadsConfig, rng: np.random.Generator) -> Iterator[Chunk]:
    """Rows for each text, layer, head and operation.

    `tvd`: how far the output moves; `logit`: how much the logit of the predicted label changes; `flipped`: whether
    another label is predicted. `question` names layer, head and operation in one.
    """
    import torch

    from heedful.experiments.edited_attention.observe import observer

    HEADS.check(model.can)
    observe = observer(model)
    for examples, batch in batches:
        seen = observe(examples, batch)
        layers, heads = layers_and_heads(model, batch, config.layers)
        with torch.no_grad():
            output = model(batch)
            p, f = output.probabilities.double(), output.score(output.predicted).double()  # (B, labels), (B,)
        asked = list(product(layers, range(heads), config.operations))
        at_once = max(1, TOKENS // max(1, batch.passage.ids.shape[1]))
        text = np.repeat(np.arange(len(batch)), len(asked))  # (questions,)
        for begin in range(0, len(text), at_once):
            some = np.arange(begin, min(begin + at_once, len(text)))
            layer, head, operation = zip(*(asked[i % len(asked)] for i in some), strict=True)
            rows = torch.from_numpy(text[some]).to(p.device)
            with torch.no_grad():
                one_each = [{(a, b): c} for a, b, c in zip(layer, head, operation, strict=True)]
                changed = model(batch.rows(rows), edit=change_heads(one_each))
                moved = model.link.distance(changed.probabilities.double(), p[rows])
                logit = changed.score(output.predicted[rows]).double() - f[rows]
            of_text: Chunk = {name: np.asarray(values)[text[some]] for name, values in seen.rows().items()}
            yield of_text | {
                "question": [f"layer {a}, head {b}, {c}" for a, b, c in zip(layer, head, operation, strict=True)],
                "layer": np.array(layer, dtype=np.int64),
                "head": np.array(head, dtype=np.int64),
                "operation": list(operation),
                "tvd": moved.cpu().numpy(),
                "logit": logit.cpu().numpy(),
                "flipped": (changed.predicted != output.predicted[rows]).cpu().numpy(),
            }


def summarise(table: pa.Table) -> Summary:
    """By operation: every head with the mean of its changes and its interval, the order of heads, and how many of
    them hardly matter (mean TVD below .01)."""
    operations = operations_of(table)
    judged = share_negligible(changes_by_head(table, judged_operation(operations)))
    return {
        "overall": spread(column(table, "tvd"), within=COLUMNS["tvd"].possible) | quantiles(column(table, "tvd")),
        "negligible": NEGLIGIBLE,
        "share_negligible": plain({"mean": judged.value, "low": judged.low, "high": judged.high}),
        "by_operation": {
            operation: _operation(table.filter(field("operation") == operation)) for operation in operations
        },
    }


def _operation(table: pa.Table) -> Line:
    heads = sorted(set(zip(table["layer"].to_pylist(), table["head"].to_pylist(), strict=True)))
    lines = [_head(table.filter((field("layer") == a) & (field("head") == b)), a, b) for a, b in heads]
    small = np.array([line["mean"] is not None and line["mean"] < NEGLIGIBLE for line in lines])
    order = sorted(lines, key=lambda line: -(line["mean"] or 0.0))
    tvd = column(table, "tvd")
    return plain(
        {
            "heads": lines,
            "order": [[line["layer"], line["head"]] for line in order],  # the most needed first
            "share_negligible": float(small.mean()),  # of the heads, by their mean
            "share_of_cases_negligible": mean((tvd < NEGLIGIBLE).astype(float)),  # of heads and texts
            "flipped": mean(_flipped(table)),
        }
    )


def _head(table: pa.Table, layer: int, head: int) -> Line:
    logit = spread(column(table, "logit"))
    return {
        "layer": layer,
        "head": head,
        **spread(column(table, "tvd"), within=COLUMNS["tvd"].possible),
        "logit": {name: logit[name] for name in ("mean", "low", "high")},
        "flipped": mean(_flipped(table)),
    }


def _flipped(table: pa.Table) -> Floats:
    return np.asarray(table["flipped"].to_pylist(), dtype=np.float64)


HEADS = Experiment(
    name="heads",
    question=QUESTION,
    asks="whether its output changes when one head of attention is made uniform or shut off",
    paper="Michel et al. 2019, section 3",
    run=run,
    columns=COLUMNS,
    config=HeadsConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="1",
    by="question",
    summarise=summarise,
    measures=(Measure("heads", "output change when one head is changed", "Δŷ head", "tvd", "overall"),),
    judge=verdict,
    scale="share of the heads that hardly change the prediction",
    takes=Takes(
        forwards=(5, 0)  # of a model with one head; each further head takes two more
    ),
    pages=Presentation(
        statistics=(
            Statistic(
                "heads that hardly matter",
                "share_negligible.mean",
                "Heads that hardly matter: share of the heads whose change moves the output by less "
                "than .01 on average.",
                ".0%",
            ),
        ),
        draw=lambda trial: list(figures(trial)),
        examples=reasons,
    ),
)
