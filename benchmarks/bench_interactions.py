"""Interactions: a Gauss rule against the published double loop, a BiLSTM's structure against a pass for each pair.

Both sides run in this process and take turns. Integrated Hessians are compared at equal error: the error of either side
is measured against 160 points, and the double loop over alpha and beta gets as many points as it needs to be as good,
to 40 x 40: the published right Riemann sum (the bar), and the same with midpoints, which nobody published.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import Tensor

from bench_omission import texts, trained
from heedful.explainers.interactions.integrated_hessians import PathHessian, integrated_hessians, upper
from heedful.explainers.interactions.removal import removal_interactions
from heedful.explainers.interactions.words import Asking, WordGame, without
from heedful.explainers.perturbation.one_word import delete_two_words
from heedful.models import AttentiveClassifier
from heedful.records import Batch
from timing import seconds

HESSIAN_BAR, REMOVAL_BAR = 10, 5
MOST = 40


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    model = trained("bilstm", generator)
    compare_hessians(model, texts(1, 8, generator))
    for length in (20, 60):
        compare_removal(model, texts(1, length, generator), length)


def compare_hessians(model: AttentiveClassifier, batch: Batch) -> None:
    target = torch.ones(1, dtype=torch.long)
    truth = pairs(model, batch, target, 160)
    few, error = next((m, e) for m in (8, 12, 16, 24, 40) if (e := far(pairs(model, batch, target, m), truth)) < 0.002)
    for name, shift, bar in (("published right sum", 1.0, HESSIAN_BAR), ("sum at midpoints", 0.5, 0)):
        tried = (4, 8, 12, 16, 24, MOST)
        m = next((m for m in tried if far(double_loop(model, batch, target, m, shift), truth) <= error), MOST)
        reached = far(double_loop(model, batch, target, m, shift), truth)
        fast, slow = seconds(
            lambda: pairs(model, batch, target, few),
            lambda m=m, shift=shift: double_loop(model, batch, target, m, shift),  # type: ignore[misc]
            repeats=2,
        )
        print(
            f"integrated Hessians, bilstm, 8 words: {few} points, error {error:.1e} of the largest, {fast:.2f} s; "
            f"{name} {m} x {m} points, error {reached:.1e}, {slow:.2f} s: {slow / fast:.1f} times faster"
        )
        if slow < bar * fast:
            sys.exit(f"integrated Hessians are less than {bar} times faster than the double loop")


def pairs(model: AttentiveClassifier, batch: Batch, target: Tensor, m: int) -> Tensor:
    found = integrated_hessians(model, batch, target, n_steps=m).pairs
    assert found is not None
    return found


def double_loop(model: AttentiveClassifier, batch: Batch, target: Tensor, m: int, shift: float) -> Tensor:
    """The same by a sum over alpha and beta, with the same batched products at each of its m x m points."""
    zero = torch.zeros(())
    way = PathHessian(model, batch, target, "logit", (zero, None), 10.0)
    alpha = (torch.arange(m) + shift) / m
    products = torch.outer(alpha, alpha).flatten()
    found = torch.zeros(())
    for some in torch.split(products, 64):
        slope, bend = way.curvature(some)
        found = found + torch.einsum("nkij,k->nij", bend, some) + torch.diag_embed(slope.sum(1))
    return upper(found / m**2)


def far(found: Tensor, truth: Tensor) -> float:
    """The largest difference, as a share of the largest number."""
    return float((found - truth).abs().max() / truth.abs().max())


def compare_removal(model: AttentiveClassifier, batch: Batch, length: int) -> None:
    target = torch.ones(1, dtype=torch.long)
    game = WordGame(Asking(model, batch, target, "logit", "delete", None, 256), 0, ("passage",))
    keep = without(length)
    apart = np.abs(game(keep) - delete_two_words(model, batch).numpy()[:, 0]).max()
    fast, slow = seconds(lambda: removal_interactions(model, batch, target), lambda: game(keep), repeats=3)
    print(
        f"removal interactions, bilstm, {length} words: {fast:.3f} s, {slow / fast:.1f} times faster than a pass for "
        f"each pair in batches of 256 ({slow:.2f} s), largest difference {apart:.1e}"
    )
    if apart > 1e-4:
        sys.exit("removal interactions differ from a pass for each pair by more than 1e-4")
    if slow < REMOVAL_BAR * fast:
        sys.exit(f"removal interactions are less than {REMOVAL_BAR} times faster than a pass for each pair")


if __name__ == "__main__":
    main()
