"""A family of models: transformers of two layers of three heads, in folders with a file `toy.json`.

The network is tests/toy_transformer.py, which the test puts into the package: plain torch and the protocols of
heedful.plugins.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from heedful.plugins import Model, ModelSource, Vocabulary, WordEncoder
from heedful_toy.transformer import ToyTransformer


class ToySource(ModelSource):
    """A folder with toy.json: the seed of its weights, its labels, and the words it knows."""

    architecture, attention = "toy transformer", "2 layers of 3 heads"
    description = "a toy transformer of two layers of three heads"
    task = "classification"
    tokenizer = "spacy"

    def __init__(self, path: Path) -> None:
        self.path, self.name, self.place = path, path.name, str(path.absolute())
        self.about = json.loads((path / "toy.json").read_text())
        self.labels, self.seed = tuple(self.about["labels"]), int(self.about["seed"])

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256((self.path / "toy.json").read_bytes()).hexdigest()

    def load(self, device: torch.device) -> Model:
        seed = int(self.about["seed"])
        text = WordEncoder(Vocabulary(("<pad>", "<unk>", "<s>", "</s>", *self.about["words"])))
        return Model(self.name, ToyTransformer(seed), text, self.labels, "classification", seed)


class ToyFamily:
    title = "a toy folder"

    def claims(self, what: str | Path) -> bool:
        return (Path(what) / "toy.json").is_file()

    def source(self, what: str | Path, **options: Any) -> ToySource:
        return ToySource(Path(what))


TOYS = ToyFamily()
