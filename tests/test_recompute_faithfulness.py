"""The rows of `faithfulness` for small models, computed again by a slow program of its own."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

import recompute_faithfulness
import transformer_zoo as zoo

TEXTS = [
    "a good film",
    "it isn't bad at all, the best of time",
    "waste",
    *zoo.TEXTS[:3],
    "good good good film",
]


def test_a_slow_program_of_its_own_finds_the_same_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """Texts of one word, of few (all sets), of more (beam search) and of more than a curve has points."""
    module = zoo.module("Bert")
    assert recompute_faithfulness.compare(module, zoo.tokenizer_of("Bert"), TEXTS) <= 1e-5
    assert capsys.readouterr().out.count("\n") == 1 + 5 + 5 * 4 + 2 + 1 + 2  # a line for each column
