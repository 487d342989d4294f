"""From logits to labels: how a model's numbers are read. The one file that knows that one logit can be two labels.

log_odds   one logit z for two labels: P(1) = sigmoid(z); f_1 = z, f_0 = -z (the paper's binary decoder)
softmax    one logit for each label: P = softmax(z); f_c = z_c
sigmoids   several labels can be true at once: P(c) = sigmoid(z_c); f_c = z_c
identity   a number is predicted, no label: f = z
"""

from __future__ import annotations

from typing import Literal, Self

import torch
from torch import Tensor

from heedful.errors import one_of
from heedful.records import AnswerKind

Of = Literal["logit", "probability", "log_probability"]
OFS = ("logit", "probability", "log_probability")


class Link:
    """softmax, the usual one; the others say where they differ."""

    name = "softmax"
    distribution = True  # whether the probabilities of a text sum to 1
    answers: AnswerKind = "one label"

    def __deepcopy__(self, memo: object) -> Self:
        """There is one of each: a copy of a network is asked `link is LOG_ODDS`, too."""
        return self

    def outputs(self, n_labels: int) -> int:
        """How many logits there are for so many labels."""
        return n_labels

    def probabilities(self, logits: Tensor) -> Tensor:
        """(..., outputs) -> (..., labels)."""
        return logits.softmax(-1)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """(..., outputs) -> (..., labels), where a probability of 1 - 1e-20 still has its logarithm."""
        return logits.log_softmax(-1)

    def logits(self, log_probabilities: Tensor) -> Tensor:
        """Logits that are read as these probabilities: (..., labels) -> (..., outputs)."""
        return log_probabilities

    def change(self, before: Tensor, after: Tensor) -> Tensor:
        """P(before) - P(after) in float64, exact where both are nearly 1: (..., outputs) twice -> (..., labels).

        In float32 all deletions from a text with P = 1 - 7e-8 seem to change nothing. A small probability has all its
        digits, p - q = q expm1(log p - log q), and the most probable label gains what the others lose.
        """
        p, q = self.log_probabilities(before.double()), self.log_probabilities(after.double())
        changes = q.exp() * torch.expm1(p - q)
        top = p.argmax(-1, keepdim=True).expand(*changes.shape[:-1], 1)
        others = changes.scatter(-1, top, 0.0)
        return others.scatter(-1, top, -others.sum(-1, keepdim=True))

    def predicted(self, logits: Tensor) -> Tensor:
        """The most probable label: (..., outputs) -> (...)."""
        return self.probabilities(logits).argmax(-1)

    def score(self, logits: Tensor, target: Tensor, of: Of = "logit") -> Tensor:
        """f_c, the number that is explained, for label c = target: (..., outputs), (...) -> (...)."""
        if of not in OFS:
            raise one_of("choice of", of, list(OFS))
        if of == "logit":
            return self._logit(logits, target)
        found = self.probabilities(logits) if of == "probability" else self.log_probabilities(logits)
        return found.gather(-1, target.unsqueeze(-1)).squeeze(-1)

    def _logit(self, logits: Tensor, target: Tensor) -> Tensor:
        return logits.gather(-1, target.unsqueeze(-1)).squeeze(-1)

    def row(self, weight: Tensor, bias: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """w_c (n, features) and b_c (n,) with f_c = w_c . features + b_c, of a last linear layer."""
        return weight[target], bias[target]

    def distance(self, p: Tensor, q: Tensor) -> Tensor:
        """How far two outputs are apart, 0 to 1: total variation, 1/2 sum_c |p_c - q_c|."""
        return self.size(p - q)

    def size(self, change: Tensor) -> Tensor:
        """The distance, of a change of probabilities: (..., labels) -> (...)."""
        return 0.5 * change.abs().sum(-1)


class LogOdds(Link):
    name = "log_odds"

    def outputs(self, n_labels: int) -> int:
        return 1

    def probabilities(self, logits: Tensor) -> Tensor:
        return torch.cat([(-logits).sigmoid(), logits.sigmoid()], dim=-1)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return log_sigmoid(torch.cat([-logits, logits], dim=-1))

    def logits(self, log_probabilities: Tensor) -> Tensor:
        return log_probabilities[..., 1:] - log_probabilities[..., :1]

    def change(self, before: Tensor, after: Tensor) -> Tensor:
        """sigma(a) - sigma(b) = (sigma(a) sigma(-b) + sigma(-a) sigma(b)) tanh((a - b) / 2): nothing is cancelled."""
        a, b = before.double(), after.double()
        either = a.sigmoid() * (-b).sigmoid() + (-a).sigmoid() * b.sigmoid()
        changes = either * torch.tanh((a - b) / 2)  # (..., 1), of the second label
        return torch.cat([-changes, changes], dim=-1)

    def _logit(self, logits: Tensor, target: Tensor) -> Tensor:
        return logits.squeeze(-1) * (2 * target - 1)

    def row(self, weight: Tensor, bias: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        sign = 2 * target - 1  # f_1 = z, f_0 = -z
        first = torch.zeros_like(target)
        return weight[first] * sign.unsqueeze(1), bias[first] * sign


class Sigmoids(Link):
    name = "sigmoids"
    answers: AnswerKind = "several labels"
    distribution = False

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return torch.nn.functional.logsigmoid(logits)

    def change(self, before: Tensor, after: Tensor) -> Tensor:
        return LOG_ODDS.change(before.unsqueeze(-1), after.unsqueeze(-1))[..., 1]

    def size(self, change: Tensor) -> Tensor:
        """Of the label that differs most: each is a yes or no of its own."""
        return change.abs().amax(-1)


class Identity(Link):
    name = "identity"
    answers: AnswerKind = "numbers"
    distribution = False

    def probabilities(self, logits: Tensor) -> Tensor:
        """The number itself: there is nothing to be probable."""
        return logits

    def log_probabilities(self, logits: Tensor) -> Tensor:
        raise ValueError("a model that predicts a number has no probabilities")

    def predicted(self, logits: Tensor) -> Tensor:
        return torch.zeros(logits.shape[:-1], dtype=torch.long, device=logits.device)

    def change(self, before: Tensor, after: Tensor) -> Tensor:
        return before.double() - after.double()

    def size(self, change: Tensor) -> Tensor:
        """In the unit of the number."""
        return change.abs().amax(-1)


def log_sigmoid(z: Tensor) -> Tensor:
    """log 1 / (1 + e^-z), as a log-sum-exp: a network that is held linear knows that function (explainers/lrp)."""
    return -torch.logsumexp(torch.stack([torch.zeros_like(z), -z], -1), -1)


SOFTMAX, LOG_ODDS, SIGMOIDS, IDENTITY = Link(), LogOdds(), Sigmoids(), Identity()


def link_of(n_labels: int, has_query: bool) -> Link:
    """Of the attentive classifiers: the paper's decoder has one logit for two labels, that for a query has not."""
    return LOG_ODDS if n_labels == 2 and not has_query else SOFTMAX
