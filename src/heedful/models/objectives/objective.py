"""What training makes small. An objective is one small class and a line in registry.py (OBJECTIVES).

`loss` is asked once, before the first step, and gives the function that each step calls. A loss is a *sum* over the
examples of the batch, never a mean: a step of long texts is taken in parts whose gradients are added up. It may read
the per-token targets of a batch, and what trained models (`bases`) say of it; these stand still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.config import Config, RunConfig, TrainingConfig
from heedful.data.text.batching import Encoded
from heedful.models.link import LOG_ODDS
from heedful.models.network import Output, Trainable
from heedful.records import Batch
from heedful.registry import OBJECTIVES

# Of what the network says in a step: an `AttentiveOutput` of one of our classifiers, an `Output` of a checkpoint, with
# `attentions` where the objective reads them.
Loss = Callable[[Any, Batch], Tensor]
Bases = Mapping[str, Any]  # networks in evaluation mode, without gradients; they read the same word ids


class Objective(Protocol):
    """`config` holds its own settings (`training.objective_options`); unknown ones are refused.

    `version` changes whenever the same settings would give other weights. An objective whose loss reads
    `output.attentions` (batch, layers, heads, to, from) says so: `reads_attention = True`. One that scores say too
    little of names the `metric` that decides which epoch is kept: `metric = "dev_loss"`.
    """

    config: type[Config]
    version: str

    def bases(self, options: Any) -> Mapping[str, RunConfig | str]:
        """The trained models that it needs, by its own names for them: configurations, or run folders.

        Configurations are trained first, by the same command.
        """
        ...

    def loss(
        self, network: Trainable, train: Encoded, training: TrainingConfig, options: Any, bases: Bases
    ) -> Loss: ...


def parse_options(config: TrainingConfig) -> Config:
    """The settings of a configuration's objective, with every default, or what is wrong with them."""
    found = OBJECTIVES.find(config.objective)
    return found.config.parse(config.objective_options, f"the options of the objective {config.objective}")


def find_bases(config: TrainingConfig) -> Mapping[str, RunConfig | str]:
    """What has to be trained before."""
    return OBJECTIVES.find(config.objective).bases(parse_options(config))


def find_loss(network: Trainable, train: Encoded, config: TrainingConfig, bases: Bases) -> Loss:
    """The loss that a configuration asks for."""
    return OBJECTIVES.find(config.objective).loss(network, train, config, parse_options(config), bases)


def reads_attention(config: TrainingConfig) -> bool:
    """Whether the network is to tell its attention in each step; it costs a checkpoint time and memory."""
    return bool(getattr(OBJECTIVES.find(config.objective), "reads_attention", False))


def usual_metric(config: TrainingConfig) -> str | None:
    """What decides which epoch is kept, where the objective has a say in it."""
    found: str | None = getattr(OBJECTIVES.find(config.objective), "metric", None)
    return found


class BaseOptions(Config):
    base: RunConfig | str  # a configuration, or a run folder


class OfBase:
    """An objective that needs one trained model, which its options name."""

    def bases(self, options: Any) -> Mapping[str, RunConfig | str]:
        return {"base": options.base}


def label_weights(network: Trainable, train: Encoded, training: TrainingConfig) -> Tensor | None:
    """What a text of each label counts, (labels,); None: all the same."""
    assert train.labels is not None, "training needs labels"
    if not training.class_weights or network.has_query:
        return None
    counts = torch.from_numpy(np.bincount(train.labels, minlength=network.n_labels)).float().clamp(min=1)
    counts = counts.to(network.device)
    if network.link is LOG_ODDS:
        return torch.stack([torch.ones_like(counts[0]), counts[0] / counts[1]])  # N / N+ - 1
    return counts.sum() / (network.n_labels * counts)


class CrossEntropy:
    """Cross-entropy summed over the batch, as in the code of Jain & Wallace 2019.

    Two labels: positives weigh N / N+ - 1, so both classes weigh the same. More: each N / (labels N_c).
    Questions and inferences (a query) are not weighted.
    """

    config: type[Config] = Config
    version = "1"

    def bases(self, options: Config) -> Mapping[str, RunConfig | str]:
        return {}

    def loss(self, network: Trainable, train: Encoded, training: TrainingConfig, options: Config, bases: Bases) -> Loss:
        weight = label_weights(network, train, training)  # (labels,)
        if network.link is LOG_ODDS:
            positive = None if weight is None else weight[1]

            def binary(output: Output, batch: Batch) -> Tensor:
                assert batch.labels is not None
                target = batch.labels.to(output.logits.dtype).unsqueeze(-1)  # (batch, 1)
                return F.binary_cross_entropy_with_logits(output.logits, target, pos_weight=positive, reduction="sum")

            return binary

        def several(output: Output, batch: Batch) -> Tensor:
            assert batch.labels is not None
            return F.cross_entropy(output.logits, batch.labels, weight=weight, reduction="sum")

        return several


class WithTerm(CrossEntropy):
    """Cross-entropy and one more term, which is a sum over the examples, too."""

    def term(self, network: Trainable, train: Encoded, options: Any) -> Loss:
        """Asked once, as `loss` is: the function that each step calls."""
        raise NotImplementedError

    def loss(self, network: Trainable, train: Encoded, training: TrainingConfig, options: Any, bases: Bases) -> Loss:
        term = self.term(network, train, options)
        cross_entropy = super().loss(network, train, training, options, bases)
        return lambda output, batch: cross_entropy(output, batch) + term(output, batch)


CROSS_ENTROPY = CrossEntropy()
