"""A training step against a plain packed-sequence loop with default Adam, and against a bare LSTM."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.config import ModelConfig, TrainingConfig
from heedful.models import build
from heedful.models.attentive.classifier import AttentiveClassifier
from heedful.models.attentive.encoders import BiLSTM
from heedful.models.training import make_optimiser
from heedful.records import Batch, Tokens
from timing import seconds

BATCH, DIM, STEPS = 32, 300, 8


def random_batches(n_words: int, length: int, count: int) -> list[Batch]:
    generator = torch.Generator().manual_seed(0)
    made = []
    for _ in range(count):
        lengths = torch.randint(length * 3 // 4, length + 1, (BATCH, 1), generator=generator)
        present = torch.arange(length) < lengths.clamp(max=length)
        present[0] = True
        ids = torch.randint(4, n_words, (BATCH, length), generator=generator) * present
        labels = torch.randint(0, 2, (BATCH,), generator=generator)
        made.append(Batch(Tokens(ids, present, present), labels=labels))
    return made


class Packed(nn.Module):
    """The same model as most people write it: one bidirectional LSTM on packed sequences."""

    def __init__(self, like: AttentiveClassifier) -> None:
        super().__init__()
        assert isinstance(like.encoder, BiLSTM)
        assert like.decoder.theta is not None
        words, dim = like.embedding.weight.shape
        self.embedding = nn.Embedding(words, dim, padding_idx=0)
        self.embedding.load_state_dict(like.embedding.state_dict())
        self.lstm = nn.LSTM(DIM, 128, batch_first=True, bidirectional=True)
        for suffix, one in (("", like.encoder.forwards), ("_reverse", like.encoder.backwards)):
            for name, weight in one.named_parameters():
                getattr(self.lstm, name + suffix).data = weight.detach().clone()
        self.W1, self.v, self.theta = nn.Linear(256, 128), nn.Linear(128, 1, bias=False), nn.Linear(256, 1)
        for mine, theirs in (
            (self.W1, like.attention.W1),
            (self.v, like.attention.v),
            (self.theta, like.decoder.theta),
        ):
            mine.load_state_dict(theirs.state_dict())  # type: ignore[union-attr]

    def forward(self, ids: Tensor, present: Tensor) -> Tensor:
        packed = pack_padded_sequence(self.embedding(ids), present.sum(1), batch_first=True, enforce_sorted=False)
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        scores = self.v(self.W1(h).tanh()).squeeze(-1).masked_fill(~present, -torch.inf)
        logits: Tensor = self.theta((scores.softmax(-1).unsqueeze(1) @ h).squeeze(1))
        return logits


def loss_of(logits: Tensor, batch: Batch) -> Tensor:
    assert batch.labels is not None
    return F.binary_cross_entropy_with_logits(logits[:, 0], batch.labels.float(), reduction="sum")


def steps(logits: Callable[[Batch], Tensor], optimiser: torch.optim.Optimizer, batches: list[Batch]) -> list[float]:
    losses = []
    for batch in batches:
        optimiser.zero_grad()
        loss = loss_of(logits(batch), batch)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(loss.item())
    return losses


def step_at_sst_size() -> None:
    """Batch 32, 20 tokens, 16k words, 300 dimensions."""
    batches = random_batches(16_000, 20, STEPS)
    ours = build(ModelConfig(), 16_000, 2)
    theirs = Packed(ours)
    our_adam = make_optimiser(ours, TrainingConfig())
    attention = {id(p) for p in (*theirs.W1.parameters(), *theirs.v.parameters())}
    groups = [
        {"params": [p for p in theirs.parameters() if id(p) not in attention], "weight_decay": 1e-5},
        {"params": [p for p in theirs.parameters() if id(p) in attention], "weight_decay": 0.0},
    ]
    their_adam = torch.optim.Adam(groups, lr=1e-3, amsgrad=True)
    our_losses, their_losses = [], []
    fast, slow = seconds(
        lambda: our_losses.extend(steps(lambda b: ours(b).logits, our_adam, batches)),
        lambda: their_losses.extend(steps(lambda b: theirs(b.passage.ids, b.passage.present), their_adam, batches)),
    )
    apart = max(abs(a - b) / b for a, b in zip(our_losses[:STEPS], their_losses[:STEPS], strict=True))
    print(
        f"training step, SST size: {slow / fast:.1f} times faster than packed sequences with default Adam "
        f"(losses of the first {STEPS} steps differ by at most {apart:.1e} of their size)"
    )


def tokens_at_imdb_length() -> None:
    """A whole training step against nothing but the LSTM, forward and backward, on the same padded batch."""
    (batch,) = random_batches(14_000, 180, 1)
    model = build(ModelConfig(), 14_000, 2)
    adam = make_optimiser(model, TrainingConfig())
    bare = nn.LSTM(DIM, 128, batch_first=True, bidirectional=True)
    x = torch.randn(BATCH, 180, DIM, requires_grad=True)
    ours, limit = seconds(lambda: steps(lambda b: model(b).logits, adam, [batch]), lambda: bare(x)[0].sum().backward())
    tokens = int(batch.passage.present.sum())
    print(
        f"training, IMDB length: {tokens / ours:,.0f} tokens a second, a bare nn.LSTM {tokens / limit:,.0f}: "
        f"{ours / limit:.2f} times its time"
    )


def main() -> None:
    step_at_sst_size()
    tokens_at_imdb_length()


if __name__ == "__main__":
    main()
