"""Words that are alike are one word to an adversary: nothing is lost, and what is proved of few is proved of all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import zoo
from adversaries import observed
from heedful.experiments.adversarial.exact import phi
from heedful.experiments.adversarial.exchange import Different
from heedful.experiments.adversarial.search import search_adversary
from heedful.experiments.edited_attention.observe import tvd
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.measure.distance import jsd

TASKS = ["several", "qa", "nli"]
EPSILON = 0.03


def with_copies(task: zoo.TaskName, lengths: list[int], seed: int = 3) -> PooledStates:
    """Texts whose words, from the fourth on, have the states of the first three again; attention as it was."""
    seen = observed(task, lengths, seed)
    source = torch.arange(seen.alpha.shape[1]) % 3
    return replace(seen, projected=seen.projected[:, source] * seen.real.unsqueeze(-1))


def drawn(seen: PooledStates, n: int, concentration: float = 0.5) -> torch.Tensor:
    rng = np.random.default_rng(0)
    p = torch.zeros(len(seen.alpha), n, seen.alpha.shape[1], dtype=torch.float64)
    for row, words in enumerate(seen.n_words):
        if words:
            p[row, :, :words] = torch.from_numpy(rng.dirichlet(np.full(words, concentration), n))
    return p


def test_of_words_alike_the_least_attended_is_kept() -> None:
    seen = with_copies("qa", [8, 2, 5])
    different = Different.of(seen)
    for row, n in enumerate(seen.n_words):
        alpha = seen.alpha[row, :n].numpy()
        groups = [[t for t in range(n) if t % 3 == first] for first in range(min(n, 3))]
        slow = sorted(min(group, key=lambda t: alpha[t]) for group in groups)
        assert different.kept[row][different.seen.real[row]].tolist() == slow
        assert different.seen.words(different.seen.alpha)[row] == pytest.approx(alpha[slow], abs=0)
        together = [sum(alpha[t] for t in group) for group in groups]
        assert sorted(different.seen.words(different.seen.own)[row]) == pytest.approx(sorted(together))


@pytest.mark.parametrize("task", TASKS)
def test_without_copies_nothing_changes(task: zoo.TaskName) -> None:
    seen = observed(task)
    fewer = Different.of(seen).seen
    for name in ("alpha", "projected", "real"):
        assert torch.equal(getattr(fewer, name), getattr(seen, name))
    assert torch.equal(fewer.own, seen.alpha)
    assert torch.equal(fewer.y, seen.y)


@pytest.mark.parametrize("task", TASKS)
def test_gathered_weights_say_the_same_and_are_at_least_as_far(task: zoo.TaskName) -> None:
    seen = with_copies(task, [9, 4, 14, 3])
    different, p = Different.of(seen), drawn(seen, 50)
    back = different.spread(different.gather(p))
    with torch.no_grad():
        assert seen.decode(back).numpy() == pytest.approx(seen.decode(p).numpy(), abs=1e-12)
        assert different.seen.decode(different.gather(p)).numpy() == pytest.approx(seen.decode(p).numpy(), abs=1e-12)
        assert different.seen.y.numpy() == pytest.approx(seen.y.numpy(), abs=1e-12)
    own = np.broadcast_to(seen.alpha.unsqueeze(1).numpy(), p.shape)
    gained = jsd(back.numpy(), own) - jsd(p.numpy(), own)
    assert (gained >= -1e-12).all()
    assert gained[:3].min(axis=1).max() > 1e-3  # where there are copies, something is gained
    cost = phi(different.seen.alpha.unsqueeze(1).numpy(), different.gather(p).numpy()).sum(2)
    assert np.log(2) - cost == pytest.approx(jsd(back.numpy(), own), abs=1e-12)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("seed", range(2))
def test_no_distribution_on_all_words_is_beyond_the_bound_or_far_beyond_the_answer(
    task: zoo.TaskName, seed: int
) -> None:
    seen = with_copies(task, [12, 7, 4], seed)
    found = search_adversary(seen, EPSILON)
    with torch.no_grad():
        change = tvd(seen.decode(torch.from_numpy(found.alpha).unsqueeze(1)), seen.y.unsqueeze(1))
        assert (change <= EPSILON).all()
        p = drawn(seen, 20_000, 0.2)
        feasible = (tvd(seen.decode(p), seen.y.unsqueeze(1)) <= EPSILON).numpy()
    reached = np.where(feasible, jsd(p.numpy(), np.broadcast_to(seen.alpha.unsqueeze(1).numpy(), p.shape)), 0.0)
    assert feasible.any(1).all()
    assert (reached.max(1) <= found.bound + 1e-9).all()
    assert (reached.max(1) <= found.jsd + 1e-3).all()
    assert found.alpha.sum(1) == pytest.approx(1)
