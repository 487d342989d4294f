"""Explanations before and after a change that leaves the answer as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import zoo
from heedful.experiments import find, to_table
from heedful.experiments.sanity.stability import moved
from heedful.measure.columns import column, rows_of


def answers(**options: Any) -> Any:
    experiment, batch = find("stability"), zoo.batch([6, 9, 4, 8])
    config = experiment.config.parse(options, "stability")
    chunks = experiment.run(zoo.network(), [(np.arange(4), batch)], config, np.random.default_rng(0))
    return to_table(chunks)


@pytest.mark.parametrize("task", ["binary", "nli"])
def test_moved_inputs_are_the_same_function_and_other_embeddings(task: zoo.TaskName) -> None:
    model, batch = zoo.network(task=task), zoo.batch([5, 3], task)
    same = moved(model, "shift", 0.05, 0)
    own = model(batch).logits
    torch.testing.assert_close(same(batch).logits, own)
    x = same.embed(batch.passage)
    torch.testing.assert_close(same(batch, x=x).logits, own)
    assert (x - model.embed(batch.passage)).abs().max() > 1e-3
    noisy = moved(model, "noise", 0.05, 0)
    apart = (noisy(batch).logits - own).abs().max()
    assert 0 < apart < 1
    torch.testing.assert_close(noisy(batch, x=noisy.embed(batch.passage)).logits, noisy(batch).logits)


def test_what_depends_on_where_zero_is_changes_and_the_rest_does_not() -> None:
    """Kindermans et al. 2019, as tests/test_explainer_contract.py has it of scores."""
    table = answers(methods=["gradient", "gradient_x_input", "omission"], ways=["shift"])
    tau = {name: column(rows_of(table, "method", name), "tau") for name in set(table["method"].to_pylist())}
    assert min(np.nanmin(tau["gradient"]), np.nanmin(tau["omission"])) == pytest.approx(1)
    assert np.nanmean(tau["gradient_x_input"]) < 0.9
    assert column(table, "moved").max() < 1e-9
    assert abs(np.nanmean(tau["random"])) < 0.7


def test_more_noise_changes_more_and_other_answers_do_not_count() -> None:
    little, more = (
        answers(methods=["gradient_x_input"], ways=["noise"], size=size, within=1.0) for size in (0.01, 0.5)
    )
    one, two = (np.nanmean(column(rows_of(t, "method", "gradient_x_input"), "tau")) for t in (little, more))
    assert one > two
    strict = answers(methods=["gradient_x_input"], ways=["noise"], size=0.5, within=1e-6)
    assert np.isnan(column(strict, "tau")).all()
