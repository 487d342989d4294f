"""What the exact decomposition of a transformer costs, in plain gradients: forward and backward with frozen gates.

The model has the sizes of MiniLM (6 layers, 384 wide) and random weights, which decide nothing here.
"""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer, models
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from heedful.explainers.gradients.gradient import gradient_x_input
from heedful.explainers.lrp.decomposition import decompose
from heedful.models.huggingface import HuggingFaceNetwork, wrap
from heedful.records import Batch, Tokens
from timing import seconds

WORDS = 5000
SIZES: dict[str, Any] = {
    "vocab_size": WORDS,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
    "max_position_embeddings": 128,
    "num_labels": 3,
}
SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def main() -> None:
    network = random_bert()
    for size, length in ((1, 25), (32, 25), (16, 128)):
        compare(network, texts(size, length))


def random_bert() -> HuggingFaceNetwork:
    """Its tokenizer knows special tokens only: the texts are numbers."""
    torch.manual_seed(0)
    module = BertForSequenceClassification(BertConfig(**SIZES))
    with torch.no_grad():
        for parameter in module.parameters():  # so that no bias is 0
            parameter.add_(torch.randn_like(parameter) * 0.2)
    pieces = {piece: number for number, piece in enumerate(SPECIAL.values())}
    names = {f"{name}_token": piece for name, piece in SPECIAL.items()}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordPiece(pieces, unk_token="[UNK]")), **names
    )
    network = wrap(module.eval(), tokenizer).network
    assert isinstance(network, HuggingFaceNetwork)
    return network


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
