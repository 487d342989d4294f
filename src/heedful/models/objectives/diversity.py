"""States that are not alike (Mohankumar et al. 2020, section 3.3): cross-entropy + lambda conicity(H).

If all states of a text point one way, its prediction hardly depends on the attention weights. The objective makes them
differ, so that the weights have something to choose from.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from heedful.config import Config
from heedful.data.text.batching import Encoded
from heedful.errors import Mistake
from heedful.models.attentive.classifier import AttentiveOutput
from heedful.models.attentive.hierarchical import HierarchicalOutput
from heedful.models.network import Network, Output, Trainable
from heedful.models.objectives.objective import Loss, WithTerm
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


# Conicity: how much alike the states of a text are (Mohankumar et al. 2020, section 3.1; Chandrahas et al. 2018).
#
#     conicity(H) = mean over t of |cos(h_t, mean_s h_s)|
#
# 1: all states point one way, so that every attention over them gives nearly the same context. n random directions
# in many dimensions have about 1 / sqrt(n). The absolute value is in the authors' code, not in the paper's formula.
# Only words count: neither markers nor padding.


def conicity(h: Tensor, mask: Tensor) -> Tensor:
    """h (batch, length, hidden), mask (batch, length) -> (batch,); 0 where there is no state."""
    h = h * mask.unsqueeze(-1)
    mean = h.sum(1, keepdim=True)  # (batch, 1, hidden): its length does not matter
    cosine = F.cosine_similarity(h, mean, dim=-1)  # (batch, length)
    return (cosine.abs() * mask).sum(1) / mask.sum(1).clamp(min=1)


def pooled_states(output: Output, batch: Batch) -> tuple[Tensor, Tensor] | None:
    """The states that attention pools and where they are, (batch, length, hidden) and (batch, length); those of the
    sentences in a hierarchical model; None where nothing is pooled."""
    if isinstance(output, HierarchicalOutput):
        return output.h, output.sentences.mask
    return (output.h, batch.passage.mask) if isinstance(output, AttentiveOutput) else None


def read_states(network: Network, batch: Batch, output: Output) -> tuple[Tensor, Tensor]:
    """`pooled_states`, or what comes out of the last layer of a transformer, at the tokens of words."""
    pooled = pooled_states(output, batch)
    if pooled is not None:
        return pooled
    if "self_attends" not in network.can:
        raise Mistake("conicity needs a model whose states can be read: one of heedful's own, or a transformer.")
    transformer: Any = network
    return transformer.states(batch)[:, -1, : batch.passage.ids.shape[1]], batch.passage.mask
