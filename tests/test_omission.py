"""Omission through the structure of the encoder equals deleting each word and asking again."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import zoo
from heedful.config import AttentionName, EncoderName
from heedful.errors import Mistake
from heedful.explainers.perturbation.occlusion import LEAVE_ONE_OUT, omission
from heedful.explainers.perturbation.one_word import change_each_word, has_structure
from heedful.explainers.perturbation.reading import running, single
from heedful.models import AttentiveClassifier
from heedful.models.attentive.attention import masked_softmax
from heedful.records import Batch, Tokens
from zoo import probabilities, score

STRUCTURED = ["bilstm", "lstm", "cnn", "average"]  # encoders through whose structure omission is computed
EVERY = list(dict.fromkeys([*zoo.KINDS, *product(STRUCTURED, zoo.PLAIN, zoo.TASK_NAMES)]))


def without(tokens: Tokens, t: int) -> Tokens:
    """One text with its token t left out."""
    rest = [i for i in range(tokens.ids.shape[1]) if i != t]
    return Tokens(tokens.ids[:, rest], tokens.present[:, rest], tokens.mask[:, rest])


def plainly(model: AttentiveClassifier, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """The logits with each word deleted, one text and one word at a time: (batch, length, outputs)."""
    with torch.no_grad():
        original = model(batch).logits.unsqueeze(1)
        passage = original.repeat(1, batch.passage.ids.shape[1], 1)
        query = None if batch.query is None else original.repeat(1, batch.query.ids.shape[1], 1)
        for i in range(len(batch)):
            one = zoo.row(batch, i)
            for t in one.passage.mask[0].nonzero().flatten().tolist():
                passage[i, t] = model(Batch(without(one.passage, t), one.query, one.candidates)).logits[0]
            if one.query is None or query is None:
                continue
            for t in one.query.mask[0].nonzero().flatten().tolist():
                query[i, t] = model(Batch(one.passage, without(one.query, t), one.candidates)).logits[0]
    return passage, query


def sharpened(model: AttentiveClassifier, by: float) -> AttentiveClassifier:
    """Larger weights, as training makes them: gates that close, attention on few words."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(by)
    return model


@pytest.mark.parametrize(("encoder", "attention", "task"), EVERY)
def test_every_kind_of_model_equals_plain_deletion(
    encoder: EncoderName, attention: AttentionName, task: zoo.TaskName
) -> None:
    model, batch = sharpened(zoo.network(encoder, attention, task), 2), zoo.batch([5, 1, 9, 2], task)
    passage, query = plainly(model, batch)
    found = change_each_word(model, batch, "delete")
    torch.testing.assert_close(found.changed, passage, atol=1e-11, rtol=0)
    with torch.no_grad():  # given what the model says of the whole batch, in groups of two texts
        known = change_each_word(model, batch, "delete", output=model(batch), internal_batch_size=12)
    torch.testing.assert_close(known.changed, passage, atol=1e-11, rtol=0)
    torch.testing.assert_close(known.original, found.original, atol=1e-11, rtol=0)
    if query is not None:
        of_query = change_each_word(model, batch, "delete", "query")
        torch.testing.assert_close(of_query.changed, query, atol=1e-11, rtol=0)


@pytest.mark.parametrize("task", ["binary", "nli"])
def test_an_average_with_tanh_equals_plain_deletion(task: zoo.TaskName) -> None:
    model, batch = zoo.network("average", "dot", task, activation="tanh"), zoo.batch([5, 1, 9], task)
    found = change_each_word(model, batch, "delete")
    torch.testing.assert_close(found.changed, plainly(model, batch)[0], atol=1e-11, rtol=0)


@given(
    encoder=st.sampled_from(STRUCTURED),
    attention=st.sampled_from(zoo.ATTENTION_NAMES),
    task=st.sampled_from(zoo.TASK_NAMES),
    lengths=st.lists(st.integers(1, 14), min_size=1, max_size=5),
    at_once=st.one_of(st.none(), st.integers(1, 20)),
    by=st.floats(0.5, 6),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=40, deadline=None)
def test_any_lengths_padding_and_batch_size(
    encoder: EncoderName,
    attention: AttentionName,
    task: zoo.TaskName,
    lengths: list[int],
    at_once: int | None,
    by: float,
    seed: int,
) -> None:
    model, batch = sharpened(zoo.network(encoder, attention, task, seed), by), zoo.batch(lengths, task, seed)
    found = change_each_word(model, batch, "delete", internal_batch_size=at_once)
    torch.testing.assert_close(found.changed, plainly(model, batch)[0], atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("encoder", STRUCTURED)
def test_float32_is_within_1e5_on_long_texts(encoder: EncoderName) -> None:
    model, batch = (sharpened(zoo.network(encoder, "additive", "several"), 2).float(), zoo.batch([60, 45], "several"))
    found = change_each_word(model, batch, "delete").changed
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, plainly(model, batch)[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("encoder", STRUCTURED)
def test_attention_all_on_one_word_leaves_the_others_their_weights(encoder: EncoderName) -> None:
    """exp(phi) of the other words is 0 beside that of word 4: a difference of sums would lose them."""
    model, batch = zoo.network(encoder, "dot").float(), zoo.batch([9])
    with torch.no_grad():
        assert isinstance(model.attention.Q, Tensor)
        h = model.encode(model.embed(batch.passage), batch.passage.present)
        model.attention.Q.copy_(1e6 * (h[0, 4] - h[0].mean(0)))
        assert model(batch).alpha[0, 4] == 1.0
        expected = plainly(model, batch)[0]
    torch.testing.assert_close(change_each_word(model, batch, "delete").changed, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("task", ["binary", "qa"])
def test_tolerance_stops_early_and_stays_near(task: zoo.TaskName) -> None:
    model, batch = zoo.network("bilstm", "additive", task), zoo.batch([40, 3, 25, 40], task)
    exact = change_each_word(model, batch, "delete").changed
    errors = []
    for tolerance in (1e-9, 1e-4, 1e-2):
        near = change_each_word(model, batch, "delete", tolerance=tolerance).changed
        errors.append(float((near - exact).abs().amax()))
        assert errors[-1] <= 20 * tolerance
    assert errors[0] < errors[2]  # it did stop early


@pytest.mark.parametrize("encoder", [*STRUCTURED, "transformer"])
def test_equal_neighbours_are_a_tie_bit_for_bit(encoder: EncoderName) -> None:
    """Whichever of them is deleted, the same text remains: rounding must not rank them."""
    model, batch = zoo.network(encoder).float(), zoo.batch([8, 3])
    batch.passage.ids[0, 1:9] = torch.tensor([5, 7, 7, 7, 9, 9, 4, 7])
    batch.passage.ids[1, 1:4] = torch.tensor([6, 6, 5])
    changed = change_each_word(model, batch, "delete").changed[..., 0]
    assert changed[0, 2] == changed[0, 3] == changed[0, 4]
    assert changed[0, 5] == changed[0, 6]
    if encoder != "average":  # to which the order of the words is nothing: the texts are the same to it
        assert changed[0, 8] != changed[0, 4]
    assert changed[1, 1] == changed[1, 2]
    swapped = change_each_word(model, batch, "replace").changed[..., 0]
    if encoder != "average":
        assert swapped[0, 2] != swapped[0, 3]


def test_one_word_texts_leave_the_bias() -> None:
    for encoder in zoo.ENCODER_NAMES:
        model, batch = zoo.network(encoder), zoo.batch([1])
        assert model.decoder.theta is not None
        found = change_each_word(model, batch, "delete").changed[0, 1]
        torch.testing.assert_close(found, model.decoder.theta.bias.detach(), atol=1e-12, rtol=0)


def test_scores_are_the_drop_of_the_target_and_the_options_of_it() -> None:
    model, batch = zoo.network("bilstm", "additive", "nli"), zoo.batch([4, 6], "nli")
    assert batch.query is not None
    target = torch.tensor([2, 0])
    changed, changed_query = plainly(model, batch)
    assert changed_query is not None
    with torch.no_grad():
        logits = model(batch).logits
    drop = score(logits, target).unsqueeze(1) - score(changed, target.unsqueeze(1).expand(changed.shape[:2]))
    p = probabilities(logits).unsqueeze(1)
    tvd = (p - probabilities(changed)).abs().sum(-1) / 2
    of_p = p[torch.arange(2), 0, target].unsqueeze(1) - probabilities(changed)[torch.arange(2), :, target]
    mask = batch.passage.mask

    def same(found: Tensor | None, expected: Tensor) -> None:
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)

    same(omission(model, batch, target).passage, drop * mask)
    same(omission(model, batch, target, absolute=True).passage, drop.abs() * mask)
    same(omission(model, batch, target, of="probability").passage, of_p * mask)
    same(omission(model, batch, target, **LEAVE_ONE_OUT).passage, tvd * mask)
    both = omission(model, batch, target)
    assert both.query is not None
    of_query = score(changed_query, target.unsqueeze(1).expand(changed_query.shape[:2]))
    expected = (score(logits, target).unsqueeze(1) - of_query) * batch.query.mask
    same(both.query, expected)
    assert omission(model, batch, target, parts="passage").query is None
    only = omission(model, batch, target, parts="query")
    assert only.query is not None
    assert torch.equal(only.query, both.query)
    assert not only.passage.any()


def test_a_model_of_someone_elses_is_asked_plainly() -> None:
    class Twice(AttentiveClassifier):
        def encode(self, x: Tensor, present: Tensor) -> Tensor:
            return 2 * super().encode(x, present)

    model, batch = zoo.network(), zoo.batch([5, 3])
    assert has_structure(model)
    model.__class__ = Twice
    assert not has_structure(model)
    found = change_each_word(model, batch, "delete")
    torch.testing.assert_close(found.changed, plainly(model, batch)[0], atol=1e-12, rtol=0)


def test_what_is_wrong_is_said() -> None:
    model, batch = zoo.network(), zoo.batch([3])
    target = torch.tensor([1])
    for options, says in (
        ({"of": "odds"}, "odds"),
        ({"change": "jsd"}, "jsd"),
        ({"parts": "title"}, "title"),
        ({"state_tolerance": -1.0}, "tolerance"),
        ({"internal_batch_size": 0}, "internal_batch_size"),
    ):
        with pytest.raises(Mistake, match=says):
            omission(model, batch, target, **options)


def test_progress_ends_at_all_words() -> None:
    seen: list[tuple[int, int]] = []
    batch = zoo.batch([3, 5, 4])
    change_each_word(zoo.network(), batch, "delete", internal_batch_size=4, progress=lambda *d: seen.append(d))
    assert seen == [(5, 12), (9, 12), (12, 12)]


def test_running_sums_equal_softmax_over_each_prefix() -> None:
    generator = torch.Generator().manual_seed(0)
    phi = 100 * torch.randn(3, 11, generator=generator)
    values = torch.randn(3, 11, 2, generator=generator)
    mask = torch.rand(3, 11, generator=generator) < 0.7
    found = running(single(phi, values, mask)).context()
    for t in range(11):
        alpha = masked_softmax(phi[:, : t + 1], mask[:, : t + 1])
        torch.testing.assert_close(found[:, t], (alpha.unsqueeze(-1) * values[:, : t + 1]).sum(1))
