"""From explained examples to columns and back: a record is made when someone looks at it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np

from heedful.explanation.attribution import Attribution, Check, Cost, as_json
from heedful.explanation.columns import (
    Attributions,
    Cells,
    Columns,
    Examples,
    Floats,
    Ints,
    Method,
    Positions,
    Strings,
    TextColumns,
)
from heedful.explanation.record import Explained, check_words
from heedful.records import Part, Words

PARTS: tuple[Part, ...] = ("passage", "query")


def columns_of(examples: Sequence[Explained]) -> Columns:
    """Records as columns."""
    label_sets = places((tuple(e.labels), e.answers) for e in examples)
    parts = [(e.id, part, words, e.word_index.get(part)) for e in examples for part, words in e.parts.items()]
    texts, positions = text_columns([part[:3] for part in parts], [index for *_, index in parts])
    unknown = [
        np.isin(np.arange(len(words)), e.unknown.get(part, ())) for e in examples for part, words in e.parts.items()
    ]
    positions.unknown[:] = np.concatenate([np.empty(0, np.bool_), *unknown])
    attributions = [(e, a) for e in examples for a in e.attributions]
    facts = [method_of(a) for _, a in attributions]
    methods = places(facts)
    checks = [a.check or Check("", None, False) for _, a in attributions]
    return Columns(
        tuple(labels for labels, _ in label_sets),
        tuple(methods),
        Examples(
            strings([e.id for e in examples]),
            integers([label_sets[tuple(e.labels), e.answers] for e in examples]),
            strings([e.truth for e in examples]),
            integers([len(e.parts) for e in examples]),
            integers([len(e.attributions) for e in examples]),
        ),
        texts,
        positions,
        Attributions(
            integers([methods[method] for method in facts]),
            integers([e.labels.index(a.target) for e, a in attributions]),
            np.array(["passage" in a.scores for _, a in attributions], dtype=np.bool_),
            np.array(["query" in a.scores for _, a in attributions], dtype=np.bool_),
            numbers([a.special for _, a in attributions]),
            numbers([a.rest for _, a in attributions]),
            numbers([a.spread for _, a in attributions]),
            strings([check.name if a.check else None for check, (_, a) in zip(checks, attributions, strict=True)]),
            numbers([check.value for check in checks]),
            np.array([check.ok for check in checks], dtype=np.bool_),
            numbers([check.relative for check in checks]),
            strings([check.sentence for check in checks]),
            integers([a.cost.forward for _, a in attributions]),
            integers([a.cost.backward for _, a in attributions]),
            integers([len(a.cells) for _, a in attributions]),
        ),
        np.concatenate([np.empty(0), *(s for _, a in attributions for s in a.scores.values())]),
        np.concatenate([np.empty(0), *(e.probabilities for e in examples)]),
        join_cells([a.cells for _, a in attributions]),
        tuple(answers for _, answers in label_sets),
    )


def method_of(a: Attribution) -> Method:
    return Method(a.method, a.kind, bool(a.signed), a.removal, as_json(a.options), a.axes)


def join_cells(each: Sequence[Cells]) -> Cells:
    """One after the other."""
    return Cells(
        *(np.concatenate([column, *(vars(c)[name] for c in each)]) for name, column in vars(Cells.none()).items())
    )


def text_columns(
    parts: Sequence[tuple[str, Part, Words]], index: Sequence[Sequence[int] | None]
) -> tuple[TextColumns, Positions]:
    """The texts and positions of so many (id, part, words); `index` is the word of each sub-token, None: not split."""
    words = [each for *_, each in parts]
    n = integers([len(each.forms) for each in words])
    try:
        "".join(each.text for each in words).encode()
        if [np.shape(each.offsets) for each in words] != [(len(each.forms), 2) for each in words]:
            raise ValueError("a text has not as many offsets as words")
        offsets = np.concatenate([np.empty((0, 2), np.int32), *(each.offsets for each in words)], dtype=np.int32)
        numbered = chain.from_iterable(
            range(len(each.forms)) if i is None else i for each, i in zip(words, index, strict=True)
        )
        forms = strings(list(chain.from_iterable(each.forms for each in words)))
        word = np.fromiter(numbered, np.int32, len(forms))
    except (ValueError, TypeError):
        for (id, part, each), i in zip(parts, index, strict=True):
            check_words(f"the {part} of example {id!r}", each, i)
        raise
    split = np.array([i is not None for i in index], dtype=np.bool_)
    return TextColumns(strings([each.text for each in words]), split, n), Positions(
        forms, offsets[:, 0], offsets[:, 1], word, np.zeros(len(forms), dtype=np.bool_)
    )


def places(values: Any) -> dict[Any, int]:
    """Each different value with its place, in order of first appearance."""
    return {value: place for place, value in enumerate(dict.fromkeys(values))}


def strings(values: Sequence[str | None]) -> Strings:
    return np.array(values, dtype=np.object_)


def integers(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def numbers(values: Sequence[float | None]) -> Floats:
    return np.array(values, dtype=np.float64)  # None becomes NaN


def views(columns: Columns, at_once: int = 2**14) -> Iterator[Explained]:
    """The examples as records, made while they are asked for; their numbers are not copied."""
    for piece in columns.cut(at_once):
        yield from (Explained.unchecked(**fields) for fields in fields_of(piece))


def fields_of(columns: Columns) -> Iterator[dict[str, Any]]:
    """The fields of each `Explained`."""
    offsets = np.stack([columns.positions.start, columns.positions.end], axis=1)
    forms, texts = iter(columns.positions.form.tolist()), _dicts(columns.texts)
    attributions, scores = _dicts(columns.attributions), columns.scores
    options = [json.loads(method.options) for method in columns.methods]
    position, row, label, cell = 0, 0, 0, 0
    for e in _dicts(columns.examples):
        parts: dict[Part, Words] = {}
        index: dict[Part, tuple[int, ...]] = {}
        unknown: dict[Part, tuple[int, ...]] = {}
        for part, text in zip(PARTS, islice(texts, e["n_texts"]), strict=False):
            here = slice(position, position := position + text["n_words"])
            parts[part] = Words(text["text"], tuple(islice(forms, text["n_words"])), offsets[here])
            if (strange := np.flatnonzero(columns.positions.unknown[here])).size:
                unknown[part] = tuple(strange.tolist())
            if text["split"]:
                index[part] = tuple(columns.positions.word[here].tolist())
        labels = columns.label_sets[e["labels"]]
        made = []
        for a in islice(attributions, e["n_attributions"]):
            found: dict[Part, Floats] = {}
            for part in PARTS:
                if a[part]:
                    found[part] = scores[row : (row := row + len(parts.get(part, ())))]
            method = columns.methods[a["method"]]
            cells = columns.cells[cell : (cell := cell + a["n_cells"])]
            made.append(_attribution(method, options[a["method"]], labels[a["target"]], found, a, cells))
        yield {
            "id": e["id"],
            "passage": parts["passage"],
            "query": parts.get("query"),
            "labels": labels,
            "answers": columns.answers_of(e["labels"]),
            "probabilities": columns.probabilities[label : (label := label + len(labels))],
            "truth": e["truth"],
            "word_index": index,
            "unknown": unknown,
            "attributions": tuple(made),
        }


def _dicts(rows: Examples | TextColumns | Attributions) -> Iterator[dict[str, Any]]:
    columns = {name: column.tolist() for name, column in vars(rows).items()}
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _attribution(
    method: Method, options: dict[str, Any], target: str, scores: dict[Part, Floats], a: dict[str, Any], cells: Cells
) -> Attribution:
    check = None if a["check"] is None else Check(a["check"], a["value"], a["ok"], a["relative"], a["sentence"])
    return Attribution(
        method=method.name,
        kind=method.kind,
        signed=method.signed,
        target=target,
        scores=scores,
        removal=method.removal,
        check=check,
        cost=Cost(a["forward"], a["backward"]),
        options=options,
        special=None if math.isnan(a["special"]) else a["special"],
        rest=None if math.isnan(a["rest"]) else a["rest"],
        spread=None if math.isnan(a["spread"]) else a["spread"],
        axes=method.axes,
        cells=cells,
    )
