"""Words that are evidence wherever they stand, and texts in which the evidence has been made anonymous."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np

from heedful.config import DataOptions
from heedful.data.tokenise import form
from heedful.records import Example, Words

ANONYMOUS = "anon"  # stands for every word of evidence


def evidence_edit(options: DataOptions) -> Callable[[Example], Example] | None:
    """What the options ask to be done to each example; None: nothing."""
    if options.evidence_words is None and not options.anonymise:
        return None
    words = None if options.evidence_words is None else frozenset(map(form, options.evidence_words))

    def edit(example: Example) -> Example:
        marked = example if words is None else mark_words(example, words)
        return anonymise(marked) if options.anonymise else marked

    return edit


def mark_words(example: Example, words: Collection[str]) -> Example:
    """Its evidence are the places of these words, whatever it was before."""
    places = tuple(i for i, one in enumerate(example.passage.forms) if one in words)
    return replace(example, evidence=places)


def anonymise(example: Example) -> Example:
    """Every word of its evidence becomes one and the same word, in the text, too."""
    passage, hidden = example.passage, set(example.evidence or ())
    if not hidden:
        return example
    text, offsets, at = "", [], 0
    for i, (start, end) in enumerate(passage.offsets.tolist()):
        text += passage.text[at:start]
        begin, at = len(text), end
        text += ANONYMOUS if i in hidden else passage.text[start:end]
        offsets.append((begin, len(text)))
    text += passage.text[at:]
    forms = tuple(ANONYMOUS if i in hidden else one for i, one in enumerate(passage.forms))
    return replace(example, passage=Words(text, forms, np.array(offsets, np.int32).reshape(-1, 2)))
