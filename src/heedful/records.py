"""The few frozen records that cross layers. Nobody edits what another layer made.

No torch is imported here: the tensors of a `Batch` are only named, so that everything that reads
results (store, report, web) starts without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor

TaskType = Literal["classification", "qa", "nli"]
Split = Literal["train", "dev", "test"]
TokenizerName = Literal["spacy", "whitespace", "words"]
MethodKind = Literal[
    "attention", "sensitivity", "saliency", "control"
]  # Bastings & Filippova 2020, section 3.1
SPLITS: tuple[Split, ...] = ("train", "dev", "test")


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """A tokenised text: `forms[i]` is what the vocabulary sees of `text[offsets[i, 0]:offsets[i, 1]]`.

    Start and end markers are not here: they are added when a batch is made.
    """

    text: str
    forms: tuple[str, ...]
    offsets: NDArray[np.int32]  # (length, 2) start and end (exclusive) of each word in `text`

    def __len__(self) -> int:
        return len(self.forms)

    def surface(self, i: int) -> str:
        """The i-th word as it was written."""
        start, end = self.offsets[i]
        return self.text[start:end]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Words)
            and self.text == other.text
            and self.forms == other.forms
            and np.array_equal(self.offsets, other.offsets)
        )

    def __hash__(self) -> int:
        return hash((self.text, self.forms))


@dataclass(frozen=True, slots=True)
class Example:
    """One instance: a passage, an optional query (question or hypothesis), and its label.

    `id` points back to where it came from: "file:line" for line formats, the file's name where there is
    one file for each text, "planted-single-test:17" for what was generated.
    """

    id: str
    passage: Words
    label: int | None = None  # index into Corpus.labels; None where the text has no label
    query: Words | None = None
    evidence: tuple[int, ...] | None = None  # positions in `passage` that decide the label, where known
    candidates: tuple[int, ...] | None = None  # the labels that can be answers here (QA); None: all


@dataclass(frozen=True, slots=True)
class Corpus:
    """Examples by split, with the names of their labels."""

    name: str
    task: TaskType
    labels: tuple[str, ...]
    splits: Mapping[Split, tuple[Example, ...]]
    tokenizer: TokenizerName = "spacy"  # that made its words, and must make those of new texts
    skipped: tuple[str, ...] = field(default=())  # a sentence for each row left out on request (--skip-bad)
    source: str = ""  # where it came from, in words: folder or file or simulator, what was drawn or left out
    warnings: tuple[str, ...] = ()  # a sentence for each thing that is doubtful, to be told before training

    def __getitem__(self, split: Split) -> tuple[Example, ...]:
        return self.splits.get(split, ())


@dataclass(frozen=True, slots=True)
class Tokens:
    """A padded batch of texts as word ids.

    `present` is True for every token, markers included (what an encoder reads); `mask` only for real
    words (what can be attended to, explained, permuted or removed). Padding is False in both.
    """

    ids: Tensor  # (batch, length) long
    present: Tensor  # (batch, length) bool
    mask: Tensor  # (batch, length) bool

    def to(self, device: torch.device) -> Tokens:
        return Tokens(self.ids.to(device), self.present.to(device), self.mask.to(device))


@dataclass(frozen=True, slots=True)
class Batch:
    """What a model reads: passages, queries where the task has them, and what is known of the answer."""

    passage: Tokens
    query: Tokens | None = None
    candidates: Tensor | None = None  # (batch, classes) bool: which labels can be answers; None: all
    labels: Tensor | None = None  # (batch,) long

    def __len__(self) -> int:
        return len(self.passage.ids)

    def to(self, device: torch.device) -> Batch:
        """The same on another device, or itself."""
        if device == self.passage.ids.device:
            return self
        return Batch(
            self.passage.to(device),
            None if self.query is None else self.query.to(device),
            None if self.candidates is None else self.candidates.to(device),
            None if self.labels is None else self.labels.to(device),
        )
