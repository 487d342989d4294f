"""`load`: from a name, a path or hf:ID to a `Corpus`; `load_split`: to a few examples of one of its splits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from heedful.config import DataOptions
from heedful.data.corpora import locate
from heedful.data.corpora.assemble import CorpusRows, LimitedSplit, assemble, assemble_contents, assemble_split
from heedful.data.corpora.describe import Content
from heedful.data.corpora.locate import Location
from heedful.data.corpora.recipe import Recipe
from heedful.data.corpora.registry import CORPORA, OTHERS, Entry
from heedful.data.corpora.splits import Subset, files_for_split
from heedful.data.corpora.user_files import (
    folder_files,
    is_mixed,
    not_read,
    open_folder,
    open_table,
    raw_rows,
    recipe_for,
    task_warnings,
)
from heedful.data.formats.columns import choose_columns, lacking
from heedful.data.formats.rows import SPLIT_NAMES, Ledger
from heedful.data.formats.simple import read_simple, split_files
from heedful.data.formats.tables import InputTable, file_format, json_fields
from heedful.data.originals import ORIGINALS
from heedful.data.text.tokenise import form
from heedful.errors import Mistake, one_of
from heedful.records import SPLITS, Corpus, Example, Split, TaskType

__all__ = ["CORPORA", "LimitedSplit", "load", "load_split"]

FOR_FILES = {
    "text_column",
    "label_column",
    "query_column",
    "evidence_column",
    "split_column",
    "dev_file",
    "test_file",
    "only",
    "task",
    "delimiter",
    "header",
    "dev_fraction",
    "test_fraction",
}


def load(
    name_or_path: str | Path, *, data_dirs: Sequence[Path] = (), seed: int = 0, options: DataOptions | None = None
) -> Corpus:
    """The corpus of a known name, of a file or folder, or of a Hugging Face dataset (hf:ID).

    `seed` is the split seed: it draws splits and generates built-in corpora. It belongs to the corpus,
    not to a training run: keep it the same for models that are to be compared.
    """
    options = options or DataOptions()
    corpus = assemble(_open(name_or_path, data_dirs, seed, options), seed)
    if options.evidence_words is None:
        return corpus
    marked = {split: mark_words(some, options.evidence_words) for split, some in corpus.splits.items()}
    return replace(corpus, splits=marked, warnings=(*corpus.warnings, *_nowhere(corpus, options.evidence_words)))


def load_split(
    name_or_path: str | Path,
    split: Split,
    limit: int | None = None,
    *,
    data_dirs: Sequence[Path] = (),
    seed: int = 0,
    options: DataOptions | None = None,
) -> LimitedSplit:
    """`limit` examples of a split at evenly spread places: those that `load` has there, bit for bit, sooner.

    Only they are tokenised; and what else must be known:
    - filtered by length: texts for which the number of pieces between white space leaves a doubt;
    - labels that may be any word of the training texts (bAbI): all training texts;
    - labels that are not listed: nothing is tokenised, but the training rows are read. A run has its labels:
      put them into `options`, and they are not.
    Files of other splits are not read where the split has its own, so what is wrong in them is not told.
    """
    if split not in SPLITS:
        raise one_of("split", split, list(SPLITS))
    if limit is not None and limit < 1:
        raise Mistake(f"at least one text is needed, not {limit}.")
    options = options or DataOptions()
    found = assemble_split(_open(name_or_path, data_dirs, seed, options, split), split, limit, seed)
    if found is None:
        found = assemble_split(_open(name_or_path, data_dirs, seed, options), split, limit, seed)
        assert found is not None
    if options.evidence_words is None:
        return found
    return replace(found, examples=mark_words(found.examples, options.evidence_words))


def load_contents(
    name_or_path: str | Path, *, data_dirs: Sequence[Path] = (), seed: int = 0, options: DataOptions | None = None
) -> dict[Split, list[Content]]:
    """The texts and queries of each split that `load` has there, untokenised: to see which stand twice."""
    return assemble_contents(_open(name_or_path, data_dirs, seed, options or DataOptions()), seed)


def _open(
    name_or_path: str | Path, data_dirs: Sequence[Path], seed: int, options: DataOptions, part: Split | None = None
) -> CorpusRows:
    """The rows of a corpus, or those that its split `part` depends on."""
    subset = Subset(options.subset, options.subset_seed)
    return replace(_open_all(str(name_or_path), data_dirs, seed, options, part), subset=subset)


def _open_all(name: str, data_dirs: Sequence[Path], seed: int, options: DataOptions, part: Split | None) -> CorpusRows:
    if options.task == "generation":
        from heedful.data.prompts.rows import open_prompts

        return open_prompts(name, data_dirs, seed, options)
    if name.startswith("hf:"):
        return open_hf(name.removeprefix("hf:"), options)
    if name in CORPORA:
        _refuse_file_options(name, options)
        return _open_known(name, CORPORA[name], data_dirs, seed, options, part)
    folders = locate.data_dirs(data_dirs)
    path = locate.own_path(name, folders)
    if locate.is_file(path) or file_format(path) is not None:
        return open_table(path, options, part)
    if name and locate.is_dir(path):
        if split_files(path) and not _file_options(options) and not is_mixed(path):
            return _open_other(path.resolve().name, Location(path, "simple"), options, part)
        return open_folder(path, options, part)
    found = locate.find(name, folders) if name else None
    if found is not None:
        _refuse_file_options(name, options)
        return _open_other(name, found, options, part)
    if "/" in name:
        raise Mistake(f"there is no file or folder {name}.")
    if any(locate.is_file(folder / name / "vectors.npz") for folder in folders):
        raise Mistake(f"{name} holds word vectors, not texts: use it with --vectors {name}.")
    raise one_of("corpus", name, sorted({*CORPORA, *locate.others(folders)}))


def _file_options(options: DataOptions) -> list[str]:
    default = DataOptions()
    return [name for name in sorted(FOR_FILES) if getattr(options, name) != getattr(default, name)]


def _refuse_file_options(name: str, options: DataOptions) -> None:
    given = _file_options(options)
    if given:
        option = given[0].replace("_", "-")
        raise Mistake(f"--{option} is for your own files; {name} is a corpus with a known format.")


def _adapt(recipe: Recipe, options: DataOptions) -> Recipe:
    published = options.as_published
    recipe = replace(recipe, tokenizer=options.tokenizer or recipe.tokenizer, vocabulary=published.vocabulary)
    if published.min_words is not None:
        recipe = replace(recipe, lengths=replace(recipe.lengths, above=published.min_words - 1))
    return replace(recipe, labels=options.labels) if options.labels else recipe


def _open_known(
    name: str, entry: Entry, data_dirs: Sequence[Path], seed: int, options: DataOptions, part: Split | None
) -> CorpusRows:
    recipe = _adapt(entry.recipe, options)
    ledger = Ledger(options.skip_bad)
    found = locate.find(name, locate.data_dirs(data_dirs))
    if found is not None and found.form == "simple":
        return _open_simple(name, found.folder, recipe, ledger, part)
    if found is not None:
        folder = found.folder
        if name in ORIGINALS:
            return CorpusRows(name, ORIGINALS[name].read(folder, ledger), recipe, ledger, str(folder), folder)
        assert entry.reader is not None
        return CorpusRows(name, entry.reader(folder, ledger, seed), recipe, ledger, str(folder), folder)
    if entry.built_in and entry.reader is not None:
        rows = entry.reader(None, ledger, seed)
        if not entry.simulates:
            return CorpusRows(name, rows, recipe, ledger, f"built in, seed {seed}")
        source = f"built-in simulator of {name}, seed {seed} (the original was not found)"
        return CorpusRows(f"{name}-simulated", rows, recipe, ledger, source)
    looked = ", ".join(str(folder) for folder in locate.data_dirs(data_dirs))
    raise Mistake(f"{name} was not found in {looked}. To get it: {entry.get}.")


def _open_simple(name: str, folder: Path, recipe: Recipe, ledger: Ledger, part: Split | None) -> CorpusRows:
    files = split_files(folder)
    splits, paths = {split for split, _ in files}, [path for _, path in files]
    others = [path.name for split, path in folder_files(folder) if split not in splits and path not in paths]
    if others:
        raise Mistake(
            f"{folder} has {' and '.join(others)} beside {files[0][1].name}: a named corpus is read from .jsonl files "
            "only; convert the file, or remove it."
        )
    warnings = tuple(not_read(folder, paths))
    if recipe.pooled:
        files = [(None, path) for _, path in files]
    needed = files_for_split(files, recipe, part)
    rows = read_simple(needed, ledger, recipe.text_field, recipe.split_field)
    partial = len(needed) < len(files)
    return CorpusRows(name, rows, recipe, ledger, str(folder), folder, warnings=warnings, partial=partial)


def _open_other(name: str, found: Location, options: DataOptions, part: Split | None) -> CorpusRows:
    """A corpus in the simple form that is known by its folder only: what it is, the fields of its rows tell."""
    keys = {key for _, path in split_files(found.folder) for key in json_fields(path)[0]}
    if {"good", "bad"} <= keys and "label" not in keys:
        raise Mistake(f"{name} is a corpus of prompts for language models: give it as --data of one.")
    if "target" in keys and "label" not in keys:
        raise Mistake(
            f"{name} is a translation or alignment corpus (its rows have a 'target' and no 'label'); "
            "classification, question answering and NLI can be loaded."
        )
    task: TaskType = "nli" if "hypothesis" in keys else "qa" if "question" in keys else "classification"
    other = OTHERS.get(name)
    recipe = Recipe(task=task, split_field="split" if "split" in keys else None)
    if other is not None:
        recipe = Recipe(task=task, labels=other.labels, tokenizer=other.tokenizer, pooled=other.pooled)
    recipe = _adapt(recipe, options)
    return _open_simple(name, found.folder, recipe, Ledger(options.skip_bad), part)


# Words that are evidence wherever they stand (`DataOptions.evidence_words`).


def _nowhere(corpus: Corpus, words: Sequence[str]) -> tuple[str, ...]:
    """A sentence where some of these words stand in no text."""
    forms = {one for examples in corpus.splits.values() for example in examples for one in example.passage.forms}
    gone = [word for word in words if form(word) not in forms]
    named = ", ".join(map(repr, gone[:8]))
    return (f"these words are to be evidence and stand in no text: {named}",) if gone else ()


def mark_words(examples: Iterable[Example], words: Sequence[str]) -> tuple[Example, ...]:
    """The evidence of each are the places of these words, whatever it was before."""
    forms = frozenset(map(form, words))
    return tuple(
        replace(one, evidence=tuple(i for i, word in enumerate(one.passage.forms) if word in forms)) for one in examples
    )


# Datasets of the Hugging Face library: `hf:ID`, `hf:ID:CONFIG`, or the folder of a saved dataset.


def open_hf(spec: str, options: DataOptions) -> CorpusRows:
    """`ID`, `ID:CONFIG`, or the folder of a dataset saved with `save_to_disk`."""
    try:
        import datasets
    except ImportError:
        raise Mistake("hf: needs the `datasets` library; install it with pip install 'heedful[hf]'.") from None
    if not locate.fetches() and not locate.exists(Path(spec).expanduser()):
        raise Mistake(f"hf:{spec} is on the hub, but this command does not access the network.")
    splits = _hf_splits(datasets, spec)
    ledger = Ledger(options.skip_bad)
    sources: list[tuple[Split | None, InputTable]] = []
    for name, data in splits.items():
        split = options.only or (SPLIT_NAMES.get(name) if len(splits) > 1 else None)
        if split is None and len(splits) > 1:
            ledger.left_out[f"rows of the split {name!r}"] += len(data)
            continue
        table = InputTable(Path(f"{spec}/{name}"), tuple(data.column_names), enumerate(data, start=1))
        sources.append((split, table))
    if not sources:
        raise Mistake(f"hf:{spec} has the splits {', '.join(splits)}, and none of them is train, dev or test.")
    every = [table for _, table in sources]
    columns = choose_columns(every, options)
    recipe = recipe_for(columns, options)
    feature = next(iter(splits.values())).features[columns.label]
    names: list[str] | None = getattr(feature, "names", None)  # of a ClassLabel
    if names and not options.labels:
        recipe = replace(recipe, labels=tuple(names))
    if "test" not in [split for split, _ in sources]:
        sources = [(None if split == "train" else split, table) for split, table in sources]
    return CorpusRows(
        re.sub(r"\W+", "-", Path(spec).name).strip("-") or "hf",
        chain.from_iterable(raw_rows(table, columns, split, ledger) for split, table in sources),
        recipe,
        ledger,
        f"hf:{spec}",
        label_column=columns.label,
        warnings=(*task_warnings(columns, options), *lacking(every, columns)),
        columns=str(columns),
    )


def _hf_splits(datasets: Any, spec: str) -> Mapping[str, Any]:
    path = Path(spec).expanduser()
    try:
        if (path / "dataset_dict.json").exists() or (path / "state.json").exists():
            data = datasets.load_from_disk(str(path))
        else:
            name, _, config = (spec, "", "") if path.exists() else spec.partition(":")
            data = datasets.load_dataset(name, config or None)
    except Exception as error:  # the library raises its own, the hub's and the network's errors
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise Mistake(f"hf:{spec} could not be loaded ({reason}).") from None
    return data if isinstance(data, Mapping) else {"all": data}
