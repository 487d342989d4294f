"""One's own CSV, TSV, JSONL and Parquet files and Hugging Face datasets, right and wrong."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.config import DataOptions
from heedful.data.corpora.labels import label_name
from heedful.data.corpora.load import load
from heedful.data.formats.evidence import evidence_spans
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus

QUICK = DataOptions(tokenizer="whitespace")
TEXTS = [
    'says "no", twice',
    "two\nlines",
    "emoji 👩‍👩‍👧 here",
    "مرحبا بالعالم",
    "שלום עולם",
    "plain; with | signs",
    "naïve café",
    "tab\there",
]
ROWS = [(f"{TEXTS[i % 8]} n{i}", "spam" if i % 2 else "ham") for i in range(40)]


def options(**given: Any) -> DataOptions:
    return DataOptions(**{"tokenizer": "whitespace", **given})


def quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def write_rows(path: Path, columns: tuple[str, str] = ("text", "label")) -> Path:
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        table = pa.table({columns[0]: [t for t, _ in ROWS], columns[1]: [label for _, label in ROWS]})
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        data = sink.getvalue().to_pybytes()
    elif name.endswith(".jsonl"):
        data = "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in ROWS).encode()
    else:
        delimiter = "\t" if name.endswith(".tsv") else ","
        lines = [delimiter.join(map(quoted, columns)), *(delimiter.join(map(quoted, row)) for row in ROWS)]
        data = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def everything(corpus: Corpus) -> dict[str, str]:
    return {
        example.passage.text: corpus.labels[example.label]
        for split in SPLITS
        for example in corpus[split]
        if example.label is not None
    }


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_every_format_gives_the_same_texts(tmp_path: Path, suffix: str, packed: str) -> None:
    corpus = load(write_rows(tmp_path / f"mine{suffix}{packed}"), options=QUICK)
    assert everything(corpus) == dict(ROWS)
    assert (corpus.name, corpus.labels, corpus.task) == ("mine", ("ham", "spam"), "classification")
    assert [len(corpus[split]) for split in SPLITS] == [27, 5, 8]
    assert corpus.skipped == ()


def test_ids_point_to_the_lines(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mine.csv")
    lines = path.read_text().split("\n")
    corpus = load(path, options=QUICK)
    for example in corpus["train"]:
        line = lines[int(example.id.removeprefix("mine.csv:")) - 1]
        assert line.startswith(quoted(example.passage.text).split("\n")[0])


def test_odd_column_names(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mine.csv", ("What, they said", "été"))
    asked = options(text_column="What, they said", label_column="été")
    assert everything(load(path, options=asked)) == dict(ROWS)
    path.write_text("What, they said;été\n" + "".join(f"a {i};{i % 2}\n" for i in range(20)))
    assert len(everything(load(path, options=asked))) == 20
    with pytest.raises(Mistake, match="no text column 'text'; its columns are 'What, they said', 'été'"):
        load(path, options=options(text_column="text", label_column="été"))


def test_columns_are_guessed_only_when_there_is_no_doubt(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("Review,Sentiment,id\n" + "".join(f"good {i},{i % 2},{i}\n" for i in range(20)))
    assert load(path, options=QUICK).labels == ("0", "1")
    path.write_text("review,comment,label\na,b,1\n")
    with pytest.raises(Mistake, match="more than one column could be the text; say which with --text-column"):
        load(path, options=QUICK)
    path.write_text("a,b\nc,d\n")
    with pytest.raises(Mistake, match=r"no column is known to be the text; .*\(columns: 'a', 'b'\)"):
        load(path, options=QUICK)
    path.write_text("text,text,label\na,b,1\n")
    with pytest.raises(Mistake, match="more than one column 'text'"):
        load(path, options=options(text_column="text"))


def test_no_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("".join(f"{i % 2},good {i}\n" for i in range(20)))
    corpus = load(path, options=options(header=False, text_column="2", label_column="1"))
    assert len(everything(corpus)) == 20


def test_splits_by_column_by_files_and_by_folder(tmp_path: Path) -> None:
    lines = [f"good {i},{i % 2},{split}\n" for i, split in enumerate(["Train", "train", "valid", "test"] * 4)]
    one = tmp_path / "one.csv"
    one.write_text("text,label,part\n" + "".join(lines))
    corpus = load(one, options=options(split_column="part"))
    assert [len(corpus[split]) for split in SPLITS] == [8, 4, 4]
    one.write_text("text,label,split\na,0,train\nb,1,later\n")
    with pytest.raises(Mistake, match=r"one\.csv, line 3: the split 'later' is not train, dev or test"):
        load(one, options=QUICK)
    for name, n in (("train", 20), ("val", 4), ("test", 6)):
        rows = "".join(f"{name} {i},{i % 2}\n" for i in range(n))
        (tmp_path / f"{name}.csv").write_text("text,label\n" + rows)
    files = options(dev_file=tmp_path / "val.csv", test_file=tmp_path / "test.csv")
    for corpus in (load(tmp_path / "train.csv", options=files), load(tmp_path, options=QUICK)):
        assert [len(corpus[split]) for split in SPLITS] == [20, 4, 6]
    only = load(tmp_path / "test.csv", options=options(only="test"))
    assert {split: len(examples) for split, examples in only.splits.items()} == {"test": 6}


def test_queries_make_it_nli_or_qa(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(
        "".join(json.dumps({"premise": f"a {i}", "hypothesis": "b", "label": i % 3}) + "\n" for i in range(30))
    )
    corpus = load(path, options=QUICK)
    assert (corpus.task, corpus["train"][0].query is not None) == ("nli", True)
    path.write_text(
        "".join(json.dumps({"text": f"a {i}", "question": "b", "answer": "xy"[i % 2]}) + "\n" for i in range(30))
    )
    assert load(path, options=QUICK).task == "qa"
    path.write_text('{"text": "a", "question": "b", "answer": "x"}\n{"text": "a", "answer": "y"}\n')
    with pytest.raises(Mistake, match="line 2: there is no value in column 'question'"):
        load(path, options=QUICK)


def test_labels_given_or_found(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("text,label\n" + "".join(f"word {i},{i % 3 * 5}\n" for i in range(30)))
    assert load(path, options=QUICK).labels == ("0", "5", "10")
    path.write_text("text,label\n" + "".join(f"word {i},{i % 2}\n" for i in range(30)))
    named = load(path, options=options(labels=("bad", "good")))
    assert named.labels == ("bad", "good")
    assert all(example.label == int(example.passage.surface(1)) % 2 for example in named["test"])
    with pytest.raises(Mistake, match=r"x\.csv, line 2: the label '0' is not one of 1, 2"):
        load(path, options=options(labels=("1", "2")))
    path.write_text("text,label\n" + "".join(f"word,{i}\n" for i in range(60)))
    with pytest.raises(Mistake, match="column 'label' has 60 different values in 60 rows"):
        load(path, options=QUICK)
    assert [label_name(v) for v in (1, 1.0, True, " a ", 1.5, float("nan"))] == ["1", "1", "true", "a", "1.5", ""]


def test_evidence_in_its_three_forms(tmp_path: Path) -> None:
    text = "not worth it, not at all"
    assert evidence_spans("[[0, 3], [4, 9]]", text) == ((0, 3), (4, 9))
    assert evidence_spans([1], text) == ((4, 9),)
    assert evidence_spans('["not"]', text) == ((0, 3), (14, 17))
    assert evidence_spans("", text) is None
    path = tmp_path / "x.jsonl"
    rows = [{"text": text, "label": i % 2, "why": ["not"] if i % 2 else []} for i in range(20)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = load(path, options=options(evidence_column="why"))
    assert {example.label: example.evidence for example in corpus["train"]} == {0: (), 1: (0, 3)}
    path.write_text('{"text": "a", "label": 0, "why": [[0, 9]]}\n')
    with pytest.raises(Mistake, match="line 1: the evidence in column 'why' cannot be read"):
        load(path, options=options(evidence_column="why"))


BAD = [
    (b"text,label\n,1\n", r"line 2: the text is empty"),
    (b"text,label\n  ,1\n", r"line 2: the text is empty"),
    (b"text,label\na,\n", r"line 2: the label is empty"),
    (b"text,label\na,1,2\n", r"line 2: 3 fields where the header has 2"),
    (b"text,label\na,1\nb\xe9,1\n", r"line 3: column 1 is not valid UTF-8"),
    (b'text,label\na,1\n"b,1\n', r"line 3: the quotes or line ends are broken"),
]


@pytest.mark.parametrize(("content", "sentence"), BAD)
def test_bad_rows_say_file_and_line(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "x.csv"
    good = b"".join(b"word,%d\n" % (i % 2) for i in range(20))
    path.write_bytes(content + good)
    with pytest.raises(Mistake, match=sentence) as caught:
        load(path, options=QUICK)
    assert str(caught.value).startswith(str(path))
    corpus = load(path, options=options(skip_bad=True))
    assert len(corpus.skipped) == 1
    assert len(everything(corpus)) in (1, 2)
    n = sum(len(corpus[split]) for split in SPLITS)
    assert n == 20 + content.count(b"a,1\n")


def test_a_label_that_only_the_test_split_has(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = "".join(f"word,{i % 2},{s}\n" for i in range(6) for s in ("train", "dev", "test"))
    path.write_text("text,label,split\n" + rows + "word,7,test\n")
    with pytest.raises(Mistake, match=r"x\.csv, line 20: the label '7' is not one of 0, 1"):
        load(path, options=QUICK)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("x.csv", b"", "is empty; its first line should name its columns"),
        ("x.csv", b"text,label\n", "there are no rows"),
        ("x.jsonl", b"", "there are no rows"),
        ("x.csv", b"text,label\na,1\nb,1\nc,1\n", "all training rows have the label '1'"),
        ("x.jsonl", b'[{"text": "a"}]', "is one JSON array; write one object on each line"),
        ("x.parquet", b"nonsense", "is not a readable Parquet file"),
        ("x.parquet.gz", gzip.compress(b"nonsense", mtime=0), "is not a readable Parquet file"),
        ("x.csv", "text,label\na,1\n".encode("utf-16"), "is written in UTF-16; save it as UTF-8"),
        ("x.xlsx", b"PK", "the name of a data file ends in one of .csv"),
        ("x.csv.gz", b"text,label\n", "is named .gz but is not a gzip file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Mistake) as caught:
        load(tmp_path / name, options=QUICK)
    assert sentence in str(caught.value)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"there is no file .*gone\.csv"):
        load(tmp_path / "gone.csv")
    with pytest.raises(Mistake, match=r"there is no file or folder .*gone"):
        load(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    with pytest.raises(Mistake, match="has no train file"):
        load(tmp_path / "empty")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(Mistake, match=r"folder\.csv is a folder"):
        load(tmp_path / "folder.csv")


def test_truncated_gzip_of_a_table(tmp_path: Path) -> None:
    whole = gzip.compress(("text,label\n" + "".join(f"word {i * i},{i % 2}\n" for i in range(5000))).encode())
    path = tmp_path / "x.csv.gz"
    path.write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(Mistake, match=r"x\.csv\.gz, line \d+: the gzip file is cut short"):
        load(path, options=QUICK)
    corpus = load(path, options=options(skip_bad=True))
    assert any("cut short" in sentence for sentence in corpus.skipped)
    assert 1000 < sum(len(corpus[split]) for split in SPLITS) < 5000


def test_parquet_types(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    texts = pa.array([f"w{i}" for i in range(12)]).dictionary_encode()
    pq.write_table(pa.table({"text": texts, "label": [float(i % 2) for i in range(12)]}), path)
    assert load(path, options=QUICK).labels == ("0", "1")
    pq.write_table(pa.table({"text": ["a", None, "b", "c"], "label": [1, 0, None, 0]}), path)
    corpus = load(path, options=options(skip_bad=True, only="test"))
    assert [s.removeprefix(f"{path}, ") for s in corpus.skipped] == [
        "line 2: there is no value in column 'text'.",
        "line 3: there is no value in column 'label'.",
    ]
    pq.write_table(pa.table({"text": [1, 2], "label": [1, 0]}), path)
    with pytest.raises(Mistake, match="line 1: the text is not a string but int"):
        load(path, options=QUICK)


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        ("text", 3, "the text is not a string but int"),
        ("text", float("nan"), "the text is not a string but float"),
        ("text", ["a"], "the text is not a string but list"),
        ("text", None, "there is no value in column 'text'"),
        ("question", 3, "the question or hypothesis is not a string but int"),
        ("question", {"a": "b"}, "the question or hypothesis is not a string but dict"),
        ("question", " ", "the question or hypothesis is empty"),
        ("text", "half \ud800", "half of a surrogate pair is in the text"),
    ],
)
def test_texts_that_are_no_strings(tmp_path: Path, column: str, value: object, sentence: str) -> None:
    good = [{"text": f"word {i}", "question": "who", "label": i % 2} for i in range(20)]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in [*good, {**good[0], column: value}]))
    with pytest.raises(Mistake, match=f"x.jsonl, line 21: {sentence}"):
        load(path, options=QUICK)


@pytest.mark.parametrize(
    ("texts", "kind"), [([b"a", b"b"], "bytes"), ([["a"], ["b"]], "list"), ([1.5, float("nan")], "float")]
)
def test_texts_that_are_no_strings_in_parquet(tmp_path: Path, texts: list[object], kind: str) -> None:
    pq.write_table(pa.table({"text": texts, "label": [0, 1]}), tmp_path / "x.parquet")
    with pytest.raises(Mistake, match=rf"x\.parquet, line 1: the text is not a string but {kind}"):
        load(tmp_path / "x.parquet", options=QUICK)


def test_numbers_and_nesting_that_python_does_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    good = "".join(json.dumps({"text": f"word {i}", "label": i % 2}) + "\n" for i in range(20))
    for line, sentence in (
        ('{"text": "a", "label": ' + "9" * 5000 + "}", "a number has thousands of digits"),
        ('{"text": ' + "[" * 100_000, "lists or objects are nested a thousand deep"),
    ):
        path.write_text(good + line + "\n")
        with pytest.raises(Mistake, match=f"x.jsonl, line 21: {sentence}"):
            load(path, options=QUICK)
        assert len(everything(load(path, options=options(skip_bad=True)))) == 20


def test_columns_with_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("text,label,label\na,1,2\n")
    with pytest.raises(Mistake, match="more than one column 'label'"):
        load(path, options=QUICK)


def test_hugging_face_datasets_saved_on_disk(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the hf extra is not installed")
    features = datasets.Features(
        {"sentence": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    rows = {"sentence": [f"w {i}" for i in range(20)], "label": [i % 2 for i in range(20)]}
    data = datasets.Dataset.from_dict(rows, features=features)
    parts = {"train": data, "validation": data, "test": data, "unsupervised": data}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "saved"))
    corpus = load(f"hf:{tmp_path / 'saved'}", options=QUICK)
    assert corpus.labels == ("no", "yes")
    assert [len(corpus[split]) for split in SPLITS] == [20, 20, 20]
    assert "left out: 20 rows of the split 'unsupervised'" in corpus.source
    data.save_to_disk(str(tmp_path / "one"))
    assert [len(load(f"hf:{tmp_path / 'one'}", options=QUICK)[s]) for s in SPLITS] == [14, 2, 4]
    with pytest.raises(Mistake, match="could not be loaded"):
        load(f"hf:{tmp_path / 'gone'}")


def test_hugging_face_library_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(Mistake, match=r"install it with pip install 'heedful\[hf\]'"):
        load("hf:imdb")


def test_a_carriage_return_inside_a_line(tmp_path: Path) -> None:
    """Python's own words are about a mode in which nobody here can open the file."""
    path = tmp_path / "x.csv"
    for content in (b"te\rxt,label\ngood,a\n", b"text,label\ngo\rod,a\nbad,b\n"):
        path.write_bytes(content)
        with pytest.raises(Mistake, match="a carriage return stands inside a line") as caught:
            load(path, options=DataOptions())
        assert "universal" not in str(caught.value)
