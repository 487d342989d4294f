"""An encoder: each state is a linear map of a word and of the word before it."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from heedful.plugins import Encoder


class Window(Encoder):
    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.here, self.before = nn.Linear(dim, hidden), nn.Linear(dim, hidden, bias=False)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        x = x * present.unsqueeze(-1)
        h: Tensor = (self.here(x) + self.before(F.pad(x, (0, 0, 1, 0))[:, :-1])).tanh()
        return h


class Squared(nn.Module):
    """An attention: the squared length of a state decides."""

    def __init__(self, hidden: int, has_query: bool) -> None:
        super().__init__()
        self.scale = nn.Parameter(nn.Linear(1, 1).weight.detach()[0] + 1)

    def forward(self, h: Tensor, mask: Tensor, query: Tensor | None) -> Tensor:
        scores = (h.square().sum(-1) * self.scale).masked_fill(~mask, -1e30)
        return scores.softmax(-1) * mask
