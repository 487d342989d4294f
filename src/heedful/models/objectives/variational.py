"""The variational bound of a latent choice of words (Deng et al. 2018, sections 3 and 4).

    log p(y | x) >= E_q [log p(y | h_i)] - KL(q(i | x, y) || alpha)

with equality where the inference network q is the posterior alpha_i p(y | h_i) / p(y | x). `estimator = "enumerate"`
takes the expectation over all words, `"sample"` over some that are drawn from q; the gradient of q is then REINFORCE's,

    (log p(y | h_i) - B) d log q(i),   B = log p(y | sum_i alpha_i h_i)

with what soft attention would say as the baseline. KL is exact in both. Labels weigh as in cross-entropy.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from heedful.config import Config, TrainingConfig
from heedful.data.text.batching import Encoded
from heedful.errors import Mistake
from heedful.models.attentive.classifier import AttentiveOutput
from heedful.models.attentive.latent import LatentClassifier
from heedful.models.network import Trainable
from heedful.models.objectives.objective import Bases, CrossEntropy, Loss, label_weights
from heedful.records import Batch


class VariationalOptions(Config):
    estimator: Literal["enumerate", "sample"] = "enumerate"
    samples: int = Field(default=1, ge=1)  # of q, for each text and step


class VariationalBound(CrossEntropy):
    config = VariationalOptions
    version = "1"

    def loss(self, network: Trainable, train: Encoded, training: TrainingConfig, options: Any, bases: Bases) -> Loss:
        if not isinstance(network, LatentClassifier) or network.posterior is None:
            raise Mistake("the objective variational needs a model with attention='variational'.")
        posterior, weight = network.posterior, label_weights(network, train, training)

        def loss(output: AttentiveOutput, batch: Batch) -> Tensor:
            assert batch.labels is not None
            mask, labels = batch.passage.mask, batch.labels
            label = labels.unsqueeze(1)  # (batch, 1)
            q = posterior(output.h, mask, labels, output.query)  # (batch, length)
            every = network.decode_words(output.h, output.query, batch.candidates)  # (batch, length, labels)
            log_p = every.gather(2, label.unsqueeze(1).expand(-1, every.shape[1], 1)).squeeze(2)
            if options.estimator == "enumerate":
                bound = expected(q, log_p) - divergence(q, output.alpha)
            else:
                soft = network.decode_context(output.h, output.alpha, output.query, batch.candidates)
                reward = sampled(q, log_p, soft.gather(1, label), options.samples)
                bound = reward - divergence(q, output.alpha)
            # a text without words has nothing to choose from
            own = output.link.log_probabilities(output.logits).gather(1, label).squeeze(1)
            bound = torch.where(mask.any(1), bound, own)  # (batch,)
            return -(bound if weight is None else bound * weight[labels]).sum()

        return loss


def expected(q: Tensor, log_p: Tensor) -> Tensor:
    """E_q [log p], over all words: (batch, length) twice -> (batch,)."""
    return (q * torch.where(q > 0, log_p, 0.0)).sum(1)


def divergence(q: Tensor, alpha: Tensor) -> Tensor:
    """KL(q || alpha): (batch, length) twice -> (batch,). A weight that was rounded to 0 counts as the least number."""
    least = torch.finfo(alpha.dtype).tiny
    return (q * (q.clamp(min=least).log() - alpha.clamp(min=least).log())).sum(1)


def sampled(q: Tensor, log_p: Tensor, baseline: Tensor, samples: int) -> Tensor:
    """E_q [log p] from samples: q, log_p (batch, length), baseline (batch, 1) -> (batch,).

    Its value is the mean over the samples; its gradient has REINFORCE's term, too.
    """
    drawable = torch.where(q.sum(1, keepdim=True) > 0, q, 1.0).detach()  # a text without words: any
    drawn = torch.multinomial(drawable, samples, replacement=True)  # (batch, samples)
    found = log_p.gather(1, drawn)
    log_q = q.gather(1, drawn).clamp(min=torch.finfo(q.dtype).tiny).log()
    score = (found - baseline).detach() * log_q
    return (found + score - score.detach()).mean(1)


VARIATIONAL = VariationalBound()
