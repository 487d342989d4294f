"""What each head is worth: rows against recomputing by hand, summary against the rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pyarrow.compute import field

import zoo
from heedful.errors import Mistake
from heedful.experiments import Result, find, to_table
from heedful.experiments.attention.heads import HeadsConfig
from heedful.experiments.framework.summary import column
from material import table_of_heads
from test_toy_transformer import ids_of, probabilities
from toy_transformer import HEADS, LAYERS, ToyTransformer, by_hand

LENGTHS = [4, 1, 6]


def rows(split: list[list[int]], model: ToyTransformer | None = None, **options: object) -> list[dict[str, object]]:
    whole, experiment = zoo.batch(LENGTHS), find("heads")
    batches = [(np.array(part), whole.rows(torch.tensor(part))) for part in split]
    config = HeadsConfig.parse(options, "--option")
    found = experiment.run(model or ToyTransformer(), batches, config, np.random.default_rng(0))
    listed: list[dict[str, object]] = to_table(found).to_pylist()
    return listed


def test_rows_are_what_recomputing_by_hand_gives() -> None:
    model, batch = ToyTransformer(), zoo.batch(LENGTHS)
    found = {(r["example"], r["layer"], r["head"], r["operation"]): r for r in rows([[0, 1, 2]], model)}
    assert len(found) == 3 * LAYERS * HEADS * 2
    for (example, layer, head, operation), row in found.items():
        assert isinstance(example, int)
        assert isinstance(layer, int)
        assert isinstance(head, int)
        ids = ids_of(batch, example)
        n = len(ids)
        instead = np.full((n, n), 1 / n if operation == "uniform" else 0.0)
        own, changed = by_hand(model, ids)[0], by_hand(model, ids, {(layer, head): instead})[0]
        p, q = probabilities(own), probabilities(changed)
        label = int(own.argmax())
        assert row["predicted"] == label
        assert row["tvd"] == pytest.approx(np.abs(p - q).sum() / 2, abs=1e-12)
        assert row["logit"] == pytest.approx(changed[label] - own[label], abs=1e-12)
        assert row["flipped"] == (int(changed.argmax()) != label)
        assert row["question"] == f"layer {layer}, head {head}, {operation}"
        assert row["n_words"] == LENGTHS[example]


def test_only_the_layers_and_operations_that_are_asked_for() -> None:
    every, some = rows([[0, 1, 2]]), rows([[2], [0, 1]], layers=[-1], operations=["off"])
    expected = [r for r in every if r["layer"] == 1 and r["operation"] == "off"]
    for one, other in zip(some, expected, strict=True):
        assert one == {name: pytest.approx(v) if isinstance(v, float) else v for name, v in other.items()}
    with pytest.raises(Mistake, match="layer 2: this model has 2 layers"):
        rows([[0]], layers=[2])


def test_a_head_that_nothing_reads_is_worth_nothing() -> None:
    model = ToyTransformer()
    with torch.no_grad():
        model.get_parameter("layers.0.out.weight")[:, :4] = 0  # what head 0 of layer 0 gives is thrown away
    table = rows([[0, 1, 2]], model)
    deaf = [r["tvd"] for r in table if r["layer"] == 0 and r["head"] == 0]
    assert max(deaf) < 1e-15  # type: ignore[type-var, operator]
    experiment = find("heads")
    batch = zoo.batch(LENGTHS)
    chunks = experiment.run(model, [(np.arange(3), batch)], HeadsConfig(), np.random.default_rng(0))
    summary = experiment.summarise(to_table(chunks))
    for operation in ("off", "uniform"):
        line = summary["by_operation"][operation]
        values = {(h["layer"], h["head"]): h for h in line["heads"]}
        assert values[0, 0]["mean"] <= values[0, 0]["high"] < 1e-15
        for (layer, head), one in values.items():
            mine = [r for r in table if (r["layer"], r["head"], r["operation"]) == (layer, head, operation)]
            assert one["mean"] == pytest.approx(np.mean([r["tvd"] for r in mine]))
            assert one["logit"]["mean"] == pytest.approx(np.mean([r["logit"] for r in mine]))
            assert one["low"] <= one["mean"] <= one["high"]
            assert one["n"] == 3
        means = [values[a, b]["mean"] for a, b in line["order"]]
        assert means == sorted(means, reverse=True)
        assert line["share_negligible"] == np.mean([h["mean"] < 0.01 for h in line["heads"]])
        cases = [r["tvd"] < 0.01 for r in table if r["operation"] == operation]  # type: ignore[operator]
        assert line["share_of_cases_negligible"] == pytest.approx(np.mean(cases))
        assert line["order"][-1] == [0, 0]


def test_the_verdict_is_the_share_of_heads_that_hardly_matter() -> None:
    experiment, table = find("heads"), table_of_heads(40)
    trial = Result("heads", table, experiment.summarise(table))
    found = experiment.verdict(trial)
    assert found is not None
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)  # layer 0 of two, whichever texts are drawn
    assert found.grade == "against"
    assert "50% (95% CI 50% to 50%) of the 6 heads can be made uniform" in found.sentence
    assert trial.summary["share_negligible"] == {"mean": 0.5, "low": 0.5, "high": 0.5}
    means = column(table.filter((field("layer") == 1) & (field("operation") == "off")), "tvd")
    figure = next(figure for figure in experiment.figures(trial) if figure.id == "heads-off")
    cells = {(row["y"], row["x"]): row["value"] for row in figure.spec["data"]["values"]}
    assert cells[0, 0] == 0
    assert np.mean([cells[1, head] for head in range(3)]) == pytest.approx(means.mean(), abs=1e-4)
    first = next(iter(experiment.examples(trial)))
    biggest = max(table.to_pylist(), key=lambda row: float(row["tvd"]))
    assert first.places[0] == biggest["example"]
