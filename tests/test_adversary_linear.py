"""Successive linear programs: derivatives against autograd, and steps that never leave the feasible set or lose."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import zoo
from adversaries import observed
from heedful.experiments.adversarial.proof import LinearSteps
from heedful.experiments.adversarial.search import texts_of
from heedful.measure.distance import jsd

TASKS = ["several", "qa", "nli"]


@pytest.mark.parametrize("task", TASKS)
def test_the_jacobian_is_that_of_the_decoder(task: zoo.TaskName) -> None:
    """Along the simplex: what all words have in common changes nothing there."""
    seen = observed(task, [4, 7, 12])
    rng = np.random.default_rng(0)
    for i, (readout, own, y, candidates) in enumerate(texts_of(seen)):
        p = rng.dirichlet(np.ones(len(own)))
        contexts = torch.from_numpy(p) @ seen.projected[i, : len(own)]  # (features,)
        decoder = seen[i : i + 1]
        slow = torch.func.jacrev(lambda c, decoder=decoder: decoder.readout(c.view(1, 1, -1))[0, 0])(contexts)
        slow = (slow @ seen.projected[i, : len(own)].T).numpy()
        fast = LinearSteps(readout, own, y, candidates, 0.03).jacobian(p)
        assert fast - fast.mean(1, keepdims=True) == pytest.approx(slow - slow.mean(1, keepdims=True), abs=1e-10)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("chords", [False, True])
def test_steps_stay_feasible_and_never_lose(task: zoo.TaskName, chords: bool) -> None:
    seen = observed(task)
    gained = []
    for readout, own, y, candidates in texts_of(seen):
        steps = LinearSteps(readout, own, y, candidates, 0.03)
        found = steps.farther(own, 0.4, 8, steps.chords(0.4) if chords else None)
        assert steps.change(own) == pytest.approx(0, abs=1e-6)
        assert steps.change(found) <= 0.03
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        gained.append(float(jsd(found, own)))
        again = steps.farther(found, 0.4, 8)
        assert float(jsd(again, own)) >= gained[-1] - 1e-12
    assert np.mean(gained) > 0.05


def test_a_program_without_a_solution_leaves_the_distribution_as_it_is() -> None:
    seen = observed("several", [5])
    readout, own, y, candidates = next(texts_of(seen))
    other = np.roll(y, 1)  # outputs that cannot be reached
    steps = LinearSteps(readout, own, other, candidates, 1e-9)
    assert np.array_equal(steps.farther(own, 0.4, 8), own)


def test_a_solution_that_is_not_feasible_is_brought_back_by_further_programs() -> None:
    first, last = [], []
    for readout, own, y, candidates in texts_of(observed("qa", [6, 12, 20], seed=4)):
        steps = LinearSteps(readout, own, y, candidates, 0.1)
        changes = [steps.change(aim) for aim in steps.aims(own, steps.chords(1.0))]
        assert all(change > 0.1 for change in changes[:-1])
        first.append(changes[0])
        last.append(changes[-1])
    assert max(first) > 0.15
    assert max(last) <= 0.1 + 1e-4
