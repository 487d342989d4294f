"""heedful data list, describe, prepare, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from heedful.cli.data import app
from heedful.errors import Mistake


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_list(home: Path) -> None:
    rows = {row["name"]: row for row in json.loads(run("list", "--json").stdout)}
    assert rows["planted"]["state"] == "built in"
    assert rows["imdb"]["state"] == "missing"
    assert "aclImdb" in rows["imdb"]["get"]
    shown = run("list").stdout
    assert all(name in shown for name in rows)


def test_prepare_then_list_and_describe(home: Path) -> None:
    source = home / "download"
    source.mkdir()
    lines = "".join(f"tweet {i},{int(i % 4 == 0)}\n" for i in range(80))
    (source / "adr.csv").write_text("text,label\n" + lines)
    done = run("prepare", "adr", "--from", source)
    assert done.exit_code == 0, done.output
    assert "all: 80 (0 60, 1 20)" in done.stdout
    folder = home / "xdg/heedful/adr"
    assert (folder / "all.jsonl.gz").exists()
    row = next(r for r in json.loads(run("list", "--json").stdout) if r["name"] == "adr")
    assert (row["state"], row["folder"]) == ("found", str(folder))
    told = json.loads(run("describe", "adr", "--json").stdout)
    assert told["labels"] == ["none", "reaction"]
    assert told["sizes"] == {"train": 54, "dev": 10, "test": 16}
    assert told["published"]["vocabulary"] == 8686
    shown = run("describe", "adr").stdout
    assert "14446 / 1939" in shown
    assert "ours" in shown


def test_describe_ones_own_file_and_list_what_was_skipped(home: Path) -> None:
    path = home / "mine.csv"
    path.write_text("words,kind\n" + "".join(f"[bold] {i},{i % 2}\n" for i in range(20)) + "broken\n")
    asked = ("describe", path, "--text-column", "words", "--label-column", "kind")
    assert isinstance(run(*asked).exception, Mistake)
    result = run(*asked, "--skip-bad")
    assert result.exit_code == 0, result.output
    assert "skipped 1:" in result.stdout
    assert "line 22: 1 fields where the header has 2" in result.stdout
    assert "[ bold ]" in result.stdout  # texts are shown as they are, not as markup


def test_describe_says_what_is_doubtful(home: Path) -> None:
    path = home / "mine.csv"
    path.write_text("text,label\n" + "".join(f"word {i},{'Pos' if i == 3 else 'pn'[i % 2]}\n" for i in range(40)))
    shown = run("describe", path).stdout
    assert "warning: train has fewer than 5 texts with the label 'Pos'" in shown
    assert "warning: test has no text with the label 'Pos'" in shown
    path.write_text("text,label\n" + "".join(f"word {i},{('Neg', 'pos', 'neg')[i % 3]}\n" for i in range(40)))
    assert "differ in case only" in str(run("describe", path).exception)
    told = json.loads(run("describe", path, "--labels", "neg,pos", "--json").stdout)
    assert (told["labels"], sum(told["counts"]["train"].values())) == (["neg", "pos"], told["sizes"]["train"])
    assert told["warnings"] == []
    assert "task" in str(run("describe", path, "--task", "poetry").exception)


def test_counts_that_are_not_those_of_the_paper(home: Path) -> None:
    (home / "data/adr").mkdir(parents=True)
    rows = [{"text": f"tweet {i}", "label": i % 2} for i in range(50)]
    (home / "data/adr/all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("describe", "adr", "--data-dir", home / "data")
    assert json.loads(run(*asked, "--json").stdout)["differences"] == [
        "train has 34 texts here and 16385 in Table 1",
        "test has 10 texts here and 4123 in Table 1",
    ]
    assert "counts differ from the paper's: train has 34 texts here" in run(*asked).stdout


def test_mistakes_are_told(home: Path) -> None:
    assert "Did you mean 'agnews'" in str(run("describe", "agnew").exception)
    assert "does not exist" in str(run("prepare", "imdb", "--from", home / "gone").exception)
