"""Where a model is sure, what a deletion changes is far below float32's resolution: it is kept, and ranked right."""

from __future__ import annotations

import copy
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

import zoo
from heedful.config import EncoderName
from heedful.experiments import find, to_table
from heedful.explainers.perturbation.occlusion import omission
from heedful.measure.rank import kendall
from heedful.models import AttentiveClassifier
from heedful.models.link import LOG_ODDS, SIGMOIDS, SOFTMAX, Link
from heedful.records import Batch


def _exp(x: float) -> Fraction:
    """e^x to some forty digits, by its series in rational numbers."""
    halved, term, total = Fraction(x) / 2**10, Fraction(1), Fraction(1)
    for k in range(1, 24):
        term = (term * halved / k).limit_denominator(10**60)
        total += term
    for _ in range(10):
        total = (total * total).limit_denominator(10**60)
    return total


def _softmax(logits: list[float]) -> list[Fraction]:
    powers = [_exp(z - max(logits)) for z in logits]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("sure", [0.0, 5.0, 16.5, 30.0])
def test_a_change_of_probabilities_has_its_digits(sure: float) -> None:
    """Against rational arithmetic: P - P' of a model that is as sure as 1 - 1e-13."""
    one, two = [sure, -0.5, 0.25], [sure + 0.03125, -0.25, 0.25]
    found = SOFTMAX.change(torch.tensor(one), torch.tensor(two))
    expected = [float(p - q) for p, q in zip(_softmax(one), _softmax(two), strict=True)]
    assert found.tolist() == pytest.approx(expected, rel=1e-9)
    assert float(SOFTMAX.size(found)) == pytest.approx(sum(map(abs, expected)) / 2, rel=1e-9)
    binary = LOG_ODDS.change(torch.tensor([sure]), torch.tensor([sure + 0.03125]))
    exact = float(_softmax([0.0, sure])[0] - _softmax([0.0, sure + 0.03125])[0])
    assert binary.tolist() == pytest.approx([exact, -exact], rel=1e-9)
    both = SIGMOIDS.change(torch.tensor([sure, 0.0]), torch.tensor([sure + 0.03125, 1.0]))
    assert both[0].item() == pytest.approx(-exact, rel=1e-9)
    assert both[1].item() == pytest.approx(0.5 - 1 / (1 + math.exp(-1)), rel=1e-9)


@pytest.mark.parametrize("link", [SOFTMAX, LOG_ODDS, SIGMOIDS])
def test_elsewhere_a_change_is_the_difference(link: Link) -> None:
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 7, 1 if link is LOG_ODDS else 3, dtype=torch.double, generator=generator)
    change = link.change(a, b)
    torch.testing.assert_close(change, link.probabilities(a) - link.probabilities(b))
    torch.testing.assert_close(link.size(change), link.distance(link.probabilities(a), link.probabilities(b)))
    assert torch.isfinite(link.change(torch.full_like(a, 800.0), torch.full_like(b, -800.0))).all()


def _sure(encoder: EncoderName, task: zoo.TaskName) -> AttentiveClassifier:
    """A float32 network whose logits are so far apart that most probabilities are 1 in float32."""
    model = zoo.network(encoder, task=task, seed=3).float()
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            parameter.mul_(60.0 if parameter.dim() > 1 else 200.0)
    return model


@pytest.mark.parametrize("task", ["binary", "several"])
@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average"])
def test_ranks_of_leave_one_out_are_those_of_a_float64_network(encoder: EncoderName, task: zoo.TaskName) -> None:
    """tau equals that of the network in float64, its changed texts read one by one.

    To seven digits: deleting either of two equal words is the same to an average, and rounding is not to rank them.
    """
    model, batch = _sure(encoder, task), zoo.batch([9, 14, 6, 12, 20])
    experiment = find("correlation")
    rows = to_table(experiment.run(model, [(np.arange(5), batch)], experiment.config(), np.random.default_rng(0)))
    pairs = np.array(rows["pair"])
    double = copy.deepcopy(model).double()
    scores = np.zeros(batch.passage.mask.shape)
    with torch.no_grad():
        before = double(batch)
        for row, place in batch.passage.mask.nonzero().tolist():
            after = double(Batch(zoo.without(zoo.rows(batch, [row]).passage, place)))
            change = double.link.size(double.link.change(before.logits[row], after.logits[0]))
            scores[row, place] = float(f"{float(change):.7g}")
        alpha = before.alpha.numpy()
    expected = kendall(alpha, scores, batch.passage.mask.numpy()).tau
    found = np.array(rows["tau"])[pairs == "attention/omission"]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_in_float32_the_probabilities_would_tie() -> None:
    """What the experiment did before: most deletions from such a text seem to change nothing."""
    model, batch = _sure("bilstm", "binary"), zoo.batch([9, 14, 6, 12, 20])
    with torch.no_grad():
        p = model(batch).probabilities
    assert bool((p.max(1).values == 1.0).any())
    change = omission(model, batch, p.argmax(1), change="tvd").passage
    assert bool((change[batch.passage.mask] > 0).all())
