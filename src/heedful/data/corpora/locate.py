"""Where data is looked for: --data-dir, then HEEDFUL_DATA, then the user's data folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heedful.data.corpora.registry import CORPORA
from heedful.data.formats.simple import split_files
from heedful.data.originals import ORIGINALS
from heedful.errors import Mistake
from heedful.records import SPLITS, Corpus


@dataclass(frozen=True, slots=True)
class Location:
    """A corpus on disk: in the simple form, or as its original distribution."""

    folder: Path
    form: Literal["simple", "original"]


_FETCHES: ContextVar[bool] = ContextVar("fetches", default=True)


@contextmanager
def nothing_fetched() -> Iterator[None]:
    """Within, what is not on this machine is not there: the hub is not asked, whatever a name says."""
    before = _FETCHES.set(False)
    try:
        yield
    finally:
        _FETCHES.reset(before)


def fetches() -> bool:
    """Whether what is not on this machine may be fetched."""
    return _FETCHES.get()


def user_folder() -> Path:
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "heedful"


def data_dirs(first: Sequence[Path] = ()) -> list[Path]:
    """All folders to look in, in order. One that was asked for and is not there is a mistake."""
    for path in first:
        if not path.is_dir():
            raise Mistake(f"--data-dir {path} is not a folder.")
    from_environment = os.environ.get("HEEDFUL_DATA")
    folders = [*first]
    if from_environment:
        folder = Path(from_environment).expanduser()
        if not folder.is_dir():
            raise Mistake(f"HEEDFUL_DATA is {from_environment}, which is not a folder.")
        folders.append(folder)
    return [*folders, user_folder()]


def check_name(path: str | Path, what: str) -> None:
    """Of a file or folder whose name will be written down: one that is not text cannot be."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise Mistake(f"the name of {what}, {str(path)!r}, is not UTF-8: give it another name.") from None


def expand(name: str) -> Path:
    """With the home folder for ~, where there is one."""
    try:
        return Path(name).expanduser()
    except RuntimeError:  # ~nobody
        return Path(name)


def is_dir(path: Path) -> bool:
    """Also where the system would not even look: 300 characters, a NUL."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def exists(path: Path) -> bool:
    return is_file(path) or is_dir(path)


def own_path(name: str, folders: Sequence[Path]) -> Path:
    """A file or folder of one's own: as it was given, or else by that name in one of the data folders."""
    path = expand(name)
    check_name(path, "the data")
    if exists(path) or path.is_absolute() or not name:
        return path
    own = (folder / path for folder in folders if is_file(folder / path) or _has_splits(folder / path))
    return next(own, path)


def _has_splits(folder: Path) -> bool:
    """A folder of one's own with a file for each split, in another form than the simple one."""
    return is_dir(folder) and not split_files(folder) and any(is_file(path) for path in folder.glob("train.*"))


def find(name: str, folders: Sequence[Path]) -> Location | None:
    """The first place that has the corpus, the simple form before the original in each folder."""
    original = ORIGINALS.get(name)
    has_reader = name in CORPORA and CORPORA[name].reader is not None and not CORPORA[name].built_in
    for folder in folders:
        own = folder / name
        if is_dir(own) and split_files(own):
            return Location(own, "simple")
        if has_reader and is_dir(own):
            return Location(own, "original")
        if original is not None:
            inside = original.find(own) or original.find(folder, exactly_named=True)
            if inside is not None:
                return Location(inside, "original")
    return None


def others(folders: Sequence[Path]) -> list[str]:
    """Names of all folders in the simple form, known to us or not."""
    names = {path.name for folder in folders if folder.is_dir() for path in folder.iterdir() if path.is_dir()}
    return sorted(name for name in names if (found := find(name, folders)) and found.form == "simple")


# One number for the whole content of a corpus: what a run's hash needs to know about its data.


def fingerprint(corpus: Corpus) -> str:
    """SHA-256 over labels, splits, ids, words, queries, candidates and labels of the examples."""
    digest = hashlib.sha256()
    digest.update("\x1f".join((corpus.task, *corpus.labels)).encode())
    for split in SPLITS:
        digest.update(f"\x1d{split}".encode())
        for example in corpus[split]:
            query = example.query.forms if example.query is not None else ()
            row = (
                example.id,
                str(example.label),
                " ".join(example.passage.forms),
                " ".join(query),
                str(example.candidates),
            )
            digest.update(("\x1e" + "\x1f".join(row)).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
