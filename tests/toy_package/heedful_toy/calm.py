"""An objective: cross-entropy, and a penalty on attention that is far from the evidence, where that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from heedful.plugins import Batch, Config, WithTerm


class CalmConfig(Config):
    weight: float = 1.0


class Calm(WithTerm):
    config, version = CalmConfig, "1"

    def term(self, network: Any, train: Any, options: Any) -> Callable[[Any, Batch], Tensor]:
        def missed(output: Any, batch: Batch) -> Tensor:
            evidence = batch.targets["evidence"]  # (batch, length)
            total: Tensor = options.weight * (output.alpha * ~evidence).sum()
            return total

        return missed


CALM = Calm()
