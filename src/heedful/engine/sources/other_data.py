"""Data that a model was not trained on: how they are read for it, and which of its labels theirs are."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from heedful.config import DataOptions
from heedful.data.corpora import locate
from heedful.data.corpora.assemble import spread_places
from heedful.data.corpora.labels import NoMatch, match_labels
from heedful.data.corpora.load import CORPORA
from heedful.data.corpora.user_files import is_unlabelled, read_unlabelled
from heedful.data.formats.columns import SPLIT_COLUMNS
from heedful.data.formats.tables import read_table
from heedful.data.originals import Ledger
from heedful.engine.sources.data import SplitTexts, read_split
from heedful.engine.sources.models import ModelSource
from heedful.errors import Mistake
from heedful.records import Example, Split, TaskType

SHOWN = 8  # labels of a long list that a mistake names
ASKS_FOR_SPLITS = {"split_column", "dev_file", "test_file", "dev_fraction", "test_fraction", "only"}


def read_as(source: ModelSource, dataset: str, options: DataOptions, split: Split) -> DataOptions:
    """How `dataset` is to be read for a model: with its tokenizer, and a single file whole, as the split asked for.

    A file keeps its own splits where it has a column that tells them, or where splits were asked for by an option.
    """
    changes: dict[str, object] = {}
    if source.task == "generation":
        return options.model_copy(update={"task": "generation", "only": options.only or split})
    if options.tokenizer is None:
        changes["tokenizer"] = source.tokenizer
    path = locate.expand(dataset)
    if dataset not in CORPORA and locate.is_file(path) and not ASKS_FOR_SPLITS & options.model_fields_set:
        wanted = [column for column in (options.text_column, options.label_column) if column]
        ledger = Ledger(options.skip_bad)
        table = read_table(path, ledger, options.delimiter, options.header, wanted)
        if not {column.lower() for column in table.columns} & set(SPLIT_COLUMNS):
            changes["only"] = split
    return options.model_copy(update=changes) if changes else options


def read_other(
    dataset: str, options: DataOptions, split: Split, limit: int | None, data_dirs: Sequence[Path]
) -> SplitTexts:
    """`limit` texts of a split of data that may have no labels."""
    path = locate.expand(dataset)
    if options.task == "generation" or dataset in CORPORA or not is_unlabelled(path, options):
        return read_split(dataset, options, split, limit, data_dirs)
    if options.only != split:
        return SplitTexts(0, {}, (), "classification", dataset)
    size, examples, columns = read_unlabelled(path, options, lambda n: spread_places(n, limit).tolist())
    in_pairs = any(example.query is not None for example in examples.values())
    task: TaskType = options.task or ("qa" if in_pairs else "classification")
    return SplitTexts(size, examples, (), task, dataset, columns)


def as_the_model_reads(
    examples: Mapping[int, Example],
    task: str,
    labels: Sequence[str],
    source: ModelSource,
    dataset: str,
    options: DataOptions,
) -> dict[int, Example]:
    """The examples with the numbers that the model gives to their labels.

    Labels are the same when their names are, or when `options` say so. The data may have fewer than the model, and
    texts without any.
    """
    if source.task == "generation":
        from heedful.engine.running.processors import torch_device
        from heedful.models.language.decisions import decisions

        return decisions(source.load(torch_device(None)), examples)
    if source.task == "places":
        from heedful.engine.running.processors import torch_device
        from heedful.models.places.model import surest

        return surest(source.load(torch_device(None)), examples)
    if task == "generation":
        raise Mistake(f"{dataset} is a corpus of prompts for language models, and {source.name} is a classifier.")
    asks, asked = source.task != "classification", task != "classification"
    if asks != asked:
        has, reads = ("a query", "none") if asked else ("no query", "one")
        raise Mistake(f"{dataset} has {has} beside each text, but {source.name} reads {reads}.")
    used = sorted(used_labels(examples))
    if len(source.labels) == 1 and used:  # the answer is a number, and no label could be it
        warnings.warn(
            f"{source.name} answers with a number: what {dataset} says beside its texts is not used.", stacklevel=2
        )
        return {place: replace(example, label=None) for place, example in examples.items()}
    label_map = options.label_map or {}
    try:
        numbers = dict(zip(used, match_labels(source.labels, [labels[n] for n in used], label_map), strict=True))
    except NoMatch as mismatch:
        from heedful.engine.sources.label_fit import say_how_to_map

        how, unsure = say_how_to_map(source, [*examples.values()], labels, label_map)
        said = NoMatch(f"{mismatch} {how}")
        said.unsure = unsure
        raise said from None

    def renumbered(example: Example) -> Example:
        return replace(
            example,
            label=None if example.label is None else numbers[example.label],
            candidates=None if example.candidates is None else tuple(sorted(numbers[c] for c in example.candidates)),
        )

    if all(old == new for old, new in numbers.items()):
        return dict(examples)
    return {place: renumbered(example) for place, example in examples.items()}


def used_labels(examples: Mapping[int, Example]) -> set[int]:
    """Those that stand beside a text, or can be its answer."""
    used = {example.label for example in examples.values() if example.label is not None}
    return used.union(*(example.candidates or () for example in examples.values()))
