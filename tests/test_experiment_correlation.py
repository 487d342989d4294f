"""Attention against other explanations: Algorithm 1 of Jain & Wallace 2019, written slowly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

import zoo
from distinct import distinct
from heedful.config import EncoderName, ModelConfig
from heedful.errors import Mistake
from heedful.experiments import to_table
from heedful.experiments.correlation import correlation
from heedful.experiments.correlation.correlation import CorrelationConfig, compared, random_scores
from heedful.models import AttentiveClassifier, build
from heedful.records import Batch

LENGTHS = [7, 1, 12, 2, 20]


def slow_gradient(model: AttentiveClassifier, text: Batch) -> Tensor:
    """|sum_d dp/dx_d x_d| of each word, the attention held."""
    with torch.no_grad():
        output = model(text)
    x = output.x.clone().requires_grad_(True)
    p = model(text, x=x, alpha=output.alpha).probabilities[0, output.predicted[0]]
    (slope,) = torch.autograd.grad(p, x)
    return (slope * x).sum(-1).abs().detach()[0, 1:-1]


def slow_leave_one_out(model: AttentiveClassifier, text: Batch) -> Tensor:
    """TVD of the outputs when each word in turn is taken out of the text."""
    with torch.no_grad():
        p = model(text).probabilities
        changes = []
        for t in range(1, text.passage.ids.shape[1] - 1):
            passage = zoo.without(text.passage, t)
            shorter = model(Batch(passage, text.query, text.candidates)).probabilities
            changes.append((shorter - p).abs().sum() / 2)
    return torch.stack(changes)


@pytest.mark.parametrize(("encoder", "task"), [("bilstm", "binary"), ("cnn", "nli"), ("average", "qa")])
def test_rows_are_those_of_algorithm_1(encoder: EncoderName, task: zoo.TaskName) -> None:
    model, batch = zoo.network(encoder, task=task), distinct(zoo.batch(LENGTHS, task))
    run = correlation.run(model, [(np.arange(5), batch)], CorrelationConfig(k=3), np.random.default_rng(0))
    rows = {(row["example"], row["pair"]): row for row in to_table(run).to_pylist()}
    assert len(rows) == 5 * 4
    for i, n in enumerate(LENGTHS):
        text = zoo.row(batch, i)
        with torch.no_grad():
            alpha = model(text).alpha[0, 1:-1]
        scores = {
            "attention": alpha.numpy(),
            "gradient_x_input": slow_gradient(model, text).numpy(),
            "omission": slow_leave_one_out(model, text).numpy(),
        }
        for a, b in (("attention", "gradient_x_input"), ("attention", "omission"), ("gradient_x_input", "omission")):
            row = rows[i, f"{a}/{b}"]
            assert row["n_words"] == n
            if n == 1:
                assert row["tau"] is None
                assert row["p"] is None
                assert row["overlap"] is None
                continue
            expected = stats.kendalltau(scores[a], scores[b])
            assert row["tau"] == pytest.approx(expected.statistic, abs=1e-9)
            assert row["p"] == pytest.approx(expected.pvalue, abs=1e-9)
            assert row["spearman"] == pytest.approx(stats.spearmanr(scores[a], scores[b]).statistic, abs=1e-9)
            assert row["weighted_tau"] == pytest.approx(stats.weightedtau(scores[a], scores[b]).statistic, abs=1e-9)
            k = min(3, n)
            shared = set(np.argsort(-scores[a])[:k]) & set(np.argsort(-scores[b])[:k])
            assert row["overlap"] == pytest.approx(len(shared) / k)
            assert row["overlap_expected"] == pytest.approx(k / n)
            assert row["same_first"] == float(np.argmax(scores[a]) == np.argmax(scores[b]))
            assert row["same_first_expected"] == pytest.approx(1 / n)


def test_undefined_is_counted_and_never_averaged_in() -> None:
    model, batch = zoo.network(attention="uniform"), zoo.batch([5, 6, 1])  # uniform: constant attention
    table = to_table(correlation.run(model, [(np.arange(3), batch)], CorrelationConfig(), np.random.default_rng(0)))
    summary = correlation.summarise(table)
    tau = summary["attention/gradient_x_input"]["overall"]["tau"]
    assert (tau["n"], tau["undefined"], tau["mean"], tau["sig_frac"]) == (0, 3, None, None)
    ceiling = summary["gradient_x_input/omission"]["overall"]["tau"]
    assert (ceiling["n"], ceiling["undefined"]) == (2, 1)


def test_summary_is_mean_std_and_share_by_predicted_class() -> None:
    model = zoo.network()
    batches = [(np.arange(40) + 40 * s, zoo.batch(list(range(3, 43)), seed=s)) for s in range(2)]
    table = to_table(correlation.run(model, batches, CorrelationConfig(), np.random.default_rng(0)))
    summary = correlation.summarise(table)
    rows = [row for row in table.to_pylist() if row["pair"] == "attention/omission"]
    labels = sorted({row["predicted"] for row in rows})
    assert list(summary["attention/omission"]["by_class"]) == [str(label) for label in labels]
    for label in labels:
        tau = np.array([row["tau"] for row in rows if row["predicted"] == label])
        p = np.array([row["p"] for row in rows if row["predicted"] == label])
        line = summary["attention/omission"]["by_class"][str(label)]["tau"]
        assert line["mean"] == pytest.approx(tau.mean())
        assert line["std"] == pytest.approx(tau.std())
        assert line["sig_frac"] == pytest.approx((p <= 0.05).mean())
        assert len(tau) < 2 or line["low"] <= line["mean"] <= line["high"]


def test_a_random_ranking_is_the_floor() -> None:
    rng = np.random.default_rng(0)
    real = np.arange(30) < rng.integers(2, 31, 400)[:, None]
    scores = random_scores(real, [np.random.default_rng([3, i]) for i in range(400)])
    assert (scores[~real] == 0).all()
    found = compared(rng.random(real.shape), scores, real, 5)
    tau, p = np.asarray(found["tau"]), np.asarray(found["p"])
    assert abs(tau.mean()) < 0.05
    for name in ("overlap", "same_first"):  # the hypergeometric mean is what a random order gets
        expected = np.asarray(found[f"{name}_expected"])
        assert np.asarray(found[name]).mean() == pytest.approx(expected.mean(), abs=0.05)
    assert (p <= 0.05).mean() < 0.1


def test_signed_scores_are_ranked_by_size_unless_asked_otherwise() -> None:
    model, batch = zoo.network(), zoo.batch([9])
    raw = {"gradient_x_input": {"absolute": False}}
    pairs = (("attention", "gradient_x_input"),)
    found = [
        to_table(
            correlation.run(
                model,
                [(np.arange(1), batch)],
                CorrelationConfig(pairs=pairs, options=options, absolute=absolute),
                np.random.default_rng(0),
            )
        )["tau"][0].as_py()
        for options, absolute in (({}, True), (raw, True), (raw, False))
    ]
    assert found[0] == found[1]
    assert found[0] != found[2]


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ({"pairs": [["attention", "gradeint"]]}, "there is no explainer 'gradeint'"),
        ({"options": {"lrp": {}}}, "options are given for 'lrp'"),
        ({"options": {"omission": {"steps": 3}}}, "omission does not take the option 'steps'"),
    ],
)
def test_mistakes_are_told(config: dict[str, object], sentence: str) -> None:
    run = correlation.run(
        zoo.network(),
        [(np.arange(1), zoo.batch([3]))],
        CorrelationConfig.parse(config, "test"),
        np.random.default_rng(),
    )
    with pytest.raises(Mistake, match=sentence):
        next(run)


@pytest.mark.parametrize("pairs", [[["attention", "attention"]], [["attention", "omission"]] * 2, []])
def test_pairs_that_say_nothing_are_refused(pairs: list[list[str]]) -> None:
    with pytest.raises(Mistake, match="pairs"):
        CorrelationConfig.parse({"pairs": pairs}, "test")


def test_an_average_encoder_agrees_with_its_gradients_more_than_a_bilstm() -> None:
    """The paper's main finding of table 2, on a small pair trained on a word that decides the label."""
    means = {}
    for encoder in ("average", "bilstm"):
        model = trained(encoder)
        batches = [(np.arange(64), generated(64, seed=99))]
        config = CorrelationConfig(pairs=(("attention", "gradient_x_input"),))
        table = to_table(correlation.run(model, batches, config, np.random.default_rng(0)))
        means[encoder] = correlation.summarise(table)["attention/gradient_x_input"]["overall"]["tau"]["mean"]
    assert means["average"] > means["bilstm"] + 0.05


def generated(n: int, seed: int) -> Batch:
    """Texts of 14 words of 40; the label says whether there are more of the words 4..9 than of 10..15."""
    tokens = zoo.tokens([14] * n, seed=seed)
    ids, mask = tokens.ids, tokens.mask
    good, bad = ((ids >= low) & (ids < low + 6) & mask for low in (4, 10))
    return Batch(tokens, labels=(good.sum(1) > bad.sum(1)).long())


def trained(encoder: EncoderName) -> AttentiveClassifier:
    config = ModelConfig(encoder=encoder, attention="additive", embedding_dim=16, hidden_dim=32)
    model = build(config, zoo.N_WORDS, 2, seed=0)
    adam = torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)
    for step in range(150):
        batch = generated(32, seed=step)
        assert batch.labels is not None
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(batch).logits[:, 0], batch.labels.float())
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
    return model.eval()
