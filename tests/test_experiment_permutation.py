"""Permuted attention: against a plain loop over Algorithm 2 of Jain & Wallace 2019."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
import torch

import zoo
from heedful.experiments import find, to_table
from heedful.experiments.attention import permutation
from heedful.experiments.attention.permutation import PermutationConfig, changes
from heedful.experiments.edited_attention.observe import observer
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.experiments.framework.experiment import generators
from heedful.experiments.framework.summary import grouped
from heedful.measure.columns import BINS, bin_of

LENGTHS = [7, 1, 12, 2]


@pytest.mark.parametrize("task", zoo.TASK_NAMES)
def test_rows_are_those_of_a_plain_loop(task: zoo.TaskName) -> None:
    model, batch = zoo.network(task=task), zoo.batch(LENGTHS, task)
    examples = np.array([4, 0, 9, 2])
    config = PermutationConfig(permutations=20)
    rows = to_table(find("permutation").run(model, [(examples, batch)], config, np.random.default_rng(5)))

    generator_of = generators(np.random.default_rng(5))
    slow = {}
    for i, example in enumerate(examples):
        alone = zoo.row(batch, i)
        rng = generator_of(example)
        with torch.no_grad():
            output = model(alone)
            words = output.alpha[0, 1:-1].numpy()
            orders = rng.permuted(np.tile(np.arange(len(words)), (20, 1)), axis=1)
            deltas = []
            for order in orders:
                permuted = torch.zeros_like(output.alpha)
                permuted[0, 1:-1] = torch.from_numpy(words[order])
                p = model(alone, alpha=permuted).probabilities
                deltas.append(float((p - output.probabilities).abs().sum() / 2))
        slow[int(example)] = deltas
    for row in rows.to_pylist():
        deltas = slow[row["example"]]
        assert row["median"] == pytest.approx(np.median(deltas), abs=1e-9)
        assert row["mean"] == pytest.approx(np.mean(deltas), abs=1e-9)
        assert row["max"] == pytest.approx(np.max(deltas), abs=1e-9)
    assert max(slow[9]) > 1e-4  # the loop did change something


def test_one_word_cannot_be_permuted_and_no_word_is_undefined() -> None:
    model, batch = zoo.network(), zoo.batch([1, 0, 5])
    rows = to_table(permutation.run(model, [(np.arange(3), batch)], PermutationConfig(), np.random.default_rng(0)))
    assert rows["median"].to_pylist()[:2] == [0.0, None]
    assert rows["max_attention"].to_pylist()[:2] == [1.0, None]
    overall = permutation.summarise(rows)["overall"]
    assert (overall["n"], overall["undefined"]) == (2, 1)


def test_every_permutation_is_used_once_and_keeps_all_weights() -> None:
    """With the identity for states, the decoded context is the permuted attention itself."""
    model = zoo.network(task="several")
    seen = observer(model)(np.arange(2), zoo.batch([4, 3], "several"))
    caught: list[torch.Tensor] = []

    class Watched(PooledStates):
        def decode(self, alphas: torch.Tensor) -> torch.Tensor:
            caught.append(alphas)
            return PooledStates.decode(self, alphas)

    assert isinstance(seen, PooledStates)
    watched = Watched(**{one.name: getattr(seen, one.name) for one in fields(seen)})
    changes(watched, [np.random.default_rng(i) for i in range(2)], 50)
    alphas, _ = caught  # the second is the model's own attention
    assert alphas.shape == (2, 50, 4)
    assert np.array_equal(np.sort(alphas.numpy(), axis=-1)[0], np.tile(np.sort(seen.alpha[0].numpy()), (50, 1)))
    assert (alphas[1, :, 3] == 0).all()
    assert len({tuple(row) for row in alphas[0].tolist()}) > 15  # of 24 orders


def test_memory_is_bounded_without_changing_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = zoo.network(), zoo.batch(LENGTHS)
    whole = to_table(permutation.run(model, [(np.arange(4), batch)], PermutationConfig(), np.random.default_rng(1)))
    monkeypatch.setattr(permutation, "_CELLS", 1)
    parts = list(permutation.run(model, [(np.arange(4), batch)], PermutationConfig(), np.random.default_rng(1)))
    assert len(parts) == 4
    assert to_table(parts)["median"].to_numpy() == pytest.approx(whole["median"].to_numpy(), abs=1e-12)


def test_bins_of_figure_3() -> None:
    values = np.array([0.0, 0.2499, 0.25, 0.5, 0.74, 0.75, 1.0, np.nan])
    assert bin_of(values).tolist() == [0, 0, 1, 2, 2, 3, 3, -1]


def test_groups_share_out_every_row() -> None:
    table = pa.table(
        {
            "predicted": np.array([0, 0, 1, 1, 1]),
            "max_attention": pa.array([0.1, 0.9, 0.3, 0.3, None]),
            "median": pa.array([0.0, 0.2, 0.4, None, None]),
        }
    )
    found = grouped(table, lambda rows: {"n": rows.num_rows})
    assert found["overall"] == {"n": 5}
    assert found["by_class"] == {"0": {"n": 2}, "1": {"n": 3}}
    assert [found["by_max_attention"][name]["n"] for name in BINS] == [1, 2, 0, 1]
    assert found["by_class_and_max_attention"]["1"]["[.25, .5)"] == {"n": 2}
    summary = permutation.summarise(table)
    assert summary["overall"]["mean"] == pytest.approx(0.2)
    assert summary["overall"]["undefined"] == 2
    assert summary["overall"]["q50"] == pytest.approx(0.2)
    assert summary["by_max_attention"]["[.5, .75)"]["mean"] is None
