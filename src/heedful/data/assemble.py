"""Rows to examples: check, tokenise, filter, number the labels, draw the splits that are missing.

All draws use the split seed, which is part of the corpus: models trained with different seeds see the
same data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.data.labels import label_numbers, sorted_labels
from heedful.data.readers.rows import Ledger, Raw, Spans
from heedful.data.recipe import Lengths, Recipe
from heedful.data.stratify import draw
from heedful.data.tokenise import Tokenizer, tokenise_all, tokenizer
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus, Example, Split, Words

Group = Split | None  # None: rows that belong to no split yet


@dataclass(frozen=True, slots=True)
class TokenisedRow:
    """A row with its words."""

    row: Raw
    passage: Words
    query: Words | None


def assemble(
    name: str,
    rows: Iterable[Raw],
    recipe: Recipe,
    ledger: Ledger,
    *,
    seed: int,
    source: str,
    folder: Path | None = None,
) -> Corpus:
    """`folder` is where the files named in the ids are, for messages; `source` is told with the corpus."""
    notes: list[str] = []
    groups = _sampled(_grouped(rows, ledger, folder), recipe, seed, notes)
    words = tokenizer(recipe.tokenizer)
    read = {group: _read(raw, words, recipe, ledger, folder) for group, raw in groups.items()}
    read = {group: _right_length(kept, recipe.lengths, ledger) for group, kept in read.items()}
    if not any(read.values()):
        raise Mistake(_nothing_left(source, ledger))
    labels = recipe.labels or _found_labels(read, recipe)
    numbers = label_numbers(labels)
    read = {group: _known_labels(kept, numbers, labels, ledger, folder) for group, kept in read.items()}
    splits = _complete(read, recipe, seed, notes)
    _check_train(splits, source)
    left_out = [f"{count} {what}" for what, count in sorted(ledger.left_out.items())]
    notes += [f"left out: {', '.join(left_out)}"] if left_out else []
    return Corpus(
        name=name,
        task=recipe.task,
        labels=labels,
        splits={s: tuple(_example(r, numbers) for r in splits[s]) for s in SPLITS if splits.get(s)},
        tokenizer=recipe.tokenizer,
        skipped=tuple(ledger.skipped),
        source="; ".join([source, *notes]),
    )


def _grouped(rows: Iterable[Raw], ledger: Ledger, folder: Path | None) -> dict[Group, list[Raw]]:
    groups: dict[Group, list[Raw]] = {}
    for row in rows:
        if not row.text or row.text.isspace():
            ledger.bad_row(row, folder, "the text is empty")
        elif not row.label.strip():
            ledger.bad_row(row, folder, "the label is empty")
        elif row.query is not None and not row.query.strip():
            ledger.bad_row(row, folder, "the question or hypothesis is empty")
        else:
            groups.setdefault(row.split, []).append(row)
    return groups


def _sampled(
    groups: dict[Group, list[Raw]], recipe: Recipe, seed: int, notes: list[str]
) -> dict[Group, list[Raw]]:
    """The part of the test split that the corpus uses; drawn before tokenisation, which costs most."""
    test = groups.get("test")
    if test and recipe.test_sample < 1:
        rng = np.random.default_rng((seed, 1))
        chosen = rng.choice(len(test), size=round(recipe.test_sample * len(test)), replace=False)
        groups = {**groups, "test": [test[i] for i in np.sort(chosen)]}
        notes.append(f"{recipe.test_sample:.0%} of test drawn with split seed {seed}")
    return groups


def _read(
    rows: Sequence[Raw], split_words: Tokenizer, recipe: Recipe, ledger: Ledger, folder: Path | None
) -> list[TokenisedRow]:
    """Tokenise all rows of a split together, which is faster than one by one."""
    asks = any(row.query is not None for row in rows)
    fit = [row for row in rows if _can_be_read(row, recipe, asks, ledger, folder)]
    blank = recipe.blank
    texts = (row.text.replace(blank, " " * len(blank)) if blank else row.text for row in fit)
    passages: Iterable[Words] = tokenise_all(split_words, texts)
    queries: Iterable[Words | None] = [None] * len(fit)
    if asks:
        queries = tokenise_all(split_words, (row.query or "" for row in fit))
    kept = []
    for row, passage, query in zip(fit, passages, queries, strict=True):
        if len(passage) == 0 or (query is not None and len(query) == 0):
            ledger.bad_row(row, folder, "the text has no words")
        elif recipe.keep_entities:
            kept.append(TokenisedRow(row, with_entities(passage), query and with_entities(query)))
        else:
            kept.append(TokenisedRow(row, passage, query))
    return kept


def _can_be_read(row: Raw, recipe: Recipe, asks: bool, ledger: Ledger, folder: Path | None) -> bool:
    below = recipe.lengths.below
    # A tokenizer only splits further what white space has split: no need to run it on these.
    if below is not None and len(row.text.split()) >= below:
        ledger.left_out["too long"] += 1
        return False
    if asks and row.query is None:
        ledger.bad_row(row, folder, "there is no question or hypothesis, as other rows have")
        return False
    try:
        (row.text + (row.query or "")).encode()
    except UnicodeEncodeError:  # JSON can hold it as an escape: "\\ud800"
        ledger.bad_row(row, folder, "half of a surrogate pair is in the text, which is no character")
        return False
    return True


def with_entities(words: Words) -> Words:
    """@entity12 has a digit, but it is a name and must not become "qqq"."""
    forms = tuple(
        words.surface(i) if words.surface(i).startswith("@entity") else form
        for i, form in enumerate(words.forms)
    )
    return replace(words, forms=forms)


def _right_length(kept: list[TokenisedRow], lengths: Lengths, ledger: Ledger) -> list[TokenisedRow]:
    longest = max((len(r.passage) for r in kept), default=0) if lengths.below_longest else None
    limits = [limit for limit in (lengths.below, longest) if limit is not None]
    result = []
    for r in kept:
        if len(r.passage) <= lengths.above:
            ledger.left_out["too short"] += 1
        elif any(len(r.passage) >= limit for limit in limits):
            ledger.left_out["too long"] += 1
        else:
            result.append(r)
    return result


def _nothing_left(source: str, ledger: Ledger) -> str:
    if ledger.skipped:
        return (
            f"{source}: every row was skipped ({len(ledger.skipped)}), the first because {ledger.skipped[0]}"
        )
    left_out = ", ".join(f"{count} {what}" for what, count in sorted(ledger.left_out.items()))
    return f"{source}: there are no rows" + (f" left ({left_out})." if left_out else ".")


def _found_labels(read: Mapping[Group, list[TokenisedRow]], recipe: Recipe) -> tuple[str, ...]:
    """From what a model can learn: the training rows, or those from which they will be drawn."""
    learnt = [r for group in ("train", None) for r in read.get(group, [])] or [
        r for kept in read.values() for r in kept
    ]
    if recipe.labels_from == "words":
        forms = {form for r in learnt for form in (*r.passage.forms, *(r.query.forms if r.query else ()))}
        answers = {r.row.label for r in learnt}  # white space leaves "hallway." as one word
        return tuple(sorted(answers | {form for form in forms if form.isalnum()}))
    if recipe.labels_from == "entities":
        everyone = {name for kept in read.values() for r in kept for name in r.row.candidates or ()}
        return sorted_labels(everyone)
    return sorted_labels({r.row.label for r in learnt})


def _known_labels(
    kept: list[TokenisedRow],
    numbers: Mapping[str, int],
    labels: tuple[str, ...],
    ledger: Ledger,
    folder: Path | None,
) -> list[TokenisedRow]:
    result = []
    for r in kept:
        unknown = [label for label in (r.row.label, *(r.row.candidates or ())) if label not in numbers]
        if unknown:
            shown = ", ".join(labels[:8]) + (", ..." if len(labels) > 8 else "")
            ledger.bad_row(r.row, folder, f"the label {unknown[0]!r} is not one of {shown}")
        else:
            result.append(r)
    return result


def _complete(
    read: Mapping[Group, list[TokenisedRow]], recipe: Recipe, seed: int, notes: list[str]
) -> dict[Split, list[TokenisedRow]]:
    """Rows without a split are for training; a missing test and dev split are drawn from them."""
    splits: dict[Split, list[TokenisedRow]] = {split: list(read.get(split, [])) for split in SPLITS}
    pool = read.get(None, [])
    splits["train"] += pool
    plan: tuple[tuple[int, Split, float], ...] = (
        (2, "test", recipe.test_fraction),
        (3, "dev", recipe.dev_fraction),
    )
    for stream, split, fraction in plan:
        missing = not splits[split] and splits["train"] and fraction > 0
        if missing and (split == "dev" or pool):
            train = splits["train"]
            labels = [r.row.label for r in train]
            drawn, left = draw(labels, fraction, np.random.default_rng((seed, stream)))
            splits["train"], splits[split] = [train[i] for i in left], [train[i] for i in drawn]
            notes.append(f"{split} is {fraction:.0%} of train, drawn with split seed {seed}")
    return splits


def _check_train(splits: Mapping[Split, list[TokenisedRow]], source: str) -> None:
    found = {r.row.label for r in splits["train"]}
    if len(found) == 1:
        only = next(iter(found))
        raise Mistake(f"{source}: all training rows have the label {only!r}; two labels at least are needed.")


def _example(r: TokenisedRow, numbers: Mapping[str, int]) -> Example:
    row = r.row
    return Example(
        id=row.id,
        passage=r.passage,
        label=numbers[row.label],
        query=r.query,
        evidence=None if row.evidence is None else positions(r.passage.offsets, row.evidence),
        candidates=None if row.candidates is None else tuple(sorted({numbers[c] for c in row.candidates})),
    )


def positions(offsets: NDArray[np.int32], spans: Spans) -> tuple[int, ...]:
    """The words that share at least one character with one of the spans."""
    inside = np.zeros(len(offsets), dtype=bool)
    for start, end in spans:
        inside |= (offsets[:, 0] < end) & (offsets[:, 1] > start)
    return tuple(np.flatnonzero(inside).tolist())
