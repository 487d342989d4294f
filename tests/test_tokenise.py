"""The fast tokenizer is spaCy's, word by word; the whitespace one is str.split."""

from __future__ import annotations

import gzip
import json
import os
import re
from functools import cache
from itertools import islice
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import spacy
from hypothesis import example, given, settings
from hypothesis import strategies as st
from spacy.tokenizer import Tokenizer as SpacyTokenizer

from heedful.data.corpora.recipe import Recipe
from heedful.data.corpora.row_words import RowTokenizer
from heedful.data.formats.rows import Raw
from heedful.data.text import chunks, tokenise
from heedful.data.text.tokenise import MemoisedSpacy, Tokenizer, tokenise_all, tokenizer
from heedful.errors import Mistake
from heedful.records import TokenizerName, Words

NAMES: tuple[TokenizerName, ...] = get_args(TokenizerName)


@cache
def plain() -> SpacyTokenizer:
    made = spacy.blank("en").tokenizer
    assert isinstance(made, SpacyTokenizer)
    return made


@cache
def fast() -> MemoisedSpacy:
    return MemoisedSpacy()


def oracle(text: str) -> Words:
    """What the paper does, in so many words."""
    tokens = [token for token in plain()(text) if not token.is_space]
    forms = tuple("qqq" if any(c.isdigit() for c in t.text) else t.text.lower() for t in tokens)
    offsets = np.array([(t.idx, t.idx + len(t.text)) for t in tokens], dtype=np.int32).reshape(-1, 2)
    return Words(text, forms, offsets)


def rules() -> list[str]:
    return sorted(plain().rules)


SPACES = [" ", " ", " ", "  ", "\n", "\t", "\u00a0", "\u2009", "\u3000", "\x85", "\x1c", "\r\n", " \n"]
ODD = [
    *("don't", "U.S.A.", "e.g.", "Mr.", "10km", "$5", "İstanbul", "ẞ", "²", "1/2", "www.a.co.uk", "a@b.com"),
    *("😀", "👩\u200d👧", "שלום", "مرحبا", "٣", "<br", "/><br", "...", "well-known", "film's", "he's", "cannot"),
    *("(ok)", "'tis", "''", "--", "\u200b", "\ufeff", "\u202e", "e\u0301", "A.B", "a.B", "co-op.", "'em", "_o)"),
    *("'", ":", ")", "(", "-", "o", "_"),
]
pieces = st.one_of(
    st.sampled_from(ODD),
    st.sampled_from(rules()),
    st.text(alphabet="'\".:;()-_oOxDs8=<>^/*[]’", max_size=5),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=6),
)
texts = st.lists(st.tuples(pieces, st.sampled_from(["", *SPACES]))).map(
    lambda parts: "".join(piece + space for piece, space in parts)
)


@settings(max_examples=600, deadline=None)
@given(texts)
@example("")
@example(" \n ")
@example("x:> :(((x")  # chunk by chunk ":>" would be found, which the match across the blank hides
@example(": ) :) : )x")
@example("it 's its Mr . Smith and/ or")
def test_every_text_is_split_as_spacy_splits_it(text: str) -> None:
    assert fast()(text) == oracle(text)


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, max_size=5))
def test_many_texts_at_once_are_the_same_as_one_by_one(several: list[str]) -> None:
    assert fast().many(several) == [oracle(text) for text in several]


@cache
def counter(name: TokenizerName) -> RowTokenizer:
    return RowTokenizer(Recipe(tokenizer=name))


@settings(max_examples=400, deadline=None)
@given(texts)
@example("cannot dont couldntve 10km US$5 x's (cant)")
def test_the_number_of_words_is_within_its_bounds(text: str) -> None:
    for name in NAMES:
        words = counter(name).split(text)
        fewest, most = counter(name).bounds(text)
        assert fewest <= len(words) <= most
        assert counter(name).has_words(text) == (len(words) > 0)


def test_special_cases_side_by_side_are_within_the_bounds() -> None:
    rng = np.random.default_rng(1)
    for left, right in rng.choice(rules(), size=(1000, 2)):
        for text in (left + right, f"{left}-{right}", f"5{left}.{right}'s", f"{left} {right}"):
            for name in NAMES:
                fewest, most = counter(name).bounds(text)
                assert fewest <= len(counter(name).split(text)) <= most


def test_special_cases_that_could_hide_each_other_across_a_blank() -> None:
    """Pairs of special cases side by side: the one place where spaCy looks beyond a chunk."""
    rng = np.random.default_rng(0)
    odd = [rule for rule in rules() if not rule.isalnum()]
    for left, right in rng.choice(odd, size=(1500, 2)):
        for text in (f"{left} {right}", f"x{left} {right}x", f"({left} {right})"):
            assert fast()(text) == oracle(text)


def test_a_full_memory_is_begun_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenise, "MEMO_SIZE", 5)
    small = MemoisedSpacy()
    for text in ("one two three four", "five six don't", "one two seven eight nine ten eleven", "x" * 200):
        assert small(text) == oracle(text)
        assert len(small._memo) <= 7


def test_offsets_point_into_the_text_as_it_was_given() -> None:
    words = tokenizer("spacy")("İİ  Don't PAY $20!")
    assert [words.surface(i) for i in range(len(words))] == ["İİ", "Do", "n't", "PAY", "$", "20", "!"]
    assert words.forms == ("i̇i̇", "do", "n't", "pay", "$", "qqq", "!")
    assert words.offsets.dtype == np.int32


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_whitespace_is_str_split_with_offsets(text: str) -> None:
    words = tokenizer("whitespace")(text)
    surfaces = [words.surface(i) for i in range(len(words))]
    assert surfaces == text.split()
    assert words.forms == tuple("qqq" if any(c.isdigit() for c in s) else s.lower() for s in surfaces)


@pytest.mark.parametrize("name", ["spacy", "whitespace", "words"])
def test_half_a_surrogate_pair_is_a_mistake(name: TokenizerName) -> None:
    with pytest.raises(Mistake, match="character 3"):
        tokenizer(name)("ab \ud83d c")


def test_an_unknown_tokenizer_is_named() -> None:
    with pytest.raises(Mistake, match="Did you mean 'spacy'"):
        tokenizer("spacey")  # type: ignore[arg-type]


@pytest.mark.corpora
@pytest.mark.parametrize("name", ["20news", "agnews", "amazon_reviews", "imdb", "mr", "snli", "sst"])
def test_real_texts_are_split_as_spacy_splits_them(name: str) -> None:
    for file in sorted((Path(os.environ["HEEDFUL_DATA"]) / name).glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in islice(lines, 0, 8000, 40)]
        for text, words in zip(texts, tokenise_all(fast(), texts), strict=True):
            assert words == oracle(text), text


def test_words_have_letters_only_and_offsets_into_the_text() -> None:
    words = tokenizer("words")("It's 3 o'clock -- don't!")
    assert words.forms == ("it", "s", "qqq", ["o", "clock"][0], "clock", "do", "n", "t")
    assert [words.surface(i) for i in range(len(words))] == ["It", "s", "3", "o", "clock", "do", "n", "t"]


def code_of_20news(text: str) -> list[str]:
    """In so many words: the words between blanks, then of each run of signs and blanks the last one."""
    joined = " ".join(oracle(text).forms)
    return re.sub(r"(\W)+", r" \1 ", joined).split()


@pytest.mark.parametrize(
    "text",
    [
        "It's the Orioles' staff; well, I haven't (yet) paid $5.00.",
        "e.g. high-level :-) ... or not?!",
        '... "Quoted" , end',
        "a_b 3rd @home C++",
        "wow!!!",
        "'tis",
    ],
)
def test_words_and_signs_are_those_of_the_code(text: str) -> None:
    assert list(tokenizer("words_and_signs")(text).forms) == code_of_20news(text)


@cache
def signs() -> Tokenizer:
    return tokenizer("words_and_signs")


@given(st.text(alphabet="ab1 .,'-!()_\n", max_size=40))
@settings(deadline=None, max_examples=200)
def test_words_and_signs_of_any_text_are_those_of_the_code(text: str) -> None:
    made = signs()(text)
    assert list(made.forms) == code_of_20news(text)
    for i, form in enumerate(made.forms):
        assert form in ("qqq", made.surface(i).lower())


def test_keras_keeps_digits_and_apostrophes_and_reads_markup_as_words() -> None:
    found = tokenizer("keras")("It's 10/10,<br />high-brow_fun!")
    assert found.forms == ("it's", "10", "10", "br", "high", "brow", "fun")
    row = Raw(id="1", text="Good.<br />Film", label="0", split="train")
    assert RowTokenizer(Recipe(tokenizer="keras", blank="<br />")).text(row) == row.text
    assert RowTokenizer(Recipe(tokenizer="spacy", blank="<br />")).text(row) == "Good.      Film"


def test_babi_has_full_stops_between_sentences_only() -> None:
    split = tokenizer("babi")
    assert split("Mary went back. John moved.").forms == ("Mary", "went", "back", ".", "John", "moved")
    assert split("Where is Mary?").forms == ("Where", "is", "Mary")


def test_a_long_run_without_blanks_is_given_to_spacy_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """19,000 equals signs took minutes: spaCy looks at all that is left for each sign that it takes off."""
    given_at_once: list[str] = []
    made = MemoisedSpacy()
    spacy_itself = made.spacy

    def listen(text: str) -> object:
        given_at_once.append(text)
        return spacy_itself(text)

    monkeypatch.setattr(made, "spacy", listen)
    rng = np.random.default_rng(0)
    mixed = "".join(rng.choice(list("=(.!'s_<>*"), 19_000))
    for text in ("=" * 19_000, mixed, "a " + "?!" * 4_000 + " b", "漢" * 5_000, "a" * 2_500 + "(" * 300):
        words = made(text)
        surfaces = "".join(text[start:end] for start, end in words.offsets.tolist())
        assert surfaces == "".join(text.split())  # nothing is lost, and nothing read twice
        assert len(words) <= tokenise.most_words()(text)
        assert words == made(text)
    pieces = [piece for text in given_at_once for piece in text.split()]
    assert max(map(len, pieces)) <= chunks.LONGEST_CHUNK
    assert not any(re.search(r"[=(!<>*_]{101}", piece) for piece in pieces)
    squares = [sum(len(piece) ** 2 for piece in text.split()) for text in given_at_once]
    assert max(squares) <= tokenise.AT_ONCE + chunks.LONGEST_CHUNK**2


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("=(!<_?,:)"), st.integers(90, 260)), min_size=1, max_size=3),
    st.sampled_from(["", "a", "don't", "...", "----"]),
)
def test_a_row_of_one_sign_is_split_as_spacy_splits_it_however_long(rows: list[tuple[str, int]], word: str) -> None:
    text = " and ".join(sign * n + word for sign, n in rows)
    assert fast()(text) == oracle(text)


@pytest.mark.corpora
def test_cutting_long_chunks_changes_no_word_of_a_real_corpus() -> None:
    """Every text of the real corpora with a chunk that is cut is split as spaCy alone splits it."""
    folder, cut, read = Path(os.environ["HEEDFUL_DATA"]), 0, 0
    for file in sorted(folder.glob("*/*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                read += 1
                if not re.search(r"[^\s]{101}", line):
                    continue
                for value in json.loads(line).values():
                    if isinstance(value, str) and chunks.places_to_cut(value):
                        cut += 1
                        assert fast()(value) == oracle(value), (file.parent.name, value[:200])
    assert read > 1000
