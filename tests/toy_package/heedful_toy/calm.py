"""An objective: cross-entropy, and a penalty on attention that is far from the evidence, where that is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from heedful.config import Config
from heedful.registry import OBJECTIVES


class CalmConfig(Config):
    weight: float = 1.0


class Calm:
    config, version = CalmConfig, "1"

    def bases(self, options: CalmConfig) -> Mapping[str, Any]:
        return {}

    def loss(self, network: Any, train: Any, training: Any, options: CalmConfig, bases: Any) -> Any:
        usual = OBJECTIVES.find("cross_entropy")
        entropy = usual.loss(network, train, training, usual.config(), bases)

        def loss(output: Any, batch: Any) -> Tensor:
            evidence = batch.targets["evidence"]  # (batch, length)
            missed = (output.alpha * ~evidence).sum()
            total: Tensor = entropy(output, batch) + options.weight * missed
            return total

        return loss


CALM = Calm()
