"""Say what a base model says, and attend elsewhere (Wiegreffe & Pinter 2019, section 4).

A fresh model a is trained to come near the predictions of a base model b, and away from its attention:

    L(a, b) = sum_i  TVD(y_a^i, y_b^i) - lambda KL(alpha_a^i || alpha_b^i)

over the training texts i; their labels are not looked at. The authors' code sums over the batch twice and weighs
texts by class (N / N+ - 1 for positives), and has half of TVD for two labels; here it is the paper's formula. Divided
by the texts it is the loss that is shown.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from heedful.config import TrainingConfig
from heedful.data.batching import Encoded
from heedful.models.classifier import AttentiveClassifier, AttentiveOutput
from heedful.models.objectives import BaseOptions, Bases, Loss, OfBase
from heedful.records import Batch

LEAST = 1e-10  # of a weight inside a logarithm (the authors' constant): no KL is above -ln LEAST = 23


class ImitationConfig(BaseOptions):
    lambda_: float = Field(default=0.0, ge=0)  # how much a nat of KL is worth, in TVD


class Imitation(OfBase):
    config = ImitationConfig
    version = "1"

    def loss(
        self,
        network: AttentiveClassifier,
        train: Encoded,
        training: TrainingConfig,
        options: ImitationConfig,
        bases: Bases,
    ) -> Loss:
        base = bases["base"]

        def loss(output: AttentiveOutput, batch: Batch) -> Tensor:
            with torch.no_grad():
                theirs = base(batch)
            tvd = output.link.distance(output.probabilities, theirs.probabilities)  # (batch,)
            return (tvd - options.lambda_ * attention_kl(output.alpha, theirs.alpha)).sum()

        return loss


def attention_kl(alpha: Tensor, base: Tensor) -> Tensor:
    """KL(alpha || base) = sum_t alpha_t (ln alpha_t - ln base_t): (batch, length) twice -> (batch,).

    Weights below LEAST count as LEAST inside the logarithms, so a weight of zero, in either, leaves the value and its
    gradient finite; padding has zero in both and adds nothing.
    """
    logarithms = alpha.clamp(min=LEAST).log() - base.clamp(min=LEAST).log()  # (batch, length)
    return (alpha * logarithms).sum(-1)


IMITATION = Imitation()
