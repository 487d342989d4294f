"""What a command does with pipes, terminals, names and files that are not what one expects."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

import heedful
import material
from heedful.cli.printing import Printable
from heedful.config import DataOptions
from heedful.data.corpora.load import load
from heedful.engine.running.workspace import Workspace
from heedful.errors import Mistake
from heedful.explanation.explanation import Explanation
from heedful.records import Example

ROWS = "".join(f"a film {i},{'ab'[i % 2]}\n" for i in range(30))


def typed(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "heedful", *words]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, timeout=100, check=False
    )


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("command", [["data", "describe", "x.csv"], ["data", "list"], ["--help"]])
def test_a_terminal_that_cannot_encode(tmp_path: Path, encoding: str, command: list[str]) -> None:
    (tmp_path / "x.csv").write_text("text,label\n" + ROWS.replace("film", "фильм τ “x”"), encoding="utf-8")
    done = typed(*command, folder=tmp_path, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode(encoding)
    assert ("фильм" if encoding == "utf-8" else r"\u0444") in shown or "describe" not in command


def test_the_plain_locale(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("text,label\n" + ROWS.replace("film", "фильм"), encoding="utf-8")
    done = typed("data", "describe", "x.csv", folder=tmp_path, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, b"")
    done = typed("data", "describe", "фильм.csv", folder=tmp_path, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_a_pipe_that_nobody_reads_is_not_a_missed_requirement(tmp_path: Path) -> None:
    for words in (["data", "list"], ["data", "list", "--json"], ["--help"], ["doctor"]):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "heedful", *words]
        done = subprocess.run(command, cwd=tmp_path, stdout=write, stderr=subprocess.PIPE, timeout=100, check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (141, b""), words


@pytest.mark.parametrize("after", [0.05, 0.15, 0.3, 0.6])
def test_an_early_ctrl_c_prints_no_traceback(tmp_path: Path, after: float) -> None:
    starts = "import sys, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    starts += "import heedful.__main__; sys.argv = ['heedful', 'train', 'planted']; print('up', flush=True); "
    process = subprocess.Popen(
        [sys.executable, "-c", starts + "heedful.__main__.main()"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130)
    assert b"Traceback" not in err


def shown(text: str, terminal: bool = False, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    if terminal:
        stream.isatty = lambda: True  # type: ignore[method-assign]
    printable = Printable(stream)
    for line in re.split("(?<=b)", text):  # in pieces, as programs write
        printable.write(line)
    printable.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\n\tµ\n", "plain\n\tµ\n"),
        ("a\x1b[31mred\x1b]0;title\x07", r"a\x1b[31mred\x1b]0;title\x07"),
        ("::error::x\n  ::set-output a\na::b ::c\n", "\\x3a:error::x\n  \\x3a:set-output a\na::b ::c\n"),
        ("say ##[error]x", r"say \x23#[error]x"),
        ("a\u202eb\u2066\x85\x9b\ud800\u2028", r"a\u202eb\u2066\x85\x9b\ud800\u2028"),
        ("a\rb\x00", r"a\x0db\x00".replace("x0d", "r")),
        ("👩‍👩‍👧 مرحبا", "👩‍👩‍👧 مرحبا"),
    ],
)
def test_what_is_obeyed_is_shown_as_an_escape(text: str, seen: str) -> None:
    assert shown(text) == seen


def test_a_terminal_keeps_its_colours_and_nothing_else() -> None:
    assert shown("\x1b[1mx\x1b[0m\r\x1b[2K", terminal=True) == "\x1b[1mx\x1b[0m\r\x1b[2K"
    assert shown("\x1b]52;c;eA==\x07\x1bPq\x1b\\", terminal=True) == r"\x1b]52;c;eA==\x07\x1bPq\x1b" + "\\"
    assert shown("τ", encoding="latin-1") == r"\u03c4"


def test_mistakes_and_warnings_show_control_characters() -> None:
    assert str(Mistake("the label a\x1b[2Jb\u202e")) == r"the label a\x1b[2Jb\u202e"


def test_labels_and_paths_of_others_give_no_orders(tmp_path: Path) -> None:
    (tmp_path / "::error::x.csv").write_text("text,label\n" + ROWS)
    done = typed("data", "describe", "::error::x.csv", folder=tmp_path)
    assert done.returncode == 0
    assert not re.search(rb"^\s*::", done.stdout + done.stderr, re.MULTILINE)
    done = typed("data", "describe", "no\n::error::such\x1b[2J.csv", folder=tmp_path)
    assert done.returncode == 2
    assert not re.search(rb"^\s*::|\x1b", done.stdout + done.stderr, re.MULTILINE)
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": "a", "label": "a\x1b[2J"}) + "\n")
    done = typed("data", "describe", "x.jsonl", folder=tmp_path)
    assert done.returncode == 2
    assert b"a control character is in the label" in done.stderr
    assert b"\x1b" not in done.stderr


def test_a_pipe_or_a_device_is_not_a_file_of_rows(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.csv")
    os.mkfifo(tmp_path / "y.jsonl")
    os.mkfifo(tmp_path / "z.parquet")
    for name in ("x.csv", "y.jsonl", "z.parquet"):
        done = typed("data", "describe", name, folder=tmp_path)
        assert done.returncode == 2
        assert b"is not a file but a pipe or a device" in done.stderr
    (tmp_path / "train.csv").write_text("text,label\n" + ROWS)
    with pytest.raises(Mistake, match="is not a file but a pipe"):
        load(tmp_path / "train.csv", options=DataOptions(test_file=tmp_path / "x.csv"))


def test_names_that_are_not_text_are_refused_before_any_work(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.csv")
    (tmp_path / name).write_text("text,label\n" + ROWS)
    (tmp_path / "x.csv").write_text("text,label\n" + ROWS)
    with pytest.raises(Mistake, match=r"the name of the data, .*caf\\\\?udce9.csv.*, is not UTF-8"):
        heedful.train(str(tmp_path / name), runs=tmp_path / "runs")
    with pytest.raises(Mistake, match="is not UTF-8"):
        heedful.train(str(tmp_path / "x.csv"), runs=tmp_path / "runs", test_file=str(tmp_path / name))
    with pytest.raises(Mistake, match=r"the name of the folder of runs, .* is not UTF-8"):
        heedful.train(str(tmp_path / "x.csv"), runs=tmp_path / os.fsdecode(b"r\xe9"))
    with pytest.raises(Mistake, match="is not UTF-8"):
        Workspace(Path(os.fsdecode(b"r\xe9")))
    assert not (tmp_path / "runs").exists()


def explanation() -> Explanation:
    words = material.words_of(("=1+1", "+x", "-y", "@z", "plain", "-"))
    return Explanation((material.explained_of(0, Example("x:1", words, 0), ("a", "b")),), "run")


def cells(path: Path) -> list[Any]:
    table = pyarrow.csv.read_csv(path)
    return [value for name in table.column_names for value in table[name].to_pylist() if isinstance(value, str)]


def test_a_spreadsheet_computes_nothing_of_an_export(tmp_path: Path) -> None:
    one = explanation()
    one.save(tmp_path / "x.csv")
    assert {"'=1+1", "'+x", "'-y", "'@z", "plain", "'-"} <= set(cells(tmp_path / "x.csv"))
    assert not [cell for cell in cells(tmp_path / "x.csv") if cell[:1] in "=+-@\t\r" and cell]
    one.save(tmp_path / "y.csv", escape_formulas=False)
    assert {"=1+1", "+x", "-y", "@z"} <= set(cells(tmp_path / "y.csv"))
    scores = [pyarrow.csv.read_csv(tmp_path / name)["score"].to_pylist() for name in ("x.csv", "y.csv")]
    assert scores[0] == scores[1]
    assert min(scores[0]) < 0  # a number is not a formula


@pytest.mark.parametrize("value", [2**40, -(2**40), 2**70, "a", None, [1], 0.5, {}])
def test_an_explanation_with_odd_offsets_is_refused(value: Any) -> None:
    told = json.loads(explanation().to_json())
    told["examples"][0]["passage"]["offsets"][0] = [value, 3]
    with pytest.raises(Mistake):
        Explanation.from_json(json.dumps(told))


def test_an_explanation_with_any_field_of_another_kind_is_refused() -> None:
    text = explanation().to_json()
    for place in range(60):
        told = json.loads(text)
        change_at(told["examples"][0], place, np.random.default_rng(place))
        try:
            Explanation.from_json(json.dumps(told))
        except Mistake:
            continue


def change_at(value: Any, place: int, rng: np.random.Generator) -> None:
    """One field, somewhere inside, becomes something else."""
    odd: list[Any] = [None, -1, 2**40, "x", [], {}, [[]], True, 1e308, 2**70]
    while isinstance(value, dict | list) and value:
        keys: Any = list(value) if isinstance(value, dict) else range(len(value))
        key = keys[(place + int(rng.integers(0, 100))) % len(keys)]
        inner = value[key]
        if not (isinstance(inner, dict | list) and inner) or rng.random() < 0.3:
            value[key] = odd[int(rng.integers(0, len(odd)))]
            return
        value = inner


def test_what_is_imported_is_declared() -> None:
    """Every library that the package imports by name stands in pyproject.toml, none older than its known holes."""
    import ast

    package = Path(heedful.__file__).parent
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = [one for some in project["optional-dependencies"].values() for one in some]
    asked = [*project["dependencies"], *extras]
    declared = {re.split(r"[<>=\[]", one)[0].replace("-", "_").lower(): one for one in asked}
    names = {"sklearn": "scikit_learn", "vl_convert": "vl_convert_python"}
    found = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {module.split(".")[0] for module in modules}
    libraries = {names.get(name, name) for name in found - {"heedful"} - set(sys.stdlib_module_names)}
    assert libraries - set(declared) == set()
    assert declared["torch"] == "torch>=2.6"
