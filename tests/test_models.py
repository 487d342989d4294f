"""The four steps: padding never matters, attention is a distribution, interventions are arguments."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heedful.config import AttentionName, EncoderName, ModelConfig
from heedful.models import build
from heedful.models.attentive.attention import Additive, Dot, General, masked_softmax
from heedful.models.attentive.encoders import CNN, Average, BiLSTM
from zoo import KINDS, N_LABELS, TaskName, batch, network, probabilities, row, score, tokens

LENGTHS = st.lists(st.integers(1, 12), min_size=1, max_size=5)


@pytest.mark.parametrize(("encoder", "attention", "task"), KINDS)
@settings(max_examples=8, deadline=None)
@given(lengths=LENGTHS, seed=st.integers(0, 1000))
def test_a_batch_of_one_equals_a_batch_of_many(
    encoder: EncoderName, attention: AttentionName, task: TaskName, lengths: list[int], seed: int
) -> None:
    """In float64: in float32 the rounding of a norm of tiny differences would hide a fault, or be taken for one."""
    model, many = network(encoder, attention, task, seed), batch(lengths, task, seed)
    together = model(many)
    for i, n in enumerate(lengths):
        alone = model(row(many, i))
        torch.testing.assert_close(together.logits[i], alone.logits[0], atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(together.alpha[i, : n + 2], alone.alpha[0], atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(together.h[i, : n + 2], alone.h[0], atol=1e-10, rtol=1e-10)
        assert together.alpha[i, n + 2 :].eq(0).all()


@pytest.mark.parametrize(("encoder", "attention", "task"), KINDS)
def test_attention_is_a_distribution_over_real_words(
    encoder: EncoderName, attention: AttentionName, task: TaskName
) -> None:
    many = batch([1, 4, 9], task)
    alpha = network(encoder, attention, task)(many).alpha
    assert alpha[~many.passage.mask].eq(0).all()
    torch.testing.assert_close(alpha.sum(-1), torch.ones(3, dtype=alpha.dtype))


@pytest.mark.parametrize(("encoder", "attention", "task"), KINDS)
def test_the_four_steps_apart_are_the_forward_pass(
    encoder: EncoderName, attention: AttentionName, task: TaskName
) -> None:
    model, many = network(encoder, attention, task), batch([3, 7], task)
    output = model(many)
    query = None
    if many.query is not None:
        query = model.encode_query(model.embed(many.query), many.query.present)
    h = model.encode(model.embed(many.passage), many.passage.present)
    alpha = model.attend(h, many.passage.mask, query)
    assert torch.equal(model.decode(h, alpha, query, many.candidates), output.logits)
    assert torch.equal(model(many, alpha=alpha).logits, output.logits)
    assert torch.equal(model(many, x=output.x, x_query=output.x_query).logits, output.logits)


@pytest.mark.parametrize("task", ["binary", "several", "qa", "nli"])
def test_many_attentions_are_decoded_at_once_by_projecting_first(task: TaskName) -> None:
    model, many = network(task=task), batch([3, 7], task)
    output = model(many)
    alphas = torch.rand(2, 5, output.alpha.shape[1], dtype=torch.float64)  # (batch, variants, length)
    at_once = model.decoder.readout(
        alphas @ model.decoder.project(output.h), output.query, many.candidates
    )  # (batch, variants, outputs)
    for variant in range(5):
        one = model.decode(output.h, alphas[:, variant], output.query, many.candidates)
        torch.testing.assert_close(at_once[:, variant], one)


def test_the_bilstm_is_a_packed_bidirectional_lstm() -> None:
    torch.manual_seed(0)
    ours, theirs = BiLSTM(6, 8).double(), nn.LSTM(6, 4, batch_first=True, bidirectional=True).double()
    for name, weight in ours.forwards.named_parameters():
        getattr(theirs, name).data = weight.data
    for name, weight in ours.backwards.named_parameters():
        getattr(theirs, f"{name}_reverse").data = weight.data
    texts = tokens([9, 2, 5])
    x = torch.randn(3, 11, 6, dtype=torch.float64)
    packed = pack_padded_sequence(x, texts.present.sum(1), batch_first=True, enforce_sorted=False)
    states, (last, _) = theirs(packed)
    states, _ = pad_packed_sequence(states, batch_first=True)
    h = ours(x, texts.present)
    torch.testing.assert_close(h * texts.present.unsqueeze(-1), states)
    torch.testing.assert_close(ours.summary(h, texts.present), torch.cat([last[0], last[1]], -1))


def test_cnn_and_average_by_their_definition() -> None:
    torch.manual_seed(0)
    texts = tokens([4])
    x = torch.randn(1, 6, 3, dtype=torch.float64)
    for average, activation in ((Average(3, 4), torch.relu), (Average(3, 4, "tanh"), torch.tanh)):
        average.double()
        expected = activation(average.linear.weight @ x[0, 2] + average.linear.bias)
        torch.testing.assert_close(average(x, texts.present)[0, 2], expected)
    cnn = CNN(3, 8).double()
    h = cnn(x, texts.present)
    padded = torch.cat([torch.zeros(3, 3), x[0], torch.zeros(3, 3)]).double()  # three zero words on each side
    for k, width in enumerate((1, 3, 5, 7)):
        convolution = cnn.convolutions[k]
        assert isinstance(convolution, nn.Conv1d)
        for t in range(6):
            window = padded[3 + t - width // 2 : 3 + t + width // 2 + 1]  # (width, dim)
            assert convolution.bias is not None
            expected = ((convolution.weight * window.T).sum((1, 2)) + convolution.bias).relu()
            torch.testing.assert_close(h[0, t, 2 * k : 2 * k + 2], expected)


def test_similarities_by_their_definition() -> None:
    torch.manual_seed(0)
    h, Q = torch.randn(2, 3, 8), torch.randn(2, 8)
    additive, dot, general = Additive(8, True), Dot(8, True), General(8, True)
    for b in range(2):
        for t in range(3):
            inner = additive.W1.weight @ h[b, t] + additive.W1.bias
            assert additive.W2 is not None
            inner = inner + additive.W2.weight @ Q[b]
            torch.testing.assert_close(additive.phi(h, Q)[b, t], (additive.v.weight @ inner.tanh())[0])
            torch.testing.assert_close(dot.phi(h, Q)[b, t], h[b, t] @ Q[b] / 8**0.5)
            torch.testing.assert_close(general.phi(h, Q)[b, t], h[b, t] @ (general.W.weight @ Q[b]))


def test_nothing_to_attend_to_gives_zeros_not_nan() -> None:
    alpha = masked_softmax(torch.randn(2, 3), torch.tensor([[False] * 3, [True, False, False]]))
    assert alpha.tolist() == [[0, 0, 0], [1, 0, 0]]


def test_one_logit_stands_for_two_labels() -> None:
    z = torch.tensor([[0.3], [-2.0]])
    assert torch.allclose(probabilities(z)[:, 1], z[:, 0].sigmoid())
    assert torch.allclose(probabilities(z).sum(-1), torch.ones(2))
    target = torch.tensor([1, 0])
    assert torch.allclose(score(z, target), torch.tensor([0.3, 2.0]))
    assert torch.allclose(score(z, target, "probability"), torch.tensor([0.3, 2.0]).sigmoid())


def test_only_candidates_can_be_answers() -> None:
    model, many = network(task="qa"), batch([3, 8, 5], "qa")
    assert many.candidates is not None
    p = model(many).probabilities
    assert p[~many.candidates].eq(0).all()
    assert p.shape == (3, N_LABELS["qa"])
    torch.testing.assert_close(p.sum(-1), torch.ones(3, dtype=p.dtype))


def test_the_same_seed_builds_the_same_model_and_leaves_the_generator_alone() -> None:
    before = torch.random.get_rng_state()
    one, two, other = network(seed=3), network(seed=3), network(seed=4)
    assert torch.equal(before, torch.random.get_rng_state())
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(one.embedding.weight, other.embedding.weight)


def test_a_later_setting_leaves_the_names_of_runs() -> None:
    """`activation` came after the first runs: where it is the default, nothing that is hashed changes."""
    assert "activation" not in ModelConfig(encoder="average").model_dump(mode="json")
    tanh = ModelConfig(encoder="average", activation="tanh", embedding_dim=6, hidden_dim=8)
    assert tanh.model_dump(mode="json")["activation"] == "tanh"
    encoder = build(tanh, 9, 2, has_query=True).query_encoder
    assert isinstance(encoder, Average)
    assert encoder.activation is torch.tanh
