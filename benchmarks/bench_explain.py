"""Explaining and saving many sentences, against tokenising and computing alone (bar: at most twice the time).

20,000 planted sentences, and those of SST where HEEDFUL_DATA has them, are explained by attention, gradient x input
and omission. "Alone" does the same tokenising and the same passes through the model, and forgets the scores; the rest
is what it takes to make an explanation of them and a Parquet file of that. Saving is also watched in a process of its
own, whose peak of memory shows what it takes beyond the explanation itself: much the same for sixteen times the texts.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

import heedful
from heedful.config import ModelConfig
from heedful.data.generated.planted import generate
from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vocabulary import Vocabulary, WordEncoder
from heedful.explainers import find
from heedful.explainers.run import EXPLAIN_BUDGET
from heedful.models import build
from heedful.models.model import Model
from timing import seconds

SENTENCES = 20_000
METHODS = ("attention", "gradient_x_input", "omission")
SIZES = (2_000, 32_000)  # examples of the explanations whose saving is watched


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="heedful-") as folder:
        corpora = {"planted": [planted.text for planted in generate("majority", SENTENCES, 0)]}
        if (place := Path(os.environ.get("HEEDFUL_DATA", "")) / "sst").is_dir():
            corpora["SST"] = [text for split in sorted(place.glob("*.jsonl.gz")) for text in read(split)]
        for name, texts in corpora.items():
            for encoder in ("average", "bilstm"):
                compare(f"{len(texts):,} {name} sentences, {encoder}", model(texts, encoder), texts, Path(folder))
        grown = [saving(size) for size in SIZES]
    told = ", ".join(f"{size:,} examples {mib:.0f} MiB" for size, mib in zip(SIZES, grown, strict=True))
    print(f"memory that saving adds at its peak: {told}")


def read(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from (json.loads(line)["text"] for line in lines)


def model(texts: Sequence[str], encoder: str) -> Model:
    """A small one, with random weights: the less it computes, the more the rest shows."""
    sizes = ModelConfig.model_validate({"encoder": encoder, "embedding_dim": 32, "hidden_dim": 32})
    vocabulary = Vocabulary.build(map(tokenizer("spacy"), texts))
    network = build(sizes, len(vocabulary), 2, False, 0).eval()
    return Model("made", network, WordEncoder(vocabulary), ("negative", "positive"))


def compare(what: str, model: Model, texts: Sequence[str], folder: Path) -> None:
    def alone() -> None:
        explainers = [find(name) for name in METHODS]
        encoded = model.encode(model.examples(texts))
        for _, batch in encoded.batches(64, token_budget=EXPLAIN_BUDGET):
            with torch.inference_mode():
                targets = model.network(batch).probabilities.argmax(-1)
            for explainer in explainers:
                explainer.run(model.network, batch, targets)

    def explain_and_save() -> None:
        heedful.explain(model, texts, METHODS).save(folder / "why.parquet")

    computing, whole = seconds(alone, explain_and_save, repeats=3)
    print(
        f"explain and save, {what}: {whole:.1f} s, {whole / computing:.2f} times tokenising and computing "
        f"alone ({computing:.1f} s; bar 2)",
        flush=True,
    )


def saving(size: int) -> float:
    """MiB by which saving raises the peak of a process that holds an explanation of so many examples."""
    done = subprocess.run([sys.executable, __file__, str(size)], stdout=subprocess.PIPE, check=True)
    return float(done.stdout.split()[-1])


def watch(size: int) -> None:
    """Print the growth. Saving a little first loads what every save needs, which is not growth."""
    texts = [planted.text for planted in generate("single", size, 0)]
    ex = heedful.explain(model(texts, "average"), texts, METHODS)
    with tempfile.TemporaryDirectory(prefix="heedful-") as folder:
        ex[:10].save(Path(folder) / "little.parquet")
        Path("/proc/self/clear_refs").write_text("5")  # the peak is forgotten: it is now what is there (Linux)
        before = peak()
        ex.save(Path(folder) / "why.parquet")
        print(peak() - before)


def peak() -> float:
    """MiB of this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    main() if len(sys.argv) == 1 else watch(int(sys.argv[1]))
