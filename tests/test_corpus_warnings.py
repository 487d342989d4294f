"""What is doubtful about a corpus is told with it."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from heedful.config import DataOptions
from heedful.data.corpora import registry
from heedful.data.corpora.describe import describe_reading
from heedful.data.corpora.load import load, load_split
from heedful.data.corpora.prepare import catalogue
from heedful.data.corpora.recipe import Recipe
from heedful.data.corpora.registry import CORPORA, Entry
from heedful.data.originals import Ledger, Raw
from heedful.records import Corpus


def read(path: Path, rows: list[dict[str, Any]], **given: Any) -> Corpus:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load(path, options=DataOptions(**{"tokenizer": "whitespace", **given}))


def rows(labels: dict[str, list[str]], **more: Any) -> list[dict[str, Any]]:
    return [
        {"text": f"{split} text {i}", "label": label, "split": split, **more}
        for split, some in labels.items()
        for i, label in enumerate(some)
    ]


FINE = {"train": ["a", "b"] * 8, "dev": ["a", "b"], "test": ["b", "a"]}


def test_nothing_to_warn_of(tmp_path: Path) -> None:
    corpus = read(tmp_path / "x.jsonl", rows(FINE))
    assert corpus.warnings == ()
    told = describe_reading(corpus)
    assert str(told) == (
        "x (classification), 20 texts: train 16 (a 8, b 8), dev 2 (a 1, b 1), test 2 (a 1, b 1). "
        f"From {tmp_path / 'x.jsonl'}; columns: text 'text', label 'label', split 'split'."
    )
    assert json.loads(json.dumps(told.to_json()))["counts"]["train"] == {"a": 8, "b": 8}


def test_a_dev_split_with_one_label(tmp_path: Path) -> None:
    corpus = read(tmp_path / "x.jsonl", rows({**FINE, "dev": ["b", "b"], "test": ["a"]}))
    assert corpus.warnings == (
        "all 2 texts of dev have the label 'b': ROC-AUC is undefined there, so it cannot tell which epoch is best",
        "test has no text with the label 'b'",
    )


def test_labels_that_are_almost_equal_or_rare(tmp_path: Path) -> None:
    labels = ["very good", "very-good", "bad"] * 5 + ["odd"]
    corpus = read(tmp_path / "x.jsonl", rows({"train": labels, "dev": labels, "test": labels}))
    assert corpus.warnings[:2] == (
        "the labels 'very good' and 'very-good' are almost equal and were read as 2 classes",
        "train has fewer than 5 texts with the label 'odd'",
    )
    numbers = rows({"train": ["1.5", "15", "+", "-"] * 5, "dev": ["1.5", "15", "+", "-"]})
    assert read(tmp_path / "y.jsonl", numbers, test_fraction=0).warnings == ()


def test_texts_that_stand_in_two_splits(tmp_path: Path) -> None:
    made = rows(FINE)
    made[-1]["text"] = made[0]["text"]
    corpus = read(tmp_path / "x.jsonl", made)
    assert corpus.warnings == ("1 of the 2 texts of test stand in train, too (the first: x.jsonl:20)",)
    path = tmp_path / "same.csv"
    path.write_text("text,label\n" + "".join(f"word {i},{i % 2}\n" for i in range(20)))
    same = load(path, options=DataOptions(test_file=path, dev_fraction=0, tokenizer="whitespace"))
    assert same.warnings == ("test is train: the same 20 texts in the same order",)


def test_a_column_that_makes_it_question_answering(tmp_path: Path) -> None:
    made = rows(FINE, question="who?")
    corpus = read(tmp_path / "x.jsonl", made)
    assert corpus.task == "qa"
    assert corpus.warnings[0] == (
        "the column 'question' makes this question answering; if the texts are to be classified without it, "
        "say so with --set task=classification"
    )
    plain = read(tmp_path / "x.jsonl", made, task="classification")
    assert (plain.task, plain["train"][0].query, plain.warnings) == ("classification", None, ())
    assert read(tmp_path / "x.jsonl", made, query_column="question").warnings == ()


def test_what_was_skipped_is_counted(tmp_path: Path) -> None:
    corpus = read(tmp_path / "x.jsonl", [*rows(FINE), {"text": 3, "label": "a", "split": "dev"}], skip_bad=True)
    assert str(describe_reading(corpus)).endswith("Skipped: 1 rows.")


def read_haiku(folder: Path | None, ledger: Ledger, seed: int) -> list[Raw]:
    """What another package's reader could look like."""
    assert folder is not None
    found = []
    for line, text in enumerate((folder / "haiku.txt").read_text().splitlines(), start=1):
        label, _, words = text.partition("|")
        if words:
            found.append(Raw(f"haiku.txt:{line}", words, label))
        else:
            ledger.bad(folder / "haiku.txt", line, "there is no |")
    return found


HAIKU = Entry("Haiku by season", "MIT", "write some", Recipe(labels=("spring", "autumn")), reader=read_haiku)


def read_dice(folder: Path | None, ledger: Ledger, seed: int) -> list[Raw]:
    assert folder is None
    return [Raw(f"dice:{i}", f"throw {i + seed}", str(i % 2), None) for i in range(40)]


DICE = Entry("Dice", "MIT", "built in", Recipe(), reader=read_dice, built_in=True)


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A data folder, and two corpora that another package adds through its entry points."""
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    points = {
        name: EntryPoint(name, f"{__name__}:{name.upper()}", registry.CORPORA.group) for name in ("haiku", "dice")
    }
    monkeypatch.setitem(CORPORA.__dict__, "found", points)
    monkeypatch.setattr(CORPORA, "_loaded", {})
    (tmp_path / "data/haiku").mkdir(parents=True)
    lines = [f"{('spring', 'autumn')[i % 2]}|frog {i} jumps in" for i in range(40)]
    (tmp_path / "data/haiku/haiku.txt").write_text("\n".join(lines) + "\n")
    return tmp_path / "data"


def test_corpora_of_other_packages(others: Path) -> None:
    corpus = load("haiku", data_dirs=[others])
    assert corpus.labels == ("spring", "autumn")
    assert [len(corpus[split]) for split in corpus.splits] == [27, 5, 8]
    found = load_split("haiku", "test", 3, data_dirs=[others])
    assert found.examples == tuple(corpus["test"][i] for i in (0, 2, 5))
    assert load("dice", seed=2)["train"][0].passage.text.startswith("throw")
    states = {row.name: row.state for row in catalogue([others])}
    assert (states["haiku"], states["dice"]) == ("found", "built in")
