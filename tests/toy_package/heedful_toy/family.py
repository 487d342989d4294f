"""A family of models: transformers of two layers of three heads, in folders with a file `toy.json`.

Plain torch and the protocols of heedful.models.network; nothing of heedful's own models is in it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.data.vocabulary import Vocabulary
from heedful.data.word_encoder import WordEncoder
from heedful.models.link import SOFTMAX, Link
from heedful.models.model import Model
from heedful.models.network import Edit, Output
from heedful.records import Batch, Tokens

LAYERS, HEADS, DIM, INNER, LABELS, WORDS, LONGEST = 2, 3, 12, 20, 2, 200, 80


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
        self,
        batch: Batch,
        *,
        x: Tensor | None = None,
        x_query: Tensor | None = None,
        edit: Edit | None = None,
    ) -> Output:
        h = self._run(batch, x, edit)[0][-1]
        return Output(self.readout(torch.tanh(self.pool(h[:, 0]))), self.link)

    def attentions(self, batch: Batch) -> Tensor:
        return torch.stack(self._run(batch, None, None)[1], dim=1)

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


@dataclass(frozen=True)
class ToySource:
    """A folder with toy.json: the seed of its weights, its labels, and the words it knows."""

    path: Path
    architecture: str = "toy transformer"
    attention: str = "2 layers of 3 heads"
    description: str = "a toy transformer of two layers of three heads"
    task: str = "classification"
    config: Any = None
    tokenizer: Any = "spacy"

    @property
    def about(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / "toy.json").read_text())
        return found

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def place(self) -> str:
        return str(self.path.absolute())

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256((self.path / "toy.json").read_bytes()).hexdigest()

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.about["labels"])

    @property
    def seed(self) -> int:
        return int(self.about["seed"])

    def load(self, device: torch.device) -> Model:
        text = WordEncoder(Vocabulary(("<pad>", "<unk>", "<s>", "</s>", *self.about["words"])))
        return Model(self.name, ToyTransformer(self.seed), text, self.labels, "classification", self.seed)


class ToyFamily:
    title = "a toy folder"

    def claims(self, what: str | Path) -> bool:
        return (Path(what) / "toy.json").is_file()

    def source(self, what: str | Path, **options: Any) -> ToySource:
        return ToySource(Path(what))


TOYS = ToyFamily()
