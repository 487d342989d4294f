"""Controls: scores that know nothing of the model. A method that does no better than these says nothing."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from heedful.errors import Mistake
from heedful.explainers.explainer import Explainer, Passes, Scores
from heedful.records import Batch, Tokens

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Network


def random(model: Network, batch: Batch, target: Tensor, *, seed: int = 0) -> Scores:
    """Uniform in [0, 1) for each word, drawn for each text from `seed` and the text itself."""
    import torch

    rngs = [text_rng(batch, row, seed) for row in range(len(batch))]

    def drawn(tokens: Tokens) -> Tensor:
        scores = np.zeros(tuple(tokens.ids.shape))
        for row, mask in enumerate(tokens.mask.cpu().numpy()):
            scores[row, mask] = rngs[row].random(mask.sum())
        return torch.from_numpy(scores).to(device=model.device, dtype=model.dtype)

    passage = drawn(batch.passage)
    return Scores(passage=passage, query=None if batch.query is None else drawn(batch.query))


def uniform(model: Network, batch: Batch, target: Tensor) -> Scores:
    """1 / n for each of the n words of a text."""

    def even(tokens: Tokens) -> Tensor:
        words = tokens.mask.to(device=model.device, dtype=model.dtype)  # (batch, length)
        return words / words.sum(1, keepdim=True).clamp(min=1)

    return Scores(passage=even(batch.passage), query=None if batch.query is None else even(batch.query))


def text_rng(batch: Batch, row: int, seed: int) -> np.random.Generator:
    """A generator for one text: the same alone and in any batch, another for another text or seed."""
    if seed < 0:
        raise Mistake(f"seed must be 0 or more, not {seed}.")
    digest = hashlib.blake2b(digest_size=16)
    for tokens in (batch.passage, batch.query):
        if tokens is not None:
            digest.update(tokens.ids[row][tokens.present[row]].cpu().numpy().tobytes() + b"|")
    return np.random.default_rng([seed, int.from_bytes(digest.digest())])


RANDOM = Explainer(
    "random",
    "control",
    False,
    "none",
    random,
    passes=lambda size: Passes(),
    title="random order",
    citation="control",
    usual=True,
)
UNIFORM = Explainer("uniform", "control", False, "none", uniform, passes=lambda size: Passes(), citation="control")
