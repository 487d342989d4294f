"""Attention made uniform in a model as it stands, against the same done by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

import zoo

pytest.importorskip("transformers", reason="heedful[hf] is not installed")

import transformer_zoo
from heedful.errors import Mistake
from heedful.experiments import find, to_table
from heedful.experiments.attention.uniform_inference import ALL

NAME = "uniform_inference"


def rows_of(network: Any, batch: Any, **options: Any) -> pa.Table:
    experiment, n = find(NAME), len(batch)
    config = experiment.config.parse(options, "the test")
    return to_table(experiment.run(network, [(np.arange(n), batch)], config, np.random.default_rng(0)))


def of(table: pa.Table, question: str, name: str) -> list[float]:
    return [row[name] for row in table.to_pylist() if row["question"] == question]


def test_the_weights_of_a_pooled_text_are_one_over_its_words() -> None:
    network, batch = zoo.network(), zoo.batch([5, 1, 8])
    table = rows_of(network, batch)
    assert set(table["question"].to_pylist()) == {ALL}  # there is one layer
    with torch.no_grad():
        x = network.embed(batch.passage)
        h = network.encode(x, batch.passage.present)
        even = batch.passage.mask.double() / batch.passage.mask.sum(1, keepdim=True)
        p, own = torch.sigmoid(network.decode(h, even)), network(batch).probabilities[:, 1:]
    assert of(table, ALL, "tvd") == pytest.approx((p - own).abs().squeeze(1).tolist(), abs=1e-12)
    assert batch.labels is not None
    right = (p.squeeze(1) > 0.5).long() == batch.labels
    assert of(table, ALL, "right_uniform") == right.double().tolist()
    assert of(table, ALL, "tvd")[1] == pytest.approx(0, abs=1e-12)  # one word has all the weight as it is


@pytest.mark.parametrize("family", ["Bert", "GPT2"])
def test_each_layer_of_a_transformer_by_itself_and_all_at_once(family: str) -> None:
    model = transformer_zoo.model(family)
    network, batch = transformer_zoo.network(model), transformer_zoo.batch(model)
    table = rows_of(network, batch)
    layers = network.n_layers

    def flat(chosen: set[int]) -> Tensor:
        def edit(layer: int, weights: Tensor) -> Tensor:
            if layer not in chosen:
                return weights
            out = torch.zeros_like(weights)
            for text, head, to in np.ndindex(*weights.shape[:3]):
                may = (weights[text, :, to] > 0).any(0)
                out[text, head, to, may] = 1 / max(1, int(may.sum()))
            return out

        return network(batch, edit=edit).probabilities

    with torch.no_grad():
        own = network(batch).probabilities
        for question, chosen in {ALL: set(range(layers)), "layer 0": {0}}.items():
            moved = 0.5 * (flat(chosen) - own).abs().sum(1)
            assert of(table, question, "tvd") == pytest.approx(moved.tolist(), abs=1e-6)
    assert len(set(table["question"].to_pylist())) == 1 + layers
    some = rows_of(network, batch, layers=[-1], heads=[0])
    assert of(some, ALL, "tvd") != of(table, f"layer {layers - 1}", "tvd")  # one head of it


def test_what_cannot_be_asked_is_refused() -> None:
    network = transformer_zoo.network(transformer_zoo.model("Bert"))
    batch = transformer_zoo.batch(transformer_zoo.model("Bert"))
    with pytest.raises(Mistake, match="heads"):
        rows_of(network, batch, heads=[99])
    with pytest.raises(Mistake, match="layer"):
        rows_of(network, batch, layers=[99])
    other = transformer_zoo.network(transformer_zoo.model("MPNet"))
    with pytest.raises(Mistake, match=f"{NAME} needs a model"):
        rows_of(other, transformer_zoo.batch(transformer_zoo.model("MPNet")))
