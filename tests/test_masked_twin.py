"""A twin that knows hidden words: how they are hidden in training, what is asked of both, what the verdict says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer_zoo
import zoo
from distinct import distinct
from heedful.config import TrainingConfig
from heedful.data.text.batching import encode
from heedful.data.text.vocabulary import MARKERS, UNK, Vocabulary, WordEncoder
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.plan import ask, plan
from heedful.experiments import Result, find, to_table
from heedful.experiments.other_training.masked_twin import hide
from heedful.models.training import hidden_words, hide_words
from heedful.records import Example
from material import table_of_masked_twin, words_of
from planted_reviews import reviews
from test_corpus_edits import small


def test_half_of_the_texts_keep_their_words_and_the_rest_lose_any_share() -> None:
    words = tuple("abcdefghij")
    examples = [Example(str(i), words_of(words), i % 2) for i in range(2000)]
    encoded = encode(examples, WordEncoder(Vocabulary((*MARKERS, *words))), 2)
    hidden = hide_words(encoded, 0.5, np.random.default_rng(0))
    before, after = (one.batch(range(2000)).passage for one in (encoded, hidden))
    changed = before.ids != after.ids
    assert (after.ids[changed] == UNK).all()
    assert not changed[~before.mask].any()  # markers stay
    share = changed.sum(1).double() / 10
    assert float((share == 0).double().mean()) == pytest.approx(0.5 + 0.5 / 11, abs=0.03)
    assert float(share[share > 0].mean()) == pytest.approx(0.55, abs=0.03)
    for k in range(1, 11):  # any number of words is as likely
        assert float((share == k / 10).double().mean()) == pytest.approx(0.5 / 11, abs=0.02)


def test_the_pieces_of_a_word_are_hidden_together() -> None:
    model = transformer_zoo.model("Bert")
    encoded = model.encode(model.examples(transformer_zoo.TEXTS))
    n = range(len(encoded))
    hidden = hide_words(encoded, 1.0, np.random.default_rng(1)).batch(n).passage
    before = encoded.batch(n).passage
    index = before.word_index
    assert index is not None
    mask = model.text.reserved.mask
    assert mask is not None
    changed = hidden.ids == mask
    assert changed.any()
    assert not changed[~before.mask].any()
    for row in n:
        for word in set(index[row][before.mask[row]].tolist()):
            assert len(set(changed[row][index[row] == word].tolist())) == 1


def test_other_words_are_hidden_in_every_epoch_and_none_where_it_is_not_asked_for() -> None:
    words = tuple("abcdefghij")
    encoded = encode(
        [Example(str(i), words_of(words), i % 2) for i in range(20)], WordEncoder(Vocabulary((*MARKERS, *words))), 2
    )
    asked = TrainingConfig(mask_words=1.0)
    first, again, second = (hidden_words(encoded, asked, 0, epoch).passages.flat for epoch in (1, 1, 2))
    assert (first == again).all()
    assert (first != second).any()
    assert hidden_words(encoded, TrainingConfig(), 0, 1) is encoded
    assert "mask_words" not in TrainingConfig().model_dump()


def test_what_is_lost_is_that_of_texts_whose_strongest_words_are_hidden() -> None:
    model, whole = zoo.network(), distinct(zoo.batch([5, 1, 8]))
    assert whole.labels is not None
    with torch.no_grad():
        output = model(whole)
    scores = np.random.default_rng(0).random(whole.passage.ids.shape) * whole.passage.mask.numpy()
    found = hide(model, whole, output, {"x": scores}, (0.3, 0.8))
    for (_, fraction), lost in found.items():
        for row, n in enumerate((5, 1, 8)):
            text = zoo.row(whole, row)
            ids = text.passage.ids.clone()
            order = np.argsort(-scores[row, 1 : n + 1])
            k = max(1, int(np.ceil(fraction * n)))
            ids[0, 1 + order[:k]] = UNK
            only = text.passage.ids.clone()
            only[0, 1 + order[k:]] = UNK
            with torch.no_grad():
                p, q = (
                    model(replace(text, passage=replace(text.passage, ids=edited))).probabilities[0]
                    for edited in (ids, only)
                )
            label = int(output.predicted[row])
            assert lost["drop"][row] == pytest.approx(float(output.probabilities[row, label] - p[label]))
            assert lost["sufficiency"][row] == pytest.approx(float(output.probabilities[row, label] - q[label]))
            assert lost["correct"][row] == float(p.argmax() == whole.labels[row])


def test_the_metrics_are_those_of_faithfulness_under_mask_of_model_and_twin() -> None:
    batch = distinct(zoo.batch([5, 9, 8]))
    bins, methods = [0.1, 0.5], ["attention", "gradient_x_input"]
    ours, theirs = find("masked_twin"), find("faithfulness")
    config = ours.config.parse({"methods": methods, "fractions": bins}, "")
    beside = zoo.beside(ours, config, batch)
    rng = np.random.default_rng(0)
    rows = to_table(ours.run(zoo.network(), [(np.arange(3), batch)], config, rng, **beside)).to_pylist()
    asked = theirs.config.parse({"methods": methods, "bins": bins, "operators": ["mask"], "beam": 0}, "")
    for prefix, network in (("", zoo.network()), ("twin_", beside["others"]["twin"].network)):
        found = to_table(theirs.run(network, [(np.arange(3), batch)], asked, np.random.default_rng(0))).to_pylist()
        for row in found:
            mine = [r for r in rows if (r["example"], r["method"]) == (row["example"], row["method"])]
            assert np.mean([r[f"{prefix}drop"] for r in mine]) == pytest.approx(row["comprehensiveness"])
            assert np.mean([r[f"{prefix}sufficiency"] for r in mine]) == pytest.approx(row["sufficiency"])


@pytest.mark.parametrize(("strange", "grade"), [(0.0, "for"), (0.05, "mixed"), (0.3, "against")])
def test_the_metric_is_believed_where_the_model_is_as_good_as_its_twin(strange: float, grade: str) -> None:
    table = table_of_masked_twin(200, strange=strange)
    found = find("masked_twin").verdict(Result("masked_twin", table, {}))
    assert found is not None
    assert (found.grade, found.counts) == (grade, False)
    assert found.value == pytest.approx(strange)
    assert "leave-one-out 0.50, attention 0.30" in found.sentence
    summary = find("masked_twin").summarise(table)
    assert summary["order"]["tau"] == 1.0
    assert summary["above_random"]["omission"]["drop"]["mean"] == pytest.approx(0.4, abs=0.02)


def test_a_twin_is_trained_with_hidden_words_and_stands_them_better(tmp_path: Path) -> None:
    file, place = reviews(tmp_path / "reviews.csv", 200), Workspace(tmp_path / "runs")
    training = small(file).training.model_copy(update={"epochs": 10, "learning_rate": 0.02})
    options = {"methods": ["omission"], "fractions": [0.3, 0.6]}
    made = plan([small(file).model_copy(update={"training": training})], [ask("masked_twin", options, limit=30)])
    own, twin = made.of("train")
    assert own.config.training.mask_words == 0  # type: ignore[union-attr]
    assert twin.config.training.mask_words == 0.5  # type: ignore[union-attr]
    assert execute(made, place, Progress(quiet=True), "here", cores=1).complete
    summary = place.run(own.run).results.summary("masked_twin")
    assert summary is not None
    assert summary["above_random"]["omission"]["drop"]["mean"] > 0
    assert summary["verdict"]["grade"] in ("for", "mixed", "against")
