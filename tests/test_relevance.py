"""Relevance propagation against the published equations, written out one time step at a time, in numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.config import AttentionName, EncoderName
from heedful.errors import Mistake
from heedful.explainers.gradients.gradient import gradient_x_input
from heedful.explainers.lrp import LRP
from heedful.explainers.lrp.layers import attention_step, layer_norm, mlp_step
from heedful.explainers.lrp.relevance import LAYERS, conservation, lrp
from heedful.explainers.lrp.rules import Rule, linear
from heedful.models import ENCODERS, AttentiveClassifier
from heedful.models.attentive.encoders import Block, Encoder, Transformer
from heedful.records import Batch, Tokens
from zoo import ENCODER_NAMES, KINDS, TaskName, batch, network, row

Array = NDArray[np.float64]
LENGTHS = [6, 1, 13]
RULED = [name for name in ENCODER_NAMES if ENCODERS[name] in LAYERS]
EPSILON = 0.001


def share(x: Array, w: Array, z: Array, R: Array) -> Array:
    """Weighted connections: R_i = sum_j x_i w_ij / (z_j + epsilon sign(z_j)) R_j, term by term."""
    received = np.zeros(len(x))
    for j in range(len(z)):
        sign = 1.0 if z[j] >= 0 else -1.0
        for i in range(len(x)):
            received[i] += x[i] * w[i, j] / (z[j] + EPSILON * sign) * R[j]
    return received


def sigmoid(z: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-z))
    return result


def lstm_forward(lstm: nn.LSTM, x: Array) -> list[dict[str, Array]]:
    """Everything an LSTM computes on one text, step by step."""
    W, U, b, d = (
        getattr(lstm, name).detach().numpy() for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    )
    n = U.shape[1]
    h = c = np.zeros(n)
    steps = []
    for x_t in x:
        z = W @ x_t + U @ h + b + d
        i, f, g, o = sigmoid(z[:n]), sigmoid(z[n : 2 * n]), np.tanh(z[2 * n : 3 * n]), sigmoid(z[3 * n :])
        step = {"x": x_t, "h_before": h, "c_before": c, "i": i, "f": f, "g": g, "z_g": z[2 * n : 3 * n]}
        c = f * c + i * g
        h = o * np.tanh(c)
        steps.append({**step, "c": c, "h": h})
    return steps


def lstm_backward(lstm: nn.LSTM, steps: list[dict[str, Array]], R_h: Array) -> Array:
    """Arras et al. 2017: R_h (length, hidden) comes in from above, the relevance of each word goes out."""
    n = R_h.shape[1]
    W, U = (getattr(lstm, name).detach().numpy()[2 * n : 3 * n].T for name in ("weight_ih_l0", "weight_hh_l0"))
    words = np.zeros(len(steps))
    R_c, R_recurrent = np.zeros(n), np.zeros(n)
    for t in reversed(range(len(steps))):
        step = steps[t]
        R_c = R_c + R_h[t] + R_recurrent  # h = o tanh(c): the signal takes all
        one = np.eye(n)
        R_g = share(step["i"] * step["g"], one, step["c"], R_c)
        R_c = share(step["f"] * step["c_before"], one, step["c"], R_c)
        words[t] = share(step["x"], W, step["z_g"], R_g).sum()
        R_recurrent = share(step["h_before"], U, step["z_g"], R_g)
    return words


def bilstm_words(encoder: Encoder, x: Array, R_h: Array) -> Array:
    """Both directions of one text: R_h (length, 2 hidden) -> (length,)."""
    half = R_h.shape[1] // 2
    forwards, backwards = encoder.forwards, encoder.backwards
    assert isinstance(forwards, nn.LSTM)
    assert isinstance(backwards, nn.LSTM)
    ahead = lstm_backward(forwards, lstm_forward(forwards, x), R_h[:, :half])
    back = lstm_backward(backwards, lstm_forward(backwards, x[::-1]), R_h[::-1, half:])
    return ahead + back[::-1]


def slow_lrp(model: AttentiveClassifier, text: Batch, label: int) -> tuple[Array, Array | None]:
    """Relevance of the words of one text (and query) of a BiLSTM model."""
    with torch.no_grad():
        output = model(text)
    x, h, alpha = output.x[0].numpy(), output.h[0].numpy(), output.alpha[0].numpy()
    context = alpha @ h
    weights = {name: weight.detach().numpy() for name, weight in model.decoder.named_parameters()}
    R_query = None
    if output.query is None:
        w, b = weights["theta.weight"], weights["theta.bias"]
        w, b = (w[0] * (2 * label - 1), b[0] * (2 * label - 1)) if len(w) == 1 else (w[label], b[label])
        f = np.array([w @ context + b])
        R_context = share(context, w[:, None], f, f)
    else:
        query = output.query[0].numpy()
        inner = weights["Wp.weight"] @ context + weights["Wp.bias"] + weights["Wq.weight"] @ query
        w, b = weights["W2.weight"][label], weights["W2.bias"][label]
        f = np.array([w @ np.tanh(inner) + b])
        R_inner = share(np.tanh(inner), w[:, None], f, f)
        R_context = share(context, weights["Wp.weight"].T, inner, R_inner)
        R_q = share(query, weights["Wq.weight"].T, inner, R_inner)
        assert output.x_query is not None
        x_query = output.x_query[0].numpy()
        half = len(R_q) // 2
        R_states = np.zeros((len(x_query), len(R_q)))
        R_states[-1, :half], R_states[0, half:] = R_q[:half], R_q[half:]
        assert model.query_encoder is not None
        R_query = bilstm_words(model.query_encoder, x_query, R_states)
    one = np.eye(len(context))
    R_h = np.stack([share(alpha[t] * h[t], one, context, R_context) for t in range(len(h))])
    return bilstm_words(model.encoder, x, R_h), R_query


@pytest.mark.parametrize("task", ["binary", "several", "nli"])
def test_the_equations_of_arras_et_al(task: TaskName) -> None:
    model, texts = network(task=task), batch([5, 1, 3], task)
    target = torch.tensor([0, 1, 1])
    scores = lrp(model, texts, target, epsilon=EPSILON)
    for i in range(3):
        text = row(texts, i)
        passage, query = slow_lrp(model, text, int(target[i]))
        mask = text.passage.mask[0].numpy()
        np.testing.assert_allclose(scores.passage[i, : len(mask)].numpy(), passage * mask, rtol=1e-9, atol=1e-14)
        if query is not None:
            assert text.query is not None
            assert scores.query is not None
            mask = text.query.mask[0].numpy()
            np.testing.assert_allclose(scores.query[i, : len(mask)].numpy(), query * mask, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("encoder", "attention", "task"), [kind for kind in KINDS if kind[0] in RULED])
def test_conservation(encoder: EncoderName, attention: AttentionName, task: TaskName) -> None:
    """What arrives at words and what biases, epsilon and markers keep is the logit, to the last digit."""
    check_conservation(network(encoder, attention, task), batch(LENGTHS, task))


def test_conservation_through_tanh() -> None:
    check_conservation(network("average", activation="tanh"), batch(LENGTHS))


def check_conservation(model: AttentiveClassifier, texts: Batch) -> None:
    assert texts.labels is not None
    f = model(texts).score(texts.labels).detach()
    scores = lrp(model, texts, texts.labels)
    kept = conservation(model, texts, texts.labels)
    arrived = scores.passage.sum(1) + (0 if scores.query is None else scores.query.sum(1))
    torch.testing.assert_close(arrived + torch.stack(list(kept.values())).sum(0), f)
    torch.testing.assert_close(scores.gap, f - arrived)
    torch.testing.assert_close(scores.scale, f.abs())


@pytest.mark.parametrize("encoder", RULED)
def test_without_biases_and_epsilon_nothing_is_kept_but_by_markers(encoder: EncoderName) -> None:
    model, texts = network(encoder), batch(LENGTHS)
    forget_biases(model)
    kept = conservation(model, texts, torch.ones(3, dtype=torch.long), epsilon=1e-13)
    markers = kept.pop("markers")
    if encoder == "transformer":  # its positions are constants, as biases are
        kept.pop("passage encoder")
    for amount in kept.values():
        torch.testing.assert_close(amount, torch.zeros_like(amount), atol=1e-7, rtol=0)
    if encoder == "average":
        assert markers.eq(0).all()  # no state knows a marker that is not attended to


@pytest.mark.parametrize("name", ["linear", "layer norm", "attention step", "mlp step"])
def test_conservation_of_each_layer(name: str) -> None:
    """Relevance out = relevance in + kept, for relevance of any sign."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        x, present = torch.randn(3, 5, 8).double(), torch.arange(5) < torch.tensor([[5], [2], [3]])
        block, norm, R = Block(8, 2).double(), nn.LayerNorm(8).double(), torch.randn(3, 5, 8).double()
        nn.init.normal_(norm.weight)
        nn.init.normal_(norm.bias)
        map_ = nn.Linear(8, 8).double()
    kept: dict[str, Tensor] = {}
    rule = Rule(0.01, kept)
    with torch.no_grad():
        if name == "linear":
            (out, back), expected = linear(rule, name, x, map_.weight, map_.bias), map_(x)
        elif name == "layer norm":
            (out, back), expected = layer_norm(rule, name, x, norm), norm(x)
        elif name == "attention step":
            (out, back), expected = attention_step(rule, name, block, x, present), halfway(block, x, present)
        else:
            (out, back), expected = mlp_step(rule, name, block, x, present), x + block.mlp(block.norm_mlp(x))
        torch.testing.assert_close(out, expected)
        arrived = back(R)
    torch.testing.assert_close(arrived.sum((1, 2)) + sum(kept.values()), R.sum((1, 2)))


def halfway(block: Block, x: Tensor, present: Tensor) -> Tensor:
    """A block's stream after its self-attention: what it is without its MLP."""
    seen: list[Tensor] = []
    handle = block.norm_mlp.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    block(x, present)
    handle.remove()
    return seen[0]


@pytest.mark.parametrize("encoder", RULED)
def test_conservation_of_each_encoder(encoder: EncoderName) -> None:
    model, texts = network(encoder), batch(LENGTHS)
    tokens = texts.passage
    generator = torch.Generator().manual_seed(0)
    kept: dict[str, Tensor] = {}
    with torch.no_grad():
        x = model.embed(tokens)
        h, back = LAYERS[type(model.encoder)](Rule(EPSILON, kept), "it", model.encoder, x, tokens.present)
        real = tokens.present.unsqueeze(-1)
        torch.testing.assert_close(h * real, model.encode(x, tokens.present) * real)
        R = torch.randn(h.shape, generator=generator, dtype=torch.float64) * real
        if encoder in ("cnn", "average"):
            R = R * (h > 0)  # relevance comes in proportion to contribution, and these states contribute none
        arrived = back(R)
    torch.testing.assert_close(arrived.sum(1) + torch.stack(list(kept.values())).sum(0), R.sum((1, 2)))
    assert arrived[~tokens.present].abs().max() < 1e-12


@pytest.mark.parametrize("encoder", ["cnn", "average"])
def test_a_relu_net_without_biases_is_gradient_x_input(encoder: EncoderName) -> None:
    """With epsilon -> 0 (Ancona et al. 2018), the attention held constant as the rule for gates does."""
    model, texts = network(encoder), batch(LENGTHS)
    forget_biases(model)
    target = torch.tensor([0, 1, 1])
    ours = lrp(model, texts, target, epsilon=1e-13).passage
    expected = gradient_x_input(model, texts, target, hold_attention=True).passage
    torch.testing.assert_close(ours, expected, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("encoder", RULED)
def test_the_scores_of_the_other_label_are_their_opposite(encoder: EncoderName) -> None:
    model, texts = network(encoder), batch(LENGTHS)
    one = torch.ones(3, dtype=torch.long)
    torch.testing.assert_close(lrp(model, texts, one).passage, -lrp(model, texts, 1 - one).passage)


def test_a_word_that_the_model_ignores_gets_nothing() -> None:
    model, texts = network(), batch(LENGTHS)
    ids = texts.passage.ids.clone()
    ids[:, 1] = 7
    texts = Batch(Tokens(ids, texts.passage.present, texts.passage.mask))
    with torch.no_grad():
        model.embedding.weight[7] = 0
    assert lrp(model, texts, torch.ones(3, dtype=torch.long)).passage[:, 1].eq(0).all()


@given(st.lists(st.integers(1, 15), min_size=1, max_size=4), st.integers(0, 20), st.floats(1e-6, 0.1))
@settings(max_examples=20, deadline=None)
def test_conservation_for_any_lengths_and_epsilon(lengths: list[int], seed: int, epsilon: float) -> None:
    model, texts = network(task="nli", seed=seed), batch(lengths, "nli", seed)
    assert texts.labels is not None
    gap = lrp(model, texts, texts.labels, epsilon=epsilon).gap
    kept = conservation(model, texts, texts.labels, epsilon=epsilon)
    torch.testing.assert_close(torch.stack(list(kept.values())).sum(0), gap, atol=1e-9, rtol=1e-7)


def test_parts() -> None:
    model, texts = network(task="nli"), batch(LENGTHS, "nli")
    assert texts.labels is not None
    both = lrp(model, texts, texts.labels)
    passage = lrp(model, texts, texts.labels, parts="passage")
    query = lrp(model, texts, texts.labels, parts="query")
    assert passage.query is None
    assert query.passage.eq(0).all()
    torch.testing.assert_close(passage.passage, both.passage)
    torch.testing.assert_close(query.query, both.query)
    torch.testing.assert_close(passage.gap, both.gap)


def test_mistakes() -> None:
    model, texts = network(), batch([2])
    target = torch.tensor([0])
    with pytest.raises(Mistake, match="explains the logit"):
        lrp(model, texts, target, of="probability")  # type: ignore[arg-type]
    with pytest.raises(Mistake, match="above 0"):
        lrp(model, texts, target, epsilon=0)
    model.encoder = Unheard().double()
    with pytest.raises(Mistake, match="lrp has no rule for the encoder Unheard of this model: use gradient_x_input"):
        conservation(model, texts, target)
    found = lrp(model, texts, target)  # by the general way: the frozen network
    assert found.gap is not None
    assert found.special is not None
    assert found.gap.abs().max() < 1e-10
    assert LRP.fits(model)
    model.encoder = Fused().double()
    with pytest.raises(Mistake, match="lrp has no rule for the encoder Fused of this model: use gradient_x_input"):
        lrp(model, texts, target)
    assert not LRP.fits(model)
    assert "Fused" in LRP.why_not(model)
    mixed = network(attention="latent")
    mixed.encoder = Unheard().double()
    with pytest.raises(Mistake, match="lrp has no rule for the encoder Unheard of this model"):
        lrp(mixed, texts, target)


class Fused(Encoder):
    """A recurrence that nobody has rules for: layers on top of each other, in one call."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(6, 8, num_layers=2, batch_first=True)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.layers(x)[0]
        return h


class Unheard(Transformer):
    """A kind of its own: rules for its parent may not be right for it."""

    def __init__(self) -> None:
        super().__init__(6, 8)


def forget_biases(model: AttentiveClassifier) -> None:
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "bias" in name:
                weight.zero_()
