"""A transformer of two layers of three heads in plain torch, with the protocols of models/network.py by hand.

An oracle: small enough to be computed again step by step (`by_hand`, numpy, loops), and nothing of heedful's own
models is in it, so what works on it works on everybody's network that keeps the protocols.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.plugins import SOFTMAX, Batch, Edit, Link, Output, Tokens

LAYERS, HEADS, DIM, INNER, LABELS, WORDS, LONGEST = 2, 3, 12, 20, 3, 50, 40
Array = NDArray[np.float64]


class ToyTransformer(nn.Module):
    """Post-norm layers as in BERT: h = norm(h + attention(h)), h = norm(h + mlp(h)); the first token decides."""

    n_labels, has_query, n_layers, n_heads, n_words = LABELS, False, LAYERS, HEADS, WORDS
    link: Link = SOFTMAX
    device, dtype, bytes_per_token = torch.device("cpu"), torch.float64, 8 * 10 * DIM
    can: ClassVar[frozenset[str]] = frozenset(
        {"predicts", "differentiable", "attends", "self_attends", "edits_attention"}
    )

    def __init__(self, seed: int = 0, size: float = 0.5) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, DIM), nn.Embedding(LONGEST, DIM)
        names = ("q", "k", "v", "out", "up", "down")
        sizes = {"up": (DIM, INNER), "down": (INNER, DIM)}
        self.layers = nn.ModuleList(
            nn.ModuleDict(
                {name: nn.Linear(*sizes.get(name, (DIM, DIM))) for name in names}
                | {"norm": nn.LayerNorm(DIM), "norm_mlp": nn.LayerNorm(DIM)}
            )
            for _ in range(LAYERS)
        )
        self.pool, self.readout = nn.Linear(DIM, DIM), nn.Linear(DIM, LABELS)
        self.double().eval()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in self.parameters():
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_(size * noise)

    def embed(self, tokens: Tokens) -> Tensor:
        x: Tensor = self.words(tokens.ids)
        return x

    def forward(
        self, batch: Batch, *, x: Tensor | None = None, x_query: None = None, edit: Edit | None = None
    ) -> Output:
        h = self._run(batch, x, edit)[0][-1]
        return Output(self.readout(torch.tanh(self.pool(h[:, 0]))), self.link)

    def attentions(self, batch: Batch, layer: int | None = None) -> Tensor:
        every = self._run(batch, None, None)[1]
        return torch.stack(every if layer is None else [every[layer]], dim=1)

    def states(self, batch: Batch, *, edit: Edit | None = None) -> Tensor:
        return torch.stack(self._run(batch, None, edit)[0], dim=1)

    def _run(self, batch: Batch, x: Tensor | None, edit: Edit | None) -> tuple[list[Tensor], list[Tensor]]:
        """States before the first layer and after each, and the weights of each layer, edited."""
        x = self.embed(batch.passage) if x is None else x
        n, length = x.shape[:2]
        states, every = [x + self.places(torch.arange(length))], []
        away = ~batch.passage.present[:, None, None, :]  # (n, 1, 1, from)
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.ModuleDict)
            h = states[-1]
            q, k, v = (layer[name](h).view(n, length, HEADS, -1).transpose(1, 2) for name in "qkv")
            scores = q @ k.transpose(2, 3) / math.sqrt(DIM // HEADS)
            weights = scores.masked_fill(away, -torch.inf).softmax(-1)  # (n, heads, to, from)
            weights = weights if edit is None else edit(number, weights)
            every.append(weights)
            h = layer["norm"](h + layer["out"]((weights @ v).transpose(1, 2).reshape(n, length, DIM)))
            states.append(layer["norm_mlp"](h + layer["down"](nn.functional.gelu(layer["up"](h)))))
        return states, every


def by_hand(
    model: ToyTransformer, ids: list[int], changed: dict[tuple[int, int], Array] | None = None
) -> tuple[Array, list[Array], list[Array]]:
    """One text, position by position: logits, states (length, dim) and weights (heads, to, from) of each layer.

    `changed[layer, head]` (to, from) stands in place of what the head would have computed.
    """
    w = {name: value.detach().numpy() for name, value in model.state_dict().items()}
    T, size = len(ids), DIM // HEADS
    states, every = [np.stack([w["words.weight"][i] + w["places.weight"][t] for t, i in enumerate(ids)])], []
    for layer in range(LAYERS):

        def linear(name: str, z: Array, layer: int = layer) -> Array:
            found: Array = w[f"layers.{layer}.{name}.weight"] @ z + w[f"layers.{layer}.{name}.bias"]
            return found

        def norm(name: str, z: Array, layer: int = layer) -> Array:
            scaled = (z - z.mean()) / np.sqrt(z.var() + 1e-5)
            found: Array = w[f"layers.{layer}.{name}.weight"] * scaled + w[f"layers.{layer}.{name}.bias"]
            return found

        h = states[-1]
        weights, mixed = np.zeros((HEADS, T, T)), np.zeros((T, DIM))
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            for i in range(T):
                q = linear("q", h[i])[part]
                e = np.exp([q @ linear("k", h[j])[part] / math.sqrt(size) for j in range(T)])
                weights[head, i] = e / e.sum()
            weights[head] = (changed or {}).get((layer, head), weights[head])
            for i in range(T):
                mixed[i, part] = sum(weights[head, i, j] * linear("v", h[j])[part] for j in range(T))
        middle = [norm("norm", h[i] + linear("out", mixed[i])) for i in range(T)]
        inner = [linear("up", z) for z in middle]
        gelu = [np.array([u / 2 * (1 + math.erf(u / math.sqrt(2))) for u in z]) for z in inner]
        states.append(np.stack([norm("norm_mlp", z + linear("down", g)) for z, g in zip(middle, gelu, strict=True)]))
        every.append(weights)
    pooled = np.tanh(w["pool.weight"] @ states[-1][0] + w["pool.bias"])
    return w["readout.weight"] @ pooled + w["readout.bias"], states, every
