"""A few texts of a split, loaded alone, are those of the whole corpus; and little else is tokenised."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.config import DataOptions
from heedful.data.corpora import locate
from heedful.data.corpora.load import CORPORA, load, load_split
from heedful.data.corpora.row_words import RowTokenizer, RowWords
from heedful.data.generated import reader as generated
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus, Split

HEEDFUL_DATA = os.environ.get("HEEDFUL_DATA")
REAL = sorted(  # of classifiers: those of language models and translators are read elsewhere
    name
    for name in (locate.others([Path(HEEDFUL_DATA)]) if HEEDFUL_DATA else [])
    if not name.startswith(("align_", "multi30k", "blimp"))
)
WORDS = ["good", "film", "it's", "don't", "(very)", "nice,", "10km", "e-mail", "the", ":)", "gonna!", "cannot"]


def assert_same(
    corpus: Corpus, name: str | Path, limit: int | None, splits: Sequence[Split] = SPLITS, **given: Any
) -> None:
    for split in splits:
        found = load_split(name, split, limit, **given)
        examples = corpus[split]
        n = min(limit or len(examples), len(examples))
        places = (np.arange(n) * len(examples) // max(n, 1)).tolist()
        assert (found.size, list(found.places)) == (len(examples), places)
        assert found.examples == tuple(examples[i] for i in places)
        assert (found.labels, found.name, found.task) == (corpus.labels, corpus.name, corpus.task)
        assert (found.tokenizer, found.split) == (corpus.tokenizer, split)


@pytest.mark.parametrize("name", [name for name, entry in CORPORA.items() if entry.built_in])
def test_built_in_corpora(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for sizes in ("BABI_SIZES", "PLANTED_SIZES"):
        smaller = {split: size // 20 for split, size in getattr(generated, sizes).items()}
        monkeypatch.setattr(generated, sizes, smaller)
    assert_same(load(name, seed=3), name, 7, seed=3)


@pytest.mark.corpora
@pytest.mark.parametrize("name", REAL)
def test_real_corpora(name: str) -> None:
    """With their own tokenizer where it decides what is kept; else with white space, for speed."""
    entry = CORPORA.get(name)
    filtered = entry is not None and entry.recipe.lengths != type(entry.recipe.lengths)()
    options = DataOptions() if filtered else DataOptions(tokenizer="whitespace")
    splits: Sequence[Split] = ("test",) if name == "imdb" else SPLITS  # its 25,000 training texts are slow
    assert_same(load(name, options=options), name, 10, splits, options=options)


def texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, 40))) for _ in range(n)]


@pytest.mark.parametrize("limit", [1, 2, 7, 300, None])
def test_ones_own_files(tmp_path: Path, limit: int | None) -> None:
    for name, n in (("train", 120), ("dev", 20), ("test", 40)):
        rows = [f'"{text}",{("a", "b", "c")[i % 3]}' for i, text in enumerate(texts(n, n))]
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    assert_same(load(tmp_path), tmp_path, limit)
    assert_same(load(tmp_path / "train.csv"), tmp_path / "train.csv", limit)
    options = DataOptions(test_file=tmp_path / "test.csv", labels=("a", "b", "c"))
    assert_same(load(tmp_path / "train.csv", options=options), tmp_path / "train.csv", limit, options=options)


@pytest.mark.parametrize("seed", range(4))
def test_every_filter_on_made_up_corpora(tmp_path: Path, seed: int) -> None:
    for corpus, field in (("sst", "norm_text"), ("imdb", "text"), ("20news", "text")):
        for split in ("train", "test"):
            made = texts(60, seed)
            if corpus != "sst":
                made = [" ".join([text] * random.Random(i + seed).randint(8, 40)) for i, text in enumerate(made)]
            rows = [{"text": text, field: text, "label": i % 2} for i, text in enumerate(made)]
            folder = tmp_path / corpus
            folder.mkdir(exist_ok=True)
            (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert_same(load(corpus, data_dirs=[tmp_path]), corpus, 5, data_dirs=[tmp_path])


def put(folder: Path, split: str, rows: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_nothing_is_read_that_is_not_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, object]] = [{"text": f"word {i} here", "label": i % 2} for i in range(50)]
    put(tmp_path / "agnews", "test", rows)
    (tmp_path / "agnews/train.jsonl").write_text("this is not JSON\n")
    tokenised: list[int] = []
    whole = RowTokenizer.tokenise

    def count(self: RowTokenizer, some: list[RowWords]) -> None:
        tokenised.append(len(some))
        whole(self, some)

    monkeypatch.setattr(RowTokenizer, "tokenise", count)
    assert len(load_split("agnews", "test", 5, data_dirs=[tmp_path]).examples) == 5
    assert tokenised == [5]
    with pytest.raises(Mistake, match=r"train\.jsonl, line 1: this is not JSON"):
        load_split("agnews", "dev", 5, data_dirs=[tmp_path])  # it is drawn from train


def test_files_that_turn_out_not_to_be_enough(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"text": f"word {i} here", "label": f"l{i % 2}"} for i in range(50)]
    put(tmp_path / "mine", "train", [])  # so labels are found everywhere
    put(tmp_path / "mine", "dev", rows[:7])
    put(tmp_path / "mine", "test", rows)
    assert_same(load("mine", data_dirs=[tmp_path]), "mine", 3, data_dirs=[tmp_path])
    put(tmp_path / "other", "train", rows)
    put(tmp_path / "other", "dev", [])  # so it is drawn
    assert_same(load("other", data_dirs=[tmp_path]), "other", 3, data_dirs=[tmp_path])


def test_wrong_questions(tmp_path: Path) -> None:
    with pytest.raises(Mistake, match="at least one text is needed, not 0"):
        load_split("planted", "test", 0)
    with pytest.raises(Mistake, match="there is no split 'tset'"):
        load_split("planted", "tset", 1)  # type: ignore[arg-type]
    put(tmp_path / "mine", "test", [{"text": f"word {i} here", "label": f"l{i % 2}"} for i in range(9)])
    assert load_split("mine", "dev", 3, data_dirs=[tmp_path]).size == 0
