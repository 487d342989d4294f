"""Readers of original distributions: small ones written here, and the real texts where they are."""

from __future__ import annotations

import csv
import gzip
import json
import os
from pathlib import Path

import pytest

from heedful.data.formats.rows import word_spans
from heedful.data.formats.simple import evidence_of, read_simple, split_files
from heedful.data.formats.tables import read_table, separated_rows
from heedful.data.originals import ORIGINALS, Ledger, Raw
from heedful.data.originals.newsgroups import body
from heedful.errors import Mistake

HEEDFUL_DATA = os.environ.get("HEEDFUL_DATA")


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(name: str, root: Path, ledger: Ledger | None = None) -> list[Raw]:
    folder = ORIGINALS[name].find(root)
    assert folder is not None
    return list(ORIGINALS[name].read(folder, ledger or Ledger()))


def covered(row: Raw) -> list[str]:
    assert row.evidence is not None
    return [row.text[start:end] for start, end in row.evidence]


def test_sst_trees(tmp_path: Path) -> None:
    write(tmp_path / "trees/train.txt", "(3 (2 A) (4 (3 well-made) (2 gem)))\n(2 (2 So) (2 so))\n\n")
    write(tmp_path / "trees/dev.txt", "(1 (2 It) (1 (2 's) (0 -LRB-bad-RRB-)))\n")
    write(tmp_path / "trees/test.txt", "(0 (0 Awful) (2 !))\n(4 (4 Great) (2 42))\n")
    ledger = Ledger()
    rows = read("sst", tmp_path, ledger)
    assert [(r.id, r.text, r.label, r.split) for r in rows] == [
        ("train.txt:1", "a well made gem", "positive", "train"),
        ("dev.txt:1", "it s bad", "negative", "dev"),
        ("test.txt:1", "awful", "negative", "test"),
        ("test.txt:2", "great 42", "positive", "test"),
    ]
    assert ledger.left_out == {"neutral sentences": 1}


def test_a_line_that_is_no_tree(tmp_path: Path) -> None:
    write(tmp_path / "train.txt", "(3 (2 A) (4 gem))\nA gem\n")
    for split in ("dev", "test"):
        write(tmp_path / f"{split}.txt", "(4 gem)\n")
    with pytest.raises(Mistake, match=r"train\.txt, line 2: this is not a tree"):
        read("sst", tmp_path)


def test_imdb_folders(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write(tmp_path / f"aclImdb/{split}/neg/10_2.txt", "Dull.<br /><br />Very.\n")
        write(tmp_path / f"aclImdb/{split}/neg/9_1.txt", "Bad.")
        write(tmp_path / f"aclImdb/{split}/pos/0_9.txt", "Schön!")
        write(tmp_path / f"aclImdb/{split}/unsup/0_0.txt", "not read")
    rows = read("imdb", tmp_path)
    assert [r.id for r in rows[:3]] == ["train/neg/9_1.txt", "train/neg/10_2.txt", "train/pos/0_9.txt"]
    assert [r.label for r in rows] == ["negative", "negative", "positive"] * 2
    assert rows[1].text == "Dull.<br /><br />Very."
    write(tmp_path / "aclImdb/train/pos/1_9.txt", b"ok\nthen \xff")
    with pytest.raises(Mistake, match=r"1_9\.txt, line 2: not valid utf-8"):
        read("imdb", tmp_path)


def test_adr_table(tmp_path: Path) -> None:
    write(tmp_path / "adr.csv", 'text,label,exp_split\n"this drug, ""x"", made me dizzy",1,train\nfine,0,test\n')
    rows = read("adr", tmp_path)
    assert [(r.text, r.label, r.split) for r in rows] == [
        ('this drug, "x", made me dizzy', "1", "train"),
        ("fine", "0", "test"),
    ]
    write(tmp_path / "adr.csv", "tweet,label\nfine,0\n")
    with pytest.raises(Mistake, match="no column 'text'; it has tweet, label"):
        read("adr", tmp_path)


MESSAGE = """From: a@b.c
Subject: goalies

x@y.z (Somebody) writes:
> who is best?

Roy is.

--
a signature
"""


def test_newsgroups_by_date(tmp_path: Path) -> None:
    for split in ("train", "test"):
        for group in ("baseball", "hockey"):
            write(tmp_path / f"20news-bydate-{split}/rec.sport.{group}/101", MESSAGE.encode("latin-1"))
    write(tmp_path / "20news-bydate-test/rec.sport.hockey/102", "From: a@b.c\n\n> only a quote\n")
    ledger = Ledger()
    rows = read("20news", tmp_path, ledger)
    assert [(r.text, r.label, r.split) for r in rows] == [
        ("Roy is.", label, split) for split in ("train", "test") for label in ("baseball", "hockey")
    ]
    assert ledger.left_out == {"messages with no text of their own": 1}


def test_ag_news_two_and_four_classes(tmp_path: Path) -> None:
    rows = ['"1","Talks","Leaders meet, ""again""."', '"2","Cup","They won."']
    rows += ['"3","Oil","Prices\\rise."', '"4","Web","Chips."']
    lines = "\n".join(rows) + "\n"
    for split in ("train", "test"):
        write(tmp_path / f"ag_news_csv/{split}.csv", lines)
    two = read("agnews", tmp_path)
    assert [(r.text, r.label) for r in two[:2]] == [('Leaders meet, "again".', "World"), ("Prices\\rise.", "Business")]
    four = read("agnews4", tmp_path)
    assert [r.label for r in four[:4]] == ["World", "Sports", "Business", "Sci/Tech"]
    write(tmp_path / "ag_news_csv/train.csv", '"5","x","y"\n')
    with pytest.raises(Mistake, match="line 1: class '5' is not one of 1, 2, 3, 4"):
        read("agnews4", tmp_path)


@pytest.mark.parametrize(
    ("name", "folder", "fields", "last"),
    [
        ("yahoo", "yahoo_answers_csv", 3, ("10", "Politics & Government")),
        ("amazon_full", "amazon_review_full_csv", 2, ("5", "5 stars")),
        ("yelp", "yelp_review_full_csv", 1, ("5", "5 stars")),
    ],
)
def test_the_large_sets_of_zhang(tmp_path: Path, name: str, folder: str, fields: int, last: tuple[str, str]) -> None:
    first = ",".join(f'"part {i}, ""so"""' for i in range(fields - 1))
    first = f"{first}," if first else ""
    lines = f'"{last[0]}",{first}"the end.\\nReally"\n"1"{"," * fields}\n'
    for split in ("train", "test"):
        write(tmp_path / folder / f"{split}.csv", lines)
    ledger = Ledger()
    rows = read(name, tmp_path, ledger)
    text = "\n".join([*(f'part {i}, "so"' for i in range(fields - 1)), "the end.", "Really"])
    assert [(r.id, r.text, r.label, r.split) for r in rows] == [
        (f"{split}.csv:1", text, last[1], split) for split in ("train", "test")
    ]
    assert ledger.left_out == {"rows without a text": 2}
    write(tmp_path / folder / "train.csv", f'"11",{first}"y"\n')
    with pytest.raises(Mistake, match="line 1: class '11' is not one of 1 to"):
        read(name, tmp_path)


def test_imdb_with_ratings(tmp_path: Path) -> None:
    for split, rating in (("train", "10"), ("dev", "1"), ("test", "7")):
        line = f"ur1\t\ttt2\t\t{rating}\t\ta good one . <sssss> really , see it . <sssss>\n"
        write(tmp_path / f"imdb10/imdb.{split}.txt.ss", line)
    rows = read("imdb10", tmp_path)
    assert [(r.id, r.text, r.label, r.split) for r in rows] == [
        (f"imdb.{split}.txt.ss:1", "a good one . really , see it .", rating, split)
        for split, rating in (("train", "10"), ("dev", "1"), ("test", "7"))
    ]
    write(tmp_path / "imdb10/imdb.dev.txt.ss", "ur1\t\ttt2\t\t11\t\tgood\n")
    with pytest.raises(Mistake, match="line 1: rating '11' is not one of 1 to 10"):
        read("imdb10", tmp_path)
    write(tmp_path / "imdb10/imdb.dev.txt.ss", "ur1\ttt2\t1\tgood\n")
    with pytest.raises(Mistake, match="line 1: 1 fields parted by two tabs, not 4"):
        read("imdb10", tmp_path)


def write_mimic(folder: Path, packed: bool = False) -> None:
    """Tables of MIMIC-III's schema, with invented content."""
    diagnoses = [
        (1, 11, 101, 1, "25000"),
        (2, 11, 101, 2, "4019"),
        (3, 12, 102, 1, "4019"),
        (4, 13, 103, 1, "2851"),
        (5, 14, 104, 1, "28521"),
        (6, 15, 105, 1, "28529"),
        (7, 15, 105, 2, "2851"),
    ]
    notes: list[tuple[object, ...]] = []
    for patient, admission in ((11, 101), (12, 102), (13, 103), (14, 104), (15, 105)):
        text = f'Admission Date: [**2101-1-{admission}**]\nPatient said "well", left.'
        notes.append((patient, admission, "Discharge summary", "Report", "", text))
        notes.append((patient, admission, "Discharge summary", "Addendum", "", "more"))
        notes.append((patient, admission, "Nursing", "Report", "", "slept"))
    notes.append((12, 102, "Discharge summary", "Report", "1", "wrong"))
    header = ["ROW_ID", "SUBJECT_ID", "HADM_ID", "CATEGORY", "DESCRIPTION", "ISERROR", "TEXT"]
    suffix, opener = (".csv.gz", gzip.open) if packed else (".csv", open)
    with opener(folder / f"NOTEEVENTS{suffix}", "wt", newline="") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        rows.writerow(header)
        rows.writerows((i, *note) for i, note in enumerate(notes))
    with opener(folder / f"DIAGNOSES_ICD{suffix}", "wt", newline="") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        rows.writerow(["ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"])
        rows.writerows(diagnoses)


@pytest.mark.parametrize("packed", [False, True])
def test_mimic_tables(tmp_path: Path, packed: bool) -> None:
    write_mimic(tmp_path, packed)
    ledger = Ledger()
    rows = read("diabetes", tmp_path, ledger)
    assert [r.label for r in rows] == ["diabetic", "other", "other", "other", "other"]
    assert rows[0].text == 'Admission Date: deid\nPatient said "well", left.'
    assert ledger.left_out == {"addenda, erroneous notes and further reports": 6}
    anemia = read("anemia", tmp_path)
    assert [r.label for r in anemia] == ["acute", "chronic"]  # 105 has both kinds
    # A note begins on line 2 and holds a line end, so the next notes begin on 4, 5, 6 ...
    assert [r.id.split(":")[1] for r in rows[:2]] == ["2", "6"]


def test_mimic_splits_are_by_patient_or_as_listed(tmp_path: Path) -> None:
    write_mimic(tmp_path)
    assert all(row.split in ("train", "dev", "test") for row in read("diabetes", tmp_path))
    for split, ids in {"train": "101\n102\n", "dev": "103\n", "test": "104\n"}.items():
        write(tmp_path / f"{split}_50_hadm_ids.csv", ids)
    assert [r.split for r in read("diabetes", tmp_path)] == ["train", "train", "dev", "test"]


QUESTION = """http://example.org/story

@entity0 met @entity2 in @entity1 . @entity2 spoke .

@placeholder spoke in @entity1

{answer}

@entity0:Ann
@entity1:Rome
@entity2:Bob
"""


def test_cnn_questions(tmp_path: Path) -> None:
    for part in ("training", "validation", "test"):
        write(tmp_path / f"cnn/questions/{part}/abc.question", QUESTION.format(answer="@entity2"))
    rows = read("cnn", tmp_path)
    assert [r.split for r in rows] == ["train", "dev", "test"]
    assert rows[0].query == "@placeholder spoke in @entity1"
    assert (rows[0].label, rows[0].candidates) == ("@entity2", ("@entity0", "@entity2", "@entity1"))
    write(tmp_path / "cnn/questions/test/abc.question", QUESTION.format(answer="@entity9"))
    with pytest.raises(Mistake, match="the answer @entity9 is not in the passage"):
        read("cnn", tmp_path)


BABI = """1 Mary moved to the bathroom.
2 John went to the hallway.
3 Where is Mary? \tbathroom\t1
4 Daniel went to the office.
5 Where is Daniel? \toffice\t4
1 John moved to the garden.
2 Where is John?\tgarden\t1
"""


def test_babi_tasks(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write(tmp_path / f"tasks_1-20_v1-2/en-10k/qa1_single-supporting-fact_{split}.txt", BABI)
    rows = read("babi1", tmp_path)[:3]
    assert [r.text for r in rows] == [
        "Mary moved to the bathroom. John went to the hallway.",
        "Mary moved to the bathroom. John went to the hallway. Daniel went to the office.",
        "John moved to the garden.",
    ]
    assert [(r.query, r.label) for r in rows[:2]] == [("Where is Mary?", "bathroom"), ("Where is Daniel?", "office")]
    assert covered(rows[1]) == ["Daniel went to the office."]
    assert [r.id for r in rows] == [f"qa1_single-supporting-fact_train.txt:{n}" for n in (3, 5, 7)]


def test_snli_without_gold_label_is_left_out(tmp_path: Path) -> None:
    pairs = [("A man sleeps.", "He rests.", "entailment"), ("A dog.", "A cat.", "-")]
    keys = ("sentence1", "sentence2", "gold_label")
    lines = "".join(json.dumps(dict(zip(keys, pair, strict=True))) + "\n" for pair in pairs)
    for split in ("train", "dev", "test"):
        write(tmp_path / f"snli_1.0/snli_1.0_{split}.jsonl", lines)
    ledger = Ledger()
    rows = read("snli", tmp_path, ledger)
    assert [(r.text, r.query, r.label) for r in rows] == [pairs[0]] * 3
    assert ledger.left_out == {"pairs without a gold label": 3}


def test_the_simple_form_and_its_kinds_of_evidence(tmp_path: Path) -> None:
    text = "Ann  went\nhome. She slept."
    assert evidence_of({"evidence": [[0, 3]]}, text) == ((0, 3),)
    spans = evidence_of({"evidences": [[1, 3]]}, text)
    assert spans is not None
    assert [text[a:b] for a, b in spans] == ["went\nhome."]
    spans = evidence_of({"supporting": [1]}, text)
    assert spans is not None
    assert [text[a:b] for a, b in spans] == ["She slept."]
    assert evidence_of({"spans": [{"effect": "home", "drug": "e"}]}, text) == (
        (10, 14),
        (6, 7),
        (13, 14),
        (18, 19),
        (22, 23),
    )
    assert evidence_of({"n_sst": 2}, "a b c") == ((0, 3),)
    assert evidence_of({}, text) is None
    write(tmp_path / "val.jsonl", '{"text": "a b", "label": 1}\n\n{"text": "c", "label": "x"}\n')
    rows = list(read_simple(split_files(tmp_path), Ledger()))
    assert [(r.id, r.label, r.split) for r in rows] == [("val.jsonl:1", "1", "dev"), ("val.jsonl:3", "x", "dev")]


def test_word_spans_are_those_of_split() -> None:
    for text in ("a  b\tc ", " a", "", "aa a aaa"):
        assert [text[i:j] for i, j in word_spans(text)] == text.split()
        assert [text[i:j] for i, j in word_spans(text, " ")] == text.split(" ")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"text": "a", "label": 0}\n{"text": "b", "lab', r"line 2: this is not JSON \(Unterminated string"),
        (b'{"text": "a", "label": 0}\n{"label": 0}\n', r"line 2: there is no string 'text'"),
        (b'{"text": "a", "label": 0}\n{"text": "b"}\n', r"line 2: there is no 'label'"),
        (b'{"text": "a", "label": 0}\n{"text": "\xff", "label": 0}\n', r"line 2: byte 0xff at position 11"),
        (b'{"text": "a", "label": 0}\n[1]\n', r"line 2: a JSON object is needed, not list"),
        (b'{"text": "a", "label": 0}\n{"text": "b", "label": 0, "supporting": [7]}\n', "line 2: the evidence"),
        (b'{"text": "a", "label": 0}\n{"text": "b", "label": 0, "question": 3}\n', "line 2: .*not a string"),
    ],
)
def test_bad_lines_of_the_simple_form(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = write(tmp_path / "train.jsonl", content)
    with pytest.raises(Mistake, match=sentence) as caught:
        list(read_simple(split_files(tmp_path), Ledger()))
    assert str(path) in str(caught.value)
    ledger = Ledger(skip_bad=True)
    assert len(list(read_simple(split_files(tmp_path), ledger))) == 1
    assert len(ledger.skipped) == 1


def test_truncated_gzip(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f'{{"text": "word {i * i}", "label": 0}}\n' for i in range(5000)).encode())
    write(tmp_path / "train.jsonl.gz", whole[: len(whole) // 2])
    with pytest.raises(Mistake, match=r"train\.jsonl\.gz, line \d+: the gzip file is cut short"):
        list(read_simple(split_files(tmp_path), Ledger()))
    ledger = Ledger(skip_bad=True)
    rows = list(read_simple(split_files(tmp_path), ledger))
    assert 0 < len(rows) < 5000
    assert len(ledger.skipped) == 1
    write(tmp_path / "train.jsonl.gz", b"plain text")
    with pytest.raises(Mistake, match=r"named \.gz but is not a gzip file"):
        list(read_simple(split_files(tmp_path), Ledger()))


def rows_of(path: Path, ledger: Ledger | None = None) -> list[tuple[int, dict[str, str]]]:
    return [(line, dict(row)) for line, row in read_table(path, ledger or Ledger()).rows]


def test_csv_line_numbers_with_line_ends_in_fields(tmp_path: Path) -> None:
    content = '\ufefftext,label\r\n"one\r\ntwo, ""three""",a\r\n\r\nשלום 🙂,b\r\n'
    assert rows_of(write(tmp_path / "x.csv", content)) == [
        (2, {"text": 'one\r\ntwo, "three"', "label": "a"}),
        (5, {"text": "שלום 🙂", "label": "b"}),
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_the_delimiter_is_seen_from_the_header(tmp_path: Path, delimiter: str) -> None:
    path = write(tmp_path / "x.csv", f'text{delimiter}label\n"a,b;c|d"{delimiter}1\n')
    assert rows_of(path) == [(2, {"text": "a,b;c|d", "label": "1"})]


def test_one_stray_quote_does_not_swallow_the_rest(tmp_path: Path) -> None:
    content = 'text,label\n"never closed,a\ngood,b\n"also ""good""",a\nlast,b\n'
    path = write(tmp_path / "x.csv", content)
    with pytest.raises(Mistake, match=r"x\.csv, line 2: the quotes or line ends are broken"):
        rows_of(path)
    ledger = Ledger(skip_bad=True)
    assert [row["text"] for _, row in rows_of(path, ledger)] == ["good", 'also "good"', "last"]
    assert [sentence.split(": ")[0] for sentence in ledger.skipped] == [f"{path}, line 2"]


def test_quotes_in_tab_separated_files_are_often_just_quotes(tmp_path: Path) -> None:
    content = 'text\tlabel\n"Great" film\ta\n"Never closed\tb\nhe said "no"\ta\n"two\nlines"\tb\n"tab\tinside"\ta\n'
    rows = rows_of(write(tmp_path / "x.tsv", content))
    assert [row["text"] for _, row in rows] == [
        '"Great" film',
        '"Never closed',
        'he said "no"',
        "two\nlines",
        "tab\tinside",
    ]
    assert [line for line, _ in rows] == [2, 3, 4, 5, 7]


def test_csv_bad_rows_are_told_with_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", b"text,label\na,1\nb\nc,1,2\nd\xff,1\ne,1\n")
    ledger = Ledger(skip_bad=True)
    assert [row["text"] for _, row in rows_of(path, ledger)] == ["a", "e"]
    assert [s.removeprefix(f"{path}, ") for s in ledger.skipped] == [
        "line 3: 1 fields where the header has 2.",
        "line 4: 3 fields where the header has 2.",
        "line 5: column 1 is not valid UTF-8.",
    ]


def test_long_fields_and_the_csv_module_left_as_it_was(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    path = write(tmp_path / "x.csv", "text,label\n" + "word " * 50_000 + ",1\n")
    assert len(rows_of(path)[0][1]["text"]) == 250_000
    assert csv.field_size_limit() == limit


def test_separated_rows_agree_with_the_csv_module(tmp_path: Path) -> None:
    table = [['a"b', "c\nd", ""], ["é,\r\n", "'", '""'], ["x", " y ", "\u2028z"]]
    path = tmp_path / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(table)
    read_back = [fields for _, fields in separated_rows(path, Ledger(), ",", 3, has_header=False)]
    assert read_back == table


@pytest.mark.corpora
def test_real_trees_give_the_authors_words(tmp_path: Path) -> None:
    assert HEEDFUL_DATA
    expected = {}
    for split in ("train", "dev", "test"):
        with gzip.open(Path(HEEDFUL_DATA) / f"sst_trees/{split}.jsonl.gz", "rt", encoding="utf-8") as file:
            write(tmp_path / f"{split}.txt", "".join(json.loads(line)["tree"] + "\n" for line in file))
        with gzip.open(Path(HEEDFUL_DATA) / f"sst/{split}.jsonl.gz", "rt", encoding="utf-8") as file:
            expected[split] = [(r["norm_text"], r["label"]) for r in map(json.loads, file)]
    rows = read("sst", tmp_path)
    for split, pairs in expected.items():
        assert [(r.text, int(r.label == "positive")) for r in rows if r.split == split] == pairs


@pytest.mark.corpora
def test_real_messages_are_stripped_as_by_scikit_learn() -> None:
    assert HEEDFUL_DATA
    with gzip.open(Path(HEEDFUL_DATA) / "20news/test.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert [body(row["raw"]) for row in rows] == [row["text"] for row in rows]
