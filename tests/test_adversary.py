"""The exact adversarial attention: by hand, against all vertices, and against everything else that is feasible."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon
from scipy.special import expit, logit

import zoo
from adversaries import LENGTHS, observed, of_model, starts_for, strong
from heedful.experiments.adversarial import exact as adversary_exact
from heedful.experiments.adversarial.adam import adam_adversaries, farthest_feasible
from heedful.experiments.adversarial.exact import LN2, Adversary, exact_adversary, farthest_in_slab, phi
from heedful.experiments.adversarial.search import ceiling
from heedful.experiments.edited_attention.observe import tvd
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.measure.distance import jsd

Floats = NDArray[np.float64]


def exact(alpha: list[float], s: list[float], bias: float = 0.0, epsilon: float = 0.01) -> Adversary:
    a = np.array([alpha])
    return exact_adversary(a, np.array([s]), bias, np.ones_like(a, dtype=bool), epsilon)


def slow_jsd(p: Floats, q: Floats) -> float:
    return float(jensenshannon(p, q) ** 2)


def slow_exact(a: Floats, s: Floats, bias: float, epsilon: float) -> float:
    """All vertices, one after the other."""
    y, n = expit(a @ s + bias), len(a)
    bounds = [float(logit(y + side)) - bias for side in (-epsilon, epsilon) if 0 < y + side < 1]
    best = [slow_jsd(e, a) for e in np.eye(n) if abs(expit(e @ s + bias) - y) <= epsilon]
    for t in range(n):
        for u in range(n):
            for bound in bounds:
                if s[t] < bound < s[u]:
                    w = (s[u] - bound) / (s[u] - s[t])
                    best.append(slow_jsd(w * np.eye(n)[t] + (1 - w) * np.eye(n)[u], a))
    return max(best)


# --- the exact answer, where it is known by hand


def test_two_words_meet_the_face_of_the_slab() -> None:
    found = exact([0.5, 0.5], [-1.0, 1.0])
    z = logit(0.51)  # y = .5, and the logit is the second weight minus the first
    assert sorted(found.alpha[0]) == pytest.approx([(1 - z) / 2, (1 + z) / 2], abs=1e-9)
    assert found.jsd[0] == pytest.approx(slow_jsd(np.array([0.5, 0.5]), found.alpha[0]), abs=1e-12)
    assert found.delta_y[0] == pytest.approx(0.01, abs=1e-9)


def test_three_words_where_a_one_hot_is_feasible() -> None:
    found = exact([0.45, 0.1, 0.45], [-2.0, 0.0, 2.0])
    assert found.alpha[0].tolist() == [0.0, 1.0, 0.0]
    assert found.delta_y[0] == 0.0
    # 1/2 [.9 ln 2 + .1 ln(.2 / 1.1) + ln(2 / 1.1)]
    assert found.jsd[0] == pytest.approx((0.9 * LN2 + 0.1 * np.log(0.2 / 1.1) + np.log(2 / 1.1)) / 2, abs=1e-12)


def test_three_words_where_the_answer_is_on_the_outer_two() -> None:
    found = exact([0.1, 0.8, 0.1], [-2.0, 0.0, 2.0])
    z = logit(0.51)  # either face: symmetric
    assert sorted(found.alpha[0]) == pytest.approx([0.0, (2 - z) / 4, (2 + z) / 4], abs=1e-9)
    assert found.alpha[0, 1] == 0.0


@pytest.mark.parametrize("logit_of_all", [0.0, 30.0, -30.0])
def test_equal_states_leave_everything_open(logit_of_all: float) -> None:
    found = exact([0.6, 0.3, 0.1], [logit_of_all] * 3)
    assert found.alpha[0].tolist() == [0.0, 0.0, 1.0]
    assert found.jsd[0] == pytest.approx(slow_jsd(np.array([0.6, 0.3, 0.1]), np.array([0.0, 0.0, 1.0])))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_certain_prediction_has_one_bound_only(sign: float) -> None:
    """y = .99995: up there is no bound, down it is logit(y - epsilon)."""
    a, s = [0.7, 0.2, 0.1], [sign * 10.0, sign * 9.0, -sign * 5.0]
    found = exact(a, s)
    y = expit(np.dot(a, s) * sign)
    w = (logit(y - 0.01) - -5.0) / (9.0 - -5.0)  # of word 1, the rest on word 2
    on_the_face = np.array([0.0, w, 1 - w])
    one_hot = np.array([0.0, 1.0, 0.0])
    best = max(slow_jsd(p, np.array(a)) for p in (on_the_face, one_hot))
    assert found.jsd[0] == pytest.approx(best, abs=1e-9)


def test_one_word_has_no_alternative_and_no_word_has_none_either() -> None:
    found = exact_adversary(
        np.array([[1.0, 0.0], [0.0, 0.0]]), np.ones((2, 2)), 0.3, np.array([[True, False], [False, False]]), 0.01
    )
    assert found.jsd.tolist() == [0.0, 0.0]
    assert found.alpha.tolist() == [[1.0, 0.0], [0.0, 0.0]]


# --- the exact answer, against everything else


instances = st.tuples(
    st.integers(1, 9), st.integers(0, 2**32), st.sampled_from([0.3, 2.0, 20.0]), st.sampled_from([0.001, 0.01, 0.3])
)


def instance(words: int, seed: int, scale: float) -> tuple[Floats, Floats, float]:
    rng = np.random.default_rng(seed)
    s = rng.normal(size=words) * scale
    if seed % 3 == 0:
        s = np.round(s)  # ties
    return rng.dirichlet(np.full(words, 0.5)), s, float(rng.normal())


@given(instances)
@settings(max_examples=150, deadline=None)
def test_exact_is_the_best_of_all_vertices_and_feasible(drawn: tuple[int, int, float, float]) -> None:
    words, seed, scale, epsilon = drawn
    a, s, bias = instance(words, seed, scale)
    found = exact(a.tolist(), s.tolist(), bias, epsilon)
    p = found.alpha[0]
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert (p > 0).sum() <= 2
    assert abs(expit(p @ s + bias) - expit(a @ s + bias)) <= epsilon
    assert found.delta_y[0] <= epsilon
    assert found.jsd[0] == pytest.approx(slow_exact(a, s, bias, epsilon), abs=1e-9)


@given(instances)
@settings(max_examples=100, deadline=None)
def test_no_random_feasible_distribution_beats_exact(drawn: tuple[int, int, float, float]) -> None:
    words, seed, scale, epsilon = drawn
    a, s, bias = instance(words, seed, scale)
    rng = np.random.default_rng(seed + 1)
    sparse = rng.dirichlet(np.full(words, 0.2), 300)
    y = expit(a @ s + bias)
    low, high = np.zeros(300), np.ones(300)  # how far towards each random distribution the constraint allows
    for _ in range(40):
        middle = (low + high) / 2
        p = a + middle[:, None] * (sparse - a)
        inside = np.abs(expit(p @ s + bias) - y) <= epsilon
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    tried = np.concatenate([a + low[:, None] * (sparse - a), sparse])
    tried = tried[np.abs(expit(tried @ s + bias) - y) <= epsilon]
    best = jsd(tried, np.broadcast_to(a, tried.shape)).max(initial=0.0)
    assert best <= exact(a.tolist(), s.tolist(), bias, epsilon).jsd[0] + 1e-9


def test_no_adam_run_beats_exact() -> None:
    for seed in range(4):
        seen = observed(seed=seed)
        dense = adam_adversaries(seen, starts_for(seen), 0.01, steps=300, rate=0.03, penalty=500)
        adam = farthest_feasible(seen, dense, 0.01, ceiling(seen))
        true = of_model(seen)
        assert (adam.jsd <= true.jsd + 1e-9).all()
        assert adam.jsd[4:].max() > 0.05  # it did find something


def test_the_model_itself_confirms_the_constraint() -> None:
    """Decoded by the model under the adversarial weights, markers and padding at 0."""
    model, batch = strong(), zoo.batch(LENGTHS)
    seen = PooledStates.observer(model)(np.arange(len(LENGTHS)), batch)
    assert isinstance(seen, PooledStates)
    found = of_model(seen)
    with torch.no_grad():
        output = model(batch)
        alpha = torch.zeros_like(output.alpha)
        alpha[:, 1 : 1 + found.alpha.shape[1]] = torch.from_numpy(found.alpha)
        p = model(batch, alpha=alpha).probabilities
    assert (p - output.probabilities)[:, 1].abs().max() <= 0.01 + 1e-12
    assert tvd(p, output.probabilities).numpy() == pytest.approx(found.delta_y, abs=1e-12)
    for row, n in enumerate(LENGTHS):
        words = output.alpha[row, 1 : n + 1].numpy()
        assert found.jsd[row] == pytest.approx(slow_jsd(found.alpha[row, :n], words / words.sum()), abs=1e-9)


def test_memory_is_bounded_without_changing_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    alpha, s = rng.dirichlet(np.ones(40), 6), np.round(rng.normal(size=(6, 40)), 1)
    real = np.arange(40) < np.array([40, 40, 31, 20, 5, 2])[:, None]
    alpha = np.where(real, alpha, 0) / np.where(real, alpha, 0).sum(1, keepdims=True)
    at_once = exact_adversary(alpha, s, 0.2, real, 0.01)
    alone = [exact_adversary(alpha[i : i + 1], s[i : i + 1], 0.2, real[i : i + 1], 0.01) for i in range(6)]
    monkeypatch.setattr(adversary_exact, "_CELLS", 1)
    in_pieces = exact_adversary(alpha, s, 0.2, real, 0.01)
    assert np.array_equal(at_once.alpha, in_pieces.alpha)
    assert np.array_equal(at_once.alpha, np.concatenate([one.alpha for one in alone]))


def test_jsd_is_ln_2_minus_what_shared_words_cost() -> None:
    rng = np.random.default_rng(1)
    a, p = rng.dirichlet(np.full(7, 0.4), 2)
    p[[1, 4]] = 0
    p /= p.sum()
    assert LN2 - phi(a, p).sum() == pytest.approx(slow_jsd(a, p), abs=1e-12)


def test_the_least_cost_of_each_row_is_the_first_of_equals() -> None:
    row, value = np.array([0, 0, 0, 2, 2, 5]), np.array([3.0, 1.0, 1.0, 4.0, 4.0, 0.0])
    assert adversary_exact.first_least(row, value).tolist() == [1, 3, 5]
    assert adversary_exact.first_least(row[:0], value[:0]).tolist() == []


def test_farthest_in_slab_with_no_bounds_is_the_least_attended_word() -> None:
    alpha = np.array([[0.2, 0.5, 0.3]])
    inf = np.array([np.inf])
    found = farthest_in_slab(alpha, np.zeros((1, 3)), np.ones((1, 3), bool), -inf, inf)
    assert found.dense(3).tolist() == [[1.0, 0.0, 0.0]]
