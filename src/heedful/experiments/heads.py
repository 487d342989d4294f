"""What is each head of attention worth? How the output changes when one head is made uniform, or shut off.

Michel et al. 2019 (section 3: one head masked at a time) and Voita et al. 2019 found that most heads of a transformer
can be taken away and hardly anything changes. Here one head at a time attends to all it may attend to alike
(`uniform`: its values are still read, its choice is gone) or contributes nothing (`off`: all its weights are zero). The
cost is one forward pass of the text for each head and operation; questions about several heads go in one batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow.compute import field
from pydantic import Field

from heedful.config import Config
from heedful.experiments.description import Measure, Statistic
from heedful.experiments.experiment import Batches, Chunk, Experiment, Floats, Summary
from heedful.experiments.head_changes import Operation, change_heads, layers_and_heads
from heedful.experiments.heads_description import (
    COLUMNS,
    NEGLIGIBLE,
    QUESTION,
    changes_by_head,
    figures,
    judged_operation,
    operations_of,
    reasons,
    share_negligible,
    verdict,
)
from heedful.experiments.summary import Line, column, mean, plain, quantiles, spread

if TYPE_CHECKING:
    from heedful.models.network import Attends

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

    from heedful.experiments.observe import observer

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
                "question": [
                    f"layer {a}, head {b}, {c}" for a, b, c in zip(layer, head, operation, strict=True)
                ],
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
        "overall": spread(column(table, "tvd"), within=COLUMNS["tvd"].possible)
        | quantiles(column(table, "tvd")),
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
    name="heads", question=QUESTION, paper="Michel et al. 2019; Voita et al. 2019", config=HeadsConfig,
    needs=frozenset({"attends", "edits_attention"}), version="1", run=run, summarise=summarise,
    asks="whether its output changes when one head of attention is made uniform or shut off",
    scale="share of the heads that hardly change the prediction",
    columns=COLUMNS, by="question",
    measures=(Measure("heads", "output change when one head is changed", "Δŷ head", "tvd", "overall"),),
    statistics=(
        Statistic(
            "heads that hardly matter", "share_negligible.mean",
            "Heads that hardly matter: share of the heads whose change moves the output by less than .01 on average.",
            ".0%",
        ),
    ),
    draw=lambda trial: list(figures(trial)), judge=verdict, examples=reasons,
    forwards=(5, 0),  # of a model with one head; each further head takes two more
)  # fmt: skip
