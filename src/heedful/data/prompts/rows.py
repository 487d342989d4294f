"""Rows of prompts: from one's own tables, from corpora of minimal pairs by name, or generated.

    prompt    the text that the model goes on from
    say       what it says; without it what the model would say itself
    instead   what it could have said; without it the model's next best
    evidence  what in the prompt decides that, in any form of formats/evidence.py; optional

Corpora call these by names of their own (`good` and `bad` in BLiMP, `correct` and `wrong` in agreement sentences, whose
prompt ends before the verb). A row is a question with two answers, and `say` is the right one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.config import DataOptions
from heedful.data.corpora import locate
from heedful.data.corpora.assemble import CorpusRows
from heedful.data.corpora.recipe import Recipe
from heedful.data.corpora.registry import CORPORA
from heedful.data.formats.agreement import before_verb
from heedful.data.formats.evidence import evidence_spans
from heedful.data.formats.rows import SPLIT_NAMES, Ledger, Raw, Spans, json_lines, word_spans
from heedful.data.formats.simple import split_files
from heedful.data.formats.tables import InputTable, file_format, json_fields, read_table
from heedful.data.prompts import LABELS, SAID
from heedful.data.translation.pairs import decisions_of
from heedful.data.translation.read import columns_of, is_pairs, read_pairs
from heedful.errors import Mistake, one_of
from heedful.records import Saying, Split

RECIPE = Recipe(task="generation", labels=LABELS, tokenizer="whitespace", dev_fraction=0.0, test_fraction=0.0)
PROMPTS, SAYS, INSTEADS = ("prompt", "text"), ("say", "good", "correct"), ("instead", "bad", "wrong")
MARKS = "evidence"


def open_prompts(name: str, data_dirs: Sequence[Path], seed: int, options: DataOptions) -> CorpusRows:
    """The rows of a corpus by name, of a table of one's own, or of generated prompts."""
    ledger, split = Ledger(options.skip_bad), options.only or "test"
    if name in CORPORA and CORPORA[name].task == "generation":
        reader = CORPORA[name].reader
        assert reader is not None
        return CorpusRows(name, reader(None, ledger, seed), RECIPE, ledger, f"built in, seed {seed}")
    folders = locate.data_dirs(data_dirs)
    path = locate.own_path(name, folders)
    if locate.is_file(path) or file_format(path) is not None:
        return _of_table(path, options, ledger, split, data_dirs)
    files = split_files(path) if name and locate.is_dir(path) else []
    found = None if files or not name else locate.find(name, folders)
    if found is not None and found.form == "simple":
        path, files = found.folder, split_files(found.folder)
    if not files:
        raise one_of("corpus of prompts", name, sorted(prompts_here(folders)))
    if is_pairs(files):
        rows = decisions_of(read_pairs(name, data_dirs, seed, options, ledger), split)
        return CorpusRows(path.resolve().name, rows, RECIPE, ledger, str(path), path)
    keys = {key for _, file in files for key in json_fields(file)[0]}
    if not any(say in keys for say in SAYS):
        raise Mistake(
            f"{name} is data for a classifier: its rows do not say what comes after a prompt ({' or '.join(SAYS)}), "
            "which is what a language model is explained with."
        )
    return CorpusRows(path.resolve().name, _of_corpus(files, ledger, split), RECIPE, ledger, str(path), path)


def prompts_here(folders: Sequence[Path]) -> Iterator[str]:
    """The names of corpora of prompts that are there."""
    yield from (name for name in CORPORA if CORPORA[name].task == "generation")
    for name in locate.others(folders):
        found = locate.find(name, folders)
        if found is not None and any(say in _keys(found.folder) for say in SAYS):
            yield name


def _keys(folder: Path) -> set[str]:
    """Of the first row: enough to tell a corpus of prompts."""
    for _, path in split_files(folder):
        for _, row in json_lines(path, Ledger(skip_bad=True)):
            return set(row)
    return set()


def _of_corpus(files: Sequence[tuple[Split | None, Path]], ledger: Ledger, usual: Split) -> Iterator[Raw]:
    for split, path in files:
        for line, row in json_lines(path, ledger):
            try:
                prompt, evidence = _prompt_of(row)
            except (KeyError, TypeError, ValueError, IndexError) as error:
                ledger.bad(path, line, f"its prompt or its evidence cannot be read ({error})")
                continue
            yield from _raw(f"{path.name}:{line}", path, line, prompt, row, evidence, split or usual, ledger)


def _prompt_of(row: Mapping[str, Any]) -> tuple[Any, Spans | None]:
    """Evidence of corpora is of the words of `text.split(" ")`."""
    if "verb_index" in row:
        row = before_verb(row)
    prompt, marks = _first(row, PROMPTS), row.get("evidence_tokens", row.get(MARKS))
    if marks is None:
        return prompt, None
    words = word_spans(prompt, " ")
    return prompt, tuple(words[place] for place in marks)


def _of_table(path: Path, options: DataOptions, ledger: Ledger, split: Split, data_dirs: Sequence[Path]) -> CorpusRows:
    table = read_table(path, ledger, options.delimiter, options.header)
    if not table.columns:
        raise Mistake(f"{path}: there are no rows.")
    if "prompt" not in table.columns and (columns := columns_of(table, options)) is not None:
        rows = decisions_of(read_pairs(str(path), data_dirs, 0, options, ledger), split)
        told = f"source {columns[0]!r}, target {columns[1]!r}"
        return CorpusRows(path.name.split(".")[0], rows, RECIPE, ledger, str(path), path.parent, columns=told)
    prompt = options.text_column or PROMPTS[0]
    if prompt not in table.columns:
        shown = ", ".join(map(repr, table.columns))
        raise Mistake(
            f"{path} has no column {prompt!r}: a language model needs prompts, in a column "
            f"'prompt' or one that --text-column names (its columns are {shown})."
        )
    marks = options.evidence_column or (MARKS if MARKS in table.columns else None)
    if marks is not None and marks not in table.columns:
        raise Mistake(f"{path} has no evidence column {marks!r}; its columns are {', '.join(table.columns)}.")
    named = {
        "prompt": prompt,
        "say": next((name for name in SAYS if name in table.columns), None),
        "instead": next((name for name in INSTEADS if name in table.columns), None),
        "evidence": marks,
        "split": options.split_column,
    }
    told = ", ".join(f"{what} {name!r}" for what, name in named.items() if name is not None)
    rows = _rows_of_table(table, prompt, marks, options, ledger, split)
    return CorpusRows(path.name.split(".")[0], rows, RECIPE, ledger, str(path), path.parent, columns=told)


def _rows_of_table(
    table: InputTable, prompt: str, marks: str | None, options: DataOptions, ledger: Ledger, usual: Split
) -> Iterator[Raw]:
    for line, row in table.rows:
        text, split = row.get(prompt), usual
        if options.split_column is not None:
            name = str(row.get(options.split_column, "")).strip().lower()
            if name not in SPLIT_NAMES:
                ledger.bad(table.path, line, f"the split {name[:40]!r} is not train, dev or test")
                continue
            split = SPLIT_NAMES[name]
        try:
            evidence = None if marks is None or not isinstance(text, str) else evidence_spans(row.get(marks), text)
        except ValueError as error:
            ledger.bad(table.path, line, f"the evidence in column {marks!r} cannot be read: {error}")
            continue
        yield from _raw(f"{table.path.name}:{line}", table.path, line, text, row, evidence, split, ledger)


def _raw(
    id: str,
    path: Path,
    line: int,
    prompt: object,
    row: Mapping[str, Any],
    evidence: Spans | None,
    split: Split,
    ledger: Ledger,
) -> Iterator[Raw]:
    """One row, or a note in the ledger of what is wrong with it."""
    say, instead = (_first(row, names) for names in (SAYS, INSTEADS))
    if not isinstance(prompt, str) or not prompt.strip():
        ledger.bad(path, line, "the prompt is empty, or is not a text")
        return
    for what, value in (("say", say), ("instead", instead)):
        if value is not None and not isinstance(value, str):
            ledger.bad(path, line, f"what is to be said ({what}) is not a text but {type(value).__name__}")
            return
    said = {what: value if value and value.strip() else None for what, value in (("say", say), ("instead", instead))}
    yield Raw(id, prompt, SAID, split, evidence=evidence, saying=Saying(**said))


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)
