"""Relevance through the mixture of a latent choice of words (models/attentive/latent.py).

f_c is a function of the logits Z_ik that each word i would give by itself, through log-softmax and a logarithm of a
sum, which is the mean of what it sums over plus an entropy:

    log sum_i exp(a_i) = sum_i w_i a_i + H(w),   w = softmax(a)

With every w held constant, as gates are, f_c = sum_ik G_ik Z_ik + constants, where G is the gradient of f_c: Z_ik takes
G_ik Z_ik, the entropies and log alpha are kept. From Z_ik on it is the epsilon rule through the decoder of each word.
"""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.explainers.lrp.rules import Rule
from heedful.models.attentive.latent import LatentClassifier


def mixture(
    rule: Rule,
    model: LatentClassifier,
    h: Tensor,
    alpha: Tensor,
    query: Tensor | None,
    candidates: Tensor | None,
    target: Tensor,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """f_c, and the relevance of the states and of the query: (batch,), (batch, length, hidden), (batch, hidden)."""
    decoder = model.decoder
    Z = decoder.readout(decoder.project(h), query, candidates)  # (batch, length, outputs)
    with torch.enable_grad():
        free = Z.detach().requires_grad_()
        log_p = model.link.log_probabilities(free)  # (batch, length, labels)
        f = model.link.score(model.mix_words(log_p, alpha, query, candidates), target)  # (batch,)
        (G,) = torch.autograd.grad(f.sum(), free)  # texts do not mix: one sum serves them all
    f, R = f.detach(), G * Z  # (batch, length, outputs)
    if rule.kept is not None:
        kept = model.link.score(model.link.logits(constants(log_p.detach(), alpha)), target)  # (batch,)
        rule.keep("mixture", torch.where(alpha.any(1), kept, f).unsqueeze(1))
    if decoder.theta is not None:
        s = rule.ratio(R, Z, "output", decoder.theta.bias)
        return f, h * (s @ decoder.theta.weight), None
    assert decoder.Wp is not None
    assert decoder.Wq is not None
    assert decoder.W2 is not None
    assert query is not None
    inner = decoder.Wp(h) + decoder.Wq(query).unsqueeze(1)  # (batch, length, features)
    s = rule.ratio(R, Z, "output", decoder.W2.bias)  # (batch, length, outputs)
    R_inner = inner.tanh() * (s @ decoder.W2.weight)  # tanh passes relevance on
    s = rule.ratio(R_inner, inner, "decoder", decoder.Wp.bias)  # (batch, length, features)
    return f, h * (s @ decoder.Wp.weight), query * (s @ decoder.Wq.weight).sum(1)


def constants(log_p: Tensor, alpha: Tensor) -> Tensor:
    """What log sum_i alpha_i p_ic holds beside the logits of the words: (batch, labels).

    sum_i w_ic (log alpha_i - H(p_i)) + H(w_c), w_ic the share of word i in the mixture of label c.
    """
    log_alpha = torch.where(alpha > 0, alpha, 1.0).log().unsqueeze(-1)  # (batch, length, 1), 0 where there is none
    shares = (log_p + log_alpha).masked_fill(alpha.unsqueeze(-1) <= 0, -torch.inf)
    w = shares.softmax(1).nan_to_num()  # (batch, length, labels); nan: no word has weight
    entropy = -(log_p.exp() * log_p).sum(-1, keepdim=True)  # (batch, length, 1)
    return (w * (log_alpha - entropy) - torch.xlogy(w, w)).sum(1)
