"""Edited copies of a corpus: what is done to its texts before a model reads them, by name (registry.CORPUS_EDITS).

An edit is named in the options of the data (`DataOptions.edit`), so the same texts are read again from the same
configuration. It may need scores of every word by a trained model: then it says which (`scored_by`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heedful.config import Config, EditConfig, RunConfig
from heedful.records import Corpus, Words
from heedful.registry import CORPUS_EDITS

Scores = Mapping[str, NDArray[Any]]  # by split: of every word of its passages, one text after the other


class CorpusEdit(Protocol):
    """`config` holds its own settings; `version` changes whenever the same settings would give other texts."""

    config: type[Config]
    version: str

    def scored_by(self, options: Any) -> tuple[RunConfig, str] | None:
        """The run and the method whose scores of every word it needs; None: it needs none."""
        ...

    def apply(self, corpus: Corpus, options: Any, scores: Scores) -> Corpus: ...


def parse_edit(edit: EditConfig) -> tuple[CorpusEdit, Any]:
    """The edit and its settings, with every default, or what is wrong with them."""
    found = CORPUS_EDITS.find(edit.name)
    return found, found.config.parse(edit.options, f"the options of the edit {edit.name}")


def edit_corpus(corpus: Corpus, edit: EditConfig) -> Corpus:
    """By an edit that needs no scores."""
    found, options = parse_edit(edit)
    return found.apply(corpus, options, {})


def join_words(parts: Sequence[tuple[str, str]]) -> Words:
    """(surface, form) of each word as a text, with single blanks between them."""
    text, offsets, at = [], [], 0
    for surface, _ in parts:
        text.append(surface)
        offsets.append((at, at + len(surface)))
        at += len(surface) + 1
    forms = tuple(form for _, form in parts)
    return Words(" ".join(text), forms, np.array(offsets, dtype=np.int32).reshape(-1, 2))


def split_words(words: Words) -> list[tuple[str, str]]:
    """The inverse: white space between words is not kept."""
    return [(words.surface(i), form) for i, form in enumerate(words.forms)]
