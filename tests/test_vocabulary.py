from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vocabulary import END, MARKERS, PAD, START, UNK, Vocabulary
from heedful.errors import Mistake
from heedful.records import Words

split = tokenizer("whitespace")
words = st.text(alphabet="abcde<>/spé", min_size=1, max_size=4) | st.sampled_from(MARKERS)
documents = st.lists(st.lists(words, max_size=8).map(lambda forms: split(" ".join(forms))), max_size=8)


def test_markers_come_first_then_the_most_frequent_and_ties_by_alphabet() -> None:
    vocabulary = Vocabulary.build([split("b a a a"), split("b c"), split("d c")])
    assert vocabulary.words == ("<pad>", "<unk>", "<s>", "</s>", "b", "c", "a", "d")
    assert (PAD, UNK, START, END) == (0, 1, 2, 3)
    assert len(vocabulary) == 8


@given(documents, st.integers(1, 4))
def test_words_are_kept_by_the_number_of_texts_they_are_in(texts: list[Words], min_df: int) -> None:
    df = Counter(form for text in texts for form in set(text.forms))
    kept = Vocabulary.build(texts, min_df).words
    assert set(kept[4:]) == {form for form, n in df.items() if n >= min_df} - set(MARKERS)
    assert list(kept[4:]) == sorted(kept[4:], key=lambda form: (-df[form], form))
    assert Vocabulary.build(reversed(texts), min_df).words == kept


@given(documents)
def test_ids_lead_back_to_the_words(texts: list[Words]) -> None:
    vocabulary = Vocabulary.build(texts)
    for text in texts:
        back = [vocabulary.words[i] for i in vocabulary.ids(text)]
        assert back == ["<unk>" if form in MARKERS else form for form in text.forms]
        assert vocabulary.ids(text.forms) == vocabulary.ids(text)
    assert vocabulary.ids(["never-seen"]) == [UNK]
    assert "never-seen" not in vocabulary


@given(documents)
def test_json_round_trip(texts: list[Words]) -> None:
    vocabulary = Vocabulary.build(texts)
    assert Vocabulary.from_json(vocabulary.to_json()) == vocabulary


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "not JSON"),
        ('{"a": 1}', "something else"),
        ('["<pad>", 3]', "something else"),
        ('["a", "b"]', "begins with"),
        ('["<pad>", "<unk>", "<s>", "</s>", "a", "a"]', "'a' twice"),
    ],
)
def test_what_is_no_vocabulary_is_refused(text: str, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        Vocabulary.from_json(text)


def test_a_text_that_holds_a_marker_cannot_make_padding() -> None:
    text = Words("<pad> a", ("<pad>", "a"), np.array([[0, 5], [6, 7]], dtype=np.int32))
    assert Vocabulary.build([text]).ids(text) == [UNK, 4]
