"""Is a file what it was when it was written? Checksums of files, and JSON that carries its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from heedful.files import whole_file, write_json

SUMS = "SHA256SUMS"  # in the form of the command sha256sum, so that `sha256sum -c SHA256SUMS` checks it, too
OWN = "# of the lines below: "
HashFile = Callable[[Path], str]


class Damaged(Exception):
    """A file that is not what was written. Its message names the file."""


def sha256(path: Path) -> str:
    """Of a file's bytes: about 20 ms for 20 MB."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FileHashes:
    """`sha256`, each file read once until it changes: one command asks for the same ones many times."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int, int], str]] = {}

    def __call__(self, path: Path) -> str:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            known = self._known[path] = (stamp, sha256(path))
        return known[1]


def write_sums(folder: Path, names: Iterable[str]) -> None:
    """Seal a folder: from now on `check_sums` knows when one of these files changes.

    The first line is a comment with the checksum of the others.
    """
    lines = "".join(f"{sha256(folder / name)}  {name}\n" for name in names)
    with whole_file(folder / SUMS) as temporary:
        temporary.write_text(f"{OWN}{hashlib.sha256(lines.encode()).hexdigest()}\n{lines}", encoding="utf-8")


def read_sums(folder: Path) -> dict[str, str]:
    """Name -> checksum; empty where the folder is not sealed. A plain list, as sha256sum makes it, will do."""
    try:
        text = (folder / SUMS).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except UnicodeDecodeError:
        text = ""
    own, _, lines = text.partition("\n") if text.startswith("#") else ("", "", text)
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines.splitlines())}
    if own and own != f"{OWN}{hashlib.sha256(lines.encode()).hexdigest()}":
        raise Damaged(f"{folder / SUMS} is damaged: its checksum is not that of what was written")
    if not sums or not all(len(digest) == 64 for digest in sums.values()):
        raise Damaged(f"{folder / SUMS} is damaged: it is no list of checksums")
    return sums


def check_sums(folder: Path, sums: Mapping[str, str], hash_file: HashFile = sha256) -> None:
    for name, digest in sums.items():
        check_file(folder / name, digest, hash_file)


def check_file(path: Path, digest: str, hash_file: HashFile = sha256) -> None:
    try:
        found = hash_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise Damaged(f"{path} is gone") from None
    if found != digest:
        raise Damaged(f"{path} is damaged: its checksum is not that of what was written")


def write_signed(path: Path, value: Mapping[str, Any]) -> None:
    """JSON whose field "sha256" is the checksum of the others."""
    plain = json.loads(json.dumps(value))  # as it will be read again: keys are strings, tuples are lists
    write_json(path, {**plain, "sha256": _digest(plain)})


def read_signed(path: Path) -> dict[str, Any] | None:
    """What `write_signed` wrote; None where there is no such file."""
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        said = value.pop("sha256")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise Damaged(f"{path} is damaged: it is not the JSON that was written") from None
    if said != _digest(value):
        raise Damaged(f"{path} is damaged: its checksum is not that of what was written")
    return value


def _digest(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
