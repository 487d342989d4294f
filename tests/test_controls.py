"""Controls are seeded by the text, even, and zero where there is no word."""

from __future__ import annotations

import pytest
import torch

import zoo
from heedful.errors import Mistake
from heedful.explainers.controls import random, uniform


def test_random_depends_on_the_text_and_the_seed_only() -> None:
    model, batch = zoo.network(task="nli"), zoo.batch([5, 9, 5], "nli")
    target = torch.tensor([0, 1, 2])
    whole = random(model, batch, target, seed=4)
    assert whole.query is not None
    for i in range(3):
        one = random(zoo.network(task="nli", seed=8), zoo.row(batch, i), target[i : i + 1], seed=4)
        assert one.query is not None
        assert torch.equal(whole.passage[i, : one.passage.shape[1]], one.passage[0])
        assert torch.equal(whole.query[i, : one.query.shape[1]], one.query[0])
    assert not torch.equal(whole.passage, random(model, batch, target, seed=5).passage)
    assert not torch.equal(whole.passage[0], whole.passage[2])
    with pytest.raises(Mistake, match="seed"):
        random(model, batch, target, seed=-1)


def test_random_is_uniform_on_the_words() -> None:
    batch = zoo.batch([4000, 10])
    scores = random(zoo.network(), batch, torch.tensor([0, 0])).passage
    values = scores[batch.passage.mask]
    assert values.min() >= 0
    assert values.max() < 1
    assert abs(float(values.mean()) - 0.5) < 0.02
    assert abs(float(values.var()) - 1 / 12) < 0.01
    assert not scores[~batch.passage.mask].any()


def test_random_leaves_the_global_generators_alone() -> None:
    state = torch.get_rng_state()
    random(zoo.network(), zoo.batch([5]), torch.tensor([0]))
    assert torch.equal(state, torch.get_rng_state())


def test_uniform_is_one_over_n() -> None:
    batch = zoo.batch([5, 1], "qa")
    scores = uniform(zoo.network(task="qa"), batch, torch.tensor([0, 0]))
    assert batch.query is not None
    assert scores.query is not None
    assert scores.passage[0].tolist() == [0, 0.2, 0.2, 0.2, 0.2, 0.2, 0]
    assert scores.passage[1].tolist() == [0, 1, 0, 0, 0, 0, 0]
    torch.testing.assert_close(scores.query.sum(1), torch.ones(2, dtype=torch.float64))
    assert (scores.query > 0).equal(batch.query.mask)
