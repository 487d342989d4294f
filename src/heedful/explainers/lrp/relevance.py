"""Layer-wise relevance propagation (Bach et al. 2015), with the rules of Arras et al. 2017 for gates.

The top relevance is the logit f_c. Each layer hands it down to what it read, in proportion to contribution,
until it arrives at the words; what falls to biases, to epsilon and to the markers is not handed on, and

    sum over words of R + what was kept on the way = f_c

holds to the last digit (`conservation` gives the second term layer by layer). The rules: relevance_rules.py,
relevance_lstm.py, relevance_gru.py, relevance_orthogonal.py, relevance_layers.py. Attention is a gate:
c = sum_t alpha_t h_t shares by contribution alpha_t h_t, and the weights alpha take nothing.

These are the rules of our own classifiers. Every other network that takes embeddings is taken apart by one backward
pass with its gates held constant (frozen.py, decomposition.py), the same rule with epsilon 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from heedful.errors import Mistake
from heedful.explainers.explainer import Scores
from heedful.explainers.gradients.gradient import Parts, explained_parts
from heedful.explainers.lrp.decomposition import decompose
from heedful.explainers.lrp.frozen import BIASES, POSITIONS, LrpRule
from heedful.explainers.lrp.layers import average, cnn, no_encoder, transformer
from heedful.explainers.lrp.mixture import mixture
from heedful.explainers.lrp.recurrent import bigru, lstm, orthogonal
from heedful.explainers.lrp.rules import Layer, Rule
from heedful.models import AttentiveClassifier
from heedful.models.attentive.encoders import (
    CNN,
    LSTM,
    Average,
    Bidirectional,
    BiGRU,
    BiLSTM,
    Encoder,
    NoEncoder,
    Transformer,
    between_markers,
)
from heedful.models.attentive.imposed import Concatenated
from heedful.models.attentive.latent import LatentClassifier
from heedful.models.attentive.orthogonal import OrthogonalLSTM
from heedful.models.link import Link
from heedful.models.network import Differentiable
from heedful.records import Batch, Tokens


def concatenated(rule: Rule, name: str, encoder: Concatenated, x: Tensor, present: Tensor) -> Layer:
    """[state; embedding]: what falls to the embedding is at its word already."""
    h, back = _layer(rule, name, encoder.states, x, present)
    words = x * present.unsqueeze(-1)
    return torch.cat([h, words], -1), lambda R: back(R[..., : encoder.units]) + R[..., encoder.units :].sum(-1)


LAYERS: dict[type[Encoder], Callable[[Rule, str, Any, Tensor, Tensor], Layer]] = {
    BiLSTM: lstm,
    CNN: cnn,
    Average: average,
    Transformer: transformer,
    BiGRU: bigru,
    NoEncoder: no_encoder,
    Concatenated: concatenated,
    LSTM: lstm,
    OrthogonalLSTM: orthogonal,
}


EPSILON = 0.001


def encoder_without_rule(encoder: object) -> type[nn.Module] | None:
    """The class of an encoder, or of a part of it, that has no epsilon rule; None where all have one."""
    if isinstance(encoder, Concatenated):
        return encoder_without_rule(encoder.states)
    return type(encoder) if isinstance(encoder, nn.Module) and type(encoder) not in LAYERS else None


def no_rule(encoder: type[nn.Module]) -> str:
    """The sentence for an encoder that has no rule, and that the frozen network does not take apart."""
    return (
        f"lrp has no rule for the encoder {encoder.__name__} of this model: use gradient_x_input or "
        "integrated_gradients."
    )


def lrp(
    model: Differentiable,
    batch: Batch,
    target: Tensor,
    *,
    of: Literal["logit"] = "logit",
    parts: Parts = "both",
    epsilon: float | None = None,
    rule: LrpRule = "frozen",
) -> Scores:
    """Relevance of each word for the logit f_c (f_0 = -z where one logit z serves two labels). Signed.

    In a model of ours whose encoder has a rule (LAYERS), `gap` is what did not arrive at words, f_c - sum of R, and
    `scale` is |f_c|. A large gap is not an arithmetic error: it says that biases and markers of the model, not words,
    carry much of the logit. `epsilon` is 0.001 unless given. In any other model f_c = words + `special` + `rest`, and
    `gap` is rounding; a model that cannot be taken apart so is refused. `rule` says of such models whether attention
    weights are constants ("frozen") or take relevance, too ("attnlrp", Achtibat et al. 2024).
    """
    if of != "logit":
        raise Mistake(f"lrp explains the logit, not of={of!r}: only a linear output can be handed down.")
    asked = explained_parts(model, batch, parts)
    ours = "pools_by_attention" in model.can or isinstance(model, LatentClassifier)
    without_rule = encoder_without_rule(getattr(model, "encoder", None))
    if not ours or without_rule is not None:
        return _decomposed(model, batch, target, asked, epsilon, rule, without_rule if ours else None)
    if rule != "frozen":
        raise Mistake(f"rule={rule!r}: this model has rules of its own; leave rule out.")
    assert isinstance(model, AttentiveClassifier)
    own = Rule(_positive(EPSILON if epsilon is None else epsilon))
    f, passage, query = _propagate(model, batch, target, own)
    arrived = passage.sum(1) if query is None else passage.sum(1) + query.sum(1)  # (batch,)
    return Scores(
        passage=passage if "passage" in asked else torch.zeros_like(passage),
        query=query if "query" in asked else None,
        gap=f - arrived,
        scale=f.abs(),
        forward_passes=len(batch),
        backward_passes=len(batch),
    )


def refusal(network: Any) -> str:
    """Why a model of ours is refused: its encoder has no rule, and a short text cannot be taken apart exactly."""
    ours = isinstance(network, AttentiveClassifier)
    if not ours or encoder_without_rule(network.encoder) is None or "differentiable" not in network.can:
        return ""
    ids = torch.arange(5, device=network.device).remainder(network.embedding.num_embeddings).unsqueeze(0)  # (1, 5)
    there = torch.ones_like(ids, dtype=torch.bool)
    text = Tokens(ids, there, there)
    try:
        lrp(network, Batch(text, text if network.has_query else None), torch.zeros_like(ids[:, 0]))
    except Mistake as mistake:
        return str(mistake)
    return ""


def _decomposed(
    model: Differentiable,
    batch: Batch,
    target: Tensor,
    asked: tuple[Parts, ...],
    epsilon: float | None,
    rule: LrpRule,
    without_rule: type[nn.Module] | None,
) -> Scores:
    """By the frozen network, whose parts are held against the logit: an encoder of somebody else's is either taken
    apart exactly, or refused by its name."""
    if epsilon is not None:
        raise Mistake(f"epsilon={epsilon}: in this model lrp divides by nothing, so it takes no epsilon.")
    try:
        found = decompose(model, batch, target, rule)
    except Mistake as refusal:
        if without_rule is None:
            raise
        raise Mistake(no_rule(without_rule)) from refusal
    query = found.query if batch.query is not None and "query" in asked else None
    passage = found.passage if "passage" in asked else torch.zeros_like(found.passage)
    return Scores(
        passage=passage * batch.passage.mask,
        query=None if query is None or batch.query is None else query * batch.query.mask,
        gap=found.gap,
        scale=found.f.abs(),
        forward_passes=len(batch),
        backward_passes=len(batch),
        special=found.special,
        rest={POSITIONS: found.positions, BIASES: found.biases},
    )


def conservation(
    model: AttentiveClassifier, batch: Batch, target: Tensor, *, epsilon: float = EPSILON
) -> dict[str, Tensor]:
    """What each layer kept for its biases and epsilon, and what fell to markers: (batch,) each.

    Each is computed from its own formula, not as a difference, so that their sum can be held against `gap`.
    """
    if (encoder := encoder_without_rule(model.encoder)) is not None:
        raise Mistake(no_rule(encoder))
    kept: dict[str, Tensor] = {}
    _propagate(model, batch, target, Rule(_positive(epsilon), kept))
    return kept


@torch.no_grad()
def _propagate(
    model: AttentiveClassifier, batch: Batch, target: Tensor, rule: Rule
) -> tuple[Tensor, Tensor, Tensor | None]:
    """f_c (batch,), and the relevance of the words of the passage and of the query."""
    x, x_query = _embeddings(model, batch)
    h, back_passage = _layer(rule, "passage encoder", model.encoder, x, batch.passage.present)
    query = R_query = None
    if model.query_encoder is not None and batch.query is not None and x_query is not None:
        h_query, back_query = _layer(rule, "query encoder", model.query_encoder, x_query, batch.query.present)
        query = model.query_encoder.summary(h_query, batch.query.present)  # (batch, hidden)
    alpha = model.attend(h, batch.passage.mask, query)  # (batch, length)
    if isinstance(model, LatentClassifier):
        f, R_h, R_query = mixture(rule, model, h, alpha, query, batch.candidates, target)
    else:
        context = (alpha.unsqueeze(1) @ h).squeeze(1)  # (batch, hidden)
        f, R_context, R_query = _decoder(rule, model, context, query, target)
        s = rule.ratio(R_context, context, "attention")  # (batch, hidden)
        R_h = alpha.unsqueeze(-1) * h * s.unsqueeze(1)
    R_passage = back_passage(R_h)  # (batch, length)
    if R_query is None:
        return f, _words(rule, batch.passage, R_passage), None
    assert query is not None
    assert batch.query is not None
    summary = _summary(rule, model.query_encoder, h_query, query, batch.query.present, R_query)
    R_words = back_query(summary)
    return f, _words(rule, batch.passage, R_passage), _words(rule, batch.query, R_words)


def _layer(rule: Rule, name: str, encoder: Encoder, x: Tensor, present: Tensor) -> Layer:
    return LAYERS[type(encoder)](rule, name, encoder, x, present)


def _decoder(
    rule: Rule, model: AttentiveClassifier, context: Tensor, query: Tensor | None, target: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    """f_c, and the relevance of the context and of the query: (batch,), (batch, hidden), (batch, hidden)."""
    decoder, link = model.decoder, model.link
    if decoder.theta is not None:
        f, R = _logit(rule, link, decoder.theta, context, target)
        return f, R, None
    assert decoder.Wp is not None
    assert decoder.Wq is not None
    assert decoder.W2 is not None
    assert query is not None
    inner = decoder.Wp(context) + decoder.Wq(query)  # (batch, features)
    f, R = _logit(rule, link, decoder.W2, inner.tanh(), target)  # tanh passes relevance on
    s = rule.ratio(R, inner, "decoder", decoder.Wp.bias)  # (batch, features)
    return f, context * (s @ decoder.Wp.weight), query * (s @ decoder.Wq.weight)


def _logit(rule: Rule, link: Link, linear: nn.Linear, features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """f_c = w_c . features + b_c, and the relevance of the features."""
    w, b = link.row(linear.weight, linear.bias, target)  # (batch, features), (batch,)
    f = (w * features).sum(1) + b  # (batch,)
    s = rule.ratio(f.unsqueeze(1), f.unsqueeze(1), "output", b.unsqueeze(1))  # (batch, 1)
    return f, features * w * s


def _summary(rule: Rule, encoder: Encoder | None, h: Tensor, query: Tensor, present: Tensor, R: Tensor) -> Tensor:
    """From the query vector to the states it was made of: (batch, hidden) -> (batch, length, hidden)."""
    if isinstance(encoder, Concatenated):  # the summary of the states, and the mean of the embeddings
        n = encoder.units
        of_states = _summary(rule, encoder.states, h[..., :n], query[:, :n], present, R[:, :n])
        return torch.cat([of_states, _summary(rule, None, h[..., n:], query[:, n:], present, R[:, n:])], -1)
    if isinstance(encoder, Bidirectional):  # the last forward state and the first backward state, unchanged
        R_h = torch.zeros_like(h)
        half = h.shape[-1] // 2
        R_h[torch.arange(len(h), device=h.device), present.sum(1) - 1, :half] = R[:, :half]
        R_h[:, 0, half:] = R[:, half:]
        return R_h
    if isinstance(encoder, LSTM):  # the last state, unchanged
        R_h = torch.zeros_like(h)
        R_h[torch.arange(len(h), device=h.device), present.sum(1) - 1] = R
        return R_h
    if isinstance(encoder, CNN) and encoder.query_pooling == "max_of_words":
        # All of a feature's to where it is largest; where there is no word it is 0, and so is R.
        of_words = h.masked_fill(~between_markers(present).unsqueeze(-1), -torch.inf)
        largest = of_words.argmax(1, keepdim=True)  # (batch, 1, hidden)
        return torch.zeros_like(h).scatter(1, largest, R.unsqueeze(1))
    weight = present.to(h.dtype) / present.sum(1, keepdim=True)  # (batch, length): the mean
    s = rule.ratio(R, query, "query summary")  # (batch, hidden)
    return weight.unsqueeze(-1) * h * s.unsqueeze(1)


def _words(rule: Rule, tokens: Tokens, R: Tensor) -> Tensor:
    """The relevance of words; what fell to markers is kept."""
    rule.keep("markers", R * ~tokens.mask)
    return R * tokens.mask


def _positive(epsilon: float) -> float:
    if not epsilon > 0:
        raise Mistake(f"epsilon must be above 0, not {epsilon}: it keeps a division by zero away.")
    return epsilon


def _embeddings(model: AttentiveClassifier, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """x (batch, length, dim), and x of the query where there is one, as constants."""
    with torch.no_grad():
        x_query = model.embed(batch.query) if model.has_query and batch.query is not None else None
        return model.embed(batch.passage), x_query
