"""Pieces on the text as it was written: every kind of tokenizer, every kind of script."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("transformers")

import transformer_zoo as zoo
from heedful.errors import Mistake
from heedful.models.huggingface.text import PieceEncoder, word_of
from heedful.records import Part, Words

each_tokenizer = pytest.mark.parametrize("name", list(zoo.TOKENIZERS))
TEXTS = [
    "a good film, it isn't bad.",
    "  I can't,\tnaïve  café 😀!\n next line",
    "שלום עולם",  # right to left
    "مرحبا بالعالم",
    "你好世界 and ありがとう",
    "👩‍👩‍👧 family, ﬁne, e\u0301 combining",
    "one",
]


@each_tokenizer
@pytest.mark.parametrize("text", TEXTS)
def test_a_piece_belongs_to_the_word_of_its_first_visible_character(name: str, text: str) -> None:
    encoder = PieceEncoder(zoo.tokenizer(name))
    words = encoder.split(text)
    told = zoo.tokenizer(name)(text, return_offsets_mapping=True, return_special_tokens_mask=True)
    found = encoder.encode([words], "passage")
    assert found.flat.tolist() == told["input_ids"]
    assert found.word is not None
    assert found.word_index is not None
    for i, (span, special) in enumerate(zip(told["offset_mapping"], told["special_tokens_mask"], strict=True)):
        visible = [c for c in range(*span) if not text[c].isspace()]
        if special or not visible:
            assert not found.word[i]
            assert found.word_index[i] == -1
            continue
        expected = [w for w, (a, b) in enumerate(words.offsets.tolist()) if a <= visible[0] < b]
        assert found.word_index[i] == expected[0]
        assert found.word[i]
    at_words = found.word_index[found.word]
    assert (np.diff(at_words) >= 0).all()  # the pieces of a word stand together
    pieces = encoder.pieces(words, "passage")
    assert len(pieces) == found.word.sum()
    for i, word in enumerate(at_words.tolist()):
        start, end = words.offsets[word]
        assert start <= pieces.offsets[i, 0] < end
        assert pieces.surface(i) == pieces.surface(i).strip() != ""


@each_tokenizer
def test_words_cover_the_text(name: str) -> None:
    encoder = PieceEncoder(zoo.tokenizer(name))
    for text in TEXTS:
        words = encoder.split(text)
        covered = "".join(words.surface(i) for i in range(len(words)))
        assert covered == "".join(text.split())
    assert len(encoder.split("good film")) == 2


def test_scripts_without_blanks_are_split_where_the_tokenizer_splits_them() -> None:
    words = PieceEncoder(zoo.tokenizer("wordpiece")).split("你好世界 café")
    assert [words.surface(i) for i in range(len(words))] == ["你", "好", "世", "界", "café"]


@each_tokenizer
def test_pairs_are_put_together_as_the_tokenizer_does(name: str) -> None:
    tokenizer = zoo.tokenizer(name)
    encoder = PieceEncoder(tokenizer, has_query=True)
    parts: tuple[tuple[Part, str], ...] = (("passage", "a good film"), ("query", "is it bad?"))
    ours = [encoder.encode([encoder.split(text)], part).flat.tolist() for part, text in parts]
    told = tokenizer("a good film", "is it bad?", return_token_type_ids=True)
    assert ours[0] + ours[1] == told["input_ids"]
    types = [kind for kind, of in zip(told["token_type_ids"], told.sequence_ids(0), strict=True) if of is not None]
    assert encoder.types == (types[0], types[-1])


def test_reserved_ids() -> None:
    assert PieceEncoder(zoo.tokenizer("wordpiece")).reserved.mask == 4
    without = PieceEncoder(zoo.tokenizer("bytes")).reserved  # as GPT-2: neither mask nor unknown nor padding
    assert (without.pad, without.unknown, without.mask, without.replacement) == (None, None, None, None)
    added = zoo.wordpiece()
    added.add_special_tokens({"mask_token": "[HIDE]"})  # the model was not resized, and never is
    assert PieceEncoder(added, n_words=len(added) - 1).reserved.mask is None


def test_a_tokenizer_that_is_too_large_for_the_model() -> None:
    tokenizer = zoo.tokenizer("wordpiece")
    last = tokenizer.get_vocab()["one"]
    with pytest.raises(Mistake, match=rf"the piece 'one' with number {last}, .* do not belong together"):
        PieceEncoder(tokenizer, n_words=last)


def test_known_words() -> None:
    encoder = PieceEncoder(zoo.tokenizer("wordpiece"))
    assert encoder.knows(encoder.split("good ζ film")) == [True, False, True]


def test_a_tokenizer_without_offsets_is_refused() -> None:
    class Slow:
        is_fast = False

    with pytest.raises(Mistake, match=r"Slow is a tokenizer without offsets .*tokenizer\.json"):
        PieceEncoder(Slow())


def test_a_text_of_which_nothing_is_left() -> None:
    encoder = PieceEncoder(zoo.tokenizer("wordpiece"))
    words = Words("\u200d", ("\u200d",), np.array([[0, 1]], dtype=np.int32))
    with pytest.raises(Mistake, match="leaves nothing of the text"):
        encoder.encode([words], "passage")
    assert word_of(encoder.split(""), np.zeros((0, 2), np.int32)).tolist() == []


def test_truncation_that_a_tokenizer_was_saved_with_is_not_obeyed() -> None:
    """Silently cut texts are the worst: a tokenizer.json can hold a maximum that nobody sees."""
    tokenizer = zoo.wordpiece()
    tokenizer.backend_tokenizer.enable_truncation(4)
    encoder = PieceEncoder(tokenizer)
    assert encoder.encode([encoder.split("a good film it is bad of all")], "passage").lengths.tolist() == [10]
    assert (tokenizer.backend_tokenizer.truncation or {})["max_length"] == 4  # the user's own stays as it was
