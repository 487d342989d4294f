"""Known corpora: the recipe of each, and the counts of the real data against the paper's Table 1."""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config import DataOptions, ModelConfig, TrainingConfig
from heedful.data.corpora import locate
from heedful.data.corpora.assemble import positions
from heedful.data.corpora.describe import describe
from heedful.data.corpora.labels import sort_labels
from heedful.data.corpora.load import load
from heedful.data.corpora.locate import fingerprint
from heedful.data.corpora.prepare import catalogue, prepare
from heedful.data.corpora.registry import CORPORA
from heedful.data.corpora.row_words import with_entities
from heedful.data.corpora.splits import draw
from heedful.data.originals import ORIGINALS
from heedful.data.text.tokenise import split_at_whitespace
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus, Split


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A data folder that is empty, and no other."""
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def put(folder: Path, split: str, rows: list[dict[str, object]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{split}.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


@cache
def real(name: str) -> Corpus:
    """No count but that of `sst` depends on the tokenizer: white space is the fastest, and sst's own."""
    return load(name, options=DataOptions(tokenizer="whitespace"))


def per_label(corpus: Corpus, split: Split) -> list[int]:
    counts = Counter(example.label for example in corpus[split])
    return [counts[i] for i in range(len(corpus.labels))]


def test_data_folders_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    monkeypatch.setenv("HEEDFUL_DATA", str(second))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert locate.data_dirs([first]) == [first, second, tmp_path / "heedful"]
    monkeypatch.delenv("XDG_DATA_HOME")
    assert locate.data_dirs()[-1] == Path.home() / ".local/share/heedful"
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "gone"))
    with pytest.raises(Mistake, match=r"HEEDFUL_DATA is .*gone, which is not a folder"):
        locate.data_dirs()


def test_unknown_and_missing_corpora(nowhere: Path) -> None:
    with pytest.raises(Mistake, match=r"no corpus 'imbd'\. Did you mean 'imdb'"):
        load("imbd", data_dirs=[nowhere])
    with pytest.raises(Mistake, match=r"imdb was not found in .*data.* To get it: aclImdb_v1"):
        load("imdb", data_dirs=[nowhere])
    with pytest.raises(Mistake, match="--text-column is for your own files"):
        load("planted", options=DataOptions(text_column="x"))


def test_translation_and_vectors_are_no_corpora(nowhere: Path) -> None:
    put(nowhere / "ende", "train", [{"text": "a", "target": "b"}])
    with pytest.raises(Mistake, match="ende is a translation or alignment corpus"):
        load("ende", data_dirs=[nowhere])
    (nowhere / "vec").mkdir()
    (nowhere / "vec/vectors.npz").touch()
    with pytest.raises(Mistake, match="vec holds word vectors, not texts: use it with --vectors vec"):
        load("vec", data_dirs=[nowhere])


def test_sst_length_filter_on_a_small_corpus(nowhere: Path) -> None:
    words = "w " * 30
    rows: list[dict[str, object]] = [
        {"text": "X", "norm_text": words[: 2 * n].strip(), "label": n % 2} for n in (5, 6, 7, 8, 9, 10, 10)
    ]
    for split in ("train", "dev", "test"):
        put(nowhere / "sst", split, rows)
    corpus = load("sst", data_dirs=[nowhere])
    assert [len(example.passage) for example in corpus["train"]] == [6, 7, 8, 9]
    assert corpus.labels == ("negative", "positive")
    assert "left out: 6 too long, 3 too short" in corpus.source


def test_newsgroups_use_the_authors_split(nowhere: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": f"word {i}", "label": i % 2, "jw_split": split}
        for i, split in enumerate(["train", "train", "dev", "test"] * 2)
    ]
    put(nowhere / "20news", "train", [*rows, {"text": "w " * 501, "label": 0, "jw_split": "train"}])
    corpus = load("20news", data_dirs=[nowhere])
    assert {split: len(corpus[split]) for split in corpus.splits} == {"train": 4, "dev": 2, "test": 2}
    assert "left out: 1 too long" in corpus.source


def test_imdb_limits_sample_and_markup(nowhere: Path) -> None:
    rows: list[dict[str, object]] = [{"text": f"Good.<br /><br />Film {i}", "label": i % 2} for i in range(100)]
    rows.append({"text": "long " * 400, "label": 0})
    put(nowhere / "imdb", "train", rows)
    put(nowhere / "imdb", "test", rows[:100])
    corpus = load("imdb", data_dirs=[nowhere])
    assert {split: len(corpus[split]) for split in corpus.splits} == {"train": 80, "dev": 20, "test": 20}
    first = corpus["train"][0].passage
    assert first.forms == ("good", ".", "film", "qqq")
    assert first.text[first.offsets[2, 0] :].startswith("Film")
    assert corpus["train"] == load("imdb", data_dirs=[nowhere])["train"]
    assert corpus["test"] != load("imdb", data_dirs=[nowhere], seed=1)["test"]


def test_cnn_entities_keep_their_names(nowhere: Path) -> None:
    rows: list[dict[str, object]] = [
        {
            "text": f"@entity2 met @entity{i} in 1999",
            "question": "@placeholder met @entity2",
            "label": f"@entity{i}",
            "candidates": ["@entity2", f"@entity{i}"],
        }
        for i in (10, 3)
    ]
    for split in ("train", "dev", "test"):
        put(nowhere / "cnn", split, rows)
    corpus = load("cnn", data_dirs=[nowhere])
    assert corpus.labels == ("@entity2", "@entity3", "@entity10")
    example = corpus["train"][0]
    assert example.passage.forms == ("@entity2", "met", "@entity10", "in", "qqq")
    assert (example.label, example.candidates) == (2, (0, 2))
    assert with_entities(split_at_whitespace("a1 @entity7")).forms == ("qqq", "@entity7")


def test_babi_answers_are_any_word_of_the_stories(nowhere: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": f"Ann went to the {place}.", "question": "Where is Ann?", "label": place, "supporting": [0]}
        for place in ("hall", "yard") * 10
    ]
    put(nowhere / "babi1", "train", rows)
    put(nowhere / "babi1", "test", rows)
    corpus = load("babi1", data_dirs=[nowhere])
    assert corpus.name == "babi1"
    assert corpus.labels == ("ann", "hall", "is", "the", "to", "went", "where", "yard")
    assert {split: len(corpus[split]) for split in corpus.splits} == {"train": 17, "dev": 3, "test": 20}
    assert corpus["test"][0].evidence == (0, 1, 2, 3, 4, 5)


def test_babi_is_simulated_only_where_there_is_none_and_says_so(nowhere: Path) -> None:
    corpus = load("babi1", data_dirs=[nowhere])
    assert corpus.name == "babi1-simulated"
    assert "simulator" in corpus.source
    assert {split: len(corpus[split]) for split in corpus.splits} == {"train": 8500, "dev": 1500, "test": 1000}
    states = {row.name: row.state for row in catalogue([nowhere])}
    assert states["babi1"] == "built in"
    assert states["imdb"] == "missing"


@pytest.mark.parametrize("name", ["planted", "planted-negation"])
def test_planted_corpora(name: str) -> None:
    corpus = load(name)
    assert corpus.labels == ("negative", "positive")
    assert all(example.evidence for split in corpus.splits for example in corpus[split])
    texts = [example.passage.text for split in corpus.splits for example in corpus[split]]
    assert len(set(texts)) == len(texts)
    assert corpus["test"][16].id == f"planted-{name.partition('-')[2] or 'single'}-test:17"


def test_a_folder_found_by_its_name(nowhere: Path) -> None:
    put(nowhere / "mine", "all", [{"text": f"word {i}", "label": i % 3 + 8} for i in range(60)])
    corpus = load("mine", data_dirs=[nowhere])
    assert corpus.labels == ("8", "9", "10")
    assert per_label(corpus, "test") == [4, 4, 4]
    assert (len(corpus["train"]), len(corpus["dev"])) == (41, 7)
    assert "drawn with split seed 0" in corpus.source
    pairs: list[dict[str, object]] = [{"text": "a", "hypothesis": "b", "label": i} for i in (0, 1, 2)]
    put(nowhere / "pairs", "train", pairs)
    assert load("pairs", data_dirs=[nowhere]).task == "nli"
    asked: list[dict[str, object]] = [{"text": "a", "question": "b", "answer": x} for x in ("x", "y")]
    put(nowhere / "asked", "train", asked)
    assert load(str(nowhere / "asked")).task == "qa"


def test_bad_rows_of_a_known_corpus(nowhere: Path) -> None:
    rows: list[dict[str, object]] = [{"text": f"some words {i}", "label": i % 2} for i in range(20)]
    path = put(nowhere / "agnews", "train", [*rows, {"text": "x", "label": 2}, {"text": " ", "label": 0}])
    put(nowhere / "agnews", "test", [*rows, {"text": "bad \ud800 half", "label": 0}])
    with pytest.raises(Mistake, match="line 22: the text is empty"):
        load("agnews", data_dirs=[nowhere])
    corpus = load("agnews", data_dirs=[nowhere], options=DataOptions(skip_bad=True))
    assert len(corpus.skipped) == 3
    assert f"{path}, line 21: the label '2' is not one of World, Business." in corpus.skipped
    assert sum(len(corpus[split]) for split in corpus.splits) == 40


def test_empty_and_one_sided_corpora(nowhere: Path) -> None:
    put(nowhere / "agnews", "train", [])
    put(nowhere / "agnews", "test", [])
    with pytest.raises(Mistake, match="agnews: there are no rows"):
        load("agnews", data_dirs=[nowhere])
    put(nowhere / "agnews", "train", [{"text": "a", "label": 1}] * 5)
    with pytest.raises(Mistake, match="all training rows have the label '1'"):
        load("agnews", data_dirs=[nowhere])


def test_prepared_is_the_same_as_read_from_the_original(nowhere: Path, tmp_path: Path) -> None:
    source = tmp_path / "original/trees"
    source.mkdir(parents=True)
    trees = [f"({i % 5} (2 The) (2 film) (3 is) (2 no) (2 longer) (2 than) (1 w{i}))" for i in range(40)]
    trees[-1] = trees[-1][:-1] + " (2 at) (2 all))"
    for split in ("train", "dev", "test"):
        (source / f"{split}.txt").write_text("\n".join(trees))
    done = prepare("sst", source, nowhere)
    assert done.folder == nowhere / "sst"
    assert {split: dict(counts) for split, counts in done.counts.items()} == {
        split: {"negative": 16, "positive": 16} for split in ("train", "dev", "test")
    }
    assert done.left_out == {"neutral sentences": 24}
    prepared = load("sst", data_dirs=[nowhere])
    original = load("sst", data_dirs=[source.parent])
    for split in SPLITS:
        assert [(e.passage, e.label) for e in prepared[split]] == [(e.passage, e.label) for e in original[split]]
    assert [path.name for path in sorted(nowhere.iterdir())] == ["sst"]
    with pytest.raises(Mistake, match="exists already; use --replace to overwrite it"):
        prepare("sst", source, nowhere)
    before = (nowhere / "sst/train.jsonl.gz").read_bytes()
    prepare("sst", source, nowhere, replace=True)
    assert (nowhere / "sst/train.jsonl.gz").read_bytes() == before


def test_prepare_leaves_nothing_half_done(nowhere: Path, tmp_path: Path) -> None:
    (tmp_path / "adr.csv").write_text("text,label\ngood,0\n,1\n")
    with pytest.raises(Mistake, match=r"adr\.csv, line 3: the text is empty"):
        prepare("adr", tmp_path / "adr.csv", nowhere)
    assert list(nowhere.iterdir()) == []
    assert len(prepare("adr", tmp_path, nowhere, skip_bad=True).skipped) == 1
    with pytest.raises(Mistake, match="planted is built in"):
        prepare("planted", tmp_path, nowhere)
    with pytest.raises(Mistake, match="has no train/pos for imdb"):
        prepare("imdb", tmp_path, nowhere)
    with pytest.raises(Mistake, match="Did you mean 'snli'"):
        prepare("snil", tmp_path, nowhere)


def test_registry_is_whole() -> None:
    assert set(ORIGINALS) <= set(CORPORA)
    published = json.loads((Path(__file__).parent / "jain_wallace_table1.json").read_text())
    for row in published:
        entry = CORPORA[row["dataset"]]
        assert entry.published is not None
        assert (entry.published.vocabulary, entry.published.mean_length) == (row["vocabulary"], row["mean_length"])
        assert list(entry.published.train) == row["train_per_class"]
        assert list(entry.published.test) == row["test_per_class"]
        assert (entry.published.score, entry.published.metric) == (row["test_score_bilstm"], row["metric"])
    for name, entry in CORPORA.items():  # what differs from the defaults must be settings that exist
        ModelConfig.parse(dict(entry.model), name)
        TrainingConfig.parse(dict(entry.training), name)


def test_fingerprint_sees_every_change(nowhere: Path) -> None:
    rows: list[dict[str, object]] = [{"text": "word " + "x" * i, "label": i % 2} for i in range(20)]
    put(nowhere / "mine", "train", rows)
    first = fingerprint(load("mine", data_dirs=[nowhere]))
    assert first == fingerprint(load("mine", data_dirs=[nowhere]))
    for changed in (rows[0] | {"text": "other"}, rows[0] | {"label": 1}):
        put(nowhere / "mine", "train", [changed, *rows[1:]])
        assert fingerprint(load("mine", data_dirs=[nowhere])) != first


@given(st.lists(st.sampled_from("abc"), max_size=60), st.floats(0.05, 0.6), st.integers(0, 9))
@settings(max_examples=80, deadline=None)
def test_draw_takes_the_fraction_of_every_label(labels: list[str], fraction: float, seed: int) -> None:
    drawn, left = draw(labels, fraction, np.random.default_rng(seed))
    assert sorted(drawn + left) == list(range(len(labels)))
    assert (drawn, left) == draw(labels, fraction, np.random.default_rng(seed))
    for label, n in Counter(labels).items():
        taken = sum(labels[i] == label for i in drawn)
        assert taken == 0 if n == 1 else abs(taken - fraction * n) <= 1


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(3, 120), min_size=1), st.integers(0, 9))
@settings(max_examples=80, deadline=None)
def test_every_label_gets_into_every_split(sizes: dict[str, int], seed: int) -> None:
    labels = [label for label, n in sizes.items() for _ in range(n)]
    test, rest = draw(labels, 0.2, np.random.default_rng(seed))
    dev, train = draw([labels[i] for i in rest], 0.15, np.random.default_rng(seed))
    if round(0.2 * len(labels)) >= len(sizes) and round(0.15 * len(rest)) >= len(sizes):
        for some in ([labels[i] for i in test], *([labels[rest[i]] for i in part] for part in (dev, train))):
            assert set(some) == set(sizes)


def test_three_rows_beside_a_hundred_are_in_all_splits(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("text,label\n" + "".join(f"word {i},{'rare' if i < 3 else 'often'}\n" for i in range(103)))
    corpus = load(path, options=DataOptions(tokenizer="whitespace"))
    assert [per_label(corpus, split)[1] for split in SPLITS] == [1, 1, 1]
    assert "train has fewer than 5 texts with the label 'rare'" in corpus.warnings


@given(st.text("ab ", min_size=1, max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=4))
def test_positions_are_the_words_that_a_span_touches(text: str, spans: list[tuple[int, int]]) -> None:
    words = split_at_whitespace(text)
    slow = [
        i
        for i, (a, b) in enumerate(words.offsets.tolist())
        if any(set(range(a, b)) & set(range(start, end)) for start, end in spans if start < end)
    ]
    real = tuple((start, end) for start, end in spans if start < end)
    assert positions(words.offsets, real) == tuple(slow)


def test_order_of_labels() -> None:
    assert sort_labels(["10", "9", "-1"]) == ("-1", "9", "10")
    assert sort_labels(["spam", "ham"]) == ("ham", "spam")
    assert sort_labels(["@entity10", "@entity9"]) == ("@entity9", "@entity10")


REAL = {  # name: train, dev, test per label after the filters; None: not told by the paper or the README
    "sst": ([3034, 3321], [821], [863, 862]),
    "agnews": (None, [2954], [1900, 1900]),
    "babi2": (None, [1500], None),
    "sick": (None, [500], None),
    "snli": ([38542, 38810, 38767], [9842], [3219, 3237, 3368]),  # a subset: Table 1 has 182764, 183187, 183416
    "eraser_movies": ([800, 800], [200], [100, 99]),
    "agnews4": (None, [5387], [1900] * 4),
    "amazon5": (None, [750], [1525, 1574, 1535, 1509, 1457]),
    "20news_all": (None, [1652], None),
    "hatexplain": ([6251, 4384, 4748], [1922], [782, 548, 594]),
    "ade_corpus": ([11887, 3060], [1927], [3272, 814]),
    "pronoun": ([4528, 4489], [1127], None),
    "mr": (None, [1280], [1066, 1066]),
}


UNCHANGED = {  # runs and their numbers depend on these splits: they never change
    "planted": "314c51f247dcd02c",
    "planted-negation": "7d29f36506768bdb",
    "babi3-simulated": "96c9f4881e6874f7",
}
UNCHANGED_REAL = {
    "babi1": "ec912ab982b4b3fa",
    "sst": "d341853133f3415d",
    "20news": "9b2fcf0f3f2d758b",
    "agnews": "f1f5374cf006d33e",
    "mr": "b0e7584b4d3b7b3a",
    "imdb": "96e769b58ac56fcb",
}


@pytest.mark.parametrize("name", UNCHANGED)
def test_built_in_corpora_stay_as_they_are(nowhere: Path, name: str) -> None:
    corpus = load(name.removesuffix("-simulated"), data_dirs=[nowhere])
    assert (corpus.name, fingerprint(corpus)[:16]) == (name, UNCHANGED[name])


def test_ones_own_file_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [f"text {i * i % 97} of {i},{('spam', 'ham', 'eggs')[i * i % 7 % 3]}" for i in range(300)]
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    assert fingerprint(load(path))[:16] == "7175156f60184e1c"


@pytest.mark.corpora
@pytest.mark.parametrize("name", UNCHANGED_REAL)
def test_real_corpora_stay_as_they_are(name: str) -> None:
    assert fingerprint(load(name))[:16] == UNCHANGED_REAL[name]


@pytest.mark.corpora
@pytest.mark.parametrize("name", REAL)
def test_counts_of_the_real_corpora(name: str) -> None:
    train, dev, test = REAL[name]
    corpus = real(name)
    assert train is None or per_label(corpus, "train") == train
    assert [len(corpus["dev"])] == dev
    assert test is None or per_label(corpus, "test") == test
    assert corpus.skipped == ()
    assert describe(corpus).example["words"]


@pytest.mark.corpora
def test_real_20news_is_the_authors_split_after_the_filter() -> None:
    corpus = load("20news")
    before: dict[Split, list[int]] = {"train": [612, 624], "dev": [154, 156], "test": [192, 195]}
    for split, counts in before.items():
        kept = per_label(corpus, split)
        assert all(0.85 * n <= k <= n for k, n in zip(kept, counts, strict=True))
        assert max(len(example.passage) for example in corpus[split]) <= 500


@pytest.mark.corpora
def test_labels_have_names_that_people_know() -> None:
    assert real("agnews4").labels == ("World", "Sports", "Business", "Sci/Tech")
    assert real("amazon5").labels[4] == "5 stars"
    groups = Path(os.environ["HEEDFUL_DATA"]) / "20news_all/test.jsonl.gz"
    with gzip.open(groups, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    corpus = real("20news_all")
    assert [corpus.labels[e.label or 0] for e in corpus["test"]] == [row["group"] for row in rows]


@pytest.mark.corpora
def test_real_evidence_points_at_the_right_words() -> None:
    corpus = real("sst_wiki")
    example = corpus["dev"][0]
    assert example.evidence is not None
    assert " ".join(example.passage.surface(i) for i in example.evidence) == (
        "It 's a lovely film with lovely performances by Buy and Accorsi ."
    )
    hate = real("hatexplain")
    assert hate.labels == ("normal", "offensive", "hate speech")
    marked = [e for split in SPLITS for e in hate[split] if e.evidence]
    assert all(e.label != 0 for e in marked)
    assert len(marked) > 10_000
    rows = Path(os.environ["HEEDFUL_DATA"]) / "hatexplain/test.jsonl.gz"
    with gzip.open(rows, "rt", encoding="utf-8") as file:
        for line, example in zip(file, load("hatexplain")["test"], strict=True):
            row = json.loads(line)
            assert example.evidence == tuple(sorted(row["evidence_tokens"]))
            assert len(example.passage) == row["n_tokens"]
    movies = real("eraser_movies")["test"]
    assert all(e.evidence for e in movies)
    ade = real("ade_corpus")["dev"]
    assert all((example.label == 1) == bool(example.evidence) for example in ade)
