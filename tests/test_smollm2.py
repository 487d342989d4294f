"""A real language model, SmolLM2-135M-Instruct: `make smollm2` writes it, and HEEDFUL_SMOLLM2 says where it is."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import pytest

from heedful import cite
from heedful.models.language.loading import load_language_model
from heedful.models.language.model import LanguageModel

FOLDER = Path(os.environ.get("HEEDFUL_SMOLLM2", Path(sys.prefix) / "smollm2"))
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="SmolLM2 is not here: make smollm2 (or set HEEDFUL_SMOLLM2)"
)
DOCUMENTS = {
    "bridge": "The bridge over the Tarn was opened in 1931. It was designed by Clara Weiss.",
    "town": "The town has two schools and a market. Its mayor is Peter Novak.",
}


@cache
def model() -> LanguageModel:
    return load_language_model(FOLDER)


def test_the_sentence_that_says_it_is_cited() -> None:
    said = cite(model(), DOCUMENTS, "Who designed the bridge over the Tarn?", "Clara Weiss")
    (statement,) = said.statements
    assert statement.support.exact
    assert statement.cited[0] == 2
    assert statement.support.falls[1] > 10 * statement.support.bar
    assert statement.support.falls[2] < statement.support.bar


def test_what_no_document_says_is_unsupported() -> None:
    said = cite(
        model(), {"town": DOCUMENTS["town"]}, "Which city is the capital of France?", "The capital of France is Paris."
    )
    assert [one.support.verdict for one in said.statements] == ["none"]


def test_a_fact_that_stands_twice_is_found_twice() -> None:
    documents = ["The mayor is Peter Novak.", "Anna is a nurse.", "Peter Novak is the mayor."]
    (statement,) = cite(model(), documents, "Who is the mayor?", "Peter Novak").statements
    assert {1, 3} <= set(statement.cited)
