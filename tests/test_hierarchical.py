"""Hierarchical attention: against a plain loop over sentences, alone and in batches, at both levels."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import zoo
from heedful.config import ModelConfig, TrainingConfig
from heedful.data.text.batching import encode
from heedful.data.text.sentences import sentence_numbers
from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vocabulary import Vocabulary, WordEncoder
from heedful.errors import Mistake
from heedful.experiments import find, to_table
from heedful.experiments.edited_attention.observe import EditedAttention, View, observer
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.experiments.edited_attention.sentences import EditedSentences
from heedful.experiments.erasure.erase import decision
from heedful.experiments.erasure.smallest_set import attention_gradient
from heedful.explainers import EXPLAINERS
from heedful.models import build
from heedful.models.attentive.hierarchical import HierarchicalClassifier, find_sentences, numbers
from heedful.models.training import fit, make_optimiser
from heedful.records import Batch, Example, Tokens

ENCODERS = ("bigru", "cnn", "none", "bilstm")
each_encoder = pytest.mark.parametrize("encoder", ENCODERS)
DOCUMENTS = [[4, 1, 9], [3], [1, 1, 1, 1], [12, 2]]  # words of each sentence


def han(encoder: str = "bigru", n_labels: int = 4, seed: int = 0) -> HierarchicalClassifier:
    config = ModelConfig(
        encoder=encoder, embedding_dim=8, hidden_dim=8, widths=(3, 5), attention_dim=5, hierarchical=True
    )
    model = build(config, zoo.N_WORDS, n_labels, seed=seed).double().eval()
    assert isinstance(model, HierarchicalClassifier)
    with torch.no_grad():
        model.embedding.weight.mul_(3)
        for name, parameter in model.named_parameters():
            if name.startswith(("decoder", "attention.v", "sentence_attention.v")):
                parameter.mul_(4)
    return model


def documents(sentences: list[list[int]], seed: int = 0) -> Batch:
    """Texts with so many words in each sentence; 0: a sentence without words."""
    tokens = zoo.tokens([sum(text) for text in sentences], seed)
    index = torch.full_like(tokens.ids, -1)
    for row, text in enumerate(sentences):
        index[row, 1 : 1 + sum(text)] = torch.repeat_interleave(
            torch.arange(len(text)), torch.tensor(text, dtype=torch.long)
        )
    return Batch(replace(tokens, sentence_index=index))


def alone(batch: Batch, i: int) -> Batch:
    return batch.rows(torch.tensor([i]))


@each_encoder
@torch.no_grad()
def test_a_plain_loop_over_sentences(encoder: str) -> None:
    model, batch = han(encoder), documents(DOCUMENTS)
    output = model(batch)
    for i, text in enumerate(DOCUMENTS):
        ids = batch.passage.ids[i, 1 : 1 + sum(text)]
        vectors, within = [], []
        for words in torch.split(ids, text):  # one sentence at a time
            there = torch.ones(1, len(words), dtype=torch.bool)
            h = model.encoder(model.embedding(words).unsqueeze(0), there)
            alpha = model.attention.phi(h, None).softmax(-1)
            vectors.append((alpha.unsqueeze(-1) * h).sum(1))
            within.append(alpha[0])
        there = torch.ones(1, len(text), dtype=torch.bool)
        h = model.sentence_encoder(torch.stack(vectors, 1), there)
        alpha = model.sentence_attention.phi(h, None).softmax(-1)
        logits = model.decoder.theta((alpha.unsqueeze(-1) * h).sum(1))  # type: ignore[misc]
        torch.testing.assert_close(output.logits[i], logits[0], atol=1e-12, rtol=0)
        torch.testing.assert_close(output.alpha_sentences[i, : len(text)], alpha[0], atol=1e-12, rtol=0)
        expected = torch.cat([a * w for a, w in zip(alpha[0], within, strict=True)])
        torch.testing.assert_close(output.alpha[i, 1 : 1 + sum(text)], expected, atol=1e-12, rtol=0)
        assert output.alpha[i].sum() == pytest.approx(1)


@each_encoder
def test_a_document_alone_equals_the_same_in_any_batch(encoder: str) -> None:
    """One sentence, a thousand sentences, a very long one, one word, a sentence without words; in float32."""
    texts = [[5], [3] * 1000, [150, 2], [1], [4, 0, 3], [2, 7, 7]]
    model, batch = han(encoder).float(), documents(texts)
    with torch.no_grad():
        together = model(batch)
        for i, text in enumerate(texts):
            one = model(alone(batch, i))
            torch.testing.assert_close(one.probabilities[0], together.probabilities[i], atol=1e-6, rtol=0)
            n = int(one.sentences.mask.sum())
            assert n == sum(words > 0 for words in text)
            torch.testing.assert_close(one.alpha_sentences[0, :n], together.alpha_sentences[i, :n], atol=1e-6, rtol=0)
            length = 2 + sum(text)
            torch.testing.assert_close(one.alpha[0], together.alpha[i, :length], atol=1e-6, rtol=0)
            assert (together.alpha_sentences[i, n:] == 0).all()


@each_encoder
def test_a_sentence_without_words_is_not_there(encoder: str) -> None:
    model = han(encoder)
    gap, none = documents([[4, 0, 3], [0, 2]]), documents([[4, 3], [2]])
    assert torch.equal(gap.passage.ids, none.passage.ids)
    assert torch.equal(model(gap).logits, model(none).logits)
    empty = documents([[], [3, 2]])
    output = model(empty)
    assert torch.isfinite(output.logits).all()
    assert (output.alpha[0] == 0).all()
    only = model(alone(empty, 0))  # a batch without a single word
    torch.testing.assert_close(only.logits[0], output.logits[0], atol=1e-12, rtol=0)


@given(texts=st.lists(st.lists(st.integers(0, 20), max_size=6), min_size=1, max_size=5), seed=st.integers(0, 3))
@settings(deadline=None, max_examples=40)
def test_every_word_is_in_its_sentence_once(texts: list[list[int]], seed: int) -> None:
    batch = documents(texts, seed)
    found = find_sentences(batch.passage)
    places = [place for g in found.groups for place in g.at[g.present].tolist()]
    assert sorted(places) == batch.passage.mask.flatten().nonzero().squeeze(1).tolist()
    assert found.mask.sum(1).tolist() == [sum(words > 0 for words in text) for text in texts]
    for group in found.groups:
        sentence = numbers(batch.passage).flatten()[group.at]
        assert all((row[there] == row[0]).all() for row, there in zip(sentence, group.present, strict=True))
        assert group.present.shape[1] <= max(8, 2 * int(group.present.sum(1).min()))
    values = torch.rand(batch.passage.ids.shape, generator=torch.Generator().manual_seed(seed))
    sums = found.sums(values)
    for row, text in enumerate(texts):
        words = torch.split(values[row, 1 : 1 + sum(text)], [n for n in text if n])
        for number, part in enumerate(words if sum(text) else []):
            assert float(sums[row, number]) == pytest.approx(float(part.sum()), abs=1e-5)


@each_encoder
@pytest.mark.parametrize("level", ["word", "sentence"])
def test_asked_under_other_weights(encoder: str, level: Any) -> None:
    """One's own weights say what the model says; sentences by one matrix product and by asking the model agree."""
    model, batch = han(encoder), documents(DOCUMENTS)
    slow = observer(model, View(level=level), general=True)(np.arange(4), batch)
    with torch.no_grad():
        torch.testing.assert_close(slow.y, model(batch).probabilities, atol=1e-12, rtol=0)
    assert slow.n_words.tolist() == ([14, 3, 4, 14] if level == "word" else [3, 1, 4, 2])
    fast = observer(model, View(level=level))(np.arange(4), batch)
    assert type(slow) is (EditedAttention if level == "word" else EditedSentences)
    if level == "word":
        assert type(fast) is EditedAttention
        return
    assert type(fast) is PooledStates
    assert type(observer(model)(np.arange(4), batch)) is PooledStates  # the sentence is what is meant
    torch.testing.assert_close(fast.alpha, slow.alpha, atol=1e-12, rtol=0)
    generator = torch.Generator().manual_seed(1)
    alphas = torch.rand(4, 5, 4, dtype=torch.float64, generator=generator) * fast.real.unsqueeze(1)
    alphas[:, 1, 0] = 0.0
    alphas[1, 1, 0] = 1.0
    alphas = alphas / alphas.sum(-1, keepdim=True)
    torch.testing.assert_close(fast.decode(alphas), slow.decode(alphas), atol=1e-12, rtol=0)
    torch.testing.assert_close(slow[1:3].decode(alphas[1:3]), fast[1:3].decode(alphas[1:3]), atol=1e-12, rtol=0)
    torch.testing.assert_close(attention_gradient(fast), attention_gradient(slow), atol=1e-10, rtol=0)
    order = torch.stack([torch.randperm(4, generator=generator) for _ in range(4)])
    order = torch.stack(
        [
            torch.cat([row[r], row[~r]])
            for row, r in zip(order, (fast.real[i][row] for i, row in enumerate(order)), strict=True)
        ]
    )
    torch.testing.assert_close(fast.erase_along(order), slow.erase_along(order), atol=1e-12, rtol=0, equal_nan=True)
    assert torch.equal(decision(fast), decision(slow))


def test_a_flat_model_has_no_sentence_level() -> None:
    with pytest.raises(Mistake, match="attends to words only"):
        observer(zoo.network(), View(level="sentence"))


@pytest.mark.parametrize("name", [name for name, explainer in EXPLAINERS.items() if explainer.fit is None])
def test_every_explainer_explains_words_or_refuses_by_name(name: str) -> None:
    model, explainer = han("cnn", n_labels=2), EXPLAINERS.find(name)
    batch = documents(DOCUMENTS)
    target = torch.tensor([0, 1, 1, 0])
    if explainer.needs - model.can:
        with pytest.raises(Mistake, match=f"{name} needs a model"):
            explainer.check(model.can)
        return
    scores = explainer.run(model, batch, target).passage
    assert torch.isfinite(scores).all()
    assert (scores[~batch.passage.mask] == 0).all()
    assert scores.abs().sum() > 0
    if name not in ("lime", "shap", "random"):
        for i in range(len(batch)):
            one = explainer.run(model, alone(batch, i), target[i : i + 1]).passage[0]
            torch.testing.assert_close(scores[i, : len(one)].double(), one.double(), atol=1e-8, rtol=0)
    seen = observer(model)(np.arange(4), batch)
    of_sentences = seen.of_items(scores.double(), batch)
    torch.testing.assert_close(of_sentences.sum(1), scores.double().sum(1), atol=1e-9, rtol=0)


def test_attention_of_words_adds_up_to_that_of_sentences() -> None:
    model, batch = han(), documents(DOCUMENTS)
    seen = observer(model)(np.arange(4), batch)
    words = EXPLAINERS.find("attention").run(model, batch, torch.zeros(4, dtype=torch.long)).passage
    torch.testing.assert_close(seen.of_items(words, batch), seen.alpha, atol=1e-12, rtol=0)


def test_omission_deletes_from_the_sentence_and_the_only_word_with_it() -> None:
    model, batch = han(), documents([[3, 1, 2]])
    target = torch.tensor([1])
    scores = EXPLAINERS.find("omission").run(model, batch, target).passage[0]
    with torch.no_grad():
        whole = model(batch).score(target)
        for t, rest in [(1, [2, 1, 2]), (4, [3, 2]), (6, [3, 1, 1])]:
            kept = [p for p in range(8) if p != t]
            index = torch.repeat_interleave(torch.arange(len(rest)), torch.tensor(rest))
            index = torch.cat([torch.tensor([-1]), index, torch.tensor([-1])]).unsqueeze(0)
            p = batch.passage
            shorter = Tokens(p.ids[:, kept], p.present[:, kept], p.mask[:, kept], sentence_index=index)
            assert float(scores[t]) == pytest.approx(float(whole - model(Batch(shorter)).score(target)), abs=1e-10)


def test_equal_words_in_other_sentences_are_other_texts() -> None:
    """Deleting one of two equal words side by side is one text, unless a sentence ends between them."""
    model, batch = han(), documents([[2, 2]])
    batch.passage.ids[0, 1:5] = 7
    scores = EXPLAINERS.find("omission").run(model, batch, torch.tensor([0])).passage[0, 1:5]
    assert scores[0] == scores[1]
    assert scores[2] == scores[3]
    assert scores[1] != scores[2]


@pytest.mark.parametrize("level", ["word", "sentence", None])
@pytest.mark.parametrize("name", ["erasure", "flips", "importance_sets"])
def test_the_trial_at_both_levels(name: str, level: Any) -> None:
    model, batch, experiment = han(), documents(DOCUMENTS), find(name)
    config = experiment.config.parse({"level": level}, "test")
    table = to_table(experiment.run(model, [(np.arange(4), batch)], config, np.random.default_rng(0)))
    first = {row["example"]: row for row in table.to_pylist()}
    assert [first[i]["n_words"] for i in range(4)] == ([14, 3, 4, 14] if level == "word" else [3, 1, 4, 2])
    experiment.summarise(table)


def test_training_makes_the_loss_smaller() -> None:
    rng = np.random.default_rng(0)
    split = tokenizer("whitespace")
    examples = []
    for i in range(60):
        label = int(rng.integers(3))
        text = " ".join(" ".join(rng.choice(["a", "b", "c"], 4)) + f" {word} ." for word in ("x", f"w{label}", "y"))
        examples.append(Example(f"text {i}", split(text), label))
    vocabulary = Vocabulary.build([example.passage for example in examples])
    encoded = encode(examples, WordEncoder(vocabulary, "whitespace", sentences=True), 3)
    config = ModelConfig(encoder="bigru", embedding_dim=16, hidden_dim=16, hierarchical=True)
    model = build(config, len(vocabulary), 3)
    assert isinstance(model, HierarchicalClassifier)
    training = TrainingConfig(epochs=30, learning_rate=0.05, batch_size=10)
    states = list(fit(model, encoded, encoded, training, seed=0))
    assert states[-1].history[-1].loss < 0.3 * states[0].history[0].loss
    assert states[-1].best_score > 0.9
    groups = make_optimiser(model, training).param_groups
    held = {id(p) for p in groups[1]["params"]}
    assert groups[1]["weight_decay"] == 0
    assert held == {id(p) for part in (model.attention, model.sentence_attention) for p in part.parameters()}


def test_runs_keep_their_names() -> None:
    """What is not asked for is not written."""
    plain = ModelConfig().model_dump(mode="json")
    assert set(plain) == {"encoder", "attention", "embedding_dim", "hidden_dim"}
    asked = ModelConfig(hierarchical=True, widths=(3, 5), attention_dim=100).model_dump(mode="json")
    assert set(asked) - set(plain) == {"hierarchical", "widths", "attention_dim"}


def test_what_cannot_be_built_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="hidden_dim must be 6, not 8"):
        build(ModelConfig(encoder="none", embedding_dim=6, hidden_dim=8), 9, 2)
    with pytest.raises(Mistake, match="must be odd"):
        build(ModelConfig(encoder="cnn", widths=(2, 4)), 9, 2)
    with pytest.raises(Mistake, match="reads one text"):
        build(ModelConfig(hierarchical=True), 9, 3, has_query=True)
    with pytest.raises(Mistake, match="sentences=True"):
        han()(zoo.batch([3, 4]))


TEXTS = (
    "It was good. Really! I said so... and then? ) Yes, Mr. Smith (who knew) . . ' left '",
    "no end at all",
    "",
    "? ! hello . ' ' world",
    '"A quotation." He left.',
    "これは文です。 次の文 ！",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", ["spacy", "whitespace"])
def test_sentences_are_those_of_spacy(text: str, name: Any) -> None:
    assert sentence_numbers(tokenizer(name)(text)).tolist() == by_spacy(tokenizer(name)(text).forms)


@given(st.lists(st.sampled_from([".", "!", "...", "?", ",", "'", ")", "a", "Mr.", "。", "10", "$"]), max_size=12))
@settings(deadline=None)
def test_sentences_of_any_words_are_those_of_spacy(forms: list[str]) -> None:
    assert sentence_numbers(tokenizer("whitespace")(" ".join(forms))).tolist() == by_spacy(tuple(forms))


def by_spacy(forms: tuple[str, ...]) -> list[int]:
    from spacy.tokens import Doc

    nlp = english()
    doc = nlp(Doc(nlp.vocab, words=list(forms)))
    return [number for number, sentence in enumerate(doc.sents) for _ in sentence]


@cache
def english() -> Any:
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    return nlp
