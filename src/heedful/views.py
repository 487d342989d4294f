"""From explained examples to columns and back: records are made when someone looks, and checked all at once.

`Explained` knows every rule and the sentence for whoever breaks it. Here the same rules are asked of whole columns;
the first example that breaks one is then made as a record, which says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from heedful.attribution import Attribution, Check, Cost, Explained, Part, check_words
from heedful.columns import ATTRIBUTIONS, EXAMPLES, POSITIONS, TEXTS, Columns, begins, flags, integers
from heedful.errors import Mistake
from heedful.records import Words

PARTS: tuple[Part, ...] = ("passage", "query")


def columns_of(examples: Sequence[Explained]) -> Columns:
    """Records as columns."""
    label_sets = {labels: i for i, labels in enumerate(dict.fromkeys(tuple(e.labels) for e in examples))}
    parts = [(e.id, part, words, e.word_index.get(part)) for e in examples for part, words in e.parts.items()]
    texts, positions = text_columns([part[:3] for part in parts], [index for *_, index in parts])
    attributions = [a for e in examples for a in e.attributions]
    made = {
        "id": [e.id for e in examples],
        "labels": [label_sets[tuple(e.labels)] for e in examples],
        "probabilities": [e.probabilities for e in examples],
        "truth": [e.truth for e in examples],
        "n_texts": [len(e.parts) for e in examples],
        "n_attributions": [len(e.attributions) for e in examples],
    }
    rows = [_attribution_row(a) for a in attributions]
    columns = {name: [row[name] for row in rows] for name in ATTRIBUTIONS.names}
    scores = [s for a in attributions for s in a.scores.values()]
    return Columns(
        tuple(label_sets),
        table(EXAMPLES, made),
        texts,
        positions,
        table(ATTRIBUTIONS, columns),
        np.concatenate([np.empty(0), *scores]),
    )


def _attribution_row(a: Attribution) -> dict[str, Any]:
    check = a.check
    return {
        "method": a.method,
        "kind": a.kind,
        "signed": bool(a.signed),
        "target": a.target,
        "removal": a.removal,
        "options": json.dumps(a.options, ensure_ascii=False),
        "passage": "passage" in a.scores,
        "query": "query" in a.scores,
        "special": a.special,
        "check": check and check.name,
        "value": check and check.value,
        "ok": check and check.ok,
        "relative": check and check.relative,
        "sentence": check and check.sentence,
        "forward": a.cost.forward,
        "backward": a.cost.backward,
    }


def text_columns(
    parts: Sequence[tuple[str, Part, Words]], index: Sequence[Sequence[int] | None] | None = None
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The `texts` and `positions` of so many (id, part, words), with the word of each sub-token where it is known."""
    words = [each for *_, each in parts]
    index = index or [None] * len(words)
    n = np.array([len(each.forms) for each in words], dtype=np.int64)
    forms = list(chain.from_iterable(each.forms for each in words))
    try:
        offsets = np.concatenate([np.empty((0, 2), np.int32), *(each.offsets for each in words)], dtype=np.int32)
        fits = np.array_equal(n, [len(each.offsets) for each in words])
        texts = pa.array([each.text for each in words], pa.large_string())
        if not fits or texts.null_count:
            raise ValueError("a text has not as many offsets as words, or is None")
        columns = {"form": forms, "start": offsets[:, 0], "end": offsets[:, 1]}
        numbers = [range(len(each)) if i is None else i for each, i in zip(words, index, strict=True)]
        columns["word"] = np.fromiter(chain.from_iterable(numbers), np.int32, len(forms))
        split = [i is not None for i in index]
        return table(TEXTS, {"text": texts, "split": split, "n_words": n}), table(POSITIONS, columns)
    except (ValueError, TypeError, pa.ArrowException):
        for (id, part, each), i in zip(parts, index, strict=True):
            check_words(f"the {part} of example {id!r}", each, i)
        raise


def table(schema: pa.Schema, columns: dict[str, Any]) -> pa.RecordBatch:
    """Columns of the types of `schema`; a text that no file can hold is a mistake."""
    return pa.record_batch([_array(name, columns[name], schema.field(name).type) for name in schema.names], schema)


def _array(name: str, values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    try:
        return pa.array(values, kind)
    except (UnicodeEncodeError, pa.ArrowException):
        for value in values if kind in (pa.string(), pa.large_string()) else ():
            try:
                pa.array([value], kind)
            except (UnicodeEncodeError, pa.ArrowException):
                raise Mistake(f"the {name} {value!r} of an example is not valid Unicode text.") from None
        raise


def views(columns: Columns, at_once: int = 2**14) -> Iterator[Explained]:
    """The examples as records, made while they are asked for; their scores are not copied."""
    for piece in columns.cut(at_once):
        yield from (Explained.unchecked(**fields) for fields in _fields(piece))


def _fields(columns: Columns) -> Iterator[dict[str, Any]]:
    """The fields of each `Explained`."""
    forms = iter(columns.positions["form"].to_pylist())
    offsets = np.stack([integers(columns.positions, name) for name in ("start", "end")], axis=1)
    numbers, scores = integers(columns.positions, "word"), columns.scores
    texts, attributions = iter(columns.texts.to_pylist()), iter(columns.attributions.to_pylist())
    position, row = 0, 0
    for e in columns.examples.to_pylist():
        parts: dict[Part, Words] = {}
        index: dict[Part, tuple[int, ...]] = {}
        for part, text in zip(PARTS, islice(texts, e["n_texts"]), strict=False):
            here = slice(position, position := position + text["n_words"])
            parts[part] = Words(text["text"], tuple(islice(forms, text["n_words"])), offsets[here])
            if text["split"]:
                index[part] = tuple(numbers[here].tolist())
        made = []
        for a in islice(attributions, e["n_attributions"]):
            found: dict[Part, NDArray[np.float64]] = {}
            for part in PARTS:
                if a[part]:
                    found[part] = scores[row : (row := row + len(parts.get(part, ())))]
            made.append(_attribution(a, found))
        yield {
            "id": e["id"],
            "passage": parts["passage"],
            "query": parts.get("query"),
            "labels": columns.label_sets[e["labels"]],
            "probabilities": _read_only(np.array(e["probabilities"], dtype=np.float64)),
            "truth": e["truth"],
            "word_index": index,
            "attributions": tuple(made),
        }


def _attribution(a: dict[str, Any], scores: dict[Part, NDArray[np.float64]]) -> Attribution:
    check = None
    if a["check"] is not None:
        check = Check(a["check"], a["value"], a["ok"], a["relative"], a["sentence"])
    return Attribution(
        method=a["method"],
        kind=a["kind"],
        signed=a["signed"],
        target=a["target"],
        scores=scores,
        removal=a["removal"],
        check=check,
        cost=Cost(a["forward"], a["backward"]),
        options=json.loads(a["options"]),
        special=a["special"],
    )


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array.flags.writeable = False
    return array


def check_columns(columns: Columns) -> Columns:
    """The columns themselves, if every example in them would pass the checks of `Explained`, and ids differ."""
    for wrong in (_wrong_parts, _wrong_texts, _wrong_probabilities, _wrong_targets, _wrong_scores):
        broken = wrong(columns)  # places of examples
        if broken.size:
            first = int(broken.min())
            Explained(**next(_fields(columns.slice(first, first + 1))))  # says what is wrong
            raise AssertionError(f"{wrong.__name__}: example {first} breaks a rule that `Explained` does not know")
    check_ids(columns)
    return columns


def check_ids(columns: Columns) -> None:
    ids = columns.examples["id"]
    if len(ids.unique()) < len(ids):
        counts = ids.value_counts().to_pylist()
        twice = next(entry["values"] for entry in counts if entry["counts"] > 1)
        raise Mistake(f"two examples are called {twice!r}: the ids of examples must differ.")


def _wrong_parts(c: Columns) -> NDArray[np.int64]:
    """Attributions there are, and they score something that is there."""
    none = np.flatnonzero(c.numbers("n_attributions") == 0)
    passage, query = (flags(c.attributions, part) for part in PARTS)
    missing = query & (c.numbers("n_texts") < 2)[c.example_of_attribution]
    return np.concatenate([none, c.example_of_attribution[missing | ~(passage | query)]])


def _wrong_texts(c: Columns) -> NDArray[np.int64]:
    """Words, in the order of the text and inside it, and ascending numbers of words."""
    text = np.repeat(np.arange(c.texts.num_rows), c.n_words)  # (positions,)
    start, end, word = (integers(c.positions, name) for name in ("start", "end", "word"))
    within = text[1:] == text[:-1]
    back = np.zeros(len(text), dtype=np.bool_)
    back[1:] = within & (np.diff(start) < 0)
    again = np.zeros(len(text), dtype=np.bool_)
    again[1:] = within & (np.diff(word) < 0)
    length = pc.utf8_length(c.texts["text"]).to_numpy()  # (texts,)
    outside = (start < 0) | (start > end) | (end > length[text])
    unordered = flags(c.texts, "split")[text] & (again | (word < 0))
    example = np.repeat(np.arange(len(c)), c.numbers("n_texts"))  # (texts,)
    return example[np.concatenate([np.flatnonzero(c.n_words == 0), text[back | outside | unordered]])]


def _wrong_probabilities(c: Columns) -> NDArray[np.int64]:
    """One for each label, none below 0, of sum 1."""
    lists = c.examples["probabilities"]
    n, p = lists.value_lengths().to_numpy(), lists.flatten().to_numpy()
    expected = np.array([len(labels) for labels in c.label_sets], dtype=np.int64)[integers(c.examples, "labels")]
    example = np.repeat(np.arange(len(c)), n)
    total = np.bincount(example, p, len(c))
    return np.concatenate([example[~(p >= 0)], np.flatnonzero((n != expected) | ~(np.abs(total - 1) < 1e-3))])


def _wrong_targets(c: Columns) -> NDArray[np.int64]:
    """Targets are labels, and no method explains one twice."""
    example = c.example_of_attribution
    method, target = (c.attributions[name].dictionary_encode() for name in ("method", "target"))
    targets = target.dictionary.to_pylist()
    chosen = target.indices.to_numpy().astype(np.int64)
    labels = integers(c.examples, "labels")[example].astype(np.int64)
    pair, place = np.unique(labels * len(targets) + chosen, return_inverse=True)
    known = [targets[i % len(targets)] in c.label_sets[i // len(targets)] for i in pair.tolist()]
    key = (example * len(method.dictionary) + method.indices.to_numpy()) * len(targets) + chosen
    twice = np.ones(len(key), dtype=np.bool_)
    twice[np.unique(key, return_index=True)[1]] = False
    return example[twice | ~np.array(known, dtype=np.bool_)[place]]


def _wrong_scores(c: Columns) -> NDArray[np.int64]:
    """Finite, and not below 0 where they have no sign; so are those of special tokens."""
    if len(c.scores) != begins(c.n_scores)[-1]:
        raise ValueError(f"{len(c.scores)} scores for {begins(c.n_scores)[-1]} positions")
    signed = flags(c.attributions, "signed")
    special = c.attributions["special"].fill_null(0.0).to_numpy()
    wrong = ~np.isfinite(special) | (~signed & (special < 0))
    wrong_score = ~np.isfinite(c.scores) | ((c.scores < 0) & ~np.repeat(signed, c.n_scores))
    wrong[np.repeat(np.arange(len(wrong)), c.n_scores)[wrong_score]] = True
    return c.example_of_attribution[wrong]
