"""Damaged and odd files, names and options: every one ends in a `Mistake` or in a corpus that holds together.

Seeded, so that a case that fails can be run again by its number.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from heedful.config import DataOptions
from heedful.data.corpora.describe import describe, describe_reading
from heedful.data.corpora.load import load, load_split
from heedful.data.corpora.locate import fingerprint
from heedful.data.originals import ORIGINALS, Ledger
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus

CASES = 40  # in a chunk; a chunk is one test
CHUNKS = range(5)
TEXTS: list[Any] = [
    *(
        "good film",
        "it's 10km!",
        "مرحبا 👩‍👧",
        "a\x00b",
        "\ufeffbom",
        "tab\there",
        'say "no"',
        "two\nlines",
        "x " * 3000,
    ),
    *(
        "",
        " ",
        "\u3000",
        "nul\x00",
        "e\u0301",
        "half \ud800",
        None,
        float("nan"),
        3,
        b"bytes",
        ["list"],
        {"a": 1},
        True,
    ),
]
LABELS: list[Any] = [
    *("a", "b", "b ", "B", "1", "1.0", "01", "nan", "NA", "null", "", " ", "\ud800", "true", "True", "é", "x" * 300),
    *(None, 0, 1, 1.0, 1.5, -0.0, float("nan"), float("inf"), 10**30, [1], {"a": 1}, True, Decimal("1.00"), b"b"),
]
EVIDENCE: list[Any] = [
    None,
    [],
    [[0, 1]],
    [[5, 2]],
    [-1],
    [10**20],
    [float("inf")],
    ["good"],
    [[]],
    "[",
    "[[0,1]]",
    7,
    [[0]],
]
SPLIT_VALUES: list[Any] = ["train", "dev", "test", "Valid", "later", "", None, 3]
COLUMNS = ["text", "label", "question", "hypothesis", "split", "why", "id", "Text", ""]
NAMES = ["x" * 300, "a\x00b", "..", "~nobody/x", "hf:", "", "/", "x.csv/y", "\ud800", ".csv", "x.parquet", "gone.jsonl"]


def make_rows(rng: random.Random) -> list[dict[str, Any]]:
    """Mostly right, so that errors lie deep: labels of one kind, here and there something odd."""
    kinds: list[list[Any]] = [["a", "b"], ["1", "2"], [1.0, 2.0], [True, False], ["a", "b", "c"], ["a", "A", "b"]]
    labels = rng.choice(kinds)
    odd = rng.choice([0.0, 0.0, 0.03, 0.3])
    columns = {"text", "label", *rng.sample(COLUMNS, rng.randint(0, 4))} - ({"text"} if rng.random() < 0.05 else set())
    values: dict[str, Callable[[], Any]] = {
        "text": lambda: f"{rng.choice(['good', 'bad', '(very)', 'not'])} film {rng.randint(0, 99)}",
        "label": lambda: rng.choice(labels),
        "split": lambda: rng.choice(["train", "train", "dev", "test"]),
        "why": lambda: rng.choice([None, ["film"], [0], [[0, 2]]]),
    }
    strange = {"text": TEXTS, "label": LABELS, "split": SPLIT_VALUES, "why": EVIDENCE}
    return [
        {
            column: rng.choice(strange.get(column, TEXTS))
            if rng.random() < odd
            else values.get(column, values["text"])()
            for column in sorted(columns)
        }
        for _ in range(rng.choice([0, 1, 5, 30, 60]))
    ]


def as_bytes(rows: list[dict[str, Any]], kind: str, rng: random.Random) -> bytes:
    """The rows in a format, as a careless program would write them."""
    if kind == "jsonl":
        lines = [json.dumps(row, default=str) for row in rows]
        if rng.random() < 0.1:
            lines.insert(
                0, rng.choice(["[" * 100_000, '{"text": ' + "9" * 5000 + "}", "3", "[]", '{"label": 1}', "{}"])
            )
        return rng.choice(["\n", "\r\n"]).join([*lines, ""]).encode("utf-8", "surrogatepass")
    if kind == "parquet":
        columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {"text": [], "label": []}
        try:
            table = pa.table(columns)
        except (pa.ArrowException, UnicodeEncodeError, OverflowError):  # Parquet cannot hold it
            table = pa.table({name: [str(v).encode("utf-8", "replace") for v in vs] for name, vs in columns.items()})
        sink = io.BytesIO()
        pq.write_table(table, sink)
        return sink.getvalue()
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter="\t" if kind == "tsv" else rng.choice(",;|"))
    writer.writerow(list(rows[0]) if rows else ["text", "label"])
    writer.writerows(list(row.values()) for row in rows)
    return file.getvalue().encode("utf-8", "surrogatepass")


def damage(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice([0, 0, 0, 1, 3])):
        place = rng.randint(0, len(data))
        junk = rng.choice([b"\xff", b'"', b"\x00", b"\n", b"\r", b"\xef\xbb\xbf", b",", b"{", b"\xed\xa0\x80", b""])
        data = data[:place] + junk + data[place + rng.choice([0, 1, 40]) :]
    if rng.random() < 0.15:
        data = gzip.compress(data)
        data = data[: rng.choice([len(data), len(data) // 2])]
    return b"\xef\xbb\xbf" + data if rng.random() < 0.05 else data


def make_options(rng: random.Random, folder: Path) -> DataOptions:
    choices: dict[str, list[Any]] = {
        "text_column": ["text", "nothing", "1"],
        "label_column": ["label", "split", "id", ""],
        "query_column": ["question", "why", "text"],
        "evidence_column": ["why", "text"],
        "split_column": ["split", "label"],
        "dev_file": [folder / "x.csv", folder],
        "test_file": [folder / "x.jsonl", folder / "gone.csv"],
        "only": ["train", "test"],
        "labels": [("a", "b"), ("1", "2"), ("1", "1.0"), ("a",), ("a", "a"), (), ("no", "yes"), ("", "b")],
        "task": ["classification", "qa", "nli"],
        "tokenizer": ["words", "spacy"],
        "delimiter": [",", ";", "\t", '"', "\n", "", "ab", "\x00"],
        "header": [False],
        "dev_fraction": [0.0, 0.5, 0.999],
        "test_fraction": [0.0, 0.999, 1e-9],
        "skip_bad": [True, True],
    }
    names = rng.sample(sorted(choices), rng.choice([0, 0, 1, 2, 4]))
    given = {name: rng.choice(choices[name]) for name in names}
    given["skip_bad"] = given.get("skip_bad", rng.random() < 0.5)
    return DataOptions(**{"tokenizer": "whitespace", **given})


def check(corpus: Corpus) -> None:
    assert len(set(corpus.labels)) == len(corpus.labels)
    ids = [example.id for split in SPLITS for example in corpus[split]]
    assert ids
    for split in SPLITS:
        for example in corpus[split]:
            words = example.passage
            assert len(words) == len(words.forms) == len(words.offsets) > 0
            assert all(words.surface(i) for i in range(len(words)))
            assert example.label is not None
            assert 0 <= example.label < len(corpus.labels)
            assert (example.query is None) or len(example.query) > 0
            assert all(0 <= place < len(words) for place in example.evidence or ())
    assert sum(sum(counts.values()) for counts in describe_reading(corpus).counts.values()) == len(ids)
    json.dumps(describe(corpus).to_json()).encode()
    fingerprint(corpus)
    str(describe_reading(corpus)).encode()


def attempt(what: str | Path, options: DataOptions) -> Corpus | None:
    try:
        corpus = load(what, options=options)
    except Mistake:
        return None
    check(corpus)
    for split in SPLITS:
        few = load_split(what, split, 3, options=options)
        assert (few.size, few.labels) == (len(corpus[split]), corpus.labels)
        assert few.examples == tuple(corpus[split][place] for place in few.places)
    return corpus


@pytest.mark.parametrize("chunk", CHUNKS)
def test_files(tmp_path: Path, chunk: int) -> None:
    read = 0
    for case in range(chunk * CASES, (chunk + 1) * CASES):
        rng = random.Random(case)
        kind = rng.choice(["csv", "tsv", "jsonl", "parquet"])
        for other in dict.fromkeys((kind, "csv", "jsonl")):  # in one order: a set has another in every process
            (tmp_path / f"x.{other}").write_bytes(damage(as_bytes(make_rows(rng), other, rng), rng))
        read += attempt(tmp_path / f"x.{kind}", make_options(rng, tmp_path)) is not None
    assert read  # some of them can be read


@pytest.mark.parametrize("chunk", CHUNKS[:2])
def test_folders(tmp_path: Path, chunk: int) -> None:
    for case in range(chunk * CASES, (chunk + 1) * CASES):
        rng = random.Random(10_000 + case)
        folder = tmp_path / str(case)
        folder.mkdir()
        for split in ("train", "dev", "test", "all"):
            kind = rng.choice(["csv", "jsonl", "jsonl.gz", "folder", "none"])
            if kind == "folder" and rng.random() < 0.2:
                (folder / f"{split}.jsonl").mkdir()
            elif kind not in ("none", "folder"):
                data = damage(as_bytes(make_rows(rng), kind.removesuffix(".gz"), rng), rng)
                (folder / f"{split}.{kind}").write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
        attempt(folder, make_options(rng, tmp_path))


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in NAMES:
        for place in (name, tmp_path / name if "\x00" not in name else Path(name)):
            with pytest.raises(Mistake):
                load(place, options=DataOptions(tokenizer="whitespace"))


def test_original_distributions(tmp_path: Path) -> None:
    """Whatever stands in the files by which a distribution is known: rows, or a Mistake."""
    for case in range(10):
        rng = random.Random(20_000 + case)
        for name, original in ORIGINALS.items():
            if name in ("imdb", "cnn", "20news"):
                continue  # one text is one file there
            root = tmp_path / f"{case}-{name}"
            for need in original.needs:
                for file in dict.fromkeys((need, need.replace("train", "test"), need.replace("train", "dev"))):
                    path = root / file
                    path.parent.mkdir(parents=True, exist_ok=True)
                    kind = rng.choice(["csv", "jsonl", "tsv"])
                    path.write_bytes(damage(as_bytes(make_rows(rng), kind, rng), rng))
            folder = original.find(root)
            assert folder is not None
            try:
                list(original.read(folder, Ledger(skip_bad=rng.random() < 0.5)))
            except Mistake:
                continue


def test_very_long_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    for text in ("word " * 100_000, "x" * 100_000, "x-" * 5_000, "." * 5_000):
        path.write_text("text,label\n" + f"{text},a\nshort,b\n" * 3)
        check(load(path, options=DataOptions(dev_fraction=0)))


def test_options_are_checked_by_their_own_types() -> None:
    for wrong in ({"only": "later"}, {"task": "x"}, {"dev_fraction": 1.0}, {"nothing": 1}):
        with pytest.raises(ValidationError):
            DataOptions(**wrong)
