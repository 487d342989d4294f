"""`load`: from a name, a path or hf:ID to a `Corpus`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from heedful.config import DataOptions
from heedful.data import locate
from heedful.data.assemble import assemble
from heedful.data.generated import generated
from heedful.data.huggingface import load_hf
from heedful.data.locate import Location
from heedful.data.readers import ORIGINALS, Ledger
from heedful.data.readers.lines import json_lines
from heedful.data.readers.simple import read_simple, split_files
from heedful.data.readers.tables import file_format
from heedful.data.recipe import Recipe
from heedful.data.registry import CORPORA, OTHERS, Entry
from heedful.data.user_files import load_folder, load_table
from heedful.errors import Mistake, one_of
from heedful.records import Corpus, TaskType

__all__ = ["CORPORA", "load"]

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
    name_or_path: str | Path,
    *,
    data_dirs: Sequence[Path] = (),
    seed: int = 0,
    options: DataOptions | None = None,
) -> Corpus:
    """The corpus of a known name, of a file or folder, or of a Hugging Face dataset (hf:ID).

    `seed` is the split seed: it draws splits and generates built-in corpora. It belongs to the corpus,
    not to a training run: keep it the same for models that are to be compared.
    """
    options = options or DataOptions()
    name = str(name_or_path)
    if name.startswith("hf:"):
        return load_hf(name.removeprefix("hf:"), options, seed)
    if name in CORPORA:
        _refuse_file_options(name, options)
        return _known(name, CORPORA[name], data_dirs, seed, options)
    path = Path(name).expanduser()
    if path.is_file() or file_format(path) is not None:
        return load_table(path, options, seed)
    folders = locate.data_dirs(data_dirs)
    if path.is_dir():
        if split_files(path) and not _file_options(options):
            return _other(path.name, Location(path, "simple"), options, seed)
        return load_folder(path, options, seed)
    found = locate.find(name, folders)
    if found is not None:
        _refuse_file_options(name, options)
        return _other(name, found, options, seed)
    if "/" in name:
        raise Mistake(f"there is no file or folder {name}.")
    if any((folder / name / "vectors.npz").exists() for folder in folders):
        raise Mistake(f"{name} holds word vectors, not texts: use it with --vectors {name}.")
    raise one_of("corpus", name, sorted({*CORPORA, *locate.others(folders)}))


def _file_options(options: DataOptions) -> list[str]:
    default = DataOptions()
    return [name for name in sorted(FOR_FILES) if getattr(options, name) != getattr(default, name)]


def _refuse_file_options(name: str, options: DataOptions) -> None:
    given = _file_options(options)
    if given:
        option = given[0].replace("_", "-")
        raise Mistake(f"--{option} is for one's own files; {name} is a corpus whose form is known.")


def _adapted(recipe: Recipe, options: DataOptions) -> Recipe:
    recipe = replace(recipe, tokenizer=options.tokenizer or recipe.tokenizer)
    return replace(recipe, labels=options.labels) if options.labels else recipe


def _known(name: str, entry: Entry, data_dirs: Sequence[Path], seed: int, options: DataOptions) -> Corpus:
    found = locate.find(name, locate.data_dirs(data_dirs))
    recipe = _adapted(entry.recipe, options)
    if found is None and entry.built_in:
        return generated(name, recipe, seed)
    if found is None:
        looked = ", ".join(str(folder) for folder in locate.data_dirs(data_dirs))
        raise Mistake(f"{name} was not found in {looked}. To get it: {entry.get}.")
    ledger = Ledger(options.skip_bad)
    if found.form == "simple":
        rows = read_simple(found.folder, ledger, recipe.text_field, recipe.split_field)
    else:
        rows = ORIGINALS[name].read(found.folder, ledger)
    return assemble(name, rows, recipe, ledger, seed=seed, source=str(found.folder), folder=found.folder)


def _other(name: str, found: Location, options: DataOptions, seed: int) -> Corpus:
    """A corpus in the simple form that is known by its folder only: what it is, its first row tells."""
    _, path = split_files(found.folder)[0]
    keys = next((set(row) for _, row in json_lines(path, Ledger(options.skip_bad))), set())
    if "target" in keys and "label" not in keys:
        raise Mistake(
            f"{name} is a translation or alignment corpus (its rows have a 'target' and no 'label'); "
            "classification, question answering and NLI can be loaded."
        )
    task: TaskType = "nli" if "hypothesis" in keys else "qa" if "question" in keys else "classification"
    other = OTHERS.get(name)
    recipe = _adapted(Recipe(task=task, labels=other.labels if other else None), options)
    ledger = Ledger(options.skip_bad)
    rows = read_simple(found.folder, ledger)
    return assemble(name, rows, recipe, ledger, seed=seed, source=str(found.folder), folder=found.folder)
