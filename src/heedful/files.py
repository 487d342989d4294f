"""Files that are whole or not there: written under another name first, then renamed.

While it is written, a temporary file or folder is held with `flock`, which the system lets go of when its
writer ends, however it ends. So `clean` can tell what the dead have left from what the living are writing.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from heedful.errors import Mistake

ENDING = ".part"
LONGEST_NAME = 255  # bytes of a file's name, everywhere


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary path to write to; it becomes `path` when the block ends well, and vanishes otherwise."""
    with _held(path, folder=False) as temporary:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)


def check_name(path: Path) -> None:
    """Refuse what a person gave as the name of a file that is to be written, before anything is computed."""
    try:
        writable = path.parent.is_dir() and not path.is_dir() and "\x00" not in path.name
    except OSError:  # a name of 300 characters
        writable = False
    if not writable or len(path.name.encode(errors="replace")) > LONGEST_NAME:
        raise Mistake(f"{str(path)[:200]} cannot be written: give the name of a file in a folder that exists.")


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """The same for a folder. If another process has put one there first, theirs stays."""
    with _held(path, folder=True) as temporary:
        yield temporary
        with suppress(FileExistsError, NotADirectoryError):
            _rename_folder(temporary, path)


def write_json(path: Path, value: Any) -> None:
    with whole_file(path) as temporary:
        text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def link(source: Path, path: Path) -> None:
    """Let `path` be the same file as `source`, at once; a copy where the disk knows no links."""
    if path.exists() and path.samefile(source):
        return
    temporary = _temporary(path)
    with source.open("rb") as held:
        _hold(held.fileno())
        try:
            os.link(source, temporary)
        except OSError:
            with whole_file(path) as copy:
                shutil.copyfile(source, copy)
        else:
            temporary.replace(path)
            temporary.unlink(missing_ok=True)  # another process was faster: then nothing was renamed (POSIX)


def clean(folder: Path) -> list[Path]:
    """Remove what dead processes left half-written in `folder`, and say what it was."""
    removed = []
    for path in sorted(folder.glob(f".*{ENDING}")) if folder.is_dir() else ():
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            continue  # gone already
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # its writer lives, or the disk cannot tell: leave it
        else:
            _remove(path)
            removed.append(path)
        finally:
            os.close(handle)
    return removed


@contextmanager
def _held(path: Path, folder: bool) -> Iterator[Path]:
    """A new temporary path beside `path`, held while the block lasts, then removed if it is still there."""
    with _space_is_asked_for(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, handle = _make_held(path, folder)
        try:
            yield temporary
        finally:
            _remove(temporary)
            os.close(handle)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def _make_held(path: Path, folder: bool) -> tuple[Path, int]:
    """A new temporary path and the handle that holds it.

    Between making and holding it, a `clean` elsewhere may have taken it for a dead one's: then once more.
    """
    while True:
        temporary = _temporary(path)
        if folder:
            temporary.mkdir()
        try:
            handle = os.open(temporary, os.O_RDONLY if folder else os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileNotFoundError:
            continue
        _hold(handle)
        if temporary.exists():
            return temporary, handle
        os.close(handle)


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name[:60]}.{uuid4().hex[:8]}{ENDING}")  # at most 255 bytes


def _hold(handle: int) -> None:
    with suppress(OSError):  # a disk without locks: `clean` will leave its files alone
        fcntl.flock(handle, fcntl.LOCK_SH)


def _rename_folder(temporary: Path, path: Path) -> None:
    try:
        temporary.rename(path)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        # theirs is there


@contextmanager
def _space_is_asked_for(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise Mistake(f"{path} cannot be written: {error.strerror}; make room and give the same command.") from None
        raise
