from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.text.batching import cut, cut_sorted, encode
from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vocabulary import END, PAD, START, Vocabulary, WordEncoder
from heedful.errors import Mistake
from heedful.records import Example, Tokens, Words

split = tokenizer("whitespace")
VOCABULARY = Vocabulary.build([split("a b c d e f g")])
TEXT = WordEncoder(VOCABULARY, "whitespace")
texts = st.lists(st.sampled_from("abcdefgz"), min_size=1, max_size=12).map(lambda words: split(" ".join(words)))


@st.composite
def corpora(draw: st.DrawFn) -> list[Example]:
    queries, candidates, labels = draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    return [
        Example(
            f"file:{i}",
            draw(texts),
            label=draw(st.integers(0, 3)) if labels or draw(st.booleans()) else None,
            query=draw(texts) if queries else None,
            candidates=tuple(draw(st.sets(st.integers(0, 3), min_size=1)))
            if candidates and draw(st.booleans())
            else None,
        )
        for i in range(draw(st.integers(1, 20)))
    ]


def check_tokens(tokens: Tokens, texts: list[Words]) -> None:
    """The plain way: one row after the other."""
    length = max(map(len, texts)) + 2
    assert tokens.ids.shape == tokens.present.shape == tokens.mask.shape == (len(texts), length)
    assert (tokens.ids.dtype, tokens.mask.dtype, tokens.present.dtype) == (torch.long, torch.bool, torch.bool)
    for row, text in enumerate(texts):
        padding = length - len(text) - 2
        assert tokens.ids[row].tolist() == [START, *VOCABULARY.ids(text), END] + [PAD] * padding
        assert tokens.present[row].tolist() == [True] * (len(text) + 2) + [False] * padding
        assert tokens.mask[row].tolist() == [False] + [True] * len(text) + [False] * (padding + 1)


@given(corpora())
def test_collate_pads_and_marks(examples: list[Example]) -> None:
    batch = encode(examples, TEXT, 4).batch(range(len(examples)))
    assert len(batch) == len(examples)
    check_tokens(batch.passage, [example.passage for example in examples])
    queries = [example.query for example in examples if example.query is not None]
    assert (batch.query is None) == (not queries)
    if batch.query is not None:
        check_tokens(batch.query, queries)
    labels = [example.label for example in examples]
    assert (batch.labels.tolist() if batch.labels is not None else None) == (None if None in labels else labels)
    if all(example.candidates is None for example in examples):
        assert batch.candidates is None
    else:
        assert batch.candidates is not None
        for row, example in zip(batch.candidates.tolist(), examples, strict=True):
            allowed = range(4) if example.candidates is None else example.candidates
            assert row == [label in allowed for label in range(4)]


@settings(deadline=None)
@given(corpora(), st.integers(1, 7), st.none() | st.integers(0, 9), st.none() | st.integers(1, 60))
def test_every_example_comes_once_with_its_own_tokens(
    examples: list[Example], batch_size: int, seed: int | None, budget: int | None
) -> None:
    rng = None if seed is None else np.random.default_rng(seed)
    seen: list[int] = []
    for indices, batch in encode(examples, TEXT, 4).batches(batch_size, rng, budget):
        assert 1 <= len(batch) == len(indices) <= batch_size
        check_tokens(batch.passage, [examples[i].passage for i in indices])
        longest = max(encode(examples, TEXT, 4).lengths[indices])
        assert budget is None or len(batch) == 1 or len(batch) * longest <= budget
        seen += indices.tolist()
    assert sorted(seen) == list(range(len(examples)))


def test_without_a_generator_batches_come_in_order_of_length() -> None:
    lengths = np.array([5, 3, 9, 3, 1])
    assert [indices.tolist() for indices in cut(lengths, 2)] == [[4, 1], [3, 0], [2]]
    assert [indices.tolist() for indices in cut(lengths, 9, token_budget=9)] == [[4, 1, 3], [0], [2]]
    assert cut(np.zeros(0, dtype=np.int64), 3, token_budget=5) == []


def test_shuffling_is_by_the_generator_and_keeps_padding_small() -> None:
    lengths = np.random.default_rng(0).integers(5, 400, size=5000)
    first, again, other = (cut(lengths, 32, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    padded = sum(len(batch) * lengths[batch].max() for batch in first)
    assert padded < 1.1 * lengths.sum()  # about 1.9 times without buckets
    assert len(first) == -(-5000 // 32)
    means = np.array([lengths[batch].mean() for batch in first])
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.3  # not from short to long


def test_sorted_batches_hold_like_lengths_give_or_take_a_tenth() -> None:
    lengths = np.random.default_rng(0).integers(5, 400, size=5000)
    first, again, other = (cut_sorted(lengths, 32, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
    assert sorted(np.concatenate(first).tolist()) == list(range(5000))
    assert sorted(map(len, first)) == [5000 % 32, *[32] * (5000 // 32)]
    # sorted by n, give or take ceil(n / 10): 32 of 5000 neighbours are hardly more apart than that
    for batch in first:
        longest, shortest = int(lengths[batch].max()), int(lengths[batch].min())
        assert longest - -(-longest // 10) <= shortest + -(-shortest // 10) + 10
    assert np.mean([np.ptp(lengths[batch]) for batch in first]) > 20  # by chance; without it 3
    means = np.array([lengths[batch].mean() for batch in first])
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.3  # not from short to long
    assert len(cut_sorted(lengths[:0], 32, np.random.default_rng(0))) == 0


@pytest.mark.parametrize("cut_", [cut, cut_sorted])
def test_a_corpus_that_is_sorted_by_label_has_batches_of_both(cut_: Any) -> None:
    """Texts of one length in the order of their file would come label by label."""
    lengths, labels = np.random.default_rng(0).integers(5, 50, size=4000), np.repeat([0, 1], 2000)
    shares = [labels[batch].mean() for batch in cut_(lengths, 32, np.random.default_rng(1))]
    by_chance = np.random.default_rng(2).binomial(32, 0.5, size=4000) / 32
    assert abs(np.std(shares) - by_chance.std()) < 0.02  # by label it would be .4


def test_what_no_model_can_read_is_named() -> None:
    good = Example("file:1", split("a b"), label=0)
    for bad, said in (
        (Example("file:2", split("  ")), "file:2 has no words"),
        (Example("file:2", split("a"), query=split("")), "file:2 has no words in its query"),
        (Example("file:2", split("a"), query=split("b")), "either all examples have a query or none"),
        (Example("file:2", split("a"), label=4), "file:2 has label 4"),
        (Example("file:2", split("a"), candidates=(0, 7)), "file:2 has label 7"),
    ):
        with pytest.raises(Mistake, match=said):
            encode([good, bad], TEXT, 4)
    with pytest.raises(Mistake, match="batch size"):
        list(encode([good], TEXT, 4).batches(0))
