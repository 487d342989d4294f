"""A family of models: transformers of two layers of three heads, in folders with a file `toy.json`.

The network is tests/toy_transformer.py, which the test puts into the package: plain torch and the protocols of
heedful.models.network.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heedful.data.vocabulary import Vocabulary
from heedful.data.word_encoder import WordEncoder
from heedful.models.model import Model
from heedful_toy.transformer import ToyTransformer


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
