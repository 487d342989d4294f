"""States that are not alike (Mohankumar et al. 2020, section 3.3): cross-entropy + lambda conicity(H).

If all states of a text point one way, its prediction hardly depends on the attention weights. The objective makes them
differ, so that the weights have something to choose from.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor

from heedful.config import Config
from heedful.data.batching import Encoded
from heedful.errors import Mistake
from heedful.models.conicity import conicity, pooled_states
from heedful.models.network import Output, Trainable
from heedful.models.objectives import Loss, WithTerm
from heedful.records import Batch


class DiversityOptions(Config):
    lambda_: float = Field(default=0.5, ge=0)  # .5 in the authors' code, .1 on SNLI, .2 on CNN


class Diversity(WithTerm):
    config = DiversityOptions
    version = "1"

    def term(self, network: Trainable, train: Encoded, options: Any) -> Loss:

        def term(output: Output, batch: Batch) -> Tensor:
            states = pooled_states(output, batch)
            if states is None:
                raise Mistake("diversity is of the states that attention pools, and this model pools none.")
            cost: Tensor = options.lambda_ * conicity(*states).sum()
            return cost

        return term


DIVERSITY = Diversity()
