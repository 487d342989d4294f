"""What is done with the rows of a corpus to make it the corpus of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heedful.records import TaskType, TokenizerName


@dataclass(frozen=True, slots=True)
class Lengths:
    """Passages are kept that have more than `above` words and fewer than `below`."""

    above: int = 0
    below: int | None = None
    below_longest: bool = False  # fewer than the longest passage of its split


@dataclass(frozen=True, slots=True)
class Recipe:
    """From rows to examples: labels, tokenizer, filters, and the splits that the source does not give.

    `labels_from` says where the labels come from when they are not listed: the rows of the training
    split, the words of its passages and queries (bAbI: any word can be an answer), or all entities
    of the passages (CNN).
    """

    task: TaskType = "classification"
    labels: tuple[str, ...] | None = None
    labels_from: Literal["rows", "words", "entities"] = "rows"
    tokenizer: TokenizerName = "spacy"
    lengths: Lengths = Lengths()
    dev_fraction: float = 0.15  # of train, drawn where the source has no dev split
    test_fraction: float = 0.2  # of the rows that belong to no split
    pooled: bool = False  # the source's splits are put together, and others drawn
    test_sample: float = 1.0  # the part of the source's test split that is used
    text_field: str = "text"  # of the simple form, where a row has it
    split_field: str | None = None  # of the simple form, overrules the file's name
    blank: str = ""  # markup that is read as blanks
    vocabulary: Literal["kept", "all"] = "kept"  # of the texts that are kept, or also of those of other lengths
    keep_entities: bool = False  # @entity12 is a word, not a word with a digit
