"""Teacher forcing: cross-entropy of each token after those that should have come before it, with label smoothing.

Tokens count alike, so the loss of a step is their mean. The epoch with the least perplexity on dev is kept; training
ends when `patience` epochs brought no better one. `fit_translator` yields after each epoch and touches no file.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.data.text.batching import Ints, Texts, cut
from heedful.models.training import Weights, copy, dropout_of
from heedful.models.translation.config import TranslatorTraining
from heedful.models.translation.network import Translator
from heedful.models.translation.text import TranslationText

TOKENS = 2**13  # of a pass when only perplexity is wanted


@dataclass(frozen=True, slots=True, eq=False)
class TrainingPairs:
    """Sources and what is to be said of them, as ids."""

    sources: Texts
    targets: Texts  # <s> first, without an end

    @classmethod
    def encode(cls, sources: Sequence[str], targets: Sequence[str], text: TranslationText) -> TrainingPairs:
        return cls(text.texts_of(text.ids([*sources]), "passage"), text.texts_of(text.ids([*targets]), "query"))

    def __len__(self) -> int:
        return len(self.sources.lengths)

    @property
    def lengths(self) -> Ints:
        return self.sources.lengths + self.targets.lengths


@dataclass(frozen=True, slots=True)
class TranslatorEpoch:
    epoch: int  # from 1
    loss: float  # a token's, smoothed
    perplexity: float  # of dev
    best: bool
    seconds: float


def fit_translator(
    network: Translator,
    train: TrainingPairs,
    dev: TrainingPairs,
    config: TranslatorTraining,
    seed: int,
    on_step: Callable[[int, float], None] = lambda sentences, loss: None,
) -> Iterator[TranslatorEpoch]:
    """Train in place; it ends with the weights of the best epoch."""
    optimiser = torch.optim.Adam(network.parameters(), lr=config.learning_rate, fused=True)
    best: Weights = {}
    least, since = math.inf, 0
    for number in range(1, config.epochs + 1):
        began, total, tokens = time.perf_counter(), 0.0, 0
        network.train()
        with dropout_of(seed, number):
            for indices in cut(train.lengths, config.batch_size, np.random.default_rng([seed, number])):
                optimiser.zero_grad()
                summed, n = token_loss(network, train, indices, config.label_smoothing)
                (summed / n).backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip)
                optimiser.step()
                total, tokens = total + summed.item(), tokens + n
                on_step(len(indices), summed.item() / n)
        network.eval()
        found = perplexity(network, dev)
        better = found < least
        if better:
            least, since, best = found, 0, copy(network.state_dict())
        else:
            since += 1
            if config.halve_rate:
                for group in optimiser.param_groups:
                    group["lr"] /= 2
        yield TranslatorEpoch(number, total / max(1, tokens), found, better, time.perf_counter() - began)
        if since >= config.patience:
            break
    if best:
        network.load_state_dict(best)
    network.eval()


def token_loss(network: Translator, pairs: TrainingPairs, indices: Ints, smoothing: float = 0.0) -> tuple[Tensor, int]:
    """The summed loss of all tokens and their number; the end is one of them."""
    source, said = (part.tokens(indices).to(network.device) for part in (pairs.sources, pairs.targets))
    o, _ = network.steps(network.read(source), network.embed(said))
    there = said.present
    following = torch.cat([said.ids[:, 1:], said.ids[:, :1]], 1)  # what comes after each token
    last = there.sum(1, keepdim=True) - 1
    following = following.scatter(1, last, network.end)
    loss = F.cross_entropy(network.logits(o[there]), following[there], label_smoothing=smoothing, reduction="sum")
    return loss, int(there.sum())


@torch.no_grad()
def perplexity(network: Translator, pairs: TrainingPairs) -> float:
    """exp of the mean loss of a token, the end included."""
    total, tokens = 0.0, 0
    for indices in cut(pairs.lengths, 512, token_budget=TOKENS):
        summed, n = token_loss(network, pairs, indices)
        total, tokens = total + summed.item(), tokens + n
    return math.exp(min(total / max(1, tokens), 700.0))
