"""Words hidden at random before training, so that texts with hidden words are inside what a model knows.

Madsen et al. 2024 ("Faithfulness measurable masked language models"), section 3.1: half of the texts of a batch are
left as they are; of each of the others a share of the words, drawn uniformly between 0 and 1, is replaced by the mask.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heedful.data.batching import Encoded, Texts
from heedful.errors import Mistake


def hide_words(encoded: Encoded, share: float, rng: np.random.Generator) -> Encoded:
    """Of this share of the texts some words are hidden; queries stay as they are."""
    return replace(encoded, passages=_hide(encoded.passages, share, rng))


def _hide(texts: Texts, share: float, rng: np.random.Generator) -> Texts:
    hidden_id = texts.reserved.replacement
    if hidden_id is None:
        raise Mistake("this model has neither a mask nor an unknown word to hide words by.")
    n = len(texts.lengths)
    rate = np.where(rng.random(n) < share, rng.random(n), 0.0)  # (texts,) of its words
    text = np.repeat(np.arange(n), texts.lengths)  # (all tokens,) texts stand one after the other
    place = np.arange(len(texts.flat)) - texts.begins[text]
    is_word = (place > 0) & (place < texts.lengths[text] - 1) if texts.word is None else texts.word
    number = place if texts.word_index is None else texts.word_index
    begins = (np.diff(text, prepend=-1) != 0) | (
        np.diff(number, prepend=-2) != 0
    )  # of a word: pieces go together
    drawn = rng.random(int(begins.sum()))[np.cumsum(begins) - 1]  # (all tokens,)
    hidden = is_word & (drawn < rate[text])
    return replace(texts, flat=np.where(hidden, hidden_id, texts.flat))
