"""What has no second derivative that autograd can find, made smooth or written out for the time of a call.

ReLU: its second derivative is 0 wherever there is one, so a Hessian would see nothing of what words do together through
it. softplus(z) = ln(1 + e^(beta z)) / beta is within ln 2 / beta of it (Janizek et al. 2020). GELU, SiLU and tanh are
smooth, and stay as they are.

Entmax: the library writes its first derivative with square roots of weights that are 0. On a support S that is held,
with m the mean of z / 2 there, weights are (z / 2 - tau)^2 and sum to 1, so
tau = m - sqrt((1 - sum_S (z / 2 - m)^2) / |S|), which can be differentiated twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from heedful.models.attentive.sparse import entmax15

KINKED = frozenset({torch.relu, torch.relu_, Tensor.relu, Tensor.relu_, F.relu, F.relu_})


class TwiceDifferentiable(TorchFunctionMode):
    """Inside, every ReLU is softplus with this beta (0: it stays), and entmax has a second derivative."""

    def __init__(self, beta: float) -> None:
        super().__init__()
        self.beta = beta

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if function in KINKED and self.beta:
            return F.softplus(args[0], beta=self.beta, threshold=40.0)
        if function is entmax15:
            return entmax_on_support(*args)
        return function(*args, **(kwargs or {}))


def entmax_on_support(scores: Tensor, mask: Tensor) -> Tensor:
    """entmax15, whose derivatives are those on its support."""
    support = entmax15(scores.detach(), mask) > 0
    z = torch.where(support, scores / 2, 0.0)
    n = support.sum(-1, keepdim=True).clamp(min=1)
    mean = z.sum(-1, keepdim=True) / n
    spread = torch.where(support, (z - mean).square(), 0.0).sum(-1, keepdim=True)
    tau = mean - ((1 - spread).clamp(min=torch.finfo(z.dtype).tiny) / n).sqrt()
    return torch.where(support, (z - tau).square(), 0.0)
