"""Omission against plain deletion in length-sorted batches of 256, and occlusion against Captum.

All sides run in this process and take turns. They must agree within 1e-5 (relative to the logit where it is
above 1: a logit of 10 has steps of 1e-6 in float32). The models have the paper's sizes (embedding 300, hidden
256) and are trained for a moment on made-up texts whose label some words decide.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import torch
from captum.attr import FeatureAblation
from torch import Tensor
from torch.nn import functional as F

from heedful.config import EncoderName, ModelConfig
from heedful.explainers.perturbation.edits import Edits, edit
from heedful.explainers.perturbation.occlusion import occlusion
from heedful.explainers.perturbation.one_word import change_each_word
from heedful.models import AttentiveClassifier, build
from heedful.records import Batch, Tokens
from timing import seconds

WORDS = 2000
LENGTH = 180
PLAIN_BATCH = 256
CAPTUM_BATCHES = (16, 64, 256)


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    bilstm = trained("bilstm", generator)
    for size in (8, 1):
        compare_omission("bilstm", bilstm, texts(size, LENGTH, generator), tolerances=(0.0, 1e-6))
    compare_captum(bilstm, texts(1, LENGTH, generator))
    for encoder in ("cnn", "average"):
        model = trained(encoder, generator)
        compare_omission(encoder, model, texts(4, LENGTH, generator), tolerances=(0.0,))


def compare_omission(name: str, model: AttentiveClassifier, batch: Batch, tolerances: tuple[float, ...]) -> None:
    def ours(tolerance: float) -> Callable[[], Tensor]:
        return lambda: change_each_word(model, batch, "delete", tolerance=tolerance).changed

    expected = plain_deletion(model, batch)
    ways = [ours(tolerance) for tolerance in tolerances]
    apart = [(way()[batch.passage.mask] - expected).abs() / expected.abs().clamp(min=1) for way in ways]
    errors = [float(each.max()) for each in apart]
    plain, *own = seconds(lambda: plain_deletion(model, batch), *ways, repeats=3)
    for tolerance, taken, error in zip(tolerances, own, errors, strict=True):
        print(
            f"omission, {name}, {len(batch)} texts of {LENGTH} words, tolerance {tolerance:g}: "
            f"{taken:.3f} s, {plain / taken:.1f} times faster than plain deletion ({plain:.2f} s), "
            f"largest difference {error:.1e}"
        )
        if error > 1e-5:
            sys.exit("omission differs from plain deletion by more than 1e-5")


def plain_deletion(model: AttentiveClassifier, batch: Batch) -> Tensor:
    """Every word deleted in turn: the shortened texts in batches of 256, shortest first."""
    edits = Edits.each_word(batch.passage)
    lengths = batch.passage.present.sum(1).numpy()[edits.rows]
    order = np.argsort(lengths, kind="stable")
    answers = []
    with torch.inference_mode():
        for begin in range(0, len(order), PLAIN_BATCH):
            edited = edit(batch.passage, edits, order[begin : begin + PLAIN_BATCH], "delete")
            answers.append(model(Batch(edited.tokens)).logits)
        return torch.cat(answers)[torch.from_numpy(np.argsort(order))]


def compare_captum(model: AttentiveClassifier, batch: Batch) -> None:
    """Both set the embedding of one word at a time to zero."""
    target = torch.ones(len(batch), dtype=torch.long)
    x = model.embed(batch.passage).detach()
    features = torch.arange(x.shape[1]).view(1, -1, 1).expand_as(x)  # a word is one feature

    def forward(x: Tensor) -> Tensor:
        passage = batch.passage
        rows = [len(x) // len(batch), 1]
        return model(
            Batch(Tokens(passage.ids.repeat(rows), passage.present.repeat(rows), passage.mask.repeat(rows))), x=x
        ).logits[:, 0]

    def captum(size: int) -> Callable[[], Tensor]:
        def scores() -> Tensor:
            with torch.inference_mode():
                found: Tensor = FeatureAblation(forward).attribute(
                    x, feature_mask=features, perturbations_per_eval=size
                )
            return found[..., 0] * batch.passage.mask

        return scores

    rivals = [captum(size) for size in CAPTUM_BATCHES]
    expected = rivals[0]()
    difference = float((occlusion(model, batch, target).passage - expected).abs().max())
    own, *others = seconds(lambda: occlusion(model, batch, target), *rivals, repeats=3)
    best = min(others)
    print(
        f"occlusion, bilstm, {len(batch)} text of {LENGTH} words: {own:.3f} s, {best / own:.1f} times faster "
        f"than Captum's FeatureAblation at its best perturbations_per_eval "
        f"{CAPTUM_BATCHES[others.index(best)]} "
        f"({best:.2f} s), largest difference {difference:.1e}"
    )


def trained(encoder: EncoderName, generator: torch.Generator, steps: int = 30) -> AttentiveClassifier:
    """A model that has begun to tell texts with words of one kind from those with words of the other."""
    model = build(ModelConfig(encoder=encoder), WORDS, n_labels=2, seed=0)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in range(steps):
        batch = texts(32, 40, generator)
        labels = torch.randint(2, (32,), generator=generator)
        batch.passage.ids[:, 5:35:3] = 10 + 10 * labels.unsqueeze(1) + torch.randint(10, (32, 10), generator=generator)
        optimiser.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(batch).logits[:, 0], labels.float())
        torch.autograd.backward(loss)
        optimiser.step()
    return model.eval()


def texts(size: int, length: int, generator: torch.Generator) -> Batch:
    """Random words between markers."""
    ids = torch.randint(4, WORDS, (size, length + 2), generator=generator)
    ids[:, 0], ids[:, -1] = 2, 3
    mask = torch.ones_like(ids, dtype=torch.bool)
    mask[:, [0, -1]] = False
    return Batch(Tokens(ids, torch.ones_like(mask), mask))


if __name__ == "__main__":
    main()
