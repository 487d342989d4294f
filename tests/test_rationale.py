"""Models that select their words: gates against integration, gradients against enumeration, nothing seen unselected."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import lsq_linear, minimize
from torch import Tensor
from torch.nn import functional as F

import heedful
import zoo
from commands import heedful as typed
from heedful.config import ModelConfig
from heedful.data.corpora.load import load
from heedful.data.text.batching import EVIDENCE
from heedful.explainers import EXPLAINERS
from heedful.models import build_network
from heedful.models.objectives.rationale import constant_loss, evidence_loss, reinforce, text_losses
from heedful.models.rationale.budget import fuse, select_budget, total_variation
from heedful.models.rationale.classifier import RationaleClassifier
from heedful.models.rationale.gates import BernoulliGates, log_probability
from heedful.models.rationale.kuma import HardKuma, expected_changes, expected_share
from heedful.records import Batch
from heedful.registry import RATIONALES

KINDS = tuple(RATIONALES)
each_kind = pytest.mark.parametrize("kind", KINDS)


def halves(model: RationaleClassifier, batch: Batch) -> RationaleClassifier:
    """The same with a threshold at which about half of the words are selected."""
    with torch.no_grad():
        model.selector.gates.threshold.fill_(model.probability(batch)[batch.passage.mask].median())
    return model


def network(kind: str = "hardkuma", labels: int = 2, **settings: Any) -> RationaleClassifier:
    config = ModelConfig(**{"embedding_dim": 6, "hidden_dim": 8, "rationale": kind, "rate": 0.4, **settings})
    made = build_network(config, zoo.N_WORDS, labels).double().eval()
    assert isinstance(made, RationaleClassifier)
    with torch.no_grad():
        for parameter in made.selector.parameters():
            parameter.mul_(8)  # so far apart that some words are selected and some are not
    return made


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (1.0, 3.0), (2.5, 0.4), (5.0, 4.0)])
def test_the_density_and_the_points_at_the_ends_have_the_mass_that_integration_finds(a: float, b: float) -> None:
    gate = HardKuma(torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64))

    def density(z: float) -> float:
        return float(gate.density(torch.tensor(z, dtype=torch.float64)))

    below = quad(density, gate.low, 0, limit=200)[0]
    between = quad(density, 0, 1)[0]
    above = quad(density, 1, gate.high, limit=200)[0]
    assert below == pytest.approx(float(gate.zero), abs=1e-6)
    assert above == pytest.approx(float(gate.one), abs=1e-6)
    assert below + between + above == pytest.approx(1, abs=1e-6)
    assert float(1 - gate.zero) == pytest.approx(between + above, abs=1e-6)  # expected L0 of one gate
    u = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
    drawn = gate.sample(u)
    assert float((drawn == 0).double().mean()) == pytest.approx(float(gate.zero), abs=2e-3)
    assert float((drawn == 1).double().mean()) == pytest.approx(float(gate.one), abs=2e-3)
    mean = quad(lambda z: z * density(z), 0, 1)[0] + float(gate.one)
    assert float(drawn.mean()) == pytest.approx(mean, abs=2e-3)


def test_expected_share_and_changes_are_those_of_all_selections() -> None:
    p = torch.tensor([[0.2, 0.9, 0.5, 0.7], [0.4, 0.1, 0.0, 0.0]], dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    for row, n in enumerate((4, 2)):
        share = changes = 0.0
        for z in product((0, 1), repeat=n):
            weight = float(np.prod([p[row, t] if z[t] else 1 - p[row, t] for t in range(n)]))
            share += weight * sum(z) / n
            changes += weight * sum(z[t] != z[t + 1] for t in range(n - 1)) / n
        assert float(expected_share(p, mask)[row]) == pytest.approx(share)
        assert float(expected_changes(p, mask)[row]) == pytest.approx(changes)


def test_expected_changes_of_hardkuma_gates_are_what_sampling_finds() -> None:
    a, b = torch.tensor([[0.5, 2.0, 0.9]], dtype=torch.float64), torch.tensor([[0.8, 0.5, 3.0]], dtype=torch.float64)
    gate, mask = HardKuma(a, b), torch.ones(1, 3, dtype=torch.bool)
    u = torch.from_numpy(np.random.default_rng(0).random((200_000, 3)))
    z = HardKuma(a.expand_as(u), b.expand_as(u)).sample(u) > 0
    found = (z[:, 1:] != z[:, :-1]).double().sum(1).mean() / 3
    assert float(expected_changes(1 - gate.zero, mask)) == pytest.approx(float(found), abs=3e-3)


def losses_of(model: RationaleClassifier, batch: Any, z: Tensor) -> Tensor:
    return text_losses(model.predict(batch, z), batch, None)


@pytest.mark.parametrize("baseline", [0.0, 0.7])
def test_reinforce_has_the_exact_gradient_in_expectation(baseline: float) -> None:
    """Over all 2^n selections of a tiny text: sum_z P(z) (estimate of z) is the gradient of sum_z P(z) loss(z)."""
    model, batch = network("bernoulli"), zoo.batch([4])
    gates = model.selector.gates
    assert isinstance(gates, BernoulliGates)
    mask = batch.passage.mask
    logit = gates.logit(model.selector(model.embed(batch.passage), batch.passage.present)).squeeze(-1)
    weights = list(gates.parameters())
    exact = torch.zeros((), dtype=torch.float64)
    estimates = [torch.zeros_like(weight) for weight in weights]
    for bits in product((0.0, 1.0), repeat=4):
        z = torch.zeros_like(logit)
        z[mask] = torch.tensor(bits, dtype=torch.float64)
        log_p = log_probability(logit, z, mask)  # (1,)
        loss = losses_of(model, batch, z).detach()
        exact = exact + (log_p.exp() * loss).sum()
        one = reinforce(loss, log_p, torch.tensor(baseline, dtype=torch.float64))
        assert float(one.detach()) == 0
        for total, part in zip(estimates, torch.autograd.grad(one.sum(), weights, retain_graph=True), strict=True):
            total += float(log_p.exp().detach()) * part
    for ours, theirs in zip(estimates, torch.autograd.grad(exact, weights), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-9)
        assert theirs.abs().max() > 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_total_variation_is_what_its_dual_says(seed: int) -> None:
    """x = y - D'u with the u of least ||y - D'u||, |u| <= weight: a least squares problem of SciPy."""
    rng = np.random.default_rng(seed)
    for n, weight in ((1, 0.5), (2, 0.3), (7, 0.4), (30, 1.5)):
        y = rng.normal(size=n)
        difference = np.diff(np.eye(n), axis=0)
        dual = lsq_linear(difference.T, y, (-weight, weight), tol=1e-14).x if n > 1 else np.zeros(0)
        np.testing.assert_allclose(total_variation(y, weight), y - difference.T @ dual, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_a_budget_is_the_minimum_that_optimisation_finds(seed: int) -> None:
    rng, n, budget, weight = np.random.default_rng(seed), 6, 2.0, 0.25
    s = rng.normal(size=n) * 2
    mask = torch.ones(1, n, dtype=torch.bool)
    ours = select_budget(torch.from_numpy(s)[None], mask, torch.tensor([budget]), weight)[0].numpy()

    def cost(m: Any) -> float:
        return float(0.5 * ((m - s) ** 2).sum() + weight * np.abs(np.diff(m)).sum())

    assert ours.min() >= 0
    assert ours.max() <= 1
    assert ours.sum() <= budget + 1e-9
    within: Any = {"type": "ineq", "fun": lambda m: budget - m.sum()}
    starts: list[Any] = [ours, *(rng.random((5, n)) * budget / n)]
    best = min(
        (minimize(cost, at, bounds=[(0, 1)] * n, constraints=[within], method="SLSQP") for at in starts),
        key=lambda found: float(found.fun),
    )
    assert cost(ours) <= best.fun + 1e-9


def test_gradients_of_the_sparse_selection_are_those_of_differences() -> None:
    s = torch.tensor([[1.3, 0.2, 0.9, -0.4, 0.6, 2.0]], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, True, True, True, False]])
    budget = torch.tensor([2.0], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: select_budget(x, mask, budget), (s,))
    assert torch.autograd.gradcheck(lambda x: fuse(x, mask, 0.15), (s,))
    assert torch.autograd.gradcheck(lambda x: select_budget(x, mask, budget, 0.15), (s,))


@each_kind
@pytest.mark.parametrize("encoder", zoo.ENCODER_NAMES)
def test_what_is_not_selected_has_no_part_in_the_answer(kind: str, encoder: str) -> None:
    dim = 8 if encoder == "none" else 6
    model, batch = network(kind, 3, encoder=encoder, embedding_dim=dim), zoo.batch([6, 3, 9], "several")
    mask = halves(model, batch).select(batch)
    assert ((mask == 0) | (mask == 1)).all()
    assert (mask[~batch.passage.mask] == 0).all()
    unselected = batch.passage.mask & (mask == 0)
    assert unselected.any()
    rng = torch.Generator().manual_seed(5)
    other = torch.randint(4, zoo.N_WORDS, batch.passage.ids.shape, generator=rng)
    assert (other != batch.passage.ids)[unselected].any()
    changed = replace(batch, passage=replace(batch.passage, ids=torch.where(unselected, other, batch.passage.ids)))
    with torch.no_grad():
        before, after = model.predict(batch, mask).logits, model.predict(changed, mask).logits
        assert torch.equal(before, after)
        assert torch.equal(model(batch).logits, before)
        everything = model.predict(batch, batch.passage.mask.to(mask)).logits
    assert not torch.equal(before, everything)


@each_kind
def test_a_text_alone_is_selected_as_among_others(kind: str) -> None:
    model, batch = network(kind), zoo.batch([5, 1, 8])
    together = halves(model, batch).select(batch)
    assert 0 < together.sum() < batch.passage.mask.sum()
    for i in range(3):
        alone = model.select(zoo.row(batch, i))
        assert torch.equal(together[i, : alone.shape[1]], alone[0])


@each_kind
def test_in_training_gates_are_drawn_and_gradients_reach_the_selector(kind: str) -> None:
    model, batch = network(kind).train(), zoo.batch([5, 8])
    evidence = batch.passage.mask & (torch.arange(batch.passage.ids.shape[1]) == 2)
    batch = replace(batch, labels=torch.tensor([0, 1]), targets={EVIDENCE: evidence})
    output = model.learn(batch)
    assert output.draw is not None
    loss = text_losses(output, batch, None)
    total = loss.sum()
    if output.draw.log_p is not None:
        total = total + reinforce(loss, output.draw.log_p, torch.tensor(0.0)).sum()
    if kind == "supervised":
        total = total + evidence_loss(output.draw.p, batch).sum()
    total.backward()  # type: ignore[no-untyped-call]
    for part in (model.selector, model.predictor):
        assert any(p.grad is not None and p.grad.abs().max() > 0 for p in part.parameters())


def test_the_sparse_selection_has_its_share_in_every_text() -> None:
    model, batch = network("sparse", rate=0.3), zoo.batch([10, 1, 7])
    assert model.select(batch).sum(1).tolist() == [3, 1, 2]


def test_the_threshold_leaves_the_rate() -> None:
    """As a mean over texts: the words of a short text weigh more."""
    gates, rng = BernoulliGates(4, 0.25, 0.0).double(), np.random.default_rng(0)
    texts = [torch.from_numpy(rng.random(n) ** 3) for n in rng.integers(3, 40, size=500)]
    weight = torch.cat([torch.full_like(p, 1 / len(p)) for p in texts]) / len(texts)
    gates.settle(torch.cat(texts), weight)
    shares = [float((p > gates.threshold).double().mean()) for p in texts]
    assert np.mean(shares) == pytest.approx(0.25, abs=0.002)


def test_a_constant_answer_has_the_weighted_entropy_of_the_labels() -> None:
    labels, weight = np.array([0, 0, 0, 1]), torch.tensor([1.0, 2.0])
    logits = torch.tensor([2.0 / 5]).logit()
    losses = F.binary_cross_entropy_with_logits(
        logits.expand(4), torch.from_numpy(labels).float(), pos_weight=weight[1], reduction="mean"
    )
    assert constant_loss(labels, weight, 2) == pytest.approx(float(losses), abs=1e-6)


def test_the_explainer_says_what_was_selected_and_refuses_what_failed() -> None:
    model, batch = network(), zoo.batch([5, 8])
    explainer, target = EXPLAINERS["rationale"], torch.tensor([0, 1])
    halves(model, batch)
    assert explainer.fits(model)
    scores = explainer.run(model, batch, target).passage
    assert torch.equal(scores > 0, model.select(batch) > 0)
    assert not explainer.needs <= zoo.network().can
    model.selector.constant.fill_(0.69)
    model.selector.loss.fill_(0.3)
    model.selector.share.fill_(0.41)
    assert not model.failure
    model.selector.share.fill_(0.95)  # nearly everything
    assert "selects 95.0%" in model.failure
    assert not explainer.fits(model)
    with pytest.raises(heedful.Mistake, match="failed to train"):
        explainer.run(model, batch, target)
    model.selector.share.fill_(0.4)
    model.selector.loss.fill_(0.69)
    assert "no better than a constant answer" in model.failure


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rate": 0.3}, "give rationale"),
        ({"rationale": "kuma"}, "no kind of rationale 'kuma'"),
        ({"rationale": "hardkuma", "rate": 1.5}, "less than 1"),
        ({"rationale": "hardkuma", "hierarchical": True}, "neither hierarchical"),
        ({"rationale": "hardkuma", "attention": "latent"}, "chooses one word"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(heedful.Mistake, match=told):
        heedful.train("planted", runs=tmp_path, **options)


def planted_texts() -> list[str]:
    return [example.passage.text for example in load("planted")["test"][:20]]


def test_a_run_is_trained_loaded_explained_and_asked(tmp_path: Path) -> None:
    sizes = ["--encoder", "average", "--epochs", "4", "--embedding-dim", "16", "--hidden-dim", "16"]
    rows = ["--set", "train_rows=1000", "--set", "test_rows=100", "--set", "dev_rows=100", "--learning-rate", "0.02"]
    said = typed("train", "planted", "--rationale", "supervised", "--rate", "0.1", *sizes, *rows, "--runs", tmp_path)
    assert "of the words (10% was asked for)" in said.stdout, said.stderr
    (folder,) = (path for path in tmp_path.iterdir() if (path / "config.json").is_file())
    assert "average-supervised" in folder.name
    model = heedful.load(folder)
    assert isinstance(model.network, RationaleClassifier)
    assert model.network.rate == 0.1
    texts = planted_texts()
    explained = heedful.explain(folder, texts, ["rationale", "gradient_x_input", "omission"])
    unselected = explained[0].attribution("rationale").scores["passage"] == 0
    assert unselected.any()
    assert not unselected.all()
    assert (explained[0].attribution("omission").scores["passage"][~unselected] != 0).any()
    other = tmp_path / "why.parquet"
    explained.save(other)
    assert heedful.Explanation.load(other)[0].attribution("rationale").kind == "selection"
    asked = typed("run", "rationales", folder, "--set", 'methods=["rationale","random"]')
    assert asked.returncode == 0, asked.stderr
