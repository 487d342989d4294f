"""What `explain` puts into columns, batch by batch, is what each text alone is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import webruns
from heedful import Explanation
from heedful.config import ModelConfig
from heedful.data.text.vocabulary import Vocabulary, WordEncoder
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS, Axiom, Scores, find
from heedful.explainers.collect import Call, Collector, check_axiom, share
from heedful.explainers.run import explain
from heedful.explanation.attribution import Check
from heedful.explanation.checks import check_columns
from heedful.models import build
from heedful.models.model import Model
from heedful.records import Batch, Example, TaskType

TEXT = WordEncoder(Vocabulary.build([]))  # its pieces are the words
METHODS = ("attention", "gradient", "integrated_gradients", "omission")


def model_of(examples: Sequence[Example], task: TaskType) -> Model:
    sizes = ModelConfig.model_validate({"encoder": "average", "embedding_dim": 8, "hidden_dim": 8})
    vocabulary = Vocabulary.build(w for e in examples for w in (e.passage, e.query) if w is not None)
    labels = ("no", "yes", "perhaps")
    network = build(sizes, len(vocabulary), len(labels), task != "classification", 0).double().eval()
    return Model("made", network, WordEncoder(vocabulary, "whitespace"), labels, task)


@pytest.mark.parametrize("task", ["classification", "nli"])
def test_every_text_gets_its_own_scores(task: TaskType) -> None:
    """Each text alone in a batch, against texts of different length together."""
    queries = None if task == "classification" else webruns.SENTENCES[::-1]
    examples = webruns.examples(webruns.SENTENCES, queries, 3)
    model = model_of(examples, task)
    together = explain(model, examples, METHODS, n_steps=5)
    assert [e.id for e in together] == [e.id for e in examples]
    for i, example in enumerate(examples):
        batch = model.encode([example]).batch([0])
        e = together[i]
        p = model.network(batch).probabilities
        target = p.argmax(-1)
        np.testing.assert_allclose(e.probabilities, p[0].detach(), atol=1e-12)
        assert (e.passage, e.query, e.labels) == (example.passage, example.query, model.labels)
        assert example.label is not None
        assert e.truth == model.labels[example.label]
        for name, a in zip(METHODS, e.attributions, strict=True):
            explainer = find(name)
            options = {"n_steps": 5} if "n_steps" in explainer.options else {}
            alone = explainer.run(model.network, batch, target, **options)
            assert (a.method, a.kind, a.signed, a.removal) == (
                name,
                explainer.kind,
                explainer.signed,
                explainer.removal,
            )
            defaults = signature(explainer.run).parameters
            effective = {o: options.get(o, defaults[o].default) for o in explainer.options}
            assert (a.target, a.options) == (model.labels[int(target)], effective)
            np.testing.assert_allclose(a.scores["passage"], alone.passage[batch.passage.mask].detach(), atol=1e-9)
            assert ("query" in a.scores) == (alone.query is not None)
            if alone.query is not None and batch.query is not None:
                np.testing.assert_allclose(a.scores["query"], alone.query[batch.query.mask].detach(), atol=1e-9)
            assert (a.check is not None) == (explainer.axiom is not None and alone.gap is not None)
            if a.check is not None and alone.gap is not None:
                assert a.check.value == pytest.approx(float(alone.gap[0]), abs=1e-9)


def collected(*scores: Scores, index: list[list[int]] | None = None) -> Explanation:
    """Two texts of 3 and 2 words in one batch, the second example first."""
    examples = webruns.examples(["not good enough", "so bad"], labels=2)
    model = model_of(examples, "classification")
    batch = model.encode(examples).batch([1, 0])
    if index is not None:
        batch = Batch(replace(batch.passage, word_index=torch.tensor(index)))
    names = ("gradient_x_input", "lrp")[: len(scores)]
    collector = Collector(examples, [Call(find(name), {}) for name in names], TEXT)
    p, targets = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]), torch.tensor([0, 2])
    collector.add(np.array([1, 0]), batch, p, targets, scores)
    return Explanation.of_columns(check_columns(collector.columns(model.labels)), "made")


SCORES = torch.tensor([[0.0, 1, 2, 0, 0], [0, 3, -4, 5, 0]])  # markers around 2 and 3 words


def test_passes_and_special_tokens_are_those_of_the_text() -> None:
    ex = collected(
        Scores(SCORES, forward_passes=torch.tensor([7, 9]), backward_passes=3, special=torch.tensor([0.5, -1.0])),
        Scores(SCORES, forward_passes=4),
    )
    first, second = ex
    assert [a.cost.forward for a in first.attributions] == [9, 2]
    assert [a.cost.forward for a in second.attributions] == [7, 2]
    assert [a.cost.backward for a in first.attributions] == [2, 0], "a share of the batch, rounded up"
    assert [a.special for a in first.attributions] == [-1.0, None]
    assert [a.special for a in second.attributions] == [0.5, None]
    assert [a.target for a in first.attributions] == ["perhaps", "perhaps"]
    assert second.attributions[0].scores["passage"].tolist() == [1.0, 2.0]
    with pytest.raises(Mistake, match="score nan for special tokens"):
        collected(Scores(SCORES, special=torch.tensor([math.nan, 1.0])))


def test_sub_tokens_know_their_words() -> None:
    ex = collected(Scores(SCORES), index=[[-1, 0, 0, -1, -1], [-1, 0, 1, 1, -1]])
    assert [e.word_index for e in ex] == [{"passage": (0, 1, 1)}, {"passage": (0, 0)}]
    words = ex.by_word()
    assert [e.passage.forms for e in words] == [("not", "good enough"), ("so bad",)]
    assert words.columns.scores.tolist() == [3.0, 1.0, 3.0]
    with pytest.raises(Mistake, match="ascending word index"):
        collected(Scores(SCORES), index=[[-1, 0, 0, -1, -1], [-1, 2, 1, 1, -1]])


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(Mistake, match="gradient_x_input on example 'made:0' has the score nan at position 1"):
        collected(Scores(SCORES.masked_fill(SCORES == -4, math.nan)))


def test_a_model_that_reads_fewer_words_is_told() -> None:
    examples = webruns.examples(["not good enough", "so bad"], labels=2)
    batch = model_of(examples, "classification").encode(examples).batch([1, 0])
    shorter = Batch(replace(batch.passage, mask=batch.passage.mask & (torch.arange(5) < 3)))
    collector = Collector(examples, [Call(find("lrp"), {})], TEXT)
    with pytest.raises(Mistake, match=r"lrp on example 'made:0' has scores of shape \(2,\) for 3 words"):
        collector.add(np.array([1, 0]), shorter, torch.ones(2, 3) / 3, torch.zeros(2).long(), [Scores(SCORES)])


NUMBERS = st.floats(-10, 10) | st.sampled_from([0.0, 1e-6, math.nan, math.inf])


@settings(deadline=None)
@given(st.lists(st.tuples(NUMBERS, NUMBERS.map(abs), st.booleans()), min_size=1, max_size=8))
def test_axioms_are_checked_as_one_by_one(rows: list[tuple[float, float, bool]]) -> None:
    axiom = Axiom("completeness gap", 0.05, "it missed {missed}")
    gap, scale, known = (np.array(column) for column in zip(*rows, strict=True))
    columns = check_axiom(axiom, gap, scale, known)
    for i, (g, s, there) in enumerate(rows):
        name, value, ok, relative, sentence = (column[i] for column in columns)
        if not there:
            assert (name, bool(ok), sentence) == (None, False, None)
            continue
        share_of = abs(g) / s if s else None
        met = abs(g) <= max(axiom.limit * s, 1e-5)
        told = None if met or share_of is None else axiom.sentence.format(missed=share(share_of))
        assert Check(name, value, bool(ok), relative, sentence) == Check(axiom.name, g, met, share_of, told)


def test_integrated_gradients_go_on_until_they_are_complete_within_a_bound() -> None:
    """A model that is saturated almost everywhere on the path: 50 points miss five of six, and nobody says how many."""
    examples = webruns.examples(webruns.SENTENCES, None, 3)
    model = model_of(examples, "classification")
    assert isinstance(model.network, torch.nn.Module)
    with torch.no_grad():
        for name, weights in model.network.named_parameters():
            weights.mul_(10 if "embedding" in name else 1 if "decoder" in name else 40)

    def told(model: Model, **options: Any) -> list[tuple[bool, int]]:
        found = [one.attributions[0] for one in explain(model, examples, ["integrated_gradients"], **options)]
        return [(one.check is not None and one.check.ok, one.cost.backward) for one in found]

    fixed, open_ended = told(model, n_steps=50), told(model)
    assert sum(ok for ok, _ in fixed) < sum(ok for ok, _ in open_ended)
    assert {points for _, points in open_ended} == {49, 399}
    assert told(model_of(examples, "classification")) == [(True, 49)] * 6  # no more than the signature's 50


def test_between_kept_and_broken_an_axiom_says_what_is_missing() -> None:
    """A tick stood beside LRP of which 41% went nowhere: its limit was a half."""
    axiom = Axiom("conservation gap", 0.5, "{missed} did not reach the words", kept=0.1)
    gap, scale = np.array([0.05, 0.41, 0.6, 0.41, 0.0, 0.41]), np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    checked = np.array([True, True, True, False, True, True])
    told = [
        str(Check(*map(plain, row))) for row in zip(*check_axiom(axiom, gap, scale, checked), strict=True) if row[0]
    ]
    assert told == [
        "✓ conservation gap 0.05 (5.00%)",
        "~ in part: conservation gap 0.41 (41.00%): 41% did not reach the words",
        "✗ failed: conservation gap 0.6 (60.00%): 60% did not reach the words",
        "✓ conservation gap 0",
        "✗ failed: conservation gap 0.41",
    ]


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize("name", [name for name, one in EXPLAINERS.items() if one.axiom is not None])
def test_a_tick_means_kept(name: str) -> None:
    axiom = EXPLAINERS[name].axiom
    assert axiom is not None
    assert 0 < axiom.kept <= 0.1
