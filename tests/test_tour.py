"""docs/tour.ipynb, cell by cell, as a notebook would run it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

TOUR = Path(__file__).parents[1] / "docs" / "tour.ipynb"


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """What a notebook shows of a cell: the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body[-1]
    shown = ast.Expression(last.value) if isinstance(last, ast.Expr) else None
    exec(compile(ast.Module(tree.body[: -1 if shown else None], []), "tour", "exec"), names)
    return None if shown is None else eval(compile(shown, "tour", "eval"), names)


def test_every_cell_runs_and_shows_what_the_text_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    cells = json.loads(TOUR.read_text(encoding="utf-8"))["cells"]
    shown = [run_cell("".join(cell["source"]), names) for cell in cells if cell["cell_type"] == "code"]
    assert all(not cell.get("outputs") for cell in cells), "the page holds no results of some machine"
    scores, why, top, unknown, table, pairs, words, largest = shown
    assert scores["accuracy"] > 0.8
    assert 0.8 < scores["baseline"]["accuracy"] <= 1
    assert len(why) == 2
    assert "zyzzyva" in why._repr_html_()
    assert set(top["rank"]) == {1, 2}
    assert "zyzzyva" in unknown
    assert all(pair.startswith("attention/") for pair in table["pair"][:1])
    assert "<" in pairs._repr_html_()
    assert [row[2] for row in words] == ["planted"] * len(words), "only words that decide are shown as strongest"
    assert all(low > 0 for *_, low, _ in words), "their intervals are above zero"
    assert {label for label, *_ in words} == {"positive"}
    assert largest["positive"] > 1
    assert largest["negative"] < 0.2, "no word decides for negative alone"
