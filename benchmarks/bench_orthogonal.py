"""A training step with the orthogonal LSTM against the same step with the plain LSTM of as many units."""

from __future__ import annotations

import torch

from bench_training import BATCH, DIM, random_batches, steps
from heedful.config import ModelConfig, TrainingConfig
from heedful.models import build
from heedful.models.attentive.encoders import LSTM
from heedful.models.attentive.orthogonal import OrthogonalLSTM
from heedful.models.training import make_optimiser
from timing import seconds

N_WORDS, COUNT = 14_000, 4


def step_at(length: int, what: str) -> None:
    """Batch 32, 300 dimensions, 256 units, as Mohankumar et al. 2020."""
    batches = random_batches(N_WORDS, length, COUNT)
    ways = []
    for encoder in ("orthogonal", "lstm"):
        model = build(ModelConfig(encoder=encoder), N_WORDS, 2)
        adam = make_optimiser(model, TrainingConfig())
        ways.append(lambda model=model, adam=adam: steps(lambda b: model(b).logits, adam, batches))
    ours, plain = seconds(*ways)
    print(
        f"orthogonal LSTM, training step at {what} length ({length} words): {ours / plain:.2f} times the plain LSTM's, "
        f"{1000 * ours / COUNT:.0f} ms against {1000 * plain / COUNT:.0f} ms"
    )


def encoder_alone(length: int, what: str) -> None:
    """Forward and backward through the encoder, nothing else."""
    x = torch.randn(BATCH, length, DIM, requires_grad=True)
    present = torch.ones(BATCH, length, dtype=torch.bool)
    encoders = (OrthogonalLSTM(DIM, 256), LSTM(DIM, 256))
    ours, plain = seconds(*(lambda e=e: e(x, present).sum().backward() for e in encoders))
    print(f"orthogonal LSTM alone at {what} length: {ours / plain:.2f} times nn.LSTM, forward and backward")


def main() -> None:
    for length, what in ((20, "SST"), (180, "IMDB")):
        step_at(length, what)
        encoder_alone(length, what)


if __name__ == "__main__":
    main()
