"""A question with the documents that are to answer it: one prompt, with sentences of the documents as units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.data.text.sentences import sentence_begins
from heedful.data.text.units import Span, Units, spans_of, with_spans
from heedful.errors import Mistake
from heedful.explainers.perturbation.edits import Edits
from heedful.explainers.perturbation.perturb import predict
from heedful.models.language.model import LanguageModel
from heedful.models.language.prompts import Prompt
from heedful.models.link import log_sigmoid
from heedful.records import Example

ASKS = "Context: {context}\n\nQuery: {question}"  # ContextCite's
PLAIN = "\nAnswer:"  # of a model without a chat template
BETWEEN = "\n\n"

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Logits = Callable[[Bools], Floats]  # which units are there (n, units) -> log-odds of what is said (n,)


@dataclass(frozen=True, slots=True)
class Document:
    """A text that can be cited."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The prompt, and its units: where each is, and which document it is of."""

    prompt: Prompt
    spans: tuple[Span, ...]
    document: NDArray[np.int64]  # (units,)

    @classmethod
    def of(cls, model: LanguageModel, documents: Sequence[Document], question: str, kind: str = "sentence") -> Context:
        """kind: sentence, paragraph, or document."""
        if not documents:
            raise Mistake("there is no document to cite: give at least one.")
        if not question.strip():
            raise Mistake("the question is empty.")
        if empty := [one.name for one in documents if not one.text.strip()]:
            raise Mistake(f"the document {empty[0]} is empty.")
        texts = [one.text.strip() for one in documents]
        context = BETWEEN.join(texts)
        asked = ASKS.format(context=context, question=question.strip())
        prompt = model.prompt([{"role": "user", "content": asked}] if model.text.chats else asked + PLAIN)
        at = prompt.text.index(context)
        spans: list[Span] = []
        whose: list[int] = []
        for number, text in enumerate(texts):
            found = _units(model, text, kind)
            spans += [(at + a, at + b) for a, b in found]
            whose += [number] * len(found)
            at += len(text) + len(BETWEEN)
        return cls(prompt, tuple(spans), np.array(whose, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.spans)

    def text_of(self, unit: int) -> str:
        begin, end = self.spans[unit]
        return self.prompt.text[begin:end]


def _units(model: LanguageModel, text: str, kind: str) -> list[Span]:
    """Those of one document; a document of one sentence is one unit."""
    if kind == "document":
        return [(0, len(text))]
    try:
        return spans_of(model.text.split(text), kind)
    except Mistake:
        if kind not in ("sentence", "paragraph"):
            raise
        return [(0, len(text))]


def statements(model: LanguageModel, ids: Sequence[int]) -> list[tuple[int, int]]:
    """The sentences of an answer, as places among its tokens: from, to."""
    said = model.text.said(ids)
    if not len(said) or said.spans is None:
        return [(0, len(ids))]
    begins = [int(said.offsets[i, 0]) for i in sentence_begins(said)]
    # a token is of the last sentence that has begun where the token ends
    starts = [int(np.searchsorted(said.spans[:, 1], begin, side="right")) for begin in begins]
    starts[0] = 0
    edges = sorted({*starts, len(ids)})
    return list(pairwise(edges))


class AskedUnits:
    """log-odds of a statement after any of the units, and how many passes that took."""

    def __init__(self, model: LanguageModel, context: Context, example: Example) -> None:
        self.model = model
        units: Units = with_spans(context.prompt, context.spans)
        self.batch = model.encode([replace(example, passage=units)]).batch([0])
        word = self.batch.passage.word_index
        assert word is not None
        self.word = word[0].cpu().numpy()
        self.passes = 0

    def __call__(self, keep: Bools) -> Floats:
        """(n, units) -> (n,)"""
        self.passes += len(keep)
        there = np.concatenate([keep, np.ones((len(keep), 1), np.bool_)], 1)[:, self.word]  # (n, length)
        edits = Edits.keeping(self.batch.passage, np.zeros(len(keep), np.int64), there)
        logits = predict(self.model.network, self.batch, edits)
        found: Floats = logits[:, 0].double().cpu().numpy()
        if not np.isfinite(found).all():
            raise Mistake(f"{self.model.name} answers a text with numbers that are not finite.")
        return found


def log_probability(log_odds: Floats) -> Floats:
    """log P of log P / (1 - P)."""
    found: Floats = log_sigmoid(torch.from_numpy(log_odds)).numpy()
    return found
