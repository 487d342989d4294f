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

from heedful.config import Config, TrainingConfig
from heedful.data.text.batching import Encoded
from heedful.errors import Mistake
from heedful.models.attentive.classifier import AttentiveClassifier, AttentiveOutput
from heedful.models.attentive.imposed import ImposedClassifier
from heedful.models.objectives.objective import BaseOptions, Bases, CrossEntropy, Loss, OfBase
from heedful.records import Batch

LEAST = 1e-10  # of a weight inside a logarithm (the authors' constant): no KL is above -ln LEAST = 23


class ImitationOptions(BaseOptions):
    lambda_: float = Field(default=0.0, ge=0)  # how much a nat of KL is worth, in TVD


class Imitation(OfBase):
    config = ImitationOptions
    version = "1"

    def loss(
        self,
        network: AttentiveClassifier,
        train: Encoded,
        training: TrainingConfig,
        options: ImitationOptions,
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


# Cross-entropy of a model on which the attention of a base model is imposed (Wiegreffe & Pinter 2019, section 3.3).


class ImposedAttention(OfBase):
    """The base's weights are copied into the network before the first step; from then on the loss is cross-entropy."""

    config = BaseOptions
    version = "1"

    def loss(
        self, network: AttentiveClassifier, train: Encoded, training: TrainingConfig, options: BaseOptions, bases: Bases
    ) -> Loss:
        if not isinstance(network, ImposedClassifier):
            raise Mistake("the objective imposed needs a model with the setting `imposed`, the base's own sizes.")
        try:
            network.imposed.load_state_dict(bases["base"].state_dict())
        except RuntimeError:
            raise Mistake("the setting `imposed` of the model does not have the sizes of its base.") from None
        return CrossEntropy().loss(network, train, training, Config(), bases)


IMPOSED = ImposedAttention()
