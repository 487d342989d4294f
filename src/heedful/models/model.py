"""A trained model with what it needs to read text: network, text encoder and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from heedful.data.corpora.labels import LabelNumbers
from heedful.data.text.batching import Encoded, Ints, TextEncoder, encode
from heedful.errors import Mistake, one_of, short
from heedful.models.network import Network
from heedful.models.training import TOKEN_BUDGET, predict
from heedful.records import Batch, Example, TaskType


@dataclass(frozen=True, slots=True)
class Model:
    """What `heedful.load` returns. `network` says what it can do (network.py); the rest turns text into batches."""

    name: str
    network: Network
    text: TextEncoder
    labels: tuple[str, ...]
    task: TaskType = "classification"
    seed: int = 0  # of its training; experiments draw from it
    unknown_trained: bool | None = None  # whether training has shown it the unknown word; None: nobody knows
    batch_size: int | None = None  # texts in a pass, at most; None: as many as memory and speed allow

    def __post_init__(self) -> None:
        if not isinstance(self.network, nn.Module):
            return
        for name, parameter in self.network.named_parameters():
            if not torch.isfinite(parameter).all():
                raise Mistake(f"{self.name}: the weights {name!r} hold numbers that are not finite.")

    def examples(self, texts: Sequence[str], queries: Sequence[str] | None = None) -> tuple[Example, ...]:
        """Texts (and, for QA and NLI, a query for each) as examples."""
        if self.network.has_query and queries is None:
            raise Mistake(
                f"{self.name} reads pairs: give a query (the question, hypothesis or search) for each text "
                "(--query, queries=[...])."
            )
        if not self.network.has_query and queries is not None:
            raise Mistake(f"{self.name} reads one text at a time: it has no use for a query.")
        if isinstance(texts, str) or isinstance(queries, str):
            raise Mistake("give a list of texts, and of queries, not one string.")
        for given in (texts, queries):  # a loop over a table is over the names of its columns
            if given is not None and (not hasattr(given, "__len__") or getattr(given, "ndim", 1) != 1):
                raise Mistake(f"give a list of texts, and of queries, not {short(given)}.")
        if queries is not None and len(queries) != len(texts):
            raise Mistake(f"{len(texts)} texts were given, and {len(queries)} queries: give one for each.")
        check_texts(texts, "text")
        if queries is not None:
            check_texts(queries, "query")
        split = self.text.split
        made = []
        for i, text in enumerate(texts):
            query = None if queries is None else split(queries[i])
            example = Example(id=f"text {i + 1}", passage=split(text), query=query)
            if not len(example.passage):
                raise Mistake(f"text {i + 1} has no words: {short(text)}.")
            if query is not None and not len(query):
                raise Mistake(f"query {i + 1} has no words: {short(query.text)}.")
            made.append(example)
        return tuple(made)

    def encode(self, examples: Sequence[Example], sentences: bool = False) -> Encoded:
        return encode(examples, self.text, len(self.labels), self.network.device, sentences)

    def in_windows(self, examples: Sequence[Example]) -> bool:
        """Whether a text is longer than the network reads at once (sequence.py)."""
        limit: int | None = getattr(self.network, "limit", None)
        return limit is not None and len(examples) > 0 and int(self.encode(examples).lengths.max()) > limit

    def batches(self, examples: Sequence[Example], token_budget: int = TOKEN_BUDGET) -> Iterator[tuple[Ints, Batch]]:
        """All examples in batches of like length, for inference: (indices, batch)."""
        return self.encode(examples).batches(min(512, self.batch_size or 512), token_budget=token_budget)

    def predict(self, texts: Sequence[str], queries: Sequence[str] | None = None) -> NDArray[np.float64]:
        """Probabilities (texts, labels)."""
        return predict(self.network, self.encode(self.examples(texts, queries)))

    def label_index(self, target: str | int) -> int:
        """A label by name, or by number where no label looks like one; a wrong one lists the right ones."""
        if isinstance(target, str) and target in self.labels:
            return self.labels.index(target)
        if isinstance(target, int | np.integer) and not isinstance(target, bool) and abs(int(target)) < 2**63:
            target = str(int(target))
        found = LabelNumbers(self.labels, listed=True).find(target) if isinstance(target, str) else None
        if found is None:
            raise one_of("label", target, list(self.labels))
        return found


def check_texts(texts: Sequence[object], what: str) -> None:
    """Nothing but strings: None, nan, numbers and bytes have no words, and `str` of them has."""
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise Mistake(f"{what} {i + 1} is not a string (str) but {short(text)}.")
