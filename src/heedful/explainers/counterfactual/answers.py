"""What a model answers to a text, whatever kind it is: a label, or the next word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.errors import Mistake
from heedful.models.model import Model
from heedful.records import Example, NextToken, Part

Floats = NDArray[np.float64]
LEAST = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Replies:
    """Of several texts: the number of the answer, and how probable answers are."""

    best: NDArray[np.int64]  # (texts,)
    confidence: Floats  # (texts,) of the best
    own: Floats  # (texts,) of the answer to the original text
    margin: Floats  # (texts,) log odds of that answer against the wanted one, or the best other: below 0 it has changed


Ask = Callable[[Sequence[str]], Replies]


@dataclass(frozen=True, slots=True, eq=False)
class Respondent:
    """A model with the text that stays as it is; `original` is the number of its answer, `name` says any."""

    ask: Ask
    original: int
    confidence: float
    name: Callable[[int], str]
    texts: list[int]  # how many were asked: one number, which grows


def asking(model: Model, text: str, query: str | None, part: Part, target: str | None) -> Respondent:
    """The model asked about changed forms of `part`; `target`: only this answer counts as another one."""
    if "generates" in model.network.can:
        probabilities, name = _next_tokens(model)
        wanted = None if target is None else _token(model, text, target)
    else:
        if model.network.link.answers == "numbers":
            raise Mistake(f"{model.name} predicts a number, not a label: there is no answer that could become another.")
        probabilities, name = _labels(model, text, query, part), lambda i: model.labels[i]
        wanted = None if target is None else model.label_index(target)
    count = [0]
    first = probabilities([query if part == "query" and query is not None else text])
    original = int(first[0].argmax())
    if wanted == original:
        raise Mistake(f"the model says {name(original)!r} already: give another target, or none.")

    def ask(texts: Sequence[str]) -> Replies:
        found = []
        for begin in range(0, len(texts), 256):  # the vocabulary of a language model is wide
            p = probabilities(texts[begin : begin + 256])  # (texts, answers)
            own, best = p[:, original], p.argmax(1)
            others = p.copy()
            others[:, original] = -1
            rival = p[:, wanted] if wanted is not None else others.max(1)
            margin = np.log(np.maximum(own, LEAST)) - np.log(np.maximum(rival, LEAST))
            if wanted is not None:
                margin = np.where(best == wanted, np.minimum(margin, -LEAST), np.maximum(margin, LEAST))
            else:
                margin = np.where(best != original, np.minimum(margin, -LEAST), np.maximum(margin, LEAST))
            found.append((best, p[np.arange(len(p)), best], own, margin))
        count[0] += len(texts)
        return Replies(*(np.concatenate(column) for column in zip(*found, strict=True)))

    return Respondent(ask, original, float(first[0, original]), name, count)


def _labels(model: Model, text: str, query: str | None, part: Part) -> Callable[[Sequence[str]], Floats]:
    def probabilities(texts: Sequence[str]) -> Floats:
        if part == "query":
            return model.predict([text] * len(texts), list(texts))
        return model.predict(list(texts), None if query is None else [query] * len(texts))

    return probabilities


def _next_tokens(model: Model) -> tuple[Callable[[Sequence[str]], Floats], Callable[[int], str]]:
    from heedful.models.language.model import LanguageModel

    assert isinstance(model, LanguageModel)

    def probabilities(texts: Sequence[str]) -> Floats:
        asked = [Example(f"prompt {i}", model.prompt(one), asked=NextToken((0,))) for i, one in enumerate(texts)]
        found: Floats | None = None
        with torch.no_grad():
            for places, batch in model.batches(asked):
                p = model.network.next(batch).double().softmax(-1).cpu().numpy()
                found = np.empty((len(texts), p.shape[1])) if found is None else found
                found[places] = p
        assert found is not None
        return found

    return probabilities, model.name_of


def _token(model: Model, text: str, target: str) -> int:
    from heedful.models.language.model import LanguageModel

    assert isinstance(model, LanguageModel)
    return int(model.tokens_of(model.prompt(text), target)[0])
