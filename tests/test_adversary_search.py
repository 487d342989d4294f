"""The published search for adversarial attention, and the search for several classes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import Tensor

import zoo
from adversaries import LENGTHS, observed, of_model, starts_for, strong
from heedful.experiments import to_table
from heedful.experiments.adversarial.adam import adam_adversaries, farthest_feasible, initial
from heedful.experiments.adversarial.adversarial import ADVERSARIAL, AdversarialConfig
from heedful.experiments.adversarial.exchange import exchange_words
from heedful.experiments.adversarial.search import (
    ceiling,
    drawn_in,
    pairs,
    search_adversary,
    starts,
    triples,
    upper_bound,
)
from heedful.experiments.edited_attention.observe import tvd
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.measure.distance import jsd
from heedful.models.attentive.classifier import Decoder
from heedful.models.link import SOFTMAX

# --- the published search


def slow_adam(seen: PooledStates, v: Tensor, epsilon: float, steps: int, rate: float, penalty: float) -> Tensor:
    """Equation 2 and its relaxation, one text, by autograd: v (k, n)."""
    v = v.clone().requires_grad_(True)
    n, k = v.shape[1], v.shape[0]
    optimiser = torch.optim.Adam([v], lr=rate, amsgrad=True)
    alpha, y = seen.alpha[0, :n], seen.y[0]

    def divergence(p: Tensor, q: Tensor) -> Tensor:
        middle = (p + q) / 2
        return ((p * (p / middle).log()).sum() + (q * (q / middle).log()).sum()) / 2

    for _ in range(steps):
        p = v.softmax(-1)
        objective = torch.zeros((), dtype=torch.float64)
        for i in range(k):
            change = tvd(seen.readout((p[i] @ seen.projected[0, :n]).view(1, 1, -1))[0, 0], y)
            objective = objective + divergence(p[i], alpha) - penalty / k * torch.relu(change - epsilon)
            for j in range(i):
                objective = objective + divergence(p[i], p[j]) / (k * (k - 1))
        optimiser.zero_grad()
        (-objective).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return v.detach().softmax(-1)


@pytest.mark.parametrize("task", ["binary", "several", "qa"])
@pytest.mark.parametrize("k", [1, 3])
def test_adam_follows_the_published_objective(task: zoo.TaskName, k: int) -> None:
    seen = observed(task, [6, 3, 9])
    starts = starts_for(seen, k)
    found = adam_adversaries(seen, starts, 0.02, steps=40, rate=0.05, penalty=500)
    for row, n in enumerate(seen.n_words):
        slow = slow_adam(seen[row : row + 1], torch.from_numpy(starts[row]), 0.02, 40, 0.05, 500)
        assert found[row, :, :n].numpy() == pytest.approx(slow.numpy(), abs=1e-9)
        assert (found[row, :, n:] == 0).all()


def test_adam_in_any_batch_gives_a_text_the_same_distributions() -> None:
    seen = observed()
    starts = starts_for(seen)
    together = adam_adversaries(seen, starts, 0.01, steps=100, rate=0.01, penalty=500)
    for row in range(len(LENGTHS)):
        alone = adam_adversaries(seen[row : row + 1], starts[row : row + 1], 0.01, steps=100, rate=0.01, penalty=500)
        assert together[row].numpy() == pytest.approx(alone[0].numpy(), abs=1e-8)


def test_initial_log_weights_are_log_uniform_plus_three_normal() -> None:
    v = initial(2000, 5, np.random.default_rng(0))
    assert v.shape == (5, 2000)
    assert v.mean() == pytest.approx(-np.log(2000), abs=0.1)
    assert v.std() == pytest.approx(3, abs=0.1)


def test_where_nothing_is_feasible_the_answer_is_the_models_own_at_0() -> None:
    seen = observed(lengths=[6, 6])
    change = tvd(seen.readout(seen.projected), seen.y.unsqueeze(1))
    worst = torch.nn.functional.one_hot(change.argmax(1), 6).double().unsqueeze(1)  # (B, 1, T)
    found = farthest_feasible(seen, worst, 1e-6, ceiling(seen))
    assert found.feasible.tolist() == [False, False]
    assert found.jsd.tolist() == [0.0, 0.0]
    assert np.array_equal(found.alpha, seen.alpha.numpy())


# --- several classes, and decoders with a query


@pytest.mark.parametrize("task", ["several", "qa", "nli"])
def test_search_is_feasible_below_its_bound_and_above_adam(task: zoo.TaskName) -> None:
    seen = observed(task)
    dense = adam_adversaries(seen, starts_for(seen), 0.03, steps=100, rate=0.05, penalty=500)
    adam = farthest_feasible(seen, dense, 0.03, ceiling(seen))
    found = search_adversary(seen, 0.03, dense)
    change = tvd(seen.decode(torch.from_numpy(found.alpha).unsqueeze(1)).squeeze(1), seen.y).numpy()
    assert (change <= 0.03).all()
    assert change == pytest.approx(found.delta_y, abs=1e-12)
    assert found.alpha.sum(1) == pytest.approx(np.ones(len(LENGTHS)))
    assert (found.alpha[~seen.real.numpy()] == 0).all()
    assert (found.jsd <= found.bound + 1e-9).all()
    assert (found.bound <= ceiling(seen) + 1e-12).all()
    assert (found.jsd >= adam.jsd - 1e-12).all()
    assert found.jsd.mean() > adam.jsd.mean() + 0.01


def two_logits(seen: PooledStates) -> PooledStates:
    """The binary model again, as a softmax over two logits: the same outputs, so the same answer."""
    old = seen.decoder.theta
    assert old is not None
    decoder = Decoder(old.in_features, 2, has_query=False).double().requires_grad_(False)
    assert decoder.theta is not None
    decoder.theta.bias.copy_(torch.tensor([0.0, old.bias.item()]))
    projected = torch.cat([torch.zeros_like(seen.projected), seen.projected], dim=-1)
    return replace(seen, link=SOFTMAX, decoder=decoder, projected=projected)


def test_for_two_labels_the_bound_is_the_exact_answer_and_search_comes_near() -> None:
    seen = observed(lengths=[2, 3, 6, 12, 20, 20])
    true = of_model(seen)
    again = two_logits(seen)
    assert upper_bound(again, 0.01) == pytest.approx(true.jsd, abs=1e-9)
    found = search_adversary(again, 0.01)
    assert (found.jsd <= true.jsd + 1e-9).all()
    assert found.jsd == pytest.approx(true.jsd, abs=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_no_random_feasible_distribution_is_beyond_the_bound(seed: int) -> None:
    seen = observed("several", [3, 4, 5], seed)
    bound = upper_bound(seen, 0.1)
    rng = np.random.default_rng(seed)
    for row, n in enumerate(seen.n_words):
        p = torch.zeros(1, 4000, seen.alpha.shape[1], dtype=torch.float64)
        p[0, :, :n] = torch.from_numpy(rng.dirichlet(np.full(n, 0.3), 4000))
        part = seen[row : row + 1]
        feasible = (tvd(part.decode(p), part.y.unsqueeze(1)) <= 0.1)[0]
        tried = p[0][feasible].numpy()
        assert jsd(tried, np.broadcast_to(part.alpha.numpy(), tried.shape)).max(initial=0.0) <= bound[row] + 1e-9


@pytest.mark.parametrize("task", ["several", "qa", "nli"])
@pytest.mark.parametrize("seed", range(3))
def test_search_is_never_below_any_of_its_starts(task: zoo.TaskName, seed: int) -> None:
    seen = observed(task, seed=seed)
    dense = adam_adversaries(seen, starts_for(seen), 0.03, steps=30, rate=0.1, penalty=500)
    found = search_adversary(seen, 0.03, dense, programs=0)
    with torch.no_grad():
        begun = torch.cat([starts(seen, 0.03), pairs(seen, 0.03), dense], dim=1)
    for i in range(begun.shape[1]):
        one = farthest_feasible(seen, begun[:, i : i + 1], 0.03, found.bound)
        assert (found.jsd >= one.jsd - 1e-12).all()


@pytest.mark.parametrize("task", ["several", "qa", "nli"])
def test_exchanges_stay_feasible_and_never_lose(task: zoo.TaskName) -> None:
    seen = observed(task)
    rng = np.random.default_rng(0)
    p = torch.zeros(len(LENGTHS), 6, seen.alpha.shape[1], dtype=torch.float64)
    for row, n in enumerate(seen.n_words):
        p[row, :, :n] = torch.from_numpy(rng.dirichlet(np.full(n, 0.3), 6))
    with torch.no_grad():
        begun = drawn_in(seen, p, 0.03)
    moved = exchange_words(seen, begun, 0.03, 15)
    assert (tvd(seen.decode(moved), seen.y.unsqueeze(1)) <= 0.03).all()
    assert moved.sum(2).numpy() == pytest.approx(np.ones(moved.shape[:2]))
    assert (moved >= 0).all()
    assert (moved.transpose(1, 2)[~seen.real] == 0).all()
    own = np.broadcast_to(seen.alpha.unsqueeze(1).numpy(), moved.shape)
    before, after = jsd(begun.numpy(), own), jsd(moved.numpy(), own)
    assert (after >= before - 1e-12).all()
    assert after.mean() > before.mean() + 0.01


@pytest.mark.parametrize("task", ["several", "qa", "nli"])
def test_nothing_on_a_fine_grid_is_farther(task: zoo.TaskName) -> None:
    """Three words: every distribution whose weights are multiples of 1/200."""
    seen = observed(task, [3] * 8)
    shares = torch.tensor([(i, j, 200 - i - j) for i in range(201) for j in range(201 - i)]) / 200.0
    p = torch.zeros(1, len(shares), seen.alpha.shape[1], dtype=torch.float64)
    p[0, :, :3] = shares
    found = search_adversary(seen, 0.05)
    with torch.no_grad():
        best = farthest_feasible(seen, p.expand(len(seen.alpha), -1, -1), 0.05, ceiling(seen))
    assert (found.jsd >= best.jsd - 1e-9).all()
    assert best.jsd.max() > 0.05


def test_triples_are_distributions_on_at_most_three_words_of_their_text() -> None:
    seen = observed("qa")
    with torch.no_grad():
        made = triples(seen, 0.03)
    some = torch.from_numpy(seen.n_words > 0)
    assert made[some].sum(2).numpy() == pytest.approx(np.ones(made[some].shape[:2]))
    assert ((made > 0).sum(2) <= 3).all()
    assert (made.transpose(1, 2)[~seen.real & some.unsqueeze(1)] == 0).all()
    assert ((made > 0).sum(2) == 3).any()


@pytest.mark.parametrize("task", ["several", "qa"])
def test_comparing_with_the_published_search_does_not_change_the_answer(task: zoo.TaskName) -> None:
    def rows(**options: object) -> pa.Table:
        config = AdversarialConfig.parse({"steps": 20, **options}, "test")
        batches = [(np.arange(len(LENGTHS)), zoo.batch(LENGTHS, task))]
        return to_table(ADVERSARIAL.run(strong(task), batches, config, np.random.default_rng(0)))

    alone, compared = rows(), rows(compare=True)
    for name in alone.column_names:
        assert alone[name].equals(compared[name])


def test_the_summary_counts_what_was_proved() -> None:
    batches = [(np.arange(len(LENGTHS)), zoo.batch(LENGTHS, "several"))]
    run = ADVERSARIAL.run(strong("several"), batches, AdversarialConfig(), np.random.default_rng(0))
    table = to_table(run)
    gap = table["bound"].to_numpy() - table["jsd"].to_numpy()
    assert ADVERSARIAL.summarise(table)["overall"]["proved"] == pytest.approx((gap <= 0.01 + 1e-9).mean())


def test_a_search_in_parts_is_the_same_search() -> None:
    seen = observed("nli")
    together = search_adversary(seen, 0.05)
    for begin, end in pairwise([0, 3, len(LENGTHS)]):
        part = search_adversary(seen[begin:end], 0.05)
        assert part.jsd == pytest.approx(together.jsd[begin:end], abs=1e-9)


@pytest.mark.parametrize("task", ["several", "qa", "nli"])
def test_a_text_without_words_beside_others_has_nothing_farther(task: zoo.TaskName) -> None:
    found = search_adversary(observed(task, [0, 2, 5]), 0.05)
    assert found.jsd[0] == 0
    assert (found.alpha[0] == 0).all()
    assert (found.jsd <= found.bound + 1e-9).all()
    assert (found.jsd[1:] > 0).all()


def test_a_batch_without_any_word_is_searched_without_complaint() -> None:
    for task in ("binary", "several", "nli"):
        seen = observed(task, [0, 0])
        found = of_model(seen) if task == "binary" else search_adversary(seen, 0.05)
        assert found.jsd.tolist() == [0.0, 0.0]
