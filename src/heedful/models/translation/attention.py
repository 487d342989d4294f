"""What a decoder attends with: states of the decoder (batch, m, hidden) against those of the source (batch, n, hidden).

All m steps are taken at once, which is what teacher forcing allows. The scores e of a step become weights by softmax,
sparsemax or entmax, over the words of the source.

    additive   e = v . tanh(W1 h + W2 s + b)               (Bahdanau et al. 2015, appendix A.1.2)
    dot        e = h . s                                   (Luong et al. 2015, equation 8)
    general    e = h . W s
    concat     e = v . tanh(W [s; h])
    local_p    that of general, times exp(-(t - p)^2 / 2 sigma^2) after the softmax, where p = n sigmoid(v . tanh(W s))
               and sigma = D / 2 (equations 9 and 10)
    uniform    every word gets 1 / n
    random     weights drawn once and for all, by the places of the step and of the word

Luong's local attention does not sum to 1, and reads a window of 2 D + 1 words. Here the weights are brought to sum 1
again, and what is far away is small instead of cut off: weights stay weights, so that they can be compared and edited.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from heedful.models.attentive.attention import masked_softmax
from heedful.models.attentive.sparse import entmax15, sparsemax

Weigh = Callable[[Tensor, Tensor], Tensor]


class StepAttention(nn.Module):
    """The interface: scores, turned into weights."""

    weighing: Weigh = staticmethod(masked_softmax)

    def __init__(self, hidden: int) -> None:
        super().__init__()

    def scores(self, s: Tensor, h: Tensor) -> Tensor:
        """s (batch, m, hidden), h (batch, n, hidden) -> (batch, m, n)."""
        raise NotImplementedError

    def forward(self, s: Tensor, h: Tensor, mask: Tensor, first: int = 0) -> Tensor:
        """Weights (batch, m, n), sum 1 where mask (batch, n) is True; all 0 where there is no word.

        first: the number of the first of these steps.
        """
        scores = self.scores(s, h)
        return type(self).weighing(scores, mask.unsqueeze(1).expand_as(scores))


class AdditiveSteps(StepAttention):
    """Bahdanau et al. 2015, with hidden / 2 units."""

    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.W1 = nn.Linear(hidden, hidden // 2)
        self.W2 = nn.Linear(hidden, hidden // 2, bias=False)
        self.v = nn.Linear(hidden // 2, 1, bias=False)

    def scores(self, s: Tensor, h: Tensor) -> Tensor:
        inner = self.W1(h).unsqueeze(1) + self.W2(s).unsqueeze(2)  # (batch, m, n, units)
        found: Tensor = self.v(inner.tanh()).squeeze(-1)
        return found


class DotSteps(StepAttention):
    def scores(self, s: Tensor, h: Tensor) -> Tensor:
        return s @ h.transpose(1, 2)


class GeneralSteps(StepAttention):
    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.W = nn.Linear(hidden, hidden, bias=False)

    def scores(self, s: Tensor, h: Tensor) -> Tensor:
        found: Tensor = self.W(s) @ h.transpose(1, 2)
        return found


class ConcatSteps(StepAttention):
    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.W = nn.Linear(2 * hidden, hidden, bias=False)
        self.v = nn.Linear(hidden, 1, bias=False)

    def scores(self, s: Tensor, h: Tensor) -> Tensor:
        of_s, of_h = self.W.weight.chunk(2, dim=1)  # W [s; h] = W_s s + W_h h
        inner = (s @ of_s.T).unsqueeze(2) + (h @ of_h.T).unsqueeze(1)
        found: Tensor = self.v(inner.tanh()).squeeze(-1)
        return found


class LocalSteps(GeneralSteps):
    """local-p: a place is predicted, and words near it are attended to."""

    D = 5.0

    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.Wp = nn.Linear(hidden, hidden // 2, bias=False)
        self.vp = nn.Linear(hidden // 2, 1, bias=False)

    def places(self, s: Tensor, mask: Tensor) -> Tensor:
        """p, in words from the first one: (batch, m)."""
        share: Tensor = self.vp(self.Wp(s).tanh()).squeeze(-1).sigmoid()
        return share * mask.sum(1, keepdim=True)

    def forward(self, s: Tensor, h: Tensor, mask: Tensor, first: int = 0) -> Tensor:
        alpha = super().forward(s, h, mask, first)
        t = mask.cumsum(1).unsqueeze(1) - 1  # (batch, 1, n) the number of each word
        far = (t - self.places(s, mask).unsqueeze(2)) / (self.D / 2)
        near = alpha * torch.exp(-(far**2) / 2)
        total = near.sum(-1, keepdim=True)
        return torch.where(total > 0, near / torch.where(total > 0, total, 1.0), alpha)


class UniformSteps(StepAttention):
    def scores(self, s: Tensor, h: Tensor) -> Tensor:
        return (s[:, :, :1] @ h[:, :, :1].transpose(1, 2)) * 0.0


class RandomSteps(StepAttention):
    """softmax of 2 z, z standard normal: no word of the source and no state has a say in it."""

    MOST = 512  # places of each; after them the draws begin again

    def __init__(self, hidden: int) -> None:
        super().__init__(hidden)
        self.drawn: Tensor
        self.register_buffer("drawn", torch.randn(self.MOST, self.MOST) * 2)

    def forward(self, s: Tensor, h: Tensor, mask: Tensor, first: int = 0) -> Tensor:
        step = (torch.arange(s.shape[1], device=s.device) + first) % self.MOST
        word = (mask.cumsum(1) - 1).clamp(min=0) % self.MOST  # (batch, n)
        scores = self.drawn[step[None, :, None], word[:, None, :]].to(h.dtype)
        return masked_softmax(scores, mask.unsqueeze(1).expand_as(scores))


class AdditiveSparsemaxSteps(AdditiveSteps):
    weighing = staticmethod(sparsemax)


class AdditiveEntmaxSteps(AdditiveSteps):
    weighing = staticmethod(entmax15)


class GeneralSparsemaxSteps(GeneralSteps):
    weighing = staticmethod(sparsemax)


class GeneralEntmaxSteps(GeneralSteps):
    weighing = staticmethod(entmax15)
