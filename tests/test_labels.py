"""Labels: spellings that are one class, that are asked about, that are refused; a model's beside a corpus's."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.config import DataOptions
from heedful.data.corpora.labels import LabelNumbers, find_label, label_name, label_value, match_labels
from heedful.data.corpora.load import load
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus


def options(**given: Any) -> DataOptions:
    return DataOptions(**{"tokenizer": "whitespace", **given})


def table(path: Path, *splits: tuple[str, list[str]]) -> Path:
    """A CSV with a column for the split: one row for each label."""
    rows = [f"text {split} {i},{label},{split}" for split, labels in splits for i, label in enumerate(labels)]
    path.write_text("\n".join(["text,label,split", *rows]) + "\n")
    return path


def by_name(corpus: Corpus) -> dict[str, dict[str, int]]:
    return {
        split: dict(Counter(corpus.labels[e.label] for e in corpus[split] if e.label is not None)) for split in SPLITS
    }


def test_numbers_are_compared_as_numbers(tmp_path: Path) -> None:
    path = table(
        tmp_path / "x.csv",
        ("train", ["1.0", "2.0", "3.0"] * 4),
        ("dev", ["3", "01", "2.00"]),
        ("test", ["1", "2", "+2"]),
    )
    corpus = load(path, options=options())
    assert corpus.labels == ("1.0", "2.0", "3.0")
    assert [e.label for e in corpus["test"]] == [0, 1, 1]
    assert [e.label for e in corpus["dev"]] == [2, 0, 1]
    assert any("'1.0' (4 rows" in w and "were read as one label" in w for w in corpus.warnings)


def test_several_spellings_are_named_by_the_most_frequent(tmp_path: Path) -> None:
    path = table(tmp_path / "x.csv", ("train", ["1", "1.0", "1", "2", "0.50", ".5", ".5"]), ("test", ["2.0"]))
    corpus = load(path, options=options(dev_fraction=0))
    assert by_name(corpus)["train"] == {"1": 3, "2": 1, ".5": 3}
    assert by_name(corpus)["test"] == {"2": 1}


def test_truth_values_and_outer_blanks_are_one_class(tmp_path: Path) -> None:
    path = table(tmp_path / "x.csv", ("train", ["True", " True ", "FALSE", "false", "False"]), ("test", ["true"]))
    corpus = load(path, options=options(dev_fraction=0))
    assert corpus.labels == ("FALSE", "True")
    assert by_name(corpus) == {"train": {"True": 2, "FALSE": 3}, "dev": {}, "test": {"True": 1}}
    lines = [{"text": f"word {i}", "label": label} for i, label in enumerate([True, "True", False, "false"] * 9)]
    jsonl = tmp_path / "x.jsonl"
    jsonl.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert len(load(jsonl, options=options()).labels) == 2


def test_case_is_asked_about_with_counts_lines_and_both_answers(tmp_path: Path) -> None:
    path = table(tmp_path / "x.csv", ("train", ["Pos", "neg", "pos", "pos", "neg"]), ("test", ["pos", "NEG"]))
    with pytest.raises(Mistake) as caught:
        load(path, options=options(dev_fraction=0))
    said = str(caught.value)
    assert "'Pos' (1 rows, the first at x.csv:2)" in said
    assert "'pos' (3 rows, the first at x.csv:4)" in said
    assert said.endswith(
        "If they are one class, list the labels with --labels Pos,neg; if not, with --labels NEG,Pos,neg,pos."
    )
    one = load(path, options=options(dev_fraction=0, labels=("neg", "pos")))
    assert by_name(one) == {"train": {"neg": 2, "pos": 3}, "dev": {}, "test": {"neg": 1, "pos": 1}}
    four = load(path, options=options(dev_fraction=0, labels=("neg", "NEG", "pos", "Pos")))
    assert by_name(four)["train"] == {"neg": 2, "pos": 2, "Pos": 1}
    assert by_name(four)["test"] == {"pos": 1, "NEG": 1}


def test_a_spelling_of_test_alone_is_asked_about_too(tmp_path: Path) -> None:
    path = table(tmp_path / "x.csv", ("train", ["pos", "neg"] * 3), ("test", ["Pos"]))
    with pytest.raises(Mistake, match=r"'pos' \(3 rows.* and 'Pos' \(1 rows, the first at x\.csv:8\) differ in case"):
        load(path, options=options(dev_fraction=0))


def test_an_index_only_into_a_list_of_names(tmp_path: Path) -> None:
    path = table(tmp_path / "x.csv", ("train", ["0", "1"] * 3), ("test", ["1.0"]))
    named = load(path, options=options(dev_fraction=0, labels=("bad", "good")))
    assert by_name(named) == {"train": {"bad": 3, "good": 3}, "dev": {}, "test": {"good": 1}}
    with pytest.raises(Mistake, match="the label '0' is not one of 1, 2"):
        load(path, options=options(labels=("1", "2")))
    with pytest.raises(Mistake, match=r"the label '0' is not one of 1\.0, two"):
        load(path, options=options(labels=("1.0", "two")))
    mixed = table(tmp_path / "y.csv", ("train", ["neg", "pos"] * 3), ("test", ["1"]))
    with pytest.raises(Mistake, match=r"y\.csv, line 8: the label '1' is not one of neg, pos"):
        load(mixed, options=options(dev_fraction=0))  # the order of labels that were found is a guess


@pytest.mark.parametrize("missing", ["", " ", "NaN", "nan", "NA", "N/A", "null", "<NA>"])
def test_what_stands_for_no_label_is_refused_by_line(tmp_path: Path, missing: str) -> None:
    path = table(tmp_path / "x.csv", ("train", ["a", "b", missing, "b"]), ("test", ["a"]))
    with pytest.raises(Mistake, match=r"x\.csv, line 4: the label"):
        load(path, options=options(dev_fraction=0))
    assert len(load(path, options=options(dev_fraction=0, skip_bad=True)).skipped) == 1
    if missing.strip():  # a country's code, if one says so
        assert load(path, options=options(dev_fraction=0, labels=("a", "b", missing))).labels[2] == missing


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([1], "the label is a list"),
        ({"a": 1}, "the label is a dict"),
        (None, "there is no value in column 'label'"),
        (float("nan"), "the label is empty"),
        (float("inf"), "the label is an infinite number"),
        (" ", "the label is empty"),
        ("a\ud800", "half of a surrogate pair is in the label"),
    ],
)
def test_values_that_are_no_labels_in_jsonl(tmp_path: Path, value: object, sentence: str) -> None:
    path = tmp_path / "x.jsonl"
    rows = [{"text": f"word {i}", "label": i % 2} for i in range(10)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"text": "last", "label": value}]))
    with pytest.raises(Mistake, match=f"x.jsonl, line 11: {sentence}"):
        load(path, options=options())
    assert len(load(path, options=options(skip_bad=True)).skipped) == 1


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (pa.array([[1], [2]] * 5), "line 1: the label is a list"),
        (pa.array([b"a", b"b"] * 5), "line 1: the label is a bytes"),
        (pa.array([1.0, float("nan")] * 5), "line 2: the label is empty"),
        (pa.array([1.0, None] * 5), "line 2: there is no value in column 'label'"),
        (pa.array([{"a": 1}, {"a": 2}] * 5), "line 1: the label is a dict"),
    ],
)
def test_values_that_are_no_labels_in_parquet(tmp_path: Path, labels: pa.Array, sentence: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": [f"word {i}" for i in range(10)], "label": labels}), path)
    with pytest.raises(Mistake, match=sentence):
        load(path, options=options())


def test_values_that_are_no_labels_in_hugging_face_datasets(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the hf extra is not installed")
    rows = {"text": [f"w {i}" for i in range(10)], "label": [[1], [2]] * 5}
    datasets.Dataset.from_dict(rows).save_to_disk(str(tmp_path / "lists"))
    with pytest.raises(Mistake, match="line 1: the label is a list"):
        load(f"hf:{tmp_path / 'lists'}", options=options())


def test_names_of_values() -> None:
    big = 10**5000
    values = (2, 2.0, Decimal("2.00"), 0.5, -0.0, 1e22, True, " a ", None)
    assert [label_name(v) for v in values] == ["2", "2", "2", "0.5", "0", str(10**22), "true", "a", ""]
    refused: list[object] = [big, b"a", [], {}, float("-inf"), Decimal("Infinity")]
    for bad in refused:
        with pytest.raises(ValueError, match="the label is a"):
            label_name(bad)
    assert label_value("1e2") == label_value("100") == label_value(" 100.0 ") == Decimal(100)
    assert label_value("9" * 6000) == label_value("9" * 6000 + ".0")
    for name in ("1_000", "０", "0x1", "nan", "inf", "1e" + "9" * 30, "one", "1.2.3"):
        assert label_value(name) == name


def test_listed_labels_are_different() -> None:
    for names, said in ((("a", "a"), "'a' is listed twice"), (("1", "1.0"), "'1' and '1.0' are listed")):
        with pytest.raises(Mistake, match=said):
            LabelNumbers(names, listed=True)


def test_a_models_labels_beside_a_corpus() -> None:
    assert match_labels(("neutral", "contradiction", "entailment"), ("entailment", "neutral")) == (2, 0)
    assert match_labels(("1", "2", "3"), ("2.0", " 3")) == (1, 2)
    assert match_labels(("false", "true"), ("True", "False")) == (1, 0)
    assert match_labels(("neg", "pos"), ("Pos", "NEG")) == (1, 0)  # case alone, where there is no doubt
    for model, corpus in (
        (("neg", "pos"), ("0", "1")),  # an index is not a name
        (("us", "US"), ("Us", "US")),  # case alone, where it is in doubt
        (("neg", "pos"), ("neg", "neutral", "pos")),
        (("1", "2"), ("2", "2.0")),
    ):
        with pytest.raises(Mistake, match="the labels do not match") as caught:
            match_labels(model, corpus)
        assert all(", ".join(labels) in str(caught.value) for labels in (model, corpus))


@pytest.mark.parametrize(
    ("one", "other", "odd"),
    [
        ("caf\u00e9", "cafe\u0301", "U+0301 (COMBINING ACUTE ACCENT)"),
        ("positive", "p\u043esitive", "U+043E (CYRILLIC SMALL LETTER O)"),
        ("positive", "\uff50ositive", "U+FF50 (FULLWIDTH LATIN SMALL LETTER P)"),
        ("\u2764", "\u2764\ufe0f", "U+FE0F (VARIATION SELECTOR-16)"),
        ("positive", "posi\u200btive", "U+200B (ZERO WIDTH SPACE)"),
    ],
)
def test_labels_that_look_alike_are_asked_about(one: str, other: str, odd: str, tmp_path: Path) -> None:
    """They were classes of their own, and nobody was told."""
    path = table(tmp_path / "x.csv", ("train", [one, other, "z", one, "z", "z"]), ("test", [one, "z"]))
    with pytest.raises(Mistake, match="look alike and are written differently") as caught:
        load(path, options=options(dev_fraction=0))
    assert odd in str(caught.value)
    listed = load(path, options=options(dev_fraction=0, labels=(one, other, "z")))
    assert by_name(listed)["train"] == {one: 2, other: 1, "z": 3}


def test_labels_of_a_model_in_another_unicode_form() -> None:
    assert find_label("cafe\u0301", ["tea", "caf\u00e9"]) == 1
    assert find_label("caf\u00e9", ["CAFE\u0301", "tea"]) == 0
    assert find_label("caf\u00e9", ["cafe\u0301", "caf\u00e9"]) == 1  # exact before alike
    assert find_label("\uff43af\u00e9", ["cafe\u0301", "caf\u00e9"]) is None
    assert find_label("\u043d\u0435\u0442", ["HET", "yes"]) is None  # n in Cyrillic is no Latin h


def test_words_of_other_scripts_are_no_look_alikes(tmp_path: Path) -> None:
    names = ["\u0434\u0430", "\u043d\u0435\u0442", "yes", "\u03bd\u03b1\u03b9"]
    corpus = load(table(tmp_path / "x.csv", ("train", names * 2), ("test", names)), options=options(dev_fraction=0))
    assert set(corpus.labels) == set(names)
