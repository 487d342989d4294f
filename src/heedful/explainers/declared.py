"""How many passes explainers declare for the texts of a batch, without explaining them."""

from __future__ import annotations

from typing import Any

from heedful.explainers.attention.self_attention import present_places
from heedful.explainers.explainer import Size
from heedful.explainers.gradients.gradient import explained_parts
from heedful.explainers.perturbation.occlusion import n_words
from heedful.models.network import Network
from heedful.records import Batch


def sizes_of(network: Network, batch: Batch, heads: int = 1) -> list[Size]:
    """Of each text, by what the explainers with their defaults explain of it."""
    parts = [
        tokens
        for name in explained_parts(network, batch, "both")
        if (tokens := batch.passage if name == "passage" else batch.query) is not None
    ]
    words = [n_words(tokens).tolist() for tokens in parts]
    places = present_places(batch).sum(1).tolist()
    return [Size(tuple(n), tokens, heads) for n, tokens in zip(zip(*words, strict=True), places, strict=True)]


def heads_of(network: Any, batch: Batch) -> int:
    """Of one layer, by one pass of a batch; 1 where the model has no attention that can be read."""
    return int(network.attentions(batch).shape[2]) if "attends" in network.can else 1
