"""Hybrid documents: put together from the words of their sentences, told apart by the labels of their texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import heedful
import transformer_zoo
import zoo
from distinct import distinct
from heedful.data.text.batching import encode
from heedful.data.text.vocabulary import MARKERS, Vocabulary, WordEncoder
from heedful.errors import Mistake
from heedful.experiments import find, to_table
from heedful.experiments.ground_truth.hybrid import as_batch, mix, read_sources
from heedful.explainers import EXPLAINERS
from heedful.records import Batch, Example
from material import words_of

TEXTS = ["a b . c d !", "e f g", "h . i . j ."]


def encoded(sentences: bool = True) -> tuple[Batch, Vocabulary]:
    examples = [Example(str(i), words_of(text.split()), label=i % 2) for i, text in enumerate(TEXTS)]
    vocabulary = Vocabulary((*MARKERS, *sorted(set(" ".join(TEXTS).split()))))
    return encode(examples, WordEncoder(vocabulary), 2, sentences=sentences).batch([0, 1, 2]), vocabulary


def test_sources_are_cut_into_their_sentences() -> None:
    batch, _ = encoded()
    sources = read_sources(batch)
    ids = batch.passage.ids
    for source, text in zip(sources, TEXTS, strict=True):
        cut = [source.word[begin:end].tolist() for begin, end in source.bounds]
        assert [number for sentence in cut for number in sentence] == list(range(len(text.split())))
    assert [len(source.bounds) for source in sources] == [2, 1, 3]
    assert [source.label for source in sources] == [0, 1, 0]
    assert sources[0].frame[0].tolist() == [int(ids[0, 0])]
    with pytest.raises(Mistake, match="no labels"):
        read_sources(replace(batch, labels=None))
    with pytest.raises(ValueError, match="sentences=True"):
        read_sources(encoded(sentences=False)[0])


def test_a_document_has_a_sentence_of_its_text_and_of_others_between_the_markers() -> None:
    batch, _ = encoded()
    sources = read_sources(batch)
    for seed in range(20):
        made = mix(sources, 0, 2, np.random.default_rng(seed))
        joined, label = as_batch([made, mix(sources, 1, 3, np.random.default_rng(seed))], batch.passage)
        n = len(made.ids)
        assert made.ids[[0, -1]].tolist() == [int(batch.passage.ids[0, 0]), int(made.ids[-1])]
        assert set(made.label[1:-1].tolist()) <= {0, 1}
        assert joined.passage.present[0].sum() == n
        assert joined.passage.mask[0].sum() == n - 2
        assert made.word[1:-1].tolist() == list(range(n - 2))
        assert (label[0, :n].numpy() == made.label).all()
        own = {tuple(sources[0].ids[begin:end].tolist()) for begin, end in sources[0].bounds}
        parts = [made.ids[made.sentence == i].tolist() for i in range(2)]
        assert sum(tuple(part) in own for part in parts) >= 1


def test_pieces_stay_with_their_words() -> None:
    model = transformer_zoo.model("Bert")
    examples = [replace(e, label=i % 2) for i, e in enumerate(model.examples(transformer_zoo.TEXTS))]
    batch = model.encode(examples, sentences=True).batch(range(len(examples)))
    sources = read_sources(batch)
    made = [mix(sources, i, 3, np.random.default_rng(i)) for i in range(len(sources))]
    joined, _ = as_batch(made, batch.passage)
    index = joined.passage.word_index
    assert index is not None
    for row, document in enumerate(made):
        words = index[row][joined.passage.mask[row]]
        assert (words.diff() >= 0).all()
        assert set(words.tolist()) == set(range(int(words.max()) + 1))
        assert joined.passage.ids[row, 0] == batch.passage.ids[0, 0]  # [CLS]
        assert (document.label[joined.passage.mask[row][: len(document.ids)].numpy()] >= 0).all()
    rows = list(
        find("pointing").run(
            model.network,
            [(np.arange(len(sources)), batch)],
            find("pointing").config.parse({"methods": ["omission"], "sentences": 3}, ""),
            np.random.default_rng(0),
        )
    )
    assert len(rows) == 4  # one method and three controls, in one piece


def test_hits_are_those_of_a_slow_program() -> None:
    experiment, model, batch = find("pointing"), zoo.network(), distinct(zoo.batch([5, 9, 11, 6, 8, 8]))
    config = experiment.config.parse({"methods": ["omission"], "sentences": 3}, "")
    table = to_table(experiment.run(model, [(np.arange(6), batch)], config, np.random.default_rng(4)))
    rows: list[dict[str, Any]] = [row for row in table.to_pylist() if row["method"] == "omission"]
    seed, sources = int(np.random.default_rng(4).integers(2**63)), read_sources(batch)
    defined = 0
    for row in rows:
        made = mix(sources, row["example"], 3, np.random.default_rng([seed, row["example"]]))
        document, _ = as_batch([made], batch.passage)
        with torch.no_grad():
            predicted = model(document).predicted
        scores = EXPLAINERS["omission"].run(model, document, predicted).passage[0, 1:-1].numpy()
        right = made.label[1:-1] == int(predicted)
        assert row["document_predicted"] == int(predicted)
        assert row["ranked_words"] == len(right)
        if not right.any() or right.all():
            assert row["hit"] is row["chance"] is None
            continue
        defined += 1
        assert row["chance"] == right.mean()
        assert row["hit"] == right[scores.argmax()]
    assert defined >= 2


def test_a_query_is_refused() -> None:
    experiment = find("pointing")
    batches = [(np.arange(2), zoo.batch([4, 5], "nli"))]
    with pytest.raises(Mistake, match="query"):
        list(experiment.run(zoo.network(task="nli"), batches, experiment.config(), np.random.default_rng(0)))


def test_a_function_of_strings_is_refused() -> None:
    model = heedful.wrap(lambda texts: [[0.5, 0.5] for _ in texts], labels=["neg", "pos"])
    with pytest.raises(Mistake, match="pointing joins texts by their tokens"):
        heedful.run("pointing", model, ["A good film. A bad one.", "Bad. Good."])
