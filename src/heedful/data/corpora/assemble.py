"""Rows to examples: check, filter, number the labels, draw the splits that are missing, tokenise.

`assemble` makes a whole corpus, `assemble_split` some examples of one split: the same rows pass the same steps,
but only the texts that are asked for are tokenised, and those whose length or words must be known on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpora.describe import Content, content_of, find_warnings
from heedful.data.corpora.labels import (
    LabelNumbers,
    Spelling,
    find_spellings,
    label_trouble,
    name_classes,
    refuse_case_variants,
    refuse_look_alikes,
    show_labels,
    sort_labels,
)
from heedful.data.corpora.recipe import Recipe
from heedful.data.corpora.row_words import RowTokenizer, RowWords, keep_right_lengths
from heedful.data.corpora.splits import ALL_ROWS, Group, Subset, complete_splits, sample_test
from heedful.data.formats.rows import Ledger, Raw, Spans
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus, Example, Split, TaskType, TokenizerName, Words


@dataclass(frozen=True, slots=True)
class CorpusRows:
    """What a source gives: rows, and what is to be made of them.

    `folder` is where the files named in the ids are, for messages; `source` is told with the corpus.
    `label_column` is named where one's own file may have another column for the label.
    """

    name: str
    rows: Iterable[Raw]
    recipe: Recipe
    ledger: Ledger
    source: str
    folder: Path | None = None
    label_column: str | None = None
    warnings: tuple[str, ...] = ()
    subset: Subset = ALL_ROWS
    partial: bool = False  # rows of other splits were not read, because they should not matter
    columns: str = ""  # that are read of one's own files, in words: they are told with the corpus


@dataclass(frozen=True, slots=True)
class LimitedSplit:
    """Some examples of a split: `examples[i]` is what stands at `places[i]` of its `size` examples."""

    name: str
    task: TaskType
    labels: tuple[str, ...]
    tokenizer: TokenizerName
    split: Split
    size: int
    places: tuple[int, ...]
    examples: tuple[Example, ...]
    skipped: tuple[str, ...]
    source: str  # where it came from, in words, and what was drawn
    columns: str | None = None  # which of one's own file were read, in words


@dataclass(slots=True)
class Selected:
    """Rows that are in a corpus, by split; most of them without words when they were not needed."""

    splits: dict[Split, list[RowWords]]
    numbers: LabelNumbers
    words: RowTokenizer
    notes: list[str] = field(default_factory=list)
    learnt: int = 0  # rows that the labels could be found in
    only_words: list[Words] = field(default_factory=list)  # of training rows that were left out for their length


def assemble(given: CorpusRows, seed: int) -> Corpus:
    """All examples of all splits, with what is doubtful about them as warnings."""
    selected = _select(given, seed, whole=True)
    _check_labels(selected, given)
    left_out = [f"{count} {what}" for what, count in sorted(given.ledger.left_out.items())]
    notes = selected.notes + ([f"left out: {', '.join(left_out)}"] if left_out else [])
    splits = selected.splits
    corpus = Corpus(
        name=given.name,
        task=given.recipe.task,
        labels=selected.numbers.names,
        splits={s: tuple(_example(r, selected.numbers) for r in splits[s]) for s in SPLITS if splits[s]},
        tokenizer=given.recipe.tokenizer,
        skipped=tuple(given.ledger.skipped),
        source="; ".join([given.source, *notes]),
        only_words=tuple(selected.only_words),
    )
    spellings = _spellings(r for rows in splits.values() for r in rows)
    return replace(corpus, warnings=(*given.warnings, *find_warnings(corpus, given.recipe, spellings)))


def assemble_split(given: CorpusRows, split: Split, limit: int | None, seed: int) -> LimitedSplit | None:
    """`limit` examples at evenly spread places; None where `partial` rows cannot tell, and all are needed."""
    selected = _select(given, seed, whole=False)
    rows = selected.splits[split]
    if given.partial and (not rows or (given.recipe.labels is None and not selected.learnt)):
        return None
    places = spread_places(len(rows), limit).tolist()
    wanted = [rows[i] for i in places]
    selected.words.tokenise(wanted)
    return LimitedSplit(
        name=given.name,
        task=given.recipe.task,
        labels=selected.numbers.names,
        tokenizer=given.recipe.tokenizer,
        split=split,
        size=len(rows),
        places=tuple(places),
        examples=tuple(_example(r, selected.numbers) for r in wanted),
        skipped=tuple(given.ledger.skipped),
        source="; ".join([given.source, *selected.notes]),
        columns=given.columns,
    )


def assemble_contents(given: CorpusRows, seed: int) -> dict[Split, list[Content]]:
    """The texts of each split as their rows have them; hardly any is tokenised."""
    splits = _select(given, seed, whole=False).splits
    return {split: [content_of(r.row.text, _beside(r.row)) for r in rows] for split, rows in splits.items() if rows}


def _beside(row: Raw) -> str | None:
    """What makes a question of a text: its query, or how much of a text has been said."""
    if row.saying is not None and row.saying.after is not None:
        return f"{row.saying.after} {row.saying.say}"
    return row.query


def spread_places(size: int, limit: int | None) -> NDArray[np.int64]:
    """All places of a split, or `limit` evenly spread: corpora are often sorted by label."""
    n = min(limit or size, size)
    return np.arange(n, dtype=np.int64) * size // max(n, 1)


def _select(given: CorpusRows, seed: int, *, whole: bool) -> Selected:
    """The rows of each split. `whole`: all are tokenised, at once and early, which is faster where all are wanted."""
    recipe, ledger = given.recipe, given.ledger
    notes = [f"columns: {given.columns}"] if given.columns else []
    words = RowTokenizer(recipe)
    groups = given.subset.draw(_group(given), lambda row: row.label, notes)
    groups = sample_test(groups, recipe, seed, notes)
    read = {group: _readable(rows, words, given) for group, rows in groups.items()}
    if whole:
        for rows in read.values():
            words.tokenise(rows)
    before = read
    read = {group: keep_right_lengths(rows, recipe.lengths, words, ledger) for group, rows in read.items()}
    only_words = _left_out(before, read) if whole and recipe.vocabulary == "all" else []
    _refuse_nothing(read, given)
    learnt = [r for group in ("train", None) for r in read.get(group, [])]
    names = recipe.labels or _find_labels(read, learnt, words, given)
    numbers = LabelNumbers(names, listed=recipe.labels is not None)
    read = {group: _with_labels(rows, numbers, given) for group, rows in read.items()}
    _refuse_nothing(read, given)
    spelt: dict[int | None, str] = {}  # draws know a class by its most frequent spelling
    for spelling in sorted(_spellings(r for rows in read.values() for r in rows), key=lambda one: one.rows):
        spelt[numbers.find(spelling.label)] = spelling.label
    splits = complete_splits(read, lambda r: spelt[numbers.find(r.row.label)], recipe, seed, notes)
    return Selected(splits, numbers, words, notes, len(learnt), only_words)


def _left_out(before: Mapping[Group, list[RowWords]], kept: Mapping[Group, list[RowWords]]) -> list[Words]:
    """The words of training rows that are not kept."""
    stay = {id(r) for rows in kept.values() for r in rows}
    gone = [r for group in ("train", None) for r in before.get(group, []) if id(r) not in stay]
    return [text for r in gone for text in (r.passage, r.query) if text is not None]


def _spellings(rows: Iterable[RowWords]) -> list[Spelling]:
    return find_spellings((r.row.label, r.row.id) for r in rows)


def _group(given: CorpusRows) -> dict[Group, list[Raw]]:
    """By split, without the rows that lack something."""
    groups: dict[Group, list[Raw]] = {}
    troubles: dict[str, str | None] = dict.fromkeys(given.recipe.labels or ())
    for row in given.rows:
        trouble = _row_trouble(row)
        if trouble is None:
            if row.label not in troubles:
                troubles[row.label] = label_trouble(row.label)
            trouble = troubles[row.label]
        if trouble is None:
            groups.setdefault(row.split, []).append(row)
        else:
            given.ledger.bad_row(row, given.folder, trouble)
    return groups


def _row_trouble(row: Raw) -> str | None:
    values: dict[str, Any] = {"text": row.text, "label": row.label, "question or hypothesis": row.query or ""}
    for what, value in values.items():
        if not isinstance(value, str):  # a reader of another package may give anything
            return f"the {what} is not a string but {type(value).__name__}"
    if not row.text or row.text.isspace():
        return "the text is empty"
    if row.query is not None and not row.query.strip():
        return "the question or hypothesis is empty"
    return None


def _readable(rows: Sequence[Raw], words: RowTokenizer, given: CorpusRows) -> list[RowWords]:
    """Those that have characters and words, and a query if others have one; not those that are surely too long."""
    asks = any(row.query is not None for row in rows)
    recipe, ledger = given.recipe, given.ledger
    below = recipe.lengths.below
    kept = []
    for row in rows:
        # A tokenizer only splits further what white space has split: no need to run it on these.
        if recipe.vocabulary == "kept" and below is not None and len(words.text(row).split()) >= below:
            ledger.left_out["too long"] += 1
        elif asks and row.query is None:
            ledger.bad_row(row, given.folder, "there is no question or hypothesis, as other rows have")
        elif _has_half_character(row.text) or _has_half_character(row.query or ""):
            ledger.bad_row(row, given.folder, "half of a surrogate pair is in the text, which is not a character")
        elif not words.has_words(words.text(row)) or (row.query is not None and not words.has_words(row.query)):
            ledger.bad_row(row, given.folder, "the text has no words")
        else:
            kept.append(RowWords(row))
    return kept


def _has_half_character(text: str) -> bool:
    """JSON can hold half of a surrogate pair as an escape: "\\\\ud800"."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _refuse_nothing(read: Mapping[Group, list[RowWords]], given: CorpusRows) -> None:
    skipped, left_out = given.ledger.skipped, given.ledger.left_out
    if any(read.values()) or given.partial:
        return
    if skipped:
        raise Mistake(f"{given.source}: every row was skipped ({len(skipped)}), the first because {skipped[0]}")
    counts = ", ".join(f"{count} {what}" for what, count in sorted(left_out.items()))
    raise Mistake(f"{given.source}: there are no rows" + (f" left ({counts})." if counts else "."))


def _find_labels(
    read: Mapping[Group, list[RowWords]], learnt: list[RowWords], words: RowTokenizer, given: CorpusRows
) -> tuple[str, ...]:
    """From what a model can learn: the training rows, or those from which they will be drawn."""
    everyone = [r for rows in read.values() for r in rows]
    learnt = learnt or everyone
    if given.recipe.labels_from == "words":
        words.tokenise(learnt)
        forms = {form for r in learnt for form in (*r.words().forms, *(r.query.forms if r.query else ()))}
        answers = {r.row.label for r in learnt}  # white space leaves "hallway." as one word
        return tuple(sorted(answers | {form for form in forms if form.isalnum()}))
    if given.recipe.labels_from == "entities":
        return sort_labels({name for r in everyone for name in r.row.candidates or ()})
    refuse_case_variants(_spellings(everyone), given.source)
    refuse_look_alikes(_spellings(everyone), given.source)
    return sort_labels(set(name_classes(_spellings(learnt)).values()))


def _with_labels(rows: list[RowWords], numbers: LabelNumbers, given: CorpusRows) -> list[RowWords]:
    kept = []
    for r in rows:
        unknown = [c for c in (r.row.label, *(r.row.candidates or ())) if numbers.find(c) is None]
        if unknown:
            shown = show_labels(numbers.names)
            given.ledger.bad_row(r.row, given.folder, f"the label {unknown[0]!r} is not one of {shown}")
        else:
            kept.append(r)
    return kept


def _check_labels(selected: Selected, given: CorpusRows) -> None:
    """One label cannot be learnt; a column with almost as many values as rows was hardly meant as the label."""
    found = {selected.numbers.find(r.row.label): r.row.label for r in selected.splits["train"]}
    if len(found) == 1:
        only = next(iter(found.values()))
        raise Mistake(f"{given.source}: all training rows have the label {only!r}; at least two labels are needed.")
    rows, labels = sum(map(len, selected.splits.values())), len(selected.numbers.names)
    if given.label_column is not None and given.recipe.task != "qa" and labels > max(20, rows // 2):
        raise Mistake(
            f"{given.source}: column {given.label_column!r} has {labels} different values in {rows} rows, "
            "so it is hardly the label; say which is with --label-column."
        )


def _example(r: RowWords, numbers: LabelNumbers) -> Example:
    row, passage = r.row, r.words()
    candidates = None if row.candidates is None else {numbers.find(c) for c in row.candidates}
    return Example(
        id=row.id,
        passage=passage,
        label=numbers.find(row.label),
        query=r.query,
        evidence=None if row.evidence is None else positions(passage.offsets, row.evidence),
        candidates=None if candidates is None else tuple(sorted(c for c in candidates if c is not None)),
        saying=row.saying,
        marks=tuple((name, positions(passage.offsets, spans)) for name, spans in row.marks),
    )


def positions(offsets: NDArray[np.int32], spans: Spans) -> tuple[int, ...]:
    """The words that share at least one character with one of the spans."""
    inside = np.zeros(len(offsets), dtype=bool)
    for start, end in spans:
        inside |= (offsets[:, 0] < end) & (offsets[:, 1] > start)
    return tuple(np.flatnonzero(inside).tolist())
