"""Models and batches for tests of adversarial attention."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

import zoo
from heedful.experiments.adversarial.adam import initial
from heedful.experiments.adversarial.exact import Adversary, exact_adversary
from heedful.experiments.edited_attention.observe import observer
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.models import AttentiveClassifier

Floats = NDArray[np.float64]
LENGTHS = [1, 2, 3, 5, 9, 14, 20, 4]


def strong(task: zoo.TaskName = "binary", seed: int = 3) -> AttentiveClassifier:
    """A random model with a peaked attention that has something to say."""
    model = zoo.network(task=task, seed=seed)
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            parameter.mul_(6)
        for parameter in model.attention.parameters():
            parameter.mul_(3)
    return model


def observed(task: zoo.TaskName = "binary", lengths: list[int] = LENGTHS, seed: int = 3) -> PooledStates:
    seen = observer(strong(task, seed))(np.arange(len(lengths)), zoo.batch(lengths, task))
    assert isinstance(seen, PooledStates)
    return seen


def starts_for(seen: PooledStates, k: int = 5) -> list[Floats]:
    return [initial(int(n), k, np.random.default_rng([7, i])) for i, n in enumerate(seen.n_words)]


def of_model(seen: PooledStates, epsilon: float = 0.01) -> Adversary:
    assert seen.decoder.theta is not None
    s = seen.projected.squeeze(-1).numpy()
    return exact_adversary(seen.alpha.numpy(), s, seen.decoder.theta.bias.item(), seen.real.numpy(), epsilon)
