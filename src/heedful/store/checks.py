"""Is a file what it was when it was written? Checksums of files, and JSON that carries its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import Mistake
from heedful.files import whole_file, write_json

SUMS = "SHA256SUMS"  # in the form of the command sha256sum, so that `sha256sum -c SHA256SUMS` checks it, too
OWN = "# of the lines below: "
HashFile = Callable[[Path], str]
# Fields of config.json that pages and plans take for granted, and what they are.
DESCRIPTION = {"config": dict, "data": dict, "model": dict, "versions": dict, "labels": list, "task": str}
NAMES = {dict: "a JSON object", list: "a list", str: "a string"}


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
        raise Damaged(f"{folder / SUMS} is damaged: it is not a list of checksums")
    return sums


def check_sums(folder: Path, sums: Mapping[str, str], hash_file: HashFile = sha256) -> None:
    for name, digest in sums.items():
        check_file(folder / name, digest, hash_file)


def write_sum(path: Path) -> None:
    """Seal one file by the checksum in a file beside it, which sha256sum can check, too."""
    with whole_file(_sum_path(path)) as temporary:
        temporary.write_text(f"{sha256(path)}  {path.name}\n", encoding="utf-8")


def check_sum(path: Path, hash_file: HashFile = sha256) -> None:
    """Of a file that `write_sum` has sealed; one without a seal is of a version that wrote none."""
    try:
        text = _sum_path(path).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    check_file(path, text.partition(" ")[0], hash_file)


def _sum_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def check_file(path: Path, digest: str, hash_file: HashFile = sha256) -> None:
    try:
        found = hash_file(path)
    except (FileNotFoundError, NotADirectoryError):
        raise Damaged(f"{path} is gone") from None
    if found != digest:
        raise Damaged(f"{path} is damaged: its checksum is not that of what was written")


def read_object(path: Path) -> dict[str, Any]:
    """A JSON object; raises `Damaged` where the file holds anything else, and OSError where it cannot be read."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise Damaged(f"{path} is damaged ({error})") from None
    except RecursionError:
        raise Damaged(f"{path} is damaged (it is nested too deeply)") from None
    if not isinstance(value, dict):
        raise Damaged(f"{path} is damaged (it is not a JSON object)")
    return value


def write_signed(path: Path, value: Mapping[str, Any]) -> None:
    """JSON whose field "sha256" is the checksum of the others."""
    plain = json.loads(json.dumps(value))  # as it will be read again: keys are strings, tuples are lists
    write_json(path, {**plain, "sha256": _digest(plain)})


def read_signed(path: Path) -> dict[str, Any] | None:
    """What `write_signed` wrote; None where there is no such file."""
    try:
        value: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        said, digest = value.pop("sha256"), _digest(value)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise Damaged(f"{path} is damaged: it is not the JSON that was written") from None
    if said != digest:
        raise Damaged(f"{path} is damaged: its checksum is not that of what was written")
    return value


def _digest(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def check_info(info: Mapping[str, Any], path: Path) -> None:
    """What everybody takes for granted of config.json: a file by this name may be of another program."""
    for name, kind in DESCRIPTION.items():
        if name in info and not isinstance(info[name], kind):
            raise Mistake(f"{path} is damaged: {name!r} is not {NAMES[kind]}.")
    folders = info.get("data", {}).get("folders", [])
    if not isinstance(folders, list) or not all(isinstance(folder, str) for folder in folders):
        raise Mistake(f"{path} is damaged: 'folders' is not a list of paths.")
