"""Fit a classifier as Jain & Wallace did: Adam with amsgrad, the best epoch on dev is kept.

`fit` is a generator: it trains one epoch, yields what happened, and touches no file, so whoever calls it
decides about progress bars, checkpoints and when to stop. Randomness comes from (seed, epoch) alone, so a
run that is resumed after any epoch ends with the same bits as one that never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.config import TrainingConfig
from heedful.data.batching import Encoded, Ints, cut
from heedful.measure.performance import performance
from heedful.models.classifier import AttentiveClassifier
from heedful.models.link import LOG_ODDS
from heedful.models.network import Network
from heedful.models.objectives import find_loss

Weights = dict[str, Tensor]
TOKEN_BUDGET = 2**14  # tokens of a batch when only predictions are wanted
NONE: Mapping[str, AttentiveClassifier] = MappingProxyType({})
STEP_TOKENS = 80_000  # of one backward pass: a step with more is taken in parts, so long texts cost no memory


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch brought."""

    epoch: int  # from 1
    loss: float  # mean over the training examples, class weights included
    dev: dict[str, float]  # every score of measure.performance
    score: float  # the one that decides
    best: bool  # better than every epoch before
    seconds: float


@dataclass
class TrainingState:
    """Where training stands after an epoch: all that is needed to go on, or to stop with the best."""

    history: list[Epoch] = field(default_factory=list)
    weights: Weights = field(default_factory=dict)  # after the last epoch
    best: Weights = field(default_factory=dict)  # after the best epoch
    optimiser: Weights = field(default_factory=dict)  # "<parameter>/<exp_avg | ...>"

    @property
    def best_score(self) -> float:
        return max((epoch.score for epoch in self.history), default=-float("inf"))


def fit(
    model: AttentiveClassifier,
    train: Encoded,
    dev: Encoded,
    config: TrainingConfig,
    seed: int,
    state: TrainingState | None = None,
    on_step: Callable[[int, float], None] = lambda examples, loss: None,
    bases: Mapping[str, AttentiveClassifier] = NONE,
) -> Iterator[TrainingState]:
    """Train `model` in place and yield the state after each epoch; it ends with the best weights.

    `config.objective` says what is made small; `bases` are the trained models that it needs, by its names for them.

    Stops before `config.epochs` when nothing can improve: the dev score is perfect, or `config.patience`
    epochs brought nothing better. The score of an epoch is that of dev, or with metric "loss" minus its loss.
    """
    metric = config.metric or ("roc_auc" if model.link is LOG_ODDS else "accuracy")
    loss_of = find_loss(model, train, config, bases)
    optimiser = make_optimiser(model, config)
    state, lengths = state or TrainingState(), train.lengths
    if state.history:
        model.load_state_dict(state.weights)
        restore(optimiser, model, state.optimiser)
    while not finished(state, config):
        number = len(state.history) + 1
        began = time.perf_counter()
        total = 0.0
        model.train()
        rng = np.random.default_rng([seed, number])
        for indices in cut(lengths, config.batch_size, rng):
            optimiser.zero_grad()
            summed = 0.0
            for part in parts(indices, lengths):
                batch = train.batch(part)
                loss = loss_of(model(batch), batch)
                loss.backward()  # type: ignore[no-untyped-call]
                summed += loss.item()
            optimiser.step()
            total += summed
            on_step(len(indices), summed / len(indices))
        model.eval()
        assert dev.labels is not None
        scores = performance(dev.labels, predict(model, dev))
        mean_loss = total / len(train)
        score = -mean_loss if metric == "loss" else scores[metric]
        better = score > state.best_score
        epoch = Epoch(number, mean_loss, scores, score, better, time.perf_counter() - began)
        weights = copy(model.state_dict())
        state = TrainingState(
            history=[*state.history, epoch],
            weights=weights,
            best=weights if better or not state.best else state.best,
            optimiser=snapshot(optimiser, model),
        )
        yield state
    model.load_state_dict(state.best)
    model.eval()


def parts(indices: Ints, lengths: Ints) -> list[Ints]:
    """A step's examples in as few equal parts as STEP_TOKENS allows: one, but for long texts.

    Every loss is a sum over the examples, so the gradients of the parts add up to that of the step.
    """
    tokens = len(indices) * int(lengths[indices].max())
    return np.array_split(indices, min(len(indices), -(-tokens // STEP_TOKENS)))


def finished(state: TrainingState, config: TrainingConfig) -> bool:
    """No epoch is left, or none that is left could be better (the earliest of equal epochs is kept)."""
    if len(state.history) >= config.epochs or (config.metric != "loss" and state.best_score >= 1.0):
        return True
    since = next((i for i, epoch in enumerate(reversed(state.history)) if epoch.best), 0)
    return config.patience is not None and since >= config.patience


def predict(model: Network, encoded: Encoded) -> NDArray[np.float64]:
    """Probabilities (examples, labels), in the order of the examples."""
    result = np.empty((len(encoded), model.n_labels))
    with torch.inference_mode():
        for indices, batch in encoded.batches(512, token_budget=TOKEN_BUDGET):
            result[indices] = model(batch).probabilities.double().cpu().numpy()
    return result


def make_optimiser(model: AttentiveClassifier, config: TrainingConfig) -> torch.optim.Adam:
    """Adam with amsgrad, fused: one pass over the weights. Attention has no weight decay, as published.

    Unfused Adam makes a dozen passes over the embedding table, which costs more than the gradient itself.
    """
    model.embedding.weight.requires_grad_(config.train_embeddings)
    attention = [p for name, p in model.named_parameters() if name.partition(".")[0].endswith("attention")]
    held = {id(parameter) for parameter in attention}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in held]
    groups = [{"params": rest, "weight_decay": config.weight_decay}]
    if attention:
        groups.append({"params": attention, "weight_decay": 0.0})
    return torch.optim.Adam(groups, lr=config.learning_rate, amsgrad=True, fused=True)


def copy(weights: Weights) -> Weights:
    """Wherever they are, a copy in the CPU's memory."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in weights.items()}


def snapshot(optimiser: torch.optim.Adam, model: AttentiveClassifier) -> Weights:
    """The optimiser's memory by parameter name."""
    return copy(
        {
            f"{name}/{key}": tensor
            for name, parameter in model.named_parameters()
            for key, tensor in optimiser.state.get(parameter, {}).items()
        }
    )


def restore(optimiser: torch.optim.Adam, model: AttentiveClassifier, memory: Weights) -> None:
    parameters = dict(model.named_parameters())
    for key, tensor in copy(memory).items():
        name, what = key.rsplit("/", 1)
        optimiser.state[parameters[name]][what] = tensor.to(parameters[name].device)
