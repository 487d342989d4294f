"""The rows of `faithfulness` for small models, computed again by a slow program of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("transformers")

import transformer_zoo as zoo
from commands import script

SCRIPT = Path(__file__).parent.parent / "checks" / "recompute_faithfulness.py"
TEXTS = ["a good film", "it isn't bad at all, the best of time", "waste", *zoo.TEXTS[:3], "good good good film"]


def test_a_slow_program_of_its_own_finds_the_same_rows(tmp_path: Path) -> None:
    """Texts of one word, of few (all sets), of more (beam search) and of more than a curve has points."""
    zoo.module("Bert").save_pretrained(tmp_path / "tiny")
    zoo.tokenizer_of("Bert").save_pretrained(tmp_path / "tiny")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    done = script(SCRIPT, tmp_path / "tiny", "--texts", tmp_path / "texts.txt")
    assert done.returncode == 0, done.stdout + done.stderr  # no value differs by more than 1e-5
    assert done.stdout.count("\n") == 1 + 5 + 5 * 4 + 2 + 1 + 2  # a line for each column
