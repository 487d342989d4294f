"""The texts of a run: kept when an experiment is run, so that they can be shown without the corpus."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import heedful
import webruns
from heedful.data.generated.planted import generate
from heedful.engine.running.execute import train_one
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.errors import Mistake
from heedful.server.app import create_app
from heedful.server.stored.library import Library
from heedful.store.checks import write_sum
from heedful.store.texts import keep_texts, read_texts, texts_files, texts_path

EXAMPLES = webruns.examples(webruns.SENTENCES, webruns.SENTENCES[::-1])


def test_texts_come_back_as_they_were(tmp_path: Path) -> None:
    keep_texts(tmp_path, "test", EXAMPLES, range(len(EXAMPLES)))
    assert read_texts(tmp_path, "test", [4, 1, 99]) == {4: EXAMPLES[4], 1: EXAMPLES[1]}
    assert read_texts(tmp_path, "dev", [0]) is None


def test_some_texts_are_kept_beside_all(tmp_path: Path) -> None:
    keep_texts(tmp_path, "test", EXAMPLES, [0, 2, 4])
    assert texts_files(tmp_path, "test") == [texts_path(tmp_path, "test", 3)]
    assert read_texts(tmp_path, "test", [2]) == {2: EXAMPLES[2]}
    assert read_texts(tmp_path, "test", [2, 3]) is None  # the corpus has to be asked
    keep_texts(tmp_path, "test", EXAMPLES, [1, 3])
    assert read_texts(tmp_path, "test", [2, 3]) == {2: EXAMPLES[2], 3: EXAMPLES[3]}
    keep_texts(tmp_path, "test", EXAMPLES, range(6))
    assert texts_files(tmp_path, "test") == [texts_path(tmp_path, "test")]
    assert read_texts(tmp_path, "test", [5, 6]) == {5: EXAMPLES[5]}


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    keep_texts(tmp_path, "test", EXAMPLES, range(6))
    texts_path(tmp_path, "test").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(Mistake, match=r"test\.parquet is damaged: its checksum is not .*: remove it"):
        read_texts(tmp_path, "test", [0])
    write_sum(texts_path(tmp_path, "test"))  # what was written could not be read from the start
    with pytest.raises(Mistake, match=r"test\.parquet cannot be read .*: remove it"):
        read_texts(tmp_path, "test", [0])


def test_an_experiment_keeps_the_texts_it_was_asked_about(tmp_path: Path) -> None:
    """With them, and without the corpus, the server shows every text of the results."""
    file = tmp_path / "reviews.csv"
    with file.open("w", newline="") as opened:
        rows = csv.writer(opened)
        rows.writerow(("text", "label"))
        rows.writerows((one.text, one.label) for one in generate("single", 60, seed=0))
    config = configure(
        str(file),
        data={"tokenizer": "whitespace"},
        model={"encoder": "average", "embedding_dim": 4, "hidden_dim": 4},
        training={"epochs": 1},
    )
    run = train_one(config, Workspace(tmp_path / "runs"), Progress(quiet=True))
    heedful.run("permutation", run, limit=3, permutations=2)
    assert [path.name for path in texts_files(run.path, "test")] == ["test-3.parquet"]
    rows_of = heedful.run("permutation", run, permutations=2)
    kept = read_texts(run.path, "test", range(len(rows_of)))
    assert kept is not None
    assert len(kept) == len(rows_of) == run.info["data"]["examples"]["test"]
    file.unlink()
    client = TestClient(create_app(Library(tmp_path / "runs")), base_url="http://localhost")
    listed = client.get(f"/runs/{run.name}/permutation?format=json").json()["rows"]
    assert [row["text"] for row in listed] == [kept[i].passage.text for i in range(len(kept))]
    assert client.get(f"/runs/{run.name}/examples/2?live=1").status_code == 200
