"""Bounds of the epsilon-max JSD: each inequality against samples, the proof against the exact answer and attacks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog

import zoo
from adversaries import observed, of_model
from commands import script
from heedful.experiments.adversarial import proof as adversary_proof
from heedful.experiments.adversarial.bound import Tanh, directions, line_below, outputs, readouts, support, violated
from heedful.experiments.adversarial.exact import LN2, log_ratio, phi
from heedful.experiments.adversarial.proof import Proof, chord, most_weight
from heedful.experiments.adversarial.search import search_adversary, upper_bound
from heedful.experiments.edited_attention.observe import tvd
from heedful.experiments.edited_attention.pooled import PooledStates

Floats = NDArray[np.float64]
ATTACK = Path(__file__).parent.parent / "checks" / "attack_adversary.py"


def within(y: Floats, epsilon: float, n: int, rng: np.random.Generator) -> Floats:
    """Outputs q with TVD(q, y) <= epsilon, many of them at the border: (n, labels)."""
    q = rng.dirichlet(np.full(len(y), 0.3), n)
    far = 0.5 * np.abs(q - y).sum(1)
    step = np.minimum(1, epsilon / far) * rng.choice([1.0, 0.7], n)
    return np.asarray(y + step[:, None] * (q - y))


@pytest.mark.parametrize("seed", range(6))
def test_no_output_within_epsilon_is_beyond_the_support_of_a_direction(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, epsilon = rng.dirichlet(np.full(4, 0.7)), [0.01, 0.05, 0.2][seed % 3]
    v = rng.normal(size=(30, 4))
    v -= v.mean(1, keepdims=True)
    pairs, h_pairs = directions(y, np.ones(4, bool), epsilon)
    all_v, h = np.concatenate([v, pairs]), np.concatenate([support(v, y, epsilon), h_pairs])
    q = within(y, epsilon, 4000, rng)
    with np.errstate(divide="ignore"):
        reached = np.log(np.maximum(q, 0) / y) @ all_v.T  # (samples, directions)
    finite = np.isfinite(h)
    assert finite.any()
    assert (reached[:, finite] <= h[finite] + 1e-9).all()


def test_the_support_of_a_pair_of_labels_is_its_log_odds_slab() -> None:
    y, epsilon = np.array([0.6, 0.3, 0.1]), 0.05
    h = support(np.array([[1.0, -1.0, 0.0], [-1.0, 0.0, 1.0]]), y, epsilon)
    moved = [log_ratio(y[[i]], y[[j]], epsilon) - np.log(y[i] / y[j]) for i, j in ((0, 1), (2, 0))]
    assert h == pytest.approx(np.concatenate(moved))
    assert support(np.array([[1.0, 0.0, -1.0]]), y, 0.1).tolist() == [np.inf]  # label 2 may vanish


def test_labels_that_are_no_candidates_have_no_part() -> None:
    y, candidates = np.array([0.7, 0.0, 0.3]), np.array([True, False, True])
    v, h = directions(y, candidates, 0.05)
    assert len(v) >= 2
    assert (v[:, 1] == 0).all()
    assert np.isfinite(h).all()
    cut, _ = violated(np.array([0.5, 0.0, 0.5]), y, candidates, 0.05)
    assert cut.shape == (1, 3)


def test_lines_stay_on_their_side_of_tanh_and_touch_it() -> None:
    rng = np.random.default_rng(0)
    low = rng.normal(size=400) * 2
    high = low + rng.exponential(size=400) * rng.choice([0.01, 1.0, 3.0], 400)
    at = low + rng.random(400) * (high - low)
    x = low[:, None] + np.linspace(0, 1, 300) * (high - low)[:, None]  # (lines, places)
    for sign in (1.0, -1.0):
        slope, intercept = line_below(sign, low, high, at)
        room = sign * (np.tanh(x) - slope[:, None] * x - intercept[:, None])
        assert room.min() > -1e-9
        assert room.min(1).max() < 1e-3


def test_the_interval_of_a_feature_is_that_of_a_linear_program() -> None:
    rng = np.random.default_rng(1)
    states, q = rng.normal(size=(7, 3)), rng.normal(size=3)
    readout = Tanh(states, q, rng.normal(size=(4, 3)), rng.normal(size=4), rng.dirichlet(np.ones(7)))
    low, high = rng.random(7) * 0.1, 0.2 + rng.random(7) * 0.5
    least, most = readout.interval(low, high)
    box = list(zip(low.tolist(), high.tolist(), strict=True))
    for f in range(3):
        for sign, end in ((1.0, least), (-1.0, most)):
            solved = linprog(sign * states[:, f], A_eq=np.ones((1, 7)), b_eq=[1.0], bounds=box)
            assert end[f] == pytest.approx(sign * float(solved.fun or 0.0) + q[f], abs=1e-9)


def test_chords_lie_below_and_weights_are_limited_by_their_cost() -> None:
    a = np.array([0.001, 0.05, 0.3, 0.9])
    slope, fixed = chord(a, np.full(4, 0.1), np.full(4, 0.7))
    for p in np.linspace(0.1, 0.7, 50):
        assert (phi(a, p) >= slope * p + fixed - 1e-12).all()
    assert (phi(a, most_weight(a, 0.05)) >= 0.05 - 1e-9)[1:].all()


@pytest.mark.parametrize("task", ["binary", "several", "qa", "nli"])
def test_readouts_are_the_models_own(task: zoo.TaskName) -> None:
    seen = observed(task)
    candidates = np.ones(seen.y.shape, bool) if seen.candidates is None else seen.candidates.numpy()
    for i, readout in enumerate(readouts(seen)):
        n = int(seen.n_words[i])
        p = np.random.default_rng(i).dirichlet(np.ones(n))
        dense = torch.zeros(1, 1, seen.alpha.shape[1], dtype=torch.float64)
        dense[0, 0, :n] = torch.from_numpy(p)
        assert outputs(readout, p, candidates[i]) == pytest.approx(seen[i : i + 1].decode(dense)[0, 0].numpy())


def feasible(seen: PooledStates, epsilon: float, rng: np.random.Generator, n: int = 3000) -> Floats:
    """Random feasible distributions of the one text, as dense as sparse: (some, words)."""
    words = int(seen.n_words[0])
    drawn = np.concatenate([rng.dirichlet(np.full(words, c), n // 3) for c in (0.1, 0.4, 2.0)])
    own = seen.alpha[0, :words].numpy()
    tried = np.concatenate([own + step * (drawn - own) for step in (0.1, 0.4, 1.0)])
    p = torch.from_numpy(tried).unsqueeze(0)
    change = tvd(seen.readout(p @ seen.projected[:, :words]), seen.y.unsqueeze(1))[0].numpy()
    return np.asarray(tried[change <= epsilon])


@pytest.mark.parametrize("task", ["several", "qa", "nli"])
@pytest.mark.parametrize("seed", range(3))
def test_no_feasible_distribution_is_outside_the_inequalities(task: zoo.TaskName, seed: int) -> None:
    epsilon, rng = 0.1, np.random.default_rng(seed)
    seen = observed(task, [4, 6, 9], seed)
    candidates = np.ones(seen.y.shape, bool) if seen.candidates is None else seen.candidates.numpy()
    for i, readout in enumerate(readouts(seen)):
        part, y = seen[i : i + 1].shortened(), seen.y[i].numpy()
        v, h = directions(y, candidates[i], epsilon)
        words = int(part.n_words[0])
        low, high = np.zeros(words), np.ones(words)
        rows = readout.rows(v, h, low, high, rng.dirichlet(np.ones(words)))
        for p in feasible(part, epsilon, rng)[:300]:
            x = np.tanh(p @ readout.of_words + readout.q) if isinstance(readout, Tanh) else np.zeros(0)
            assert (rows.matrix @ np.concatenate([p, x]) <= rows.right + 1e-9).all()
            assert (x >= rows.low - 1e-9).all()
            assert (x <= rows.high + 1e-9).all()


@pytest.mark.parametrize("seed", range(4))
def test_branch_and_bound_confirms_the_exact_answer_of_two_labels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that shares neither vertices nor the proof of adversary_exact with the answer."""
    monkeypatch.setattr(adversary_proof, "PROVED", 1e-3)
    seen = observed(lengths=[2, 3, 6, 12, 20], seed=seed)
    true = of_model(seen)
    for i, readout in enumerate(readouts(seen)):
        own, y = seen.words(seen.alpha)[i], seen.y[i].numpy()
        bound = Proof(readout, own, y, np.ones(2, bool), 0.01, float(true.jsd[i])).bound(400)
        assert true.jsd[i] - 1e-6 <= bound <= true.jsd[i] + 1e-3 + 1e-6


@pytest.mark.parametrize("task", ["several", "qa", "nli"])
def test_an_attack_beats_few_answers_and_no_bound(task: zoo.TaskName, tmp_path: Path) -> None:
    seen = [observed(task, [3, 6, 10], seed) for seed in range(2)]
    torch.save(seen, tmp_path / "states.pt")
    done = script(ATTACK, "--states", tmp_path / "states.pt", "--epsilon", "0.01", "--starts", "2")
    assert done.returncode == 0, done.stderr
    answer, bound, best = (np.array(json.loads(done.stdout)[name]) for name in ("answer", "bound", "attack"))
    without = [upper_bound(states, 0.01) for states in seen]
    assert len(answer) == 6
    assert (best <= bound + 1e-9).all()
    assert (bound <= LN2).all()
    assert (best > answer + 0.005).mean() <= 0.1
    assert bound.mean() < np.concatenate(without).mean() - 0.01


def test_more_linear_programs_never_loosen_a_bound_and_none_leave_it_alone() -> None:
    seen = observed("nli", [8, 12, 15], 1)
    none, some, more = (search_adversary(seen, 0.002, programs=n) for n in (0, 3, 60))
    assert np.array_equal(none.jsd, more.jsd)
    assert (more.bound <= some.bound + 1e-9).all()
    assert (some.bound <= none.bound + 1e-9).all()
    assert more.bound.sum() < none.bound.sum() - 0.01
