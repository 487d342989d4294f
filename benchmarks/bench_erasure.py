"""Erasure curves against one decoder call for each prefix, and hierarchical training against its bare GRUs."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.config import ModelConfig, TrainingConfig
from heedful.experiments.edited_attention.observe import observer
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.experiments.erasure.smallest_set import exact_smallest, falling, logits_of_items
from heedful.models import build
from heedful.models.attentive.hierarchical import find_sentences
from heedful.models.training import make_optimiser
from heedful.records import Batch, Tokens
from timing import seconds

WORDS, LABELS, ITEMS, TEXTS = 16_000, 5, 200, 16


def curves() -> None:
    """16 documents of 200 words, 5 labels, in the order of attention: every prefix of every document."""
    model = build(ModelConfig(encoder="bigru", embedding_dim=200, hidden_dim=100), WORDS, LABELS).double().eval()
    ids = torch.randint(4, WORDS, (TEXTS, ITEMS), generator=torch.Generator().manual_seed(0))
    there = torch.ones_like(ids, dtype=torch.bool)
    batch = Batch(Tokens(ids, there, there))
    seen = observer(model)(np.arange(TEXTS), batch)
    assert isinstance(seen, PooledStates)
    order = falling(seen.alpha, seen.real)
    with torch.no_grad():
        output = model(batch)

    @torch.no_grad()
    def by_decoder() -> Tensor:
        """One call for each prefix of each document."""
        found = torch.full((TEXTS, ITEMS, LABELS), torch.nan, dtype=torch.float64)
        for i in range(TEXTS):
            alpha = output.alpha[i : i + 1].clone()
            for k in range(ITEMS - 1):
                alpha[0, order[i, k]] = 0.0
                found[i, k] = model.link.probabilities(model.decode(output.h[i : i + 1], alpha / alpha.sum()))
        return found

    @torch.no_grad()
    def by_batches() -> Tensor:
        """One call for each prefix, all documents together."""
        found = torch.full((TEXTS, ITEMS, LABELS), torch.nan, dtype=torch.float64)
        alpha, rows = output.alpha.clone(), torch.arange(TEXTS)
        for k in range(ITEMS - 1):
            alpha[rows, order[:, k]] = 0.0
            p = model.link.probabilities(model.decode(output.h, alpha / alpha.sum(1, keepdim=True)))
            found[:, k] = p
        return found

    apart = (seen.erase_along(order) - by_decoder())[:, :-1].abs().max()
    fast, slow, batched = seconds(lambda: seen.erase_along(order), by_decoder, by_batches)
    print(
        f"erasure curves, documents of {ITEMS} items: {slow / fast:.0f} times faster than one decoder call for each "
        f"prefix, {batched / fast:.0f} times than one for all documents together (they differ by at most {apart:.0e})"
    )
    decided = seen.y.argmax(-1)
    (sort,) = seconds(lambda: exact_smallest(logits_of_items(seen), seen.alpha, decided))
    print(f"smallest flipping set, exact: {1000 * sort / TEXTS:.2f} ms a document of {ITEMS} items")


def training() -> None:
    """A whole step of a HANrnn on 64 documents against nothing but its recurrent layers, forward and backward."""
    rng = np.random.default_rng(0)
    texts = [np.clip(rng.lognormal(2.6, 0.6, rng.integers(2, 12)).astype(int), 1, 80) for _ in range(64)]
    length = max(int(text.sum()) for text in texts)
    index = torch.full((64, length), -1)
    for row, text in enumerate(texts):
        index[row, : text.sum()] = torch.from_numpy(np.repeat(np.arange(len(text)), text))
    there = index >= 0
    ids = torch.from_numpy(rng.integers(4, WORDS, (64, length))) * there
    batch = Batch(Tokens(ids, there, there, sentence_index=index), labels=torch.arange(64) % LABELS)
    config = ModelConfig(encoder="bigru", embedding_dim=200, hidden_dim=100, attention_dim=100, hierarchical=True)
    model = build(config, WORDS, LABELS)
    adam = make_optimiser(model, TrainingConfig())
    words, sentences = (nn.GRU(dim, 50, batch_first=True, bidirectional=True) for dim in (200, 100))
    found = find_sentences(batch.passage)
    counts = np.concatenate(texts)
    padded = torch.randn(len(counts), int(counts.max()), 200, requires_grad=True)
    groups = [torch.randn(*group.at.shape, 200, requires_grad=True) for group in found.groups]
    upper = torch.randn(*found.mask.shape, 100, requires_grad=True)

    def step() -> None:
        adam.zero_grad()
        assert batch.labels is not None
        F.cross_entropy(model(batch).logits, batch.labels, reduction="sum").backward()  # type: ignore[no-untyped-call]
        adam.step()

    def bare(parts: list[Tensor]) -> None:
        total = sentences(upper)[0].sum() + sum(words(part)[0].sum() for part in parts)
        total.backward()

    ours, plain, grouped = seconds(step, lambda: bare([padded]), lambda: bare(groups))
    print(
        f"HAN training step, {int(counts.sum())} words in {len(counts)} sentences: {ours / plain:.2f} times its bare "
        f"recurrent layers on sentences padded to the longest, {ours / grouped:.2f} times on sentences of like length"
    )


def main() -> None:
    """Called by run.py."""
    for measure in (curves, training):
        measure()


if __name__ == "__main__":
    main()
