"""Pairs of words that are known to act together, and words that people changed: found or not, by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import heedful
import zoo
from heedful.api.experiments import run
from heedful.data.text.tokenise import tokenizer
from heedful.experiments.ground_truth.contrast_sets import changed_words, words_in
from heedful.experiments.ground_truth.planted_pairs import by_word_of, membership, pairs_of_words
from heedful.measure.columns import column, rows_of
from heedful.records import Batch, Example, Reserved, Tokens

split = tokenizer("spacy")


def negated(texts: Sequence[str]) -> np.ndarray:
    """Good speaks for it, and against it where it is negated; nothing else does anything."""
    z = np.array([(2.0 if "good" in t else 0.0) * (-1 if "not" in t.split() else 1) for t in texts])
    p = 1 / (1 + np.exp(-z))
    return np.stack([1 - p, p], 1)


def given(texts: Sequence[tuple[str, int, tuple[int, ...]]]) -> list[Example]:
    return [Example(str(i), split(text), label, evidence=e) for i, (text, label, e) in enumerate(texts)]


TEXTS = [
    ("the film was not very good at all", 0, (3, 5)),
    ("it is not a good day for this", 0, (2, 4)),
    ("a good film without any doubt", 1, (1,)),
]


def test_a_planted_negation_is_found_by_pairs_and_by_nothing_that_knows_nothing() -> None:
    model = heedful.wrap(negated, labels=["neg", "pos"])
    answers = run("planted_pairs", model, given(TEXTS), methods=["removal_interactions", "omission"])
    table = answers.table
    of = {name: column(rows_of(table, "method", name), "auc") for name in set(table["method"].to_pylist())}
    assert of["removal_interactions"][:2].tolist() == [1.0, 1.0]
    assert np.isnan(of["removal_interactions"][2])  # one word of evidence is no pair
    hit = column(rows_of(table, "method", "removal_interactions"), "hit")
    assert hit[:2].tolist() == [1.0, 1.0]
    assert set(of) == {"removal_interactions", "omission product", "omission sum", "random", "near"}
    # words: 8, so 28 pairs; not and good stand 2 apart: 7 pairs are nearer, 6 as near, of which it is one
    assert of["near"][0] == pytest.approx(1 - (7 + 5 / 2) / 27)
    assert column(answers.table, "chance")[:2] == pytest.approx([1 / 28, 1 / 28])
    auc = answers.summary["groups"]["removal_interactions"]["auc"]
    assert (auc["n"], auc["mean"]) == (2, 1.0)


def test_pieces_are_summed_to_pairs_of_words() -> None:
    word = torch.tensor([[-1, 0, 0, 1, -1], [-1, 0, 1, 2, -1]])
    mask = word >= 0
    tokens = Tokens(torch.ones_like(word), torch.ones_like(mask), mask, word, Reserved())
    pairs = torch.arange(50.0).view(2, 5, 5).triu() * (mask.unsqueeze(1) & mask.unsqueeze(2))
    found = pairs_of_words(pairs, tokens)
    assert found[0, 0, 0] == pairs[0, 1:3, 1:3].sum()
    assert found[0, 0, 1] == pairs[0, 1:3, 3].sum()
    assert found[1, 0, 2] == pairs[1, 1, 3]
    assert found.sum() == pytest.approx(float(pairs.sum()))
    assert by_word_of(torch.ones(2, 5), tokens).tolist() == [[2, 1, 0], [1, 1, 1]]
    assert membership(tokens).shape == (2, 3, 5)


def as_batch(rows: Sequence[Sequence[int]], labels: Sequence[int], query: Tensor | None = None) -> Batch:
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])
    tokens = Tokens(ids, ids > 0, ids > 0)
    other = None if query is None else Tokens(query, query > 0, query > 0)
    return Batch(tokens, other, labels=torch.tensor(labels))


def test_what_people_changed() -> None:
    batch = as_batch([[5, 6, 7, 8], [5, 6, 9, 8], [5, 6, 7, 8, 4], [20, 21, 22]], [0, 1, 0, 1])
    found = changed_words([(np.arange(4), batch)], 0.5)
    assert found == {0: [2], 1: [2], 2: [2, 4]}  # text 3 shares nothing with another
    apart = [(np.array([i]), zoo.row(batch, i)) for i in (2, 0, 3, 1)]
    assert changed_words(apart, 0.5) == found  # whatever the batches
    same_label = as_batch([[5, 6, 7], [5, 6, 8]], [1, 1])
    assert changed_words([(np.arange(2), same_label)], 0.5) == {}
    other_query = as_batch([[5, 6, 7], [5, 6, 8]], [0, 1], torch.tensor([[3, 4], [3, 5]]))
    assert changed_words([(np.arange(2), other_query)], 0.5) == {}
    assert words_in(batch.passage, 3) == ([0, 1, 2], ((20,), (21,), (22,)))


def test_an_explanation_that_points_at_the_change() -> None:
    def said(texts: list[str]) -> np.ndarray:
        z = np.array([3.0 * ("good" in t) - 3.0 * ("bad" in t) for t in texts])
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], 1)

    pairs: list[tuple[Any, ...]] = [("a good film to see", 1), ("a bad film to see", 0), ("nothing alike here", 1)]
    model = heedful.wrap(said, labels=["neg", "pos"])
    made = [Example(str(i), split(text), label) for i, (text, label) in enumerate(pairs)]
    # a black box has no ids of words that two texts share: its tokens are places
    with pytest.raises(heedful.Mistake, match="function"):
        run("contrast_sets", model, made, methods=["omission"])
