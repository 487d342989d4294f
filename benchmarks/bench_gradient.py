"""Integrated gradients against Captum, and what relevance propagation costs in gradients.

Both sides run in this process, on the same trained-size model and the same texts, and must agree.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from captum.attr import LayerIntegratedGradients
from torch import Tensor

from heedful.config import ModelConfig
from heedful.explainers.gradients.gradient import gradient_x_input
from heedful.explainers.gradients.integrated import integrated_gradients
from heedful.explainers.lrp.relevance import lrp
from heedful.models import AttentiveClassifier, build
from heedful.records import Batch, Tokens
from timing import seconds

WORDS = 5000
SENTENCES = 500
N_STEPS = 10
CAPTUM = ((25, 100), (50, 50))  # texts a call, internal_batch_size: the two fastest of six tried


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    model = build(ModelConfig(embedding_dim=300, hidden_dim=256), WORDS, n_labels=2, seed=0)
    lengths = torch.randn(SENTENCES, generator=generator).mul(0.5).add(2.9).exp().round().clamp(1, 60).long()
    batch = texts(lengths, generator)  # like SST: 18 words in the middle, 60 at most
    target = torch.ones(SENTENCES, dtype=torch.long)
    compare_integrated_gradients(model, batch, target)
    for size, length in ((32, 20), (32, 180)):
        compare_relevance(model, texts(torch.full((size,), length), generator), target[:size])


def compare_integrated_gradients(model: AttentiveClassifier, batch: Batch, target: Tensor) -> None:
    found: dict[str, Tensor] = {}

    def ours() -> None:
        scores = integrated_gradients(model, batch, target, n_steps=N_STEPS, method="riemann_middle")
        found["ours"] = scores.passage

    def rival(texts: int, internal_batch_size: int) -> Callable[[], None]:
        def run() -> None:
            found[f"{texts} {internal_batch_size}"] = captum(model, batch, texts, internal_batch_size)

        return run

    own, *others = seconds(ours, *(rival(*sizes) for sizes in CAPTUM), repeats=1)
    for scores in found.values():
        torch.testing.assert_close(scores, found["ours"], atol=1e-5, rtol=1e-4)
    for (texts, size), taken in zip(CAPTUM, others, strict=True):
        print(f"Captum, {texts} texts a call, internal_batch_size {size}: {taken:.2f} s")
    print(
        f"integrated gradients, {len(batch)} sentences of mixed length, {N_STEPS} steps: {own:.2f} s, "
        f"{min(others) / own:.1f} times faster than Captum's best"
    )


def captum(model: AttentiveClassifier, batch: Batch, texts: int, internal_batch_size: int) -> Tensor:
    """Captum's way to the same scores, so many texts a call, each call cut to its longest text."""

    def forward(ids: Tensor, present: Tensor, mask: Tensor) -> Tensor:
        return model(Batch(Tokens(ids, present, mask))).logits[:, 0]

    method = LayerIntegratedGradients(forward, model.embedding)
    scores = torch.zeros(batch.passage.ids.shape)
    for start in range(0, len(batch), texts):
        rows = torch.arange(start, min(start + texts, len(batch)))
        some = batch.rows(rows).passage
        attributions = method.attribute(
            some.ids,
            baselines=torch.where(some.mask, 0, some.ids),  # the padding word: its embedding is zero
            additional_forward_args=(some.present, some.mask),
            n_steps=N_STEPS,
            method="riemann_middle",
            internal_batch_size=internal_batch_size,
        )
        scores[rows, : some.ids.shape[1]] = attributions.sum(-1)
    return scores


def compare_relevance(model: AttentiveClassifier, batch: Batch, target: Tensor) -> None:
    own, plain = seconds(lambda: lrp(model, batch, target), lambda: gradient_x_input(model, batch, target))
    size, length = batch.passage.ids.shape
    print(f"lrp, {size} texts of {length - 2} words: {own / plain:.2f} times the cost of one gradient")


def texts(lengths: Tensor, generator: torch.Generator) -> Batch:
    """Random words between markers, padded to the longest."""
    place = torch.arange(int(lengths.max()) + 2)  # (length,)
    last = (lengths + 1).unsqueeze(1)  # (batch, 1): where the end marker is
    ids = torch.randint(4, WORDS, (len(lengths), len(place)), generator=generator)  # (batch, length)
    ids[:, 0] = 2
    ids = torch.where(place < last, ids, torch.where(place == last, 3, 0))
    return Batch(Tokens(ids, present=place <= last, mask=(place > 0) & (place < last)))


if __name__ == "__main__":
    main()
