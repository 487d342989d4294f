"""Word vectors trained on the task's own texts."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vectors import train_word2vec
from heedful.data.text.vocabulary import PAD, Vocabulary
from heedful.engine.sources.data import vectors_fingerprint
from heedful.errors import Mistake

TEXTS = [
    tokenizer("whitespace")(f"the {kind} {animal} sleeps here today")
    for kind in ("small", "big", "old")
    for animal in ("cat", "dog", "cow")
] * 30


def test_the_same_seed_gives_the_same_vectors_and_every_word_has_one() -> None:
    pytest.importorskip("gensim", reason="gensim is not installed (the extra 'word2vec')")
    vocabulary = Vocabulary.build(TEXTS)
    one, same, other = (train_word2vec(TEXTS, vocabulary, 12, seed) for seed in (0, 0, 1))
    assert one.matrix.shape == (len(vocabulary), 12)
    assert np.array_equal(one.matrix, same.matrix)
    assert not np.array_equal(one.matrix, other.matrix)
    assert (one.matrix[PAD] == 0).all()
    assert (np.abs(one.matrix[1:]).sum(1) > 0).all()
    from gensim.models import Word2Vec

    ids = [[str(i) for i in vocabulary.ids(text)] for text in TEXTS]
    theirs = Word2Vec(ids, vector_size=12, epochs=30, min_count=1, workers=1, seed=1)
    word = vocabulary.ids(TEXTS[0])[2]
    np.testing.assert_array_equal(one.matrix[word], theirs.wv[str(word)])


def test_without_gensim_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(Mistake, match=r"heedful\[word2vec\]"):
        train_word2vec(TEXTS, Vocabulary.build(TEXTS), 12, 0)


def test_its_name_is_no_file() -> None:
    assert vectors_fingerprint("word2vec") == "word2vec-1"
