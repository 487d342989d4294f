"""Cross-entropy of a model on which the attention of a base model is imposed (Wiegreffe & Pinter 2019, section 3.3)."""

from __future__ import annotations

from heedful.config import Config, TrainingConfig
from heedful.data.batching import Encoded
from heedful.errors import Mistake
from heedful.models.classifier import AttentiveClassifier
from heedful.models.imposed import ImposedClassifier
from heedful.models.objectives import BaseOptions, Bases, CrossEntropy, Loss, OfBase


class ImposedAttention(OfBase):
    """The base's weights are copied into the network before the first step; from then on the loss is cross-entropy."""

    config = BaseOptions
    version = "1"

    def loss(
        self,
        network: AttentiveClassifier,
        train: Encoded,
        training: TrainingConfig,
        options: BaseOptions,
        bases: Bases,
    ) -> Loss:
        if not isinstance(network, ImposedClassifier):
            raise Mistake(
                "the objective imposed needs a model with the setting `imposed`, the base's own sizes."
            )
        try:
            network.imposed.load_state_dict(bases["base"].state_dict())
        except RuntimeError:
            raise Mistake("the setting `imposed` of the model does not have the sizes of its base.") from None
        return CrossEntropy().loss(network, train, training, Config(), bases)


IMPOSED = ImposedAttention()
