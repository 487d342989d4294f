"""Words that are evidence wherever they stand (`DataOptions.evidence_words`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from heedful.data.tokenise import form
from heedful.records import Example


def mark_words(examples: Iterable[Example], words: Sequence[str]) -> tuple[Example, ...]:
    """The evidence of each are the places of these words, whatever it was before."""
    forms = frozenset(map(form, words))
    return tuple(
        replace(one, evidence=tuple(i for i, word in enumerate(one.passage.forms) if word in forms))
        for one in examples
    )
