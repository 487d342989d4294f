"""What an explainer declares to cost is what it counts."""

from __future__ import annotations

import pytest
import torch

import transformer_zoo
import zoo
from heedful.explainers import EXPLAINERS
from heedful.explainers.collect import passes
from heedful.explainers.declared import heads_of, sizes_of
from heedful.models import AttentiveClassifier
from heedful.models.network import Network
from heedful.records import Batch

CUSTOM = [name for name, explainer in EXPLAINERS.items() if explainer.needs <= AttentiveClassifier.can]


def agree(name: str, network: Network, batch: Batch) -> None:
    explainer = EXPLAINERS[name]
    assert explainer.passes is not None
    declared = [explainer.passes(size) for size in sizes_of(network, batch, heads_of(network, batch))]
    counted = explainer.run(network, batch, torch.zeros(len(batch), dtype=torch.long))
    forward, backward = (
        passes(made, len(batch)).tolist() for made in (counted.forward_passes, counted.backward_passes)
    )
    if not isinstance(counted.forward_passes, torch.Tensor):  # of the batch: known of it as a whole
        assert counted.forward_passes == sum(one.forward for one in declared)
        assert counted.backward_passes == sum(one.backward for one in declared)
        return
    for one, there, back in zip(declared, forward, backward, strict=True):
        assert one.forward <= there <= one.times * one.forward
        assert back == one.backward


def test_every_built_in_explainer_declares_its_passes() -> None:
    built_in = [EXPLAINERS[name] for name in EXPLAINERS.places]
    assert [one.name for one in built_in if one.passes is None] == []


@pytest.mark.parametrize("task", ["binary", "nli"])
@pytest.mark.parametrize("name", CUSTOM)
def test_declared_and_counted_passes_agree(name: str, task: zoo.TaskName) -> None:
    agree(name, zoo.network("average", "additive", task), zoo.batch([5, 1, 12], task))


SAMPLED, NO_CLASSIFIER = {"lime", "shap", "shapley_interactions"}, {"bilrp", "rationale"}  # compares, selects


@pytest.mark.parametrize("name", sorted(set(EXPLAINERS.places) - SAMPLED - NO_CLASSIFIER))
@pytest.mark.parametrize("query", [False, True])
def test_declared_and_counted_passes_of_a_transformer_agree(name: str, query: bool) -> None:
    """Words of several pieces, special tokens, heads."""
    made = transformer_zoo.model("Bert", query=query)
    agree(name, transformer_zoo.network(made), transformer_zoo.batch(made))
