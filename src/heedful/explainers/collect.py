"""What methods say of batch after batch, put into the columns of an `Explanation`.

Batches come in an order of their own (by length). What they give is kept flat, one batch after the other, and put into
the order of the examples at the end, whole columns at a time.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.data.text.batching import TextEncoder
from heedful.errors import Mistake
from heedful.explainers.explainer import Axiom, Explainer, Scores
from heedful.explanation.attribution import as_json
from heedful.explanation.columns import (
    Attributions,
    Cells,
    Columns,
    Examples,
    Flags,
    Floats,
    Ints,
    Method,
    Strings,
    begins,
    ranges,
)
from heedful.explanation.drawing import checked
from heedful.explanation.views import PARTS, join_cells, places, strings, text_columns
from heedful.records import AnswerKind, Batch, Example, NextToken, Part, Tokens, Words

UNTRAINED = "the unknown word, which the model never saw in training: train with --set mask_words=0.5"
Answer = dict[str, NDArray[Any]]  # what one method says of some texts, by name


def effective_options(run: Callable[..., Any], names: frozenset[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a method really did: its defaults and what was asked. A tensor is told by its shape."""
    parameters = inspect.signature(run).parameters
    values = {name: given.get(name, parameters[name].default) for name in sorted(names)}
    return {name: f"tensor {tuple(v.shape)}" if isinstance(v, Tensor) else v for name, v in values.items()}


class Call(NamedTuple):
    """A method, and what was asked of it."""

    explainer: Explainer
    options: Mapping[str, Any]
    untrained: bool = False  # the word that takes the place of others was never seen in training

    def method(self) -> Method:
        e = self.explainer
        removal = f"{e.removal} ({UNTRAINED})" if self.untrained else e.removal
        told = effective_options(e.run, e.options, self.options)
        signed = e.signed and not self.options.get("absolute") and self.options.get("change") != "tvd"
        return Method(e.name, e.kind, signed, removal, as_json(told), e.axes)


class Collector:
    """Takes batches with their scores, and makes columns of them. Texts that no file can hold are refused at once."""

    def __init__(self, examples: Sequence[Example], calls: Sequence[Call], text: TextEncoder) -> None:
        self.examples, self.calls = examples, calls
        self.methods = tuple(call.method() for call in calls)
        parts: list[tuple[str, Part, Words]] = []
        for e in examples:
            parts.append((e.id, "passage", text.pieces(e.passage, "passage")))
            if e.query is not None:
                parts.append((e.id, "query", text.pieces(e.query, "query")))
        self.texts, self.positions = text_columns(parts, [None] * len(parts))
        self.n_texts = np.array([1 + (e.query is not None) for e in examples], dtype=np.int64)
        self.text = {part: begins(self.n_texts)[:-1] + i for i, part in enumerate(PARTS)}  # (examples,) each
        self.order: list[Ints] = []  # the examples of each batch
        self.probabilities: list[Floats] = []
        self.targets: list[Ints] = []
        self.answers: list[dict[str, list[NDArray[Any]]]] = [defaultdict(list) for _ in calls]
        self.cells: list[dict[int, Cells]] = [{} for _ in calls]  # of each example, where a method has any

    def add(
        self, examples: Ints, batch: Batch, probabilities: Tensor, targets: Tensor, scores: Sequence[Scores]
    ) -> None:
        """One batch: the examples that are its texts, (batch, labels), (batch,), and the scores of each method."""
        self._check_positions(examples, batch)
        for part, tokens in parts_of(batch).items():
            texts = self._texts(part, examples)
            if tokens.reserved.unknown is not None:
                strange = tokens.ids[tokens.mask] == tokens.reserved.unknown
                places = ranges(begins(self.texts.n_words)[texts], self.texts.n_words[texts])
                self.positions.unknown[places] = strange.cpu().numpy()
            if tokens.word_index is not None:
                self._number_words(texts, tokens.word_index[tokens.mask])
        self.order.append(examples)
        self.probabilities.append(probabilities.double().cpu().numpy())
        self.targets.append(targets.cpu().numpy())
        for call, found, kept in zip(self.calls, scores, self.cells, strict=True):
            if call.explainer.axes and isinstance(found, Scores):
                kept.update(zip(examples.tolist(), cells_of(call.explainer, found, batch), strict=True))
        for answer, call, found in zip(self.answers, self.calls, scores, strict=True):
            for name, chunk in answer_of(call.explainer.name, found, batch).items():
                answer[name].append(chunk & (self.n_texts[examples] > 1) if name == "has_query" else chunk)

    def _texts(self, part: Part, examples: Ints) -> Ints:
        """The texts that a part of these examples is: what has been said so far may be nothing."""
        found: Ints = self.text[part][examples]
        return found if part == "passage" else found[self.n_texts[examples] > 1]

    def _check_positions(self, examples: Ints, batch: Batch) -> None:
        for part, tokens in parts_of(batch).items():
            n, expected = tokens.mask.sum(1).cpu().numpy(), np.zeros(len(examples), dtype=np.int64)
            there = (self.n_texts[examples] > 1) | (part == "passage")
            expected[there] = self.texts.n_words[self._texts(part, examples)]
            for row in np.flatnonzero(n != expected)[:1]:
                example = self.examples[int(examples[row])]
                words = example.query if part == "query" and example.query else example.passage
                checked(words, np.zeros(n[row]), True, f"{self.methods[0].name} on example {example.id!r}")

    def _number_words(self, texts: Ints, word: Tensor) -> None:
        """The word of each sub-token of these texts, one text after the other."""
        first = begins(self.texts.n_words)[texts]
        self.positions.word[ranges(first, self.texts.n_words[texts])] = word.cpu().numpy()
        self.texts.split[texts] = True

    def columns(self, labels: tuple[str, ...], kind: AnswerKind = "one label") -> Columns:
        """Everything, in the order of the examples."""
        n, order = len(self.examples), np.concatenate(self.order)
        answers = [{name: np.concatenate(chunks) for name, chunks in each.items()} for each in self.answers]
        label_sets, of = self._label_sets(labels)
        targets = to_example_order(np.concatenate(self.targets), order)
        attributions = [self._attributions(i, answers[i], targets, order) for i in range(len(answers))]
        return Columns(
            label_sets,
            self.methods,
            Examples(
                id=strings([e.id for e in self.examples]),
                labels=of,
                truth=strings([None if e.label is None else labels[e.label] for e in self.examples]),
                n_texts=self.n_texts,
                n_attributions=np.full(n, len(answers)),
            ),
            self.texts,
            self.positions,
            Attributions(  # those of an example side by side
                **{
                    name: np.stack([getattr(each, name) for each in attributions], axis=1).ravel()
                    for name in vars(attributions[0])
                }
            ),
            self._scores(answers, order),
            to_example_order(np.concatenate(self.probabilities), order).ravel(),
            join_cells([kept[i] for i in range(n) for kept in self.cells if i in kept]),
            tuple("next token" if isinstance(self.examples[0].asked, NextToken) else kind for _ in label_sets),
        )

    def _label_sets(self, labels: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], ...], Ints]:
        """The labels of a model, or of each question to one that generates, and which of these an example has."""
        sets = places(labels if e.asked is None else e.asked.names for e in self.examples)
        of = [sets[labels if e.asked is None else e.asked.names] for e in self.examples]
        return tuple(sets), np.array(of, dtype=np.int64)

    def _attributions(self, method: int, answer: Answer, targets: Ints, order: Ints) -> Attributions:
        """Those of one method, one for each example."""
        of = {name: to_example_order(column, order) for name, column in answer.items() if name not in PARTS}
        n, axiom = len(order), self.calls[method].explainer.axiom
        check, value, ok, relative, sentence = check_axiom(axiom, of["gap"], of["scale"], of["checked"])
        return Attributions(
            method=np.full(n, method),
            target=targets,
            passage=np.ones(n, dtype=np.bool_),
            query=of["has_query"],
            special=of["special"],
            rest=of["rest"],
            spread=of["spread"],
            check=check,
            value=value,
            ok=ok,
            relative=relative,
            sentence=sentence,
            forward=of["forward"],
            backward=of["backward"],
            n_cells=np.array([len(self.cells[method].get(i, ())) for i in range(n)], dtype=np.int64),
        )

    def _scores(self, answers: Sequence[Answer], order: Ints) -> Floats:
        """One example after the other, of each the methods, of each the passage and the query."""
        passage = self.texts.n_words[self.text["passage"]]  # (examples,) words
        query: Ints = np.zeros(len(passage), dtype=np.int64)
        query[self.n_texts > 1] = self.texts.n_words[self.text["query"][self.n_texts > 1]]
        scored: Flags = np.stack([to_example_order(each["has_query"], order) for each in answers], axis=1)
        n_scores: Ints = passage[:, None] + scored * query[:, None]  # (examples, methods)
        begin = begins(n_scores.ravel())[:-1].reshape(n_scores.shape)
        scores = np.empty(n_scores.sum())
        for method, each in enumerate(answers):
            scores[ranges(begin[order, method], passage[order])] = each["passage"]
            if "query" in each:
                some = order[each["has_query"]]
                scores[ranges(begin[some, method] + passage[some], query[some])] = each["query"]
        return scores


def parts_of(batch: Batch) -> dict[Part, Tokens]:
    parts: dict[Part, Tokens] = {"passage": batch.passage}
    return parts if batch.query is None else parts | {"query": batch.query}


def to_example_order(column: NDArray[Any], order: Ints) -> NDArray[Any]:
    """A column of the batches in the order of the examples: `order` is the example of each of its rows."""
    found = np.empty_like(column)
    found[order] = column
    return found


def answer_of(name: str, scores: object, batch: Batch) -> Answer:
    """The scores of real words, one text after the other, and what is known of each text."""
    if not isinstance(scores, Scores):
        raise Mistake(f"{name} returned a {type(scores).__name__}: a method returns heedful.explainers.Scores.")
    n = len(batch)
    special = numbers(scores.special, n)
    if scores.special is not None and np.isnan(special).any():  # in columns, NaN says that there are none
        raise Mistake(f"{name} has the score nan for special tokens: scores must be finite numbers.")
    answer: Answer = {
        "passage": numbers(scores.passage[batch.passage.mask], n),
        "has_query": np.full(n, scores.query is not None and batch.query is not None),
        "gap": numbers(scores.gap, n),
        "scale": numbers(scores.scale, n),
        "checked": np.full(n, scores.gap is not None and scores.scale is not None),
        "special": special,
        "rest": numbers(torch.stack(list(scores.rest.values())).sum(0) if scores.rest else None, n),
        "spread": numbers(scores.spread, n),
        "forward": passes(scores.forward_passes, n),
        "backward": passes(scores.backward_passes, n),
    }
    if scores.query is not None and batch.query is not None:
        answer["query"] = numbers(scores.query[batch.query.mask], n)
    return answer


def cells_of(explainer: Explainer, scores: Scores, batch: Batch) -> list[Cells]:
    """Of each text, what the method says of pairs or layers: only what is not 0, at positions of words."""
    values = scores.pairs if explainer.axes == "pairs" else scores.layers
    if values is None:
        raise Mistake(f"{explainer.name} declares the axes {explainer.axes!r}, and returned no such scores.")
    mask = batch.passage.mask
    if scores.query is not None and batch.query is not None:
        mask = torch.cat([mask, batch.query.mask], dim=1)  # (batch, all)
    found = []
    for each, words in zip(values.detach().double().cpu(), mask.cpu(), strict=True):
        there = each[:, words] if explainer.axes == "layers" else each[words][:, words].triu()
        first, second = there.nonzero(as_tuple=True)
        none = torch.full_like(first, -1)
        order = (first, second, none) if explainer.axes == "layers" else (none, first, second)
        found.append(Cells.of([place.numpy() for place in order], there[first, second].numpy()))
    return found


def numbers(values: Tensor | None, n: int) -> Floats:
    """NaN for each of `n` texts where there are none."""
    found: Floats = np.full(n, np.nan) if values is None else values.detach().double().cpu().numpy()
    return found


def passes(made: int | Tensor, n: int) -> Ints:
    """For each text: as it is told, or its share of the whole batch."""
    if isinstance(made, Tensor):
        found: Ints = made.long().cpu().numpy()
        return found
    return np.full(n, -(-made // n), dtype=np.int64)


def check_axiom(
    axiom: Axiom | None, gap: Floats, scale: Floats, checked: Flags
) -> tuple[Strings, Floats, Flags, Floats, Strings]:
    """The columns of a `Check`: name, value, ok, relative, sentence, (texts,) each.

    A gap is small against what was to be explained, or against what a float can hold of it.
    """
    nothing, undefined = np.full(len(gap), None), np.full(len(gap), np.nan)
    if axiom is None:
        return nothing, undefined, np.zeros(len(gap), dtype=np.bool_), undefined, nothing
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        relative = np.where(scale == 0, np.nan, np.abs(gap) / scale)
    met = np.abs(gap) <= np.maximum(axiom.limit * scale, 1e-5)
    kept = np.abs(gap) <= np.maximum(min(axiom.kept, axiom.limit) * scale, 1e-5)
    sentence = nothing.copy()
    for i in np.flatnonzero(checked & ~kept & (scale != 0)).tolist():
        sentence[i] = axiom.sentence.format(missed=share(relative[i]))
    name = nothing.copy()
    name[checked] = axiom.name
    return name, _finite(gap), checked & met & np.isfinite(gap), _finite(relative), sentence


def _finite(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, np.nan)


def share(relative: float) -> str:
    """In percent; more than everything is everything."""
    return f"{relative:.0%}" if relative < 1 else "all"
