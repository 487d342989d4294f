"""What the benchmarks on a real transformers classifier share: MiniLM fine-tuned on sst, and 200 of its sentences."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import heedful
from finetune_minilm import minilm
from heedful.data.corpora.load import load
from heedful.errors import Mistake
from heedful.models.model import Model
from heedful.records import Example

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "heedful"
SENTENCES = 200


def classifier() -> tuple[Path, Model]:
    """HEEDFUL_MINILM or the folder in the cache; else MiniLM's own weights, with a classifier drawn at random."""
    folder = Path(os.environ.get("HEEDFUL_MINILM", CACHE / "minilm-sst"))
    if not (folder / "config.json").is_file():
        print(
            f"no fine-tuned MiniLM at {folder} (python benchmarks/finetune_minilm.py {folder} makes one, "
            "HEEDFUL_MINILM names another): a classifier drawn at random on MiniLM's weights serves, for times only"
        )
        folder = untrained()
    return folder, heedful.load(folder)


def untrained() -> Path:
    """MiniLM as `make minilm` installs it, saved with a classifier of random weights."""
    folder = Path(tempfile.mkdtemp(prefix="heedful-"))
    torch.manual_seed(0)
    module = AutoModelForSequenceClassification.from_pretrained(minilm(), num_labels=2, local_files_only=True)
    torch.nn.init.normal_(module.classifier.weight)
    module.save_pretrained(folder)
    AutoTokenizer.from_pretrained(minilm(), local_files_only=True).save_pretrained(folder)
    return folder


def sentences(n: int = SENTENCES) -> list[Example]:
    """Of the test texts of sst, evenly spread."""
    try:
        test = load("sst")["test"]
    except Mistake as error:
        raise Mistake(f"{error} Then name its folder: HEEDFUL_DATA=FOLDER make bench.") from None
    return [test[i * len(test) // n] for i in range(n)]
