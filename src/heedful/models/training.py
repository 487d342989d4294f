"""Fit a classifier as Jain & Wallace did: Adam with amsgrad, the best epoch on dev is kept. Checkpoints are fine-tuned
by the same loop, with AdamW and a rate that rises and falls.

`fit` is a generator: it trains one epoch, yields what happened, and touches no file, so whoever calls it
decides about progress bars, checkpoints and when to stop. Randomness comes from (seed, epoch) alone, so a
run that is resumed after any epoch ends with the same bits as one that never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.config import TrainingConfig
from heedful.data.text.batching import Encoded, Ints, Texts, cut, cut_sorted
from heedful.errors import Mistake
from heedful.measure.performance import performance
from heedful.models.link import LOG_ODDS
from heedful.models.network import Network, Trainable, token_budget
from heedful.models.objectives.objective import Bases, Loss, find_loss, reads_attention, usual_metric

Weights = dict[str, Tensor]
TOKEN_BUDGET = 2**14  # tokens of a batch when only predictions are wanted
NONE: Bases = MappingProxyType({})
STEP_TOKENS = 80_000  # of one backward pass: a step with more is taken in parts, so long texts cost no memory


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one epoch brought."""

    epoch: int  # from 1
    loss: float  # mean over the training examples, class weights included
    dev: dict[str, float]  # every score of measure.performance
    score: float  # the one that decides; a loss with a minus
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
        """Of those that may be kept."""
        return max((epoch.score for epoch in self.history if epoch.best), default=-float("inf"))


def fit(
    model: Trainable,
    train: Encoded,
    dev: Encoded,
    config: TrainingConfig,
    seed: int,
    state: TrainingState | None = None,
    on_step: Callable[[int, float], None] = lambda examples, loss: None,
    bases: Bases = NONE,
) -> Iterator[TrainingState]:
    """Train `model` in place and yield the state after each epoch; it ends with the best weights.

    `config.objective` says what is made small; `bases` are the trained models that it needs, by its names for them.

    Stops before `config.epochs` when nothing can improve: the dev score is perfect, or `config.patience`
    epochs brought nothing better. The score of an epoch is that of dev, or minus a loss.
    """
    metric = config.metric or usual_metric(config) or ("roc_auc" if model.link is LOG_ODDS else "accuracy")
    loss_of, attention = find_loss(model, train, config, bases), reads_attention(config)
    module: nn.Module = model.module
    optimiser = make_optimiser(model, config)
    state, lengths = state or TrainingState(), train.lengths
    # layers of self-attention keep far more for each token than ours do
    most = token_budget(model, STEP_TOKENS) if "self_attends" in model.can else STEP_TOKENS
    dev = hidden_words(dev, config, seed, 0)
    if state.history:
        module.load_state_dict(state.weights)
        restore(optimiser, module, state.optimiser)
    while not finished(state, config):
        number = len(state.history) + 1
        began = time.perf_counter()
        total = 0.0
        module.train()
        texts = hidden_words(train, config, seed, number)
        rate = learning_rate(state, config)
        steps = cut_steps(train, config, np.random.default_rng([seed, number]))
        with dropout_of(seed, number):
            for step, indices in enumerate(steps, (number - 1) * len(steps)):
                optimiser.zero_grad()
                summed = 0.0
                for part in parts(indices, lengths, most):
                    batch = texts.batch(part)
                    loss = loss_of(model.learn(batch, attention), batch)
                    (loss / len(indices) if config.as_published.reduction == "mean" else loss).backward()  # type: ignore[no-untyped-call]
                    summed += loss.item()
                take_step(optimiser, config, rate, step, config.epochs * len(steps), len(indices))
                total += summed
                on_step(len(indices), summed / len(indices))
        module.eval()
        if "selects" in model.can:  # its threshold follows from its weights
            settled: Any = module
            settled.settle(train)
        assert dev.labels is not None
        scores = performance(dev.labels, predict(model, dev))
        mean_loss = total / len(train)
        if metric == "dev_loss":
            score = -loss_on(model, dev, loss_of, attention, most)
        else:
            score = -mean_loss if metric == "loss" else scores[metric]
        better = score > state.best_score and number >= config.as_published.keep_from
        epoch = Epoch(number, mean_loss, scores, score, better, time.perf_counter() - began)
        weights = copy(module.state_dict())
        state = TrainingState(
            history=[*state.history, epoch],
            weights=weights,
            best=weights if better or not state.best else state.best,
            optimiser=snapshot(optimiser, module),
        )
        yield state
    module.load_state_dict(state.best)
    module.eval()


def cut_steps(train: Encoded, config: TrainingConfig, rng: np.random.Generator) -> list[Ints]:
    """The texts of each step of an epoch."""
    if config.as_published.batches == "sorted":
        return cut_sorted(train.passages.lengths, config.batch_size, rng)
    return cut(train.lengths, config.batch_size, rng)


@torch.no_grad()
def loss_on(model: Trainable, encoded: Encoded, loss_of: Loss, attention: bool, most: int) -> float:
    """The mean over examples."""
    batches = (batch for _, batch in encoded.batches(512, token_budget=min(TOKEN_BUDGET, most)))
    return sum(loss_of(model.learn(batch, attention), batch).item() for batch in batches) / len(encoded)


def learning_rate(state: TrainingState, config: TrainingConfig) -> float:
    """Of the next epoch. It follows from the epochs before, so a run that is resumed has it, too."""
    worse = sum(not epoch.best for epoch in state.history) if config.halve_rate else 0
    return config.learning_rate * 0.5**worse


def hidden_words(encoded: Encoded, config: TrainingConfig, seed: int, epoch: int) -> Encoded:
    """The texts as an epoch reads them: in each other words are hidden, where that was asked for."""
    if not config.mask_words:
        return encoded
    return hide_words(encoded, config.mask_words, np.random.default_rng([seed, epoch, 1]))


@contextmanager
def dropout_of(seed: int, epoch: int) -> Iterator[None]:
    """Chance inside a network (dropout) comes from (seed, epoch), too; the process's own generator is left alone."""
    with torch.random.fork_rng():
        torch.manual_seed(int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0]))
        yield


def take_step(
    optimiser: torch.optim.Optimizer, config: TrainingConfig, rate: float, step: int, steps: int, examples: int
) -> None:
    """Step number `step` of `steps`, at the part of the epoch's `rate` that is due there."""
    due = 1.0
    if config.warm_up is not None:
        due = min((step + 1) / (config.warm_up * steps + 1), (steps - step) / steps)
    for group in optimiser.param_groups:
        group["lr"] = rate * due
    if config.clip is not None:  # of the mean over the examples
        learnt = [p for group in optimiser.param_groups for p in group["params"]]
        torch.nn.utils.clip_grad_norm_(
            learnt, config.clip * (examples if config.as_published.reduction == "sum" else 1)
        )
    optimiser.step()


def parts(indices: Ints, lengths: Ints, most: int = STEP_TOKENS) -> list[Ints]:
    """A step's examples in as few equal parts as `most` tokens allow: one, but for long texts.

    Every loss is a sum over the examples, so the gradients of the parts add up to that of the step.
    """
    tokens = len(indices) * int(lengths[indices].max())
    return np.array_split(indices, min(len(indices), -(-tokens // most)))


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


def make_optimiser(model: Trainable, config: TrainingConfig) -> torch.optim.Optimizer:
    """Adam with amsgrad, or AdamW; fused: one pass over the weights. Attention has no weight decay, as published.

    Unfused Adam makes a dozen passes over the embedding table, which costs more than the gradient itself.
    """
    model.embedding.weight.requires_grad_(config.train_embeddings)
    names = {name: p for name, p in model.module.named_parameters() if p.requires_grad}
    adamw = config.optimiser == "adamw"
    decayed = config.as_published.attention_decay
    without = {n for n, p in names.items() if (p.dim() < 2 if adamw else not decayed and _is_attention(n))}
    groups = [
        {"params": [p for name, p in names.items() if name not in without], "weight_decay": config.weight_decay},
        {"params": [p for name, p in names.items() if name in without], "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    if adamw:
        return torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)
    return torch.optim.Adam(groups, lr=config.learning_rate, amsgrad=True, fused=True)


def _is_attention(name: str) -> bool:
    return name.partition(".")[0].endswith("attention")


def copy(weights: Weights) -> Weights:
    """Wherever they are, a copy in the CPU's memory."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in weights.items()}


def snapshot(optimiser: torch.optim.Optimizer, module: nn.Module) -> Weights:
    """The optimiser's memory by parameter name."""
    return copy(
        {
            f"{name}/{key}": tensor
            for name, parameter in module.named_parameters()
            for key, tensor in optimiser.state.get(parameter, {}).items()
        }
    )


def restore(optimiser: torch.optim.Optimizer, module: nn.Module, memory: Weights) -> None:
    parameters = dict(module.named_parameters())
    for key, tensor in copy(memory).items():
        name, what = key.rsplit("/", 1)
        optimiser.state[parameters[name]][what] = tensor.to(parameters[name].device)


# Words hidden at random before training, so that texts with hidden words are inside what a model knows.
#
# Madsen et al. 2024 ("Faithfulness measurable masked language models"), section 3.1: half of the texts of a batch
# are left as they are; of each of the others a share of the words, drawn uniformly between 0 and 1, is replaced by
# the mask.


def hide_words(encoded: Encoded, share: float, rng: np.random.Generator) -> Encoded:
    """Of this share of the texts some words are hidden; queries stay as they are."""
    return replace(encoded, passages=_hide(encoded.passages, share, rng))


def _hide(texts: Texts, share: float, rng: np.random.Generator) -> Texts:
    hidden_id = texts.reserved.replacement
    if hidden_id is None:
        raise Mistake("this model has neither a mask nor an unknown word to hide words by.")
    n = len(texts.lengths)
    rate = np.where(rng.random(n) < share, rng.random(n), 0.0)  # (texts,) of its words
    text = np.repeat(np.arange(n), texts.lengths)  # (all tokens,) texts stand one after the other
    place = np.arange(len(texts.flat)) - texts.begins[text]
    is_word = (place > 0) & (place < texts.lengths[text] - 1) if texts.word is None else texts.word
    number = place if texts.word_index is None else texts.word_index
    begins = (np.diff(text, prepend=-1) != 0) | (np.diff(number, prepend=-2) != 0)  # of a word: pieces go together
    drawn = rng.random(int(begins.sum()))[np.cumsum(begins) - 1]  # (all tokens,)
    hidden = is_word & (drawn < rate[text])
    return replace(texts, flat=np.where(hidden, hidden_id, texts.flat))
