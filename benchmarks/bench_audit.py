"""Forward passes for an interval of the same width: how audits asked before beside how they ask now.

Texts of planted words and a small model, because only passes are counted. The spread of an explainer's share between
texts, and the passes that a text takes, say how many passes buy an interval of a given width: passes a text times the
variance. Printed for each explainer and in the mean, for four ways to ask:

    before          both ways of removing words in each text, eight draws and five orders of the control, five points
                    of the curves, all sets of words in texts of up to eight
    fewer sets      what an audit asks of a text now, both ways in each text
    in turn         the same, each text under one way of removing words
    and dropped     the same, and explainers are left out once they are decided: what an audit does

Intervals of `before` are those for one look; those of an audit that is looked at after every text are wider by a factor
that is printed, and passes grow with its square.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

import heedful
from heedful.auditing.outcome import sequences
from heedful.auditing.outcome.decided import still_open
from heedful.auditing.outcome.series import series_of
from heedful.auditing.outcome.standings import MethodFacts, rank, share_of
from heedful.data.generated.planted import generate
from heedful.engine.running.progress import Progress
from heedful.experiments import find
from heedful.models.model import Model
from heedful.registry import EXPLAINERS

TEXTS, TRAIN = 48, 600
METHODS = ("random", "attention", "gradient", "gradient_x_input", "lrp", "integrated_gradients", "omission", "mask")
BEFORE: dict[str, Any] = {
    "operators": ["delete", "mask"],
    "points": 5,
    "draws": 8,
    "beam": 1,
    "control_draws": 5,
    "exact": 8,
}
NOW: dict[str, Any] = dict(find("faithfulness").audit.within_budget)
MEASURES = tuple(one for one in find("faithfulness").audit.measures if one.ranks)


def trained(folder: Path) -> Model:
    rows = "".join(f"{one.label}\t{one.text}\n" for one in generate("majority", TRAIN, seed=0))
    (folder / "train.tsv").write_text(f"label\ttext\n{rows}", encoding="utf-8")
    sizes: dict[str, Any] = {"embedding_dim": 16, "hidden_dim": 16, "epochs": 5, "learning_rate": 0.01}
    quiet, data = Progress(quiet=True), {"tokenizer": "whitespace"}
    return heedful.load(
        heedful.train(
            str(folder / "train.tsv"), encoder="average", data=data, runs=folder / "runs", progress=quiet, **sizes
        )
    )


def passes_of(table: pa.Table) -> float:
    """Edited texts that were read for a text, under all ways that it was asked: once for all its methods."""
    rows = {
        (r["example"], r["operator"]): r["forwards"]
        for r in table.select(["example", "operator", "forwards"]).to_pylist()
    }
    return float(sum(rows.values()))


def spread_of(table: pa.Table) -> dict[str, float]:
    """The variance of each explainer's share between texts, of those that it was asked about."""
    series = series_of("faithfulness", MEASURES, table)
    found = {}
    for name in METHODS[1:]:
        spread = share_of([one for one in series if one.method == name])[2]
        assert spread is not None
        found[name] = float(np.nanvar(spread, ddof=1))
    return found


def asked(model: Model, texts: list[str], options: Mapping[str, Any]) -> pa.Table:
    return heedful.run("faithfulness", model, texts, **{"methods": METHODS, **options}).table


def in_turn(model: Model, texts: list[str], dropping: bool) -> pa.Table:
    known = {name: MethodFacts(EXPLAINERS.find(name).kind) for name in METHODS}
    tables: list[pa.Table] = []
    methods: tuple[str, ...] = METHODS
    for begin in range(0, len(texts), 8):
        operator = NOW["operators"][begin // 8 % 2]
        table = asked(model, texts[begin : begin + 8], {**NOW, "methods": methods, "operators": [operator]})
        place = pa.array([begin + at for at in table["example"].to_pylist()])
        tables.append(table.set_column(table.column_names.index("example"), "example", place))
        if dropping and begin + 8 >= sequences.LEAST:
            standings = rank(
                series_of("faithfulness", MEASURES, pa.concat_tables(tables)), known, looked="faithfulness"
            )
            methods = tuple(name for name in methods if name in still_open(standings))
            if not [name for name in methods if name != "random"]:
                break
    return pa.concat_tables(tables)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = trained(Path(folder))
        texts = [one.text for one in generate("majority", TEXTS, seed=9)]
        tables = {
            "before": asked(model, texts, BEFORE),
            "fewer sets": asked(model, texts, NOW),
            "in turn": in_turn(model, texts, dropping=False),
        }
        dropped = in_turn(model, texts, dropping=True)
    costs: dict[str, float] = {}
    for name, table in tables.items():
        n, passes, spread = len(table["example"].unique()), passes_of(table), spread_of(table)
        costs[name] = passes / n * float(np.mean([*spread.values()]))
        told = ", ".join(f"{method} {passes / n * variance:.0f}" for method, variance in spread.items())
        print(
            f"{name}: {passes / n:.0f} passes a text; passes for a standard error of 1: {told}; mean {costs[name]:.0f}"
        )
    print(
        f"for an interval as wide: {costs['before'] / costs['fewer sets']:.1f} times fewer passes by fewer sets, "
        f"{costs['before'] / costs['in turn']:.1f} times with each text under one way of removing words"
    )
    whole, used = passes_of(tables["in turn"]), passes_of(dropped)
    print(
        f"dropped when decided: {used:.0f} passes instead of {whole:.0f} for the same answers "
        f"({costs['before'] / costs['in turn'] * whole / used:.1f} times fewer than before)"
    )
    factor = float(ndtri((1 + sequences.level_of_a_look(0.95)) / 2) / ndtri(0.975))
    print(f"an interval that holds at every look is {factor:.2f} times as wide as one for one look")


if __name__ == "__main__":
    main()
