"""What is added to cross-entropy so that attention might explain: each loss against its formula, text by text."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import zoo
from heedful.config import Config, ModelConfig, TrainingConfig
from heedful.data.text.batching import Encoded
from heedful.engine.tasks.begin import describe_model
from heedful.engine.tasks.configure import configure
from heedful.errors import Mistake
from heedful.experiments import find, to_table
from heedful.explainers.lrp.relevance import conservation, lrp
from heedful.models import AttentiveClassifier, Output, build
from heedful.models.objectives.diversity import conicity, read_states
from heedful.models.objectives.supervised import evidence_kl
from heedful.models.objectives.words import draw_hidden, word_distance, word_surprise
from heedful.records import Batch
from heedful.registry import EXPLAINERS, OBJECTIVES

LENGTHS = [5, 1, 9, 3]
PLAIN = TrainingConfig(class_weights=False)


def slow_conicity(states: Tensor) -> float:
    """Mohankumar et al. 2020: the mean over states of the |cosine| with their mean."""
    rows = [[float(value) for value in row] for row in states.detach()]
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    cosines = [
        sum(a * b for a, b in zip(row, mean, strict=True)) / (math.hypot(*row) * math.hypot(*mean)) for row in rows
    ]
    return math.fsum(abs(cosine) for cosine in cosines) / len(rows)


def encoded(batch: Batch) -> Encoded:
    """As much of a training set as objectives look at: its labels and targets."""
    assert batch.labels is not None
    targets = {name: marks[batch.passage.present].numpy() for name, marks in batch.targets.items()}
    return Encoded(None, None, None, batch.labels.numpy(), targets=targets)  # type: ignore[arg-type]


def added(name: str, network: AttentiveClassifier, batch: Batch, **options: Any) -> float:
    """What an objective adds to the cross-entropy of a batch."""
    objective = OBJECTIVES.find(name)
    settings = objective.config.parse(options, name)
    whole = objective.loss(network, encoded(batch), PLAIN, settings, {})
    plain = OBJECTIVES.find("cross_entropy").loss(network, encoded(batch), PLAIN, Config(), {})
    output = network.learn(batch)
    return (whole(output, batch) - plain(output, batch)).item()


def same_size(seed: int = 0) -> AttentiveClassifier:
    return build(ModelConfig(embedding_dim=8, hidden_dim=8), zoo.N_WORDS, 2, seed=seed).double().eval()


def words(batch: Batch, row: int) -> Tensor:
    return batch.passage.mask[row]


@pytest.mark.parametrize("lambda_", [0.5, 2.0])
def test_diversity_adds_the_conicity_of_each_text(lambda_: float) -> None:
    network, batch = zoo.network(), zoo.batch(LENGTHS)
    h = network(batch).h
    slow = sum(slow_conicity(h[i, words(batch, i)]) for i in range(len(LENGTHS)))
    assert added("diversity", network, batch, lambda_=lambda_) == pytest.approx(lambda_ * slow, rel=1e-9)


def test_conicity_is_one_for_one_direction_and_blind_to_length_and_padding() -> None:
    h = torch.tensor([[[1.0, 0], [3, 0], [9, 9]], [[1, 0], [0, 1], [9, 9]]])
    there = torch.tensor([[True, True, False], [True, True, False]])
    assert conicity(h, there).tolist() == pytest.approx([1.0, math.sqrt(0.5)])
    assert conicity(h, torch.zeros_like(there)).tolist() == [0.0, 0.0]
    hidden = torch.randn(2, 3, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda h: conicity(h, there), hidden)
    zero = torch.zeros(1, 2, 3, requires_grad=True)
    conicity(zero, torch.ones(1, 2, dtype=torch.bool)).sum().backward()  # type: ignore[no-untyped-call]
    assert zero.grad is not None
    assert zero.grad.isfinite().all()


def test_word_distance_adds_the_mean_distance_of_each_text() -> None:
    network, batch = same_size(), zoo.batch(LENGTHS)
    output = network(batch)
    slow = 0.0
    for i in range(len(LENGTHS)):
        at = words(batch, i)
        distances = [math.dist(h, x) for h, x in zip(output.h[i, at].tolist(), output.x[i, at].tolist(), strict=True)]
        slow += sum(distances) / len(distances)
    assert added("word_distance", network, batch, lambda_=0.3) == pytest.approx(0.3 * slow, rel=1e-9)
    h = output.h.detach().requires_grad_()
    word_distance(h, h.detach(), batch.passage.mask).sum().backward()  # type: ignore[no-untyped-call]
    assert h.grad is not None
    assert h.grad.eq(0).all()  # where states are their words nothing moves, and nothing is nan


def test_masked_words_adds_the_surprise_at_hidden_words() -> None:
    network, batch = same_size(), zoo.batch([5, 1, 9, 12])
    tokens, embeddings = batch.passage, network.embedding.weight.detach()
    hidden = draw_hidden(tokens, 0.5, training=False)
    assert hidden.any()
    assert not (hidden & ~tokens.mask).any()
    slow = 0.0
    for i in range(len(tokens.ids)):
        ids = tokens.ids[i : i + 1].clone()
        ids[hidden[i : i + 1]] = 1  # the unknown word
        h = network(replace(zoo.rows(batch, [i]), passage=replace(zoo.rows(batch, [i]).passage, ids=ids))).h[0]
        costs = []
        for t in np.flatnonzero(hidden[i].numpy()):
            scores = [float(h[t].detach() @ vector) for vector in embeddings]
            costs.append(math.log(sum(map(math.exp, scores))) - scores[int(tokens.ids[i, t])])
        slow += sum(costs) / len(costs) if costs else 0.0
    assert added("masked_words", network, batch, share=0.5, lambda_=2.0) == pytest.approx(2 * slow, rel=1e-9)
    none = torch.zeros_like(hidden)
    assert word_surprise(network(batch).h, embeddings, tokens.ids, none).tolist() == [0.0] * 4


def test_hidden_words_follow_the_generator_in_training_only() -> None:
    tokens = zoo.batch([20, 30]).passage
    drawn = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        drawn.append(draw_hidden(tokens, 0.3, training=True))
    assert drawn[0].equal(drawn[1])
    assert not drawn[0].equal(drawn[2])
    unknown = replace(tokens, ids=torch.where(tokens.mask, 1, tokens.ids))
    assert not draw_hidden(unknown, 1.0, training=True).any()


def test_supervised_adds_the_divergence_from_the_evidence() -> None:
    network, batch = zoo.network(), zoo.batch(LENGTHS)
    alpha, slow, without = network(batch).alpha.detach(), 0.0, 0
    for i in range(len(LENGTHS)):
        marked = np.flatnonzero(batch.targets["evidence"][i].numpy())
        without += not len(marked)
        slow += sum(math.log(1 / len(marked) / float(alpha[i, t])) / len(marked) for t in marked)
    assert without  # a text without evidence adds nothing
    assert added("supervised", network, batch, lambda_=0.7) == pytest.approx(0.7 * slow, rel=1e-9)


def test_supervised_takes_the_mean_over_heads_and_is_least_at_the_evidence() -> None:
    rng = np.random.default_rng(0)
    alpha = torch.from_numpy(rng.dirichlet(np.ones(5), size=(2, 2, 3)))  # (texts, layers, heads, from)
    marked = torch.tensor([[True, False, True, False], [False, True, False, False]])
    found = evidence_kl(alpha, marked)
    for text, n in enumerate((2, 1)):
        each = [
            sum(math.log(1 / n / float(alpha[text, a, h, t])) / n for t in range(4) if marked[text, t])
            for a in range(2)
            for h in range(3)
        ]
        assert found[text] == pytest.approx(sum(each) / 6)
    there = marked / marked.sum(1, keepdim=True)
    assert evidence_kl(there[:, None, None], marked).tolist() == pytest.approx([0.0, 0.0], abs=1e-6)
    sparse = torch.tensor([[[[0.0, 1.0, 0.0, 0.0]]]], requires_grad=True)
    evidence_kl(sparse, marked[:1]).sum().backward()  # type: ignore[no-untyped-call]
    assert sparse.grad is not None
    assert sparse.grad.isfinite().all()


def test_what_cannot_be_is_refused() -> None:
    batch = zoo.batch(LENGTHS)
    with pytest.raises(Mistake, match=r"mark none.*evidence_column"):
        added("supervised", zoo.network(), replace(batch, targets={}))
    nothing = {"evidence": torch.zeros_like(batch.targets["evidence"])}
    with pytest.raises(Mistake, match="mark none"):
        added("supervised", zoo.network(), replace(batch, targets=nothing))
    for name in ("word_distance", "masked_words"):
        with pytest.raises(Mistake, match=f"{name} .*states have 8 numbers and embeddings 6; set hidden_dim to 6"):
            added(name, zoo.network(), batch)
    hierarchical = build(ModelConfig(embedding_dim=8, hidden_dim=8, hierarchical=True), zoo.N_WORDS, 2)
    with pytest.raises(Mistake, match="a flat model"):
        added("word_distance", hierarchical, batch)
    with pytest.raises(Mistake, match="hierarchical model pools sentences"):
        configure("sst", model={"concatenate": True, "hierarchical": True})
    diversity = OBJECTIVES.find("diversity")
    loss = diversity.loss(zoo.network(), encoded(batch), PLAIN, diversity.config(), {})
    plain = zoo.network()(batch)
    with pytest.raises(Mistake, match="this model pools none"):
        loss(Output(plain.logits, plain.link), batch)


@pytest.mark.parametrize("encoder", ["bilstm", "transformer"])
@pytest.mark.parametrize("task", ["binary", "nli"])
def test_concatenated_states_hold_state_and_word(encoder: str, task: zoo.TaskName) -> None:
    config = ModelConfig(embedding_dim=6, hidden_dim=8, encoder=encoder, concatenate=True)
    network = build(config, zoo.N_WORDS, zoo.N_LABELS[task], task == "nli").double().eval()
    batch = zoo.batch(LENGTHS, task)
    output = network(batch)
    there = batch.passage.present
    assert output.h.shape[-1] == 14
    assert output.h[there][:, 8:].equal(output.x[there])
    inner: Any = network.encoder
    assert output.h[there][:, :8].equal(inner.states(output.x, there)[there])
    for i in range(len(LENGTHS)):  # padding reaches no state
        torch.testing.assert_close(network(zoo.row(batch, i)).logits, output.logits[i : i + 1])
    for name in ("attention", "gradient_x_input", "integrated_gradients", "lrp", "omission"):
        scores = EXPLAINERS.find(name).run(network, batch, output.predicted)
        assert scores.passage.isfinite().all()
    scores, kept = lrp(network, batch, output.predicted), conservation(network, batch, output.predicted)
    assert scores.gap is not None
    torch.testing.assert_close(torch.stack(list(kept.values())).sum(0), scores.gap)
    assert "joined by embeddings" in describe_model(config)
    assert "concatenate" not in ModelConfig().model_dump()


def in_sentences(batch: Batch) -> Batch:
    """Sentences of four words."""
    number = torch.where(batch.passage.mask, (torch.arange(batch.passage.ids.shape[1]) - 1) // 4, -1)
    return replace(batch, passage=replace(batch.passage, sentence_index=number))


def test_conicity_is_asked_of_words_sentences_and_layers() -> None:
    import transformer_zoo

    hierarchical = ModelConfig(embedding_dim=6, hidden_dim=8, hierarchical=True)
    bert = transformer_zoo.model("Bert")
    asked: list[tuple[Any, Batch, int]] = [
        (zoo.network(), zoo.batch(LENGTHS), max(LENGTHS)),
        (build(hierarchical, zoo.N_WORDS, 2).double().eval(), in_sentences(zoo.batch(LENGTHS)), 3),
        (bert.network, transformer_zoo.batch(bert), 0),
    ]
    experiment = find("conicity")
    for network, batch, most in asked:
        h, there = read_states(network, batch, network(batch))
        n = there.sum(1)
        assert most in (0, n.max())
        rows = to_table(experiment.run(network, [(np.arange(len(n)), batch)], Config(), np.random.default_rng(0)))
        slow = [slow_conicity(h[i, there[i]]) for i in range(len(n))]
        assert rows["conicity"].to_pylist() == pytest.approx(slow, rel=1e-5)
        assert rows["chance"].to_pylist() == pytest.approx((1 / n.double().sqrt()).tolist())
        assert experiment.summarise(rows)["overall"]["mean"] == pytest.approx(np.mean(slow), rel=1e-5)
    last = bert.network.states(asked[2][1])[:, -1]  # type: ignore[attr-defined]
    assert h.equal(last[:, : h.shape[1]])
