"""The self-attention inside our own `transformer` encoder, as a network of its own whose heads can be read and edited.

The classifier around it pools by one attention, and that is what its `attentions` and `edit` mean. Who asks about the
heads of the encoder (the server's view of heads, the experiment `heads`) asks this network, in which the pooling stays
what the model makes of the edited states.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from heedful.models.attentive.classifier import AttentiveClassifier
from heedful.models.attentive.encoders import Transformer
from heedful.models.network import Edit, Network, Output
from heedful.records import Batch


class EncoderHeads:
    can: ClassVar[frozenset[str]] = frozenset({"predicts", "attends", "self_attends", "edits_attention"})
    has_query = False

    def __init__(self, network: AttentiveClassifier, encoder: Transformer) -> None:
        self.network, self.encoder = network, encoder
        self.n_labels, self.link = network.n_labels, network.link

    @property
    def device(self) -> torch.device:
        return self.network.device

    @property
    def dtype(self) -> torch.dtype:
        return self.network.dtype

    @property
    def bytes_per_token(self) -> int:
        return self.network.bytes_per_token

    def __call__(self, batch: Batch, *, edit: Edit | None = None, **given: Any) -> Output:
        """Without `edit` the classifier's own output, to the last bit."""
        if edit is None:
            return self.network(batch, **given)
        h = self.encoder(self.network.embed(batch.passage), batch.passage.present, edit=edit)
        alpha = self.network.attend(h, batch.passage.mask)
        return Output(self.network.decode(h, alpha, None, batch.candidates), self.link)

    @torch.no_grad()
    def attentions(self, batch: Batch, layer: int | None = None) -> Tensor:
        """(batch, layers, heads, to, from); 0 at padding. `layer`: of this one alone."""
        seen: list[Tensor] = []

        def note(number: int, weights: Tensor) -> Tensor:
            seen.append(weights)
            return weights

        present = batch.passage.present
        self.encoder(self.network.embed(batch.passage), present, edit=note)
        wanted = seen if layer is None else [seen[layer]]
        return torch.stack(wanted, dim=1) * present[:, None, None, :, None]

    @torch.no_grad()
    def states(self, batch: Batch, *, edit: Edit | None = None) -> Tensor:
        """What goes into the first block, and what comes out of each: (batch, layers + 1, length, hidden)."""
        states: list[Tensor] = []
        self.encoder(self.network.embed(batch.passage), batch.passage.present, edit=edit, states=states)
        return torch.stack(states, dim=1)


def self_attending(network: Network) -> Network | None:
    """The network whose layers self-attend: itself, or the transformer inside our classifier; None: there is none."""
    if "self_attends" in network.can:
        return network
    if type(network) is AttentiveClassifier and isinstance(network.encoder, Transformer) and not network.has_query:
        return EncoderHeads(network, network.encoder)
    return None
