"""What a model that selects its words makes small: the loss of its prediction, with a share of the words and few
changes between selected and not.

    min E_z [loss(y | x z)]   subject to   E[L0(z)] / n = rate                       (Bastings et al. 2019, section 3.2)

plus coherence times the expected fused lasso over n; both expectations are exact (kuma.py). The constraint is held by
an augmented Lagrangian of what the mean share of a batch is off, lambda off + stiffness / 2 off^2; the multiplier rises
while more is selected than the rate says, and falls, also below 0, while it is less: lambda += ascent off. The square
is ours: without it gates swing past the rate and close for good. The multiplier begins to move when the prediction is
better than a constant answer, because a selection that shrinks before anything is known of the words ends nowhere.

Where no gradient flows through the gates (Bernoulli) the loss's gradient is REINFORCE's,

    (loss - baseline) d log P(z)                                                     (Lei et al. 2016, section 4)

with a moving mean of the loss as the baseline. They put the penalties into it, too; here these keep their exact
gradients, which vary less. Labels weigh as in cross-entropy.

The epoch that is kept is the one with the least dev loss among those that hold the rate: one that does not pays
OFF_RATE for the share that it is off. A moving mean of the loss stays with the weights: by it a model says when its
selection failed to train (models/rationale/classifier.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional as F

from heedful.config import Config, TrainingConfig
from heedful.data.text.batching import EVIDENCE, Encoded
from heedful.errors import Mistake
from heedful.models.network import Trainable
from heedful.models.objectives.objective import Bases, CrossEntropy, Loss, label_weights
from heedful.models.rationale.classifier import RationaleClassifier, RationaleOutput
from heedful.models.rationale.kuma import expected_changes, expected_share
from heedful.records import Batch

OFF_RATE = 20.0
TOLERANCE = 0.02  # of the share, before it costs anything
LEARNT = 0.95  # of a constant answer's loss: what is more has learnt nothing that a selection could keep
KEEP = 0.95  # of a moving mean, at each step


class RationaleOptions(Config):
    ascent: float = Field(default=0.01, ge=0, le=100)  # step of the multiplier
    stiffness: float = Field(default=10.0, ge=0, le=1e4)  # of the square of what the share is off
    strongest: float = Field(default=5.0, ge=0, le=1e6)  # the multiplier's largest size
    evidence: float = Field(default=1.0, ge=0, le=1e6)  # weight of marked words, where gates learn from them


class RationaleLoss(CrossEntropy):
    config = RationaleOptions
    version = "1"
    metric = "dev_loss"

    def loss(self, network: Trainable, train: Encoded, training: TrainingConfig, options: Any, bases: Bases) -> Loss:
        if not isinstance(network, RationaleClassifier):
            raise Mistake("the objective rationale needs a model that selects words: train it with --rationale.")
        selector, gates = network.selector, network.selector.gates
        if gates.from_evidence and (EVIDENCE not in train.targets or not train.targets[EVIDENCE].any()):
            raise Mistake(
                "a supervised rationale learns from words that are marked as evidence, and these data mark none: give "
                "a corpus that has them (planted, eraser_movies), name a column with evidence_column, or take another "
                "kind of rationale, such as hardkuma."
            )
        weight = label_weights(network, train, training)  # (labels,)
        assert train.labels is not None
        selector.constant.fill_(constant_loss(train.labels, weight, network.n_labels))

        def loss(output: RationaleOutput, batch: Batch) -> Tensor:
            losses = text_losses(output, batch, weight)  # (batch,)
            draw = output.draw
            if draw is None or output.words is None:  # of dev, by what is selected for good
                missed = abs(float(selector.share) - network.rate) if gates.by_penalty else 0.0
                return losses.sum() + len(batch) * OFF_RATE * max(0.0, missed - TOLERANCE)
            total, n = losses.sum(), len(batch)
            if draw.log_p is not None:
                total = total + reinforce(losses, draw.log_p, selector.baseline).sum()
            share = expected_share(draw.p, output.words)  # (batch,)
            if gates.by_penalty:
                off = share.mean() - network.rate
                total = total + n * (float(selector.multiplier) * off + options.stiffness / 2 * off**2)
                total = total + gates.coherence * expected_changes(draw.p, output.words).sum()
            if gates.from_evidence:
                total = total + options.evidence * evidence_loss(draw.p, batch).sum()
            if network.training:
                remember(network, losses, share, options)
            return total

        return loss


def text_losses(output: RationaleOutput, batch: Batch, weight: Tensor | None) -> Tensor:
    """Cross-entropy of each text, (batch,)."""
    assert batch.labels is not None
    log_p = output.link.log_probabilities(output.logits)
    losses = -log_p.gather(1, batch.labels.unsqueeze(1)).squeeze(1)
    return losses if weight is None else losses * weight[batch.labels]


def reinforce(losses: Tensor, log_p: Tensor, baseline: Tensor) -> Tensor:
    """0, with the gradient (loss - baseline) d log P(z): (batch,)."""
    score = (losses.detach() - baseline) * log_p
    return score - score.detach()


def evidence_loss(p: Tensor, batch: Batch) -> Tensor:
    """Binary cross-entropy of the words with what is marked, as a mean over the words of each text that has any."""
    marked, words = batch.targets[EVIDENCE], batch.passage.mask
    p = p.clamp(1e-6, 1 - 1e-6)
    each = F.binary_cross_entropy(p, marked.to(p), reduction="none") * words
    return each.sum(1) / words.sum(1).clamp(min=1) * marked.any(1)


@torch.no_grad()
def remember(network: RationaleClassifier, losses: Tensor, share: Tensor, options: Any) -> None:
    """Moving means, and a step of the multiplier."""
    selector = network.selector
    begins = not bool(selector.loss)
    mean = losses.mean()
    for moving in (selector.loss, selector.baseline):
        moving.copy_(mean if begins else KEEP * moving + (1 - KEEP) * mean)
    if bool(selector.multiplier) or float(selector.loss) < LEARNT * float(selector.constant):
        step = options.ascent * (share.mean() - network.rate)
        selector.multiplier.add_(step).clamp_(-options.strongest, options.strongest)


def constant_loss(labels: Any, weight: Tensor | None, n_labels: int) -> float:
    """Of the best answer that is the same for every text: the weighted entropy of the labels."""
    counts = np.bincount(labels, minlength=n_labels).astype(float)
    counts *= np.ones(n_labels) if weight is None else weight.cpu().numpy()
    p = counts / counts.sum()
    each = -counts * np.log(np.where(p > 0, p, 1.0))
    return float(each.sum() / len(labels))


RATIONALE = RationaleLoss()
