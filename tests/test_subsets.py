"""Stratified subsets of a corpus: their sizes, their labels, their seed, and that a part is read as the whole is."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.config import DataAsPublished, DataOptions
from heedful.data.corpora import load as corpora
from heedful.data.corpora.splits import draw_subset
from heedful.data.text.tokenise import tokenizer
from heedful.records import Corpus


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=60), st.data())
def test_every_label_has_its_share(labels: list[str], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(labels)))
    places = draw_subset(labels, size, np.random.default_rng(0))
    assert len(places) == len(set(places)) == size
    assert places == sorted(places)
    whole, drawn = Counter(labels), Counter(labels[i] for i in places)
    room = len(whole) <= size
    for label, n in whole.items():
        share = size * n / len(labels)
        assert drawn[label] >= int(room)
        assert drawn[label] <= n
        if not room or share >= 1:  # those below one are given one, which others lack
            assert abs(drawn[label] - share) < 1 + len(whole) * room * min(share, 1)


def table(folder: Path) -> Path:
    folder.mkdir()
    for split, n in (("train", 90), ("test", 60)):
        with (folder / f"{split}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("text", "label"))
            rows.writerows(
                (f"{split} text number {i} is {'good' if i % 3 else 'bad'}", "yes" if i % 3 else "no") for i in range(n)
            )
    return folder / "train.csv"


def read(file: Path, **given: int) -> Corpus:
    options = DataOptions(test_file=file.with_name("test.csv"), tokenizer="whitespace", **given)  # type: ignore[arg-type]
    return corpora.load(file, options=options)


def test_a_subset_is_drawn_by_label_and_seed(tmp_path: Path) -> None:
    file = table(tmp_path / "rows")
    corpus = read(file, train_rows=30, test_rows=12)
    assert len(corpus["train"]) + len(corpus["dev"]) == 30
    assert Counter(e.label for e in corpus["test"]) == {corpus.labels.index("yes"): 8, corpus.labels.index("no"): 4}
    assert "30 of 90 train rows drawn with seed 0" in corpus.source
    ids = [e.id for e in corpus["test"]]
    assert ids == [e.id for e in read(file, train_rows=30, test_rows=12)["test"]]
    assert ids != [e.id for e in read(file, train_rows=30, test_rows=12, subset_seed=1)["test"]]
    assert len(read(file, train_rows=1000)["train"]) == len(read(file)["train"])  # no more than there are


@pytest.mark.parametrize("limit", [None, 5])
def test_a_part_is_read_as_the_whole_is(tmp_path: Path, limit: int | None) -> None:
    file = table(tmp_path / "rows")
    options = DataOptions(
        test_file=file.with_name("test.csv"), tokenizer="whitespace", train_rows=30, test_rows=12, labels=("no", "yes")
    )
    whole = corpora.load(file, options=options)["test"]
    part = corpora.load_split(file, "test", limit, options=options)
    assert part.size == 12
    assert [e.id for e in part.examples] == [whole[i].id for i in part.places]


def test_settings_that_are_not_given_leave_every_key_as_it_was() -> None:
    written = DataOptions().model_dump(mode="json")
    assert not {"train_rows", "dev_rows", "test_rows", "subset_seed"} & set(written)


def test_short_texts_are_left_out_after_the_vocabulary_was_made_of_all(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(("text", "label"))
        rows.writerows((f"one two three four number{'a' * i}", "yes" if i % 2 else "no") for i in range(30))
        rows.writerows([("rare", "yes"), ("seldom", "no")])
    kept, all_ = (
        corpora.load(
            file,
            options=DataOptions(
                tokenizer="whitespace", as_published=DataAsPublished(min_words=3, vocabulary=vocabulary)
            ),
        )
        for vocabulary in get_args(DataAsPublished.model_fields["vocabulary"].annotation)
    )
    assert kept.splits == all_.splits
    assert sum(len(kept[split]) for split in ("train", "dev", "test")) == 30
    assert kept.only_words == ()
    assert [words.forms for words in all_.only_words] == [("rare",), ("seldom",)]


def test_digits_need_not_be_hidden() -> None:
    hidden, shown = (tokenizer(name)("Windows95 isn't 7.5") for name in ("words", "words_and_digits"))
    assert hidden.forms == ("qqq", "is", "n", "t", "qqq", "qqq")
    assert shown.forms == ("windows95", "is", "n", "t", "7", "5")
    assert (hidden.offsets == shown.offsets).all()
