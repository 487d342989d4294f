"""The few frozen records that cross layers. Nobody edits what another layer made.

No torch is imported here: the tensors of a `Batch` are only named, so that everything that reads
results (store, report, web) starts without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch
    from torch import Tensor

TaskType = Literal["classification", "qa", "nli", "generation", "places"]
Split = Literal["train", "dev", "test"]
TokenizerName = Literal["spacy", "whitespace", "words", "words_and_digits", "words_and_signs", "keras", "babi"]
# Bastings & Filippova 2020, section 3.1; an interaction is of several words together, and a selection is of the words
# that decide, or of those that a model reads at all (section 6).
MethodKind = Literal["attention", "sensitivity", "saliency", "interaction", "selection", "control"]
# What scores have beside the position: nothing; a second position; a layer.
Axes = Literal["", "pairs", "layers"]
# Of an example: its text, and a second one: a question, a hypothesis, or what a model that generates has said so far.
Part = Literal["passage", "query"]
# What a model says of its labels: one of them, with probabilities of sum 1; each by itself, true or not; a number each;
# or whether a token comes next: then the labels are what it is told from and the token.
AnswerKind = Literal["one label", "several labels", "numbers", "next token"]
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
class NextToken:
    """A question to a model that generates: does it say one of `this` next, and not one of `that`?

    A generated token is a label: the answer is one of two, "this" and "that", and its log-odds are the difference of
    the logits (of two tokens), or log p / (1 - p) where `that` is everything else.
    """

    this: tuple[int, ...]  # token ids, each of which counts
    that: tuple[int, ...] | None = None  # None: any other token
    names: tuple[str, str] = ("anything else", "this")  # of that and of this, as a person reads them
    step: int = 0  # of the continuation, from 0
    # Tokens right before `this` that it must have said, too: then the question is about the phrase that they make. They
    # are the end of what has been said so far.
    phrase: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AtPlaces:
    """A question to a model that answers at places of a text: is the answer `this` there, and not `that`?

    A tagger gives each word a label, a masked language model each gap a token, and a model that marks an answer says
    where it begins and where it ends. An answer at several places is one: all of it holds, or it does not.
    """

    places: tuple[tuple[Part, int], ...]  # the token of each place; then those of `that`, where it stands elsewhere
    this: tuple[int, ...]  # at each place: the number of a label or of a token; of a span which end it is
    that: tuple[int, ...] | None = None  # None: any other answer
    names: tuple[str, str] = ("anything else", "this")  # of that and of this, as a person reads them


@dataclass(frozen=True, slots=True)
class Saying:
    """What data say that a model is asked about: why it says this next, and not that.

    Both are texts, of which a model makes its own tokens. None: what the model would say itself, or its next best.
    """

    say: str | None = None
    instead: str | None = None
    # What has been said before it, of which a model makes its own tokens, too; then `say` is one word, and the question
    # is about all of its tokens. None: nothing is told of what came before.
    after: str | None = None


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
    # Of models that generate (`query` is then what has been said so far), and of those that answer at places.
    asked: NextToken | AtPlaces | None = None
    saying: Saying | None = None  # of data for models that generate, before it is known what tokens a model has
    # Other words of `passage` that are marked, by the name of the mark: targets of its batches.
    marks: tuple[tuple[str, tuple[int, ...]], ...] = ()


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
    # Training texts that are left out for their length, where their words are to be known all the same.
    only_words: tuple[Words, ...] = ()

    def __getitem__(self, split: Split) -> tuple[Example, ...]:
        return self.splits.get(split, ())


@dataclass(frozen=True, slots=True)
class Reserved:
    """The token ids that are not words: of padding, of the unknown word, and of the mask, where there are any."""

    pad: int | None = 0
    unknown: int | None = 1
    mask: int | None = None

    @property
    def filler(self) -> int:
        """What stands where a text has ended; `present` says that nothing is there, so any id will do."""
        return 0 if self.pad is None else self.pad

    @property
    def replacement(self) -> int | None:
        """What a word is replaced by when it is to be hidden."""
        return self.unknown if self.mask is None else self.mask


@dataclass(frozen=True, slots=True)
class Tokens:
    """A padded batch of texts as token ids.

    `present` is True for every token (what an encoder reads); `mask` only for tokens of real words (what can be
    attended to, explained, permuted or removed), not for markers and other special tokens. Padding is False in
    both. Where words are split into pieces, `word_index` says which word a token belongs to (-1: none). For models
    that read sentences, `sentence_index` says which sentence it belongs to (-1: none); it never falls within a text.
    `hidden` words keep their place and are shut out of attention: they are present, and not in `mask`.
    `places` marks the tokens that a question is about (`AtPlaces`), bit k those of its place k. They move with their
    tokens when a text is edited. A token that is asked about is never deleted: the mask stands in its place, or the
    unknown word, or where a model has neither the padding.
    """

    ids: Tensor  # (batch, length) long
    present: Tensor  # (batch, length) bool
    mask: Tensor  # (batch, length) bool
    word_index: Tensor | None = None  # (batch, length) long; None: every word is one token
    reserved: Reserved = Reserved()
    sentence_index: Tensor | None = None  # (batch, length) long; None: not known
    hidden: Tensor | None = None  # (batch, length) bool; None: no word is
    places: Tensor | None = None  # (batch, length) long; None: none is asked about

    def to(self, device: torch.device) -> Tokens:
        return self._with(lambda part: part.to(device))

    def rows(self, which: Tensor, length: int | None = None) -> Tokens:
        """Some of the texts, without needless padding, or cut to a length that holds them."""
        if length is None:
            longest = self.present[which].sum(1).amax() if len(which) else 0
            length = max(1, int(longest))
        return self._with(lambda part: part[which, :length])

    def _with(self, change: Callable[[Tensor], Tensor]) -> Tokens:
        word, sentence, hidden, places = (
            None if part is None else change(part)
            for part in (self.word_index, self.sentence_index, self.hidden, self.places)
        )
        ids, present, mask = change(self.ids), change(self.present), change(self.mask)
        return Tokens(ids, present, mask, word, self.reserved, sentence, hidden, places)


@dataclass(frozen=True, slots=True)
class Asked:
    """The questions of a batch, as numbers; -1 fills rows up.

    To a model that generates they are token ids. To one that answers at places (`Tokens.places`) column k of `this` is
    the answer at place k, and so is column k of `that`, which of spans stands at place k + the width of `this`.
    """

    this: Tensor  # (batch, most) long
    that: Tensor  # (batch, most) long; a row of -1 alone: any other token
    phrase: Tensor | None = None  # (batch, most) long, at the right end of the row: see NextToken

    @property
    def steps(self) -> int:
        """How many tokens a question is about, at most."""
        return 1 if self.phrase is None else 1 + self.phrase.shape[1]

    def rows(self, which: Tensor) -> Asked:
        return Asked(self.this[which], self.that[which], None if self.phrase is None else self.phrase[which])

    def to(self, device: torch.device) -> Asked:
        phrase = None if self.phrase is None else self.phrase.to(device)
        return Asked(self.this.to(device), self.that.to(device), phrase)


@dataclass(frozen=True, slots=True)
class Batch:
    """What a model reads: passages, queries where the task has them, and what is known of the answer."""

    passage: Tokens
    query: Tokens | None = None
    candidates: Tensor | None = None  # (batch, classes) bool: which labels can be answers; None: all
    labels: Tensor | None = None  # (batch,) long
    targets: Mapping[str, Tensor] = field(default_factory=dict)  # by name (batch, length): for objectives
    asked: Asked | None = None  # of models that generate: which token it is about

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
            {name: values.to(device) for name, values in self.targets.items()},
            None if self.asked is None else self.asked.to(device),
        )

    def rows(self, which: Tensor) -> Batch:
        """Some of the texts, in that order, without needless padding."""
        passage = self.passage.rows(which)
        width = passage.ids.shape[1]
        return Batch(
            passage,
            None if self.query is None else self.query.rows(which),
            None if self.candidates is None else self.candidates[which],
            None if self.labels is None else self.labels[which],
            {name: values[which, :width] for name, values in self.targets.items()},
            None if self.asked is None else self.asked.rows(which),
        )
