"""What is changed by hand in a run is named by whoever reads it, and one broken run stops no other."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from heedful import api
from heedful.auditing.ask.audit import audit
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.server.stored.library import Library
from heedful.server.stored.results import StoredResults
from heedful.store.checks import Damaged, FileHashes
from heedful.store.results import Results
from heedful.store.run import Run, runs_in
from heedful.store.texts import read_labels, read_some, read_texts

QUIET = Progress(quiet=True)
SIZES: dict[str, Any] = {"encoder": "average", "embedding_dim": 8, "hidden_dim": 8, "epochs": 2}
ROWS = [f"{'a good film' if i % 2 else 'a bad film'} number {i},{'pos' if i % 2 else 'neg'}" for i in range(60)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run on a file, asked one experiment, and the same file under another name asked, too."""
    folder = tmp_path_factory.mktemp("hand")
    (folder / "reviews.csv").write_text("text,label\n" + "\n".join(ROWS) + "\n")
    (folder / "new.csv").write_text("label,text\n" + "".join(f"{r.split(',')[1]}, {r.split(',')[0]}\n" for r in ROWS))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.chdir(folder)
        run = api.train("reviews.csv", runs=folder / "runs", progress=QUIET, tokenizer="whitespace", **SIZES)
        api.run("uniform_inference", run, limit=8, progress=QUIET)
        api.run("uniform_inference", run, data="new.csv", progress=QUIET)
    return Run(run.path.absolute())


@pytest.fixture
def run(made: Run, tmp_path: Path) -> Run:
    shutil.copytree(made.path.parent, tmp_path / "runs", symlinks=True)
    return Run(tmp_path / "runs" / made.name)


def swap_labels(path: Path) -> None:
    info = json.loads(path.read_text())
    info["labels"] = info["labels"][::-1]
    path.write_text(json.dumps(info, indent=1, ensure_ascii=False) + "\n")


def other_word(path: Path) -> None:
    path.write_text(path.read_text().replace("good", "dull"))


def better(path: Path) -> None:
    path.write_text(re.sub(r'("accuracy": )[\d.]+', r"\g<1>0.99", path.read_text()))


def shift(path: Path) -> None:
    """Well-formed rows of another content, with all metadata: nothing but a checksum can tell."""
    table = pq.read_table(path)
    name = next(name for name in table.column_names if pa.types.is_floating(table.schema.field(name).type))
    column = pc.add(table[name], 0.1)
    changed = table.set_column(table.column_names.index(name), table.schema.field(name), column)
    path.unlink()  # a link to what is kept
    pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path, compression="zstd")


def other_columns(path: Path) -> None:
    path.unlink()
    pq.write_table(pa.table({"a": [1]}), path)


def read_rows(run: Run) -> Any:
    return run.results.rows("uniform_inference")


def read_as_server(run: Run) -> Any:
    entry = Library(run.path.parent).find(run.name)
    table = entry.table("uniform_inference")
    return StoredResults().rows(table, int(pq.read_table(table[0])["example"][0].as_py()))


CHANGES: list[tuple[str, Callable[[Path], None], Callable[[Run], Any]]] = [
    ("config.json", swap_labels, lambda run: run.labels),
    ("vocabulary.json", other_word, lambda run: run.words),
    ("results/performance.summary.json", better, lambda run: run.summary("performance")),
    ("results/uniform_inference.parquet", shift, read_rows),
    ("results/uniform_inference.parquet", shift, read_as_server),
    ("results/uniform_inference.parquet", other_columns, lambda run: api.write_report([run], run.path / "x.html")),
    ("results/uniform_inference.parquet", other_columns, read_rows),
    ("training.parquet", shift, lambda run: run.training()),
]


@pytest.mark.parametrize(("name", "change", "read"), CHANGES)
def test_what_is_changed_by_hand_is_named(
    run: Run, name: str, change: Callable[[Path], None], read: Callable[[Run], Any]
) -> None:
    if "x.html" not in str(read.__code__.co_consts):
        read(run)
    change(run.path / name)
    with pytest.raises(Mistake, match=rf"{re.escape(name)} is damaged: its checksum is not that of what was written"):
        read(Run(run.path))


@pytest.mark.parametrize(
    "read",
    [
        lambda run: read_texts(run.path, "test", [0, 1]),
        lambda run: read_some(run.path, "test", 8),
        lambda run: read_labels(run.path, "test"),
    ],
)
def test_texts_that_are_changed_are_named(run: Run, read: Callable[[Run], Any]) -> None:
    (path,) = (run.path / "texts").glob("test-8.parquet")
    assert read(run) is not None or "places" in str(read)
    table = pq.read_table(path)
    texts = pa.array([text.upper() for text in table["text"].to_pylist()])
    pq.write_table(table.set_column(table.column_names.index("text"), "text", texts), path)
    with pytest.raises(Mistake, match=r"test-8\.parquet is damaged: its checksum .* remove it"):
        read(run)
    (path.parent / "test-8.parquet.sha256").unlink()  # of a version that kept none
    read(run)


def test_a_model_on_other_data_is_sealed_too(run: Run) -> None:
    (trial,) = (one for one in runs_in(run.path.parent) if "-on-" in one.name)
    swap_labels(trial.path / "config.json")
    with pytest.raises(Mistake, match=r"config\.json is damaged: its checksum"):
        _ = Run(trial.path).labels
    again = Run(trial.path)
    path = again.path / "results" / "performance.summary.json"
    scores = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in scores.items() if key != "sha256"}))
    with pytest.raises(Mistake, match=r"performance\.summary\.json is damaged"):
        again.summary("performance")


def test_every_command_that_reads_the_run_says_it(run: Run) -> None:
    swap_labels(run.path / "config.json")
    for read in (
        lambda: api.load(run.path),
        lambda: api.write_report([run.path], run.path / "x.html"),
        lambda: api.run("uniform_inference", run.path, progress=QUIET),
        lambda: audit(run.path, progress=QUIET),
    ):
        with pytest.raises(Mistake, match=r"config\.json is damaged: its checksum is not that of what was written"):
            read()
    library = Library(run.path.parent)
    assert run.name not in library.entries()
    assert "its checksum is not that of what was written" in library.broken[run.name]
    assert len(library.entries()) == 1


def test_a_file_is_hashed_once_until_it_changes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.store import checks

    read: list[Path] = []
    plain = checks.sha256

    def counted(path: Path) -> str:
        read.append(path)
        return plain(path)

    monkeypatch.setattr(checks, "sha256", counted)
    hashes = FileHashes()
    for _ in range(3):
        results = Results(run.path / "results", hashes)
        results.rows("uniform_inference")
        results.summary("performance")
    assert len(read) == len(set(read)) == 2
    shift(run.path / "results" / "uniform_inference.parquet")
    with pytest.raises(Mistake, match="is damaged"):
        results.rows("uniform_inference")


BROKEN: list[tuple[str, Callable[[dict[str, Any]], Any]]] = [
    ("'data' is not a JSON object", lambda info: info | {"data": 3}),
    ("'labels' is not a list", lambda info: info | {"labels": "ab"}),
    ("'config' is not a JSON object", lambda info: info | {"config": []}),
    ("'folders' is not a list of paths", lambda info: info | {"data": {"folders": [1]}}),
    ("it is not a JSON object", lambda info: [info]),
]


@pytest.mark.parametrize(("why", "change"), BROKEN)
def test_a_broken_run_stops_no_other(run: Run, why: str, change: Callable[[dict[str, Any]], Any]) -> None:
    broken = run.path.parent / "broken"
    shutil.copytree(run.path, broken)
    (broken / "SHA256SUMS").unlink()
    info = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps(change(info)))
    check_others(run, broken, re.escape(why))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "\x00", "", "{}" * 2, '{"a": 1' + "0" * 5000 + "}"])
def test_a_description_that_cannot_be_read_stops_no_other(run: Run, text: str) -> None:
    broken = run.path.parent / "broken"
    shutil.copytree(run.path, broken)
    (broken / "SHA256SUMS").unlink()
    (broken / "config.json").write_text(text)
    check_others(run, broken, "is damaged")


def check_others(run: Run, broken: Path, why: str) -> None:
    with pytest.raises(Mistake, match=why):
        _ = Run(broken).labels
    library = Library(run.path.parent)
    assert list(library.entries()) == sorted(one.name for one in runs_in(run.path.parent) if one.path != broken)
    assert "broken" in library.broken
    api.write_report([run], run.path / "x.html", texts=False)


def test_summaries_that_are_nested_a_thousand_deep_are_damaged(run: Run) -> None:
    for name in ("performance", "uniform_inference"):
        (run.path / "results" / f"{name}.summary.json").unlink()
        (run.path / "results" / f"{name}.summary.json").write_text('{"sha256": ' + "[" * 100_000)
        with pytest.raises(Mistake, match="is damaged"):
            run.summary(name)
    (run.path / "audit.json").write_text("[" * 100_000)
    assert run.audit() is None


def test_texts_that_the_model_was_trained_on_are_said(made: Run) -> None:
    (trial,) = (one for one in runs_in(made.path.parent) if "-on-" in one.name)
    said = trial.info["data"]["warnings"]
    n = made.info["data"]["examples"]["train"]
    assert said == [
        f"{n} of the 60 texts of test stand in the data that {made.name} was trained on: what it makes of them says "
        "little about new texts"
    ]
    assert made.info["data"]["warnings"] == []
    with pytest.warns(UserWarning, match=f"{n} of the 60 texts of test stand in the data"):
        api.run("uniform_inference", made, data=made.path.parent.parent / "new.csv", progress=QUIET)
    page = made.path.parent.parent / "x.html"
    api.write_report([trial], page)
    assert "texts of test stand in the data that" in page.read_text()


def test_copies_of_one_text_are_said_by_run_and_report(made: Run, tmp_path: Path) -> None:
    (tmp_path / "copies.csv").write_text("text,label\n" + "the same film,pos\n" * 9 + "another film,neg\n")
    with pytest.warns(UserWarning, match="8 of the 10 texts of test are copies of others"):
        api.run("uniform_inference", made, data=tmp_path / "copies.csv", runs=tmp_path / "runs", progress=QUIET)
    (trial,) = runs_in(tmp_path / "runs")
    api.write_report([trial], tmp_path / "x.html")
    assert "8 of the 10 texts of test are copies of others" in (tmp_path / "x.html").read_text()
    with pytest.warns(UserWarning, match="8 of the 10 texts of test are copies of others"):
        api.run("uniform_inference", api.load(made), data=tmp_path / "copies.csv", progress=QUIET)
    (tmp_path / "bare.csv").write_text("text\n" + "the same film\n" * 9 + "another film\n")
    with pytest.warns(UserWarning, match="8 of the 10 texts of test are copies of others"):
        api.run("uniform_inference", made, data=tmp_path / "bare.csv", runs=tmp_path / "runs", progress=QUIET)


def test_sums_that_are_damaged_are_named(run: Run) -> None:
    (run.path / "SHA256SUMS").write_text("nonsense\n")
    with pytest.raises(Mistake, match="SHA256SUMS is damaged"):
        _ = Run(run.path).labels
    with pytest.raises(Damaged):
        run.check()
