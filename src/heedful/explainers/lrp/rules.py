"""The epsilon rule of layer-wise relevance propagation, and a book of what it does not pass on.

A layer is a function that returns its output and the way back: a function from the relevance of the output
to the relevance of the input. Every way back is an instance of one rule (Bach et al. 2015), for
z_j = sum_i x_i w_ij + b_j:

    R_i = x_i sum_j w_ij s_j,        s_j = R_j / (z_j + epsilon sign(z_j))

What falls to b_j and epsilon, s_j (b_j + epsilon sign(z_j)), is not shared among the inputs: the rule for
weighted connections of Arras et al. 2017 with delta = 0. (Their formula would still share epsilon's part;
here it is kept with the bias, so that a word that the model provably ignores gets exactly 0.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Back = Callable[[Tensor], Tensor]
Layer = tuple[Tensor, Back]


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule, with its epsilon. `kept` is the book, None where nobody will read it."""

    epsilon: float
    kept: dict[str, Tensor] | None = None  # name of a layer -> (batch,)

    def stabilise(self, z: Tensor) -> Tensor:
        """z + epsilon sign(z), never 0; sign(0) = 1."""
        return torch.where(z < 0, z - self.epsilon, z + self.epsilon)

    def ratio(self, R: Tensor, z: Tensor, name: str, bias: Tensor | float = 0.0) -> Tensor:
        """s of the rule, (batch, ...) like R and z; `bias` is what z holds beside its inputs."""
        stable = self.stabilise(z)
        s = R / stable
        if self.kept is not None:
            self.keep(name, s * (bias + stable - z))
        return s

    def keep(self, name: str, amount: Tensor) -> None:
        """Write down (batch, ...) under the layer's name."""
        if self.kept is not None:
            self.kept[name] = self.kept.get(name, 0) + amount.flatten(1).sum(1)


def linear(rule: Rule, name: str, x: Tensor, weight: Tensor, bias: Tensor) -> Layer:
    """z = W x + b, for any leading dimensions."""
    z = x @ weight.T + bias
    return z, lambda R: x * (rule.ratio(R, z, name, bias) @ weight)


def linear_words(rule: Rule, name: str, x: Tensor, weight: Tensor, bias: Tensor) -> Layer:
    """z = W x + b, whose way back ends at words: sum_i x_i sum_j w_ij s_j = sum_j s_j (z_j - b_j)."""
    z = x @ weight.T + bias  # (batch, length, hidden)
    return z, lambda R: (rule.ratio(R, z, name, bias) * (z - bias)).sum(-1)
