"""What the exact decomposition of a transformer costs, in plain gradients: forward and backward with frozen gates.

The model has the sizes of MiniLM (6 layers, 384 wide) and random weights, which decide nothing here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import transformer_zoo
from heedful.explainers.gradients.gradient import gradient_x_input
from heedful.explainers.lrp.decomposition import decompose
from heedful.models.huggingface import HuggingFaceNetwork, wrap
from heedful.records import Batch, Tokens
from timing import seconds

WORDS = 5000
SIZES = {
    "vocab_size": WORDS,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 128,
}


def main() -> None:
    made = wrap(transformer_zoo.module("Bert", 0, **SIZES), transformer_zoo.tokenizer_of("Bert"))
    network = transformer_zoo.network(made)
    for size, length in ((1, 25), (32, 25), (16, 128)):
        compare(network, texts(size, length))


def compare(network: HuggingFaceNetwork, batch: Batch) -> None:
    size, length = batch.passage.ids.shape
    target = torch.zeros(size, dtype=torch.long)
    gradient, frozen = seconds(
        lambda: gradient_x_input(network, batch, target), lambda: decompose(network, batch, target), repeats=7
    )
    missed = decompose(network, batch, target).missing.max()
    print(
        f"lrp of a transformer, {size} texts of {length} tokens: {frozen / gradient:.2f} times one plain gradient "
        f"({1000 * frozen:.0f} ms); {missed:.0e} of a logit is in none of its parts (float32)"
    )


def texts(size: int, length: int) -> Batch:
    ids = torch.randint(4, WORDS, (size, length), generator=torch.Generator().manual_seed(1))
    mask = torch.ones(size, length, dtype=torch.bool)
    mask[:, [0, -1]] = False
    return Batch(Tokens(ids, torch.ones_like(mask), mask))


if __name__ == "__main__":
    main()
