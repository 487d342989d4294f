"""Which files, rows and columns of one's own data are read: nothing is left out or cut in silence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from heedful.config import DataOptions
from heedful.data.corpora.load import load, load_split
from heedful.data.formats.evidence import evidence_spans
from heedful.data.formats.simple import evidence_of
from heedful.engine.sources.data import find_data
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus

QUICK = DataOptions(tokenizer="whitespace")


def options(**given: Any) -> DataOptions:
    return DataOptions(**{"tokenizer": "whitespace", **given})


def rows_of(name: str, n: int, **more: Any) -> list[dict[str, Any]]:
    return [{"text": f"{name} {i}", "label": "ab"[i % 2], **more} for i in range(n)]


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(exist_ok=True)
    if path.suffix in (".jsonl", ".json"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    return path


def texts(corpus: Corpus) -> dict[str, int]:
    """How many texts of each split come from the file of that name (their first word)."""
    return {split: sum(e.passage.text.split()[0] == split for e in corpus[split]) for split in SPLITS}


@pytest.mark.parametrize("other", ["test.csv", "test.json", "Test.jsonl", "TEST.CSV", "Testing.JSONL", "test.v2.jsonl"])
def test_a_folder_of_mixed_formats_is_read_whole(tmp_path: Path, other: str) -> None:
    folder = tmp_path / "mine"
    write(folder / "train.jsonl", rows_of("train", 20))
    before = find_data(str(folder), QUICK).fingerprint
    write(folder / other.lower(), rows_of("test", 6)).rename(folder / other)
    corpus = load(folder, options=options(dev_fraction=0.1))
    assert texts(corpus) == {"train": 18, "dev": 0, "test": 6}
    assert len(corpus["dev"]) == 2
    assert find_data(str(folder), QUICK).fingerprint != before  # what is read decides the name of a run
    read = load_split(folder, "test", 3, options=QUICK)
    assert (read.size, {e.passage.text.split()[0] for e in read.examples}) == (6, {"test"})


def test_dev_in_another_format(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write(folder / "train.jsonl", rows_of("train", 20))
    write(folder / "test.jsonl", rows_of("test", 6))
    write(folder / "dev.csv", rows_of("dev", 4))
    assert texts(load(folder, options=QUICK)) == {"train": 20, "dev": 4, "test": 6}
    write(folder / "test.csv", rows_of("test", 6))
    with pytest.raises(Mistake, match=r"more than one file for the split of test\."):
        load(folder, options=QUICK)


def test_files_with_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write(folder / "train.jsonl", rows_of("train", 20))
    write(folder / "test.csv", [{"sentence": "a", "label": "b"}])
    with pytest.raises(Mistake, match=r"test\.csv has no text column 'text'; its columns are 'sentence', 'label'"):
        load(folder, options=QUICK)
    write(folder / "test.csv", [{"Text": "a", "label": "b"}])
    with pytest.raises(Mistake, match=r"test\.csv has no text column 'text'"):
        load(folder, options=options(skip_bad=True))


def test_a_query_of_one_file_is_not_dropped_for_another(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write(folder / "train.csv", rows_of("train", 20, question="why"))
    write(folder / "dev.csv", rows_of("dev", 4))  # is read first
    with pytest.raises(Mistake, match=r"dev\.csv has no query column 'question'"):
        load(folder, options=QUICK)


def test_what_is_called_like_a_split_and_not_read_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    write(folder / "train.csv", rows_of("train", 20))
    for name in ("test.xlsx", "validation-00000-of-00001.parquet", "testimony.txt", "notes.md"):
        (folder / name).write_text("x")
    said = " ".join(load(folder, options=QUICK).warnings)
    assert "test.xlsx lies in" in said
    assert "validation-00000-of-00001.parquet lies in" in said
    assert "testimony" not in said
    assert "notes" not in said
    write(folder / "train.jsonl", rows_of("train", 20))
    (folder / "train.csv").unlink()
    assert "test.xlsx lies in" in " ".join(load(folder, options=QUICK).warnings)


def test_a_corpus_by_name_does_not_leave_a_split_unread(tmp_path: Path) -> None:
    write(tmp_path / "sst" / "train.jsonl", rows_of("train", 20))
    write(tmp_path / "sst" / "test.csv", rows_of("test", 6))
    with pytest.raises(Mistake, match=r"sst has test\.csv beside train\.jsonl: a named corpus is read from"):
        load("sst", data_dirs=[tmp_path])


def test_the_split_of_a_row_counts_in_a_folder_too(tmp_path: Path) -> None:
    rows = [row | {"split": s} for s, n in (("train", 20), ("Dev", 4), ("test", 6)) for row in rows_of(s.lower(), n)]
    write(tmp_path / "mine" / "train.jsonl", rows)
    assert texts(load(tmp_path / "mine", options=QUICK)) == {"train": 20, "dev": 4, "test": 6}
    write(tmp_path / "mine" / "train.jsonl", [*rows, *rows_of("x", 1, split="later")])
    with pytest.raises(Mistake, match=r"line 31: the split 'later' is not train, dev or test"):
        load(tmp_path / "mine", options=QUICK)
    write(tmp_path / "mine" / "train.csv", rows)
    (tmp_path / "mine" / "train.jsonl").unlink()
    write(tmp_path / "mine" / "test.csv", rows_of("test", 2))  # without the column: its name tells
    assert texts(load(tmp_path / "mine", options=QUICK)) == {"train": 20, "dev": 4, "test": 8}


@pytest.mark.parametrize("place", ["mine.jsonl", "mine/train.jsonl"])
def test_every_row_decides_which_fields_there_are(tmp_path: Path, place: str) -> None:
    path = write(tmp_path / "mine" / "x.jsonl", rows_of("none", 1)).parent.parent / place
    first = {"text": "a premise", "label": "a"}
    more = [{"text": f"a {i}", "label": "ab"[i % 2], "hypothesis": "b"} for i in range(20)]
    write(path, [*more, first])
    name = path if place == "mine.jsonl" else path.parent
    (tmp_path / "mine" / "x.jsonl").unlink()
    for rows in ([*more, first], [first, *more]):
        write(path, rows)
        with pytest.raises(Mistake, match="hypothesis"):
            load(name, options=QUICK)
        corpus = load(name, options=options(skip_bad=True))
        assert (corpus.task, sum(len(corpus[s]) for s in SPLITS)) == ("nli", 20)
        assert len(corpus.skipped) == 1


def test_a_split_that_the_first_row_lacks_is_not_dropped(tmp_path: Path) -> None:
    rows = [*rows_of("train", 1), *rows_of("train", 19, split="train"), *rows_of("test", 6, split="test")]
    path = write(tmp_path / "mine.jsonl", rows)
    with pytest.raises(Mistake, match=r"mine\.jsonl, line 1: the split '' is not train, dev or test"):
        load(path, options=QUICK)
    corpus = load(path, options=options(skip_bad=True, dev_fraction=0.1))
    assert texts(corpus)["test"] == 6
    assert "1 of the 26 rows of mine.jsonl have no field 'split'" in corpus.warnings


def test_fields_that_some_rows_lack_are_said(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.jsonl", [*rows_of("x", 17), *rows_of("y", 3, why=["y"])])
    corpus = load(path, options=options(evidence_column="why"))
    assert "17 of the 20 rows of mine.jsonl have no field 'why'" in corpus.warnings
    write(path, [{"text": "a", "question": "b", "label": 1}, {"text": "a", "label": 0}])
    with pytest.raises(Mistake, match="line 2: there is no value in column 'question', which 1 other rows have"):
        load(path, options=QUICK)


@pytest.mark.parametrize("header", ["text,label,Text", "Text,text,label", "TEXT,label,text"])
def test_the_exact_name_of_a_column_comes_first(tmp_path: Path, header: str) -> None:
    path, names = tmp_path / "x.csv", header.split(",")
    values = {"text": "right {}", "Text": "wrong {}", "TEXT": "wrong {}", "label": "{}"}
    path.write_text(header + "\n" + "".join(",".join(values[n].format(i % 2) for n in names) + "\n" for i in range(20)))
    corpus = load(path, options=QUICK)
    assert {e.passage.surface(0) for e in corpus["train"]} == {"right"}
    assert "columns: text 'text', label 'label'" in corpus.source
    assert "columns: text 'text', label 'label'" in load_split(path, "test", 2, options=QUICK).source


def test_columns_that_differ_in_case_only_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Text,TEXT,label\n" + "".join(f"a {i},b {i},{i % 2}\n" for i in range(20)))
    with pytest.raises(
        Mistake, match=r"the columns 'Text' and 'TEXT' differ in upper and lower case only; .*--text-col"
    ):
        load(path, options=QUICK)
    assert load(path, options=options(text_column="TEXT"))["train"][0].passage.surface(0) == "b"
    for header, option in (("text,Label,LABEL", "--label-column"), ("text,label,Split,SPLIT", "--split-column")):
        path.write_text(header + "\n" + ",".join(["a"] * len(header.split(","))) + "\n")
        with pytest.raises(Mistake, match=f"differ in upper and lower case only; .*{option}"):
            load(path, options=QUICK)
    path.write_text("text,label,Question,QUESTION\na,b,c,d\n")
    with pytest.raises(Mistake, match=r"differ in upper and lower case only; .*--query-column"):
        load(path, options=QUICK)


TEXT = "not worth it, not at all"


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        ([""], "an empty string marks no word"),
        ([" "], "an empty string marks no word"),
        (["zzz"], "'zzz' does not stand in the text"),
        (["not", "zzz"], "'zzz' does not stand in the text"),
        ([True], "True is not a whole number"),
        ([1.5], "1.5 is not a whole number"),
        ([-1], "-1 is outside of the text"),
        ([99], "99 is outside of the text"),
        ([None], "None is not a whole number"),
        ([[0.5, 2.9]], "0.5 is not a whole number"),
        ([[False, 3]], "False is not a whole number"),
        ([[3, 3]], "the characters 3 to 3 hold no word"),
        ([[3, 4]], "the characters 3 to 4 hold no word"),
        ([[5, 2]], "the characters 5 to 2 hold no word"),
        ([[0, 99]], "99 is outside of the text"),
        ([[0]], "is not a pair"),
        ({"a": 1}, "a list is needed"),
        ("not", "a list in JSON is needed"),
        ("7", "a list is needed"),
        ("[" * 100_000, "a list in JSON is needed"),
        ([10**400], "outside of the text"),
        ([float("inf")], "not a whole number"),
    ],
)
def test_evidence_that_marks_nothing_or_not_what_it_says_is_refused(evidence: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        evidence_spans(evidence, TEXT)


def test_the_row_says_what_is_wrong_with_its_evidence(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", rows_of("not", 20, why=["zzz"]))
    with pytest.raises(Mistake, match=r"line 1: the evidence in column 'why' cannot be read: 'zzz' does not stand in"):
        load(path, options=options(evidence_column="why"))
    assert evidence_spans([[0.0, 3.0], [4, 9]], TEXT) == ((0, 3), (4, 9))  # as tables of numbers keep them


@pytest.mark.parametrize(
    "row",
    [
        {"evidence": [[0.5, 3]]},
        {"evidence": [[True, 3]]},
        {"evidence": [[3, 3]]},
        {"evidences": [[0, 0.5]]},
        {"evidences": [[2, 1]]},
        {"evidence_tokens": [True]},
        {"evidence_tokens": [1.5]},
        {"supporting": [True]},
        {"spans": [{"effect": ""}]},
        {"spans": [{"effect": "zzz"}]},
        {"n_sst": True},
        {"n_sst": 99},
    ],
)
def test_evidence_of_the_simple_form_is_as_strict(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        evidence_of(row, "One is here. Two is there.")


def test_words_of_evidence_that_stand_nowhere_are_said(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", rows_of("good", 20))
    corpus = load(path, options=options(evidence_words=("good", "zzz")))
    assert all(e.evidence == (0,) for e in corpus["train"])
    assert any("'zzz'" in warning and "evidence" in warning for warning in corpus.warnings)
