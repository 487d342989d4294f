"""Files of texts and documents, as they are given on the command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from heedful.api.models import as_path
from heedful.errors import Mistake


def read_texts(texts: Sequence[str], file: Path | None) -> list[str]:
    """Texts as they were typed, then those of a file, one a line; "-" is standard input."""
    if file is None:
        if not texts:
            raise Mistake("give at least one TEXT, or --file, or --data.")
        return list(texts)
    try:
        raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise Mistake(f"--file {file}: {error.strerror}.") from None
    lines = []
    for number, line in enumerate(raw.splitlines(), 1):
        try:
            lines.append(line.decode())
        except UnicodeDecodeError:
            raise Mistake(f"{file}, line {number}: this is not UTF-8.") from None
        if not lines[-1].strip():
            raise Mistake(f"{file}, line {number}: the text is empty.")
    return [*texts, *lines]


def read_documents(files: Sequence[Path]) -> dict[str, str]:
    """Texts of files, by their names; of two files of one name by their paths."""
    names = [file.name for file in files]
    found: dict[str, str] = {}
    for file, name in zip(files, names, strict=True):
        title = name if names.count(name) == 1 else str(file)
        if title in found:
            raise Mistake(f"--context {file} is given twice: give each document once.")
        try:
            found[title] = as_path(file, "a document").read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise Mistake(f"--context {file}: this is not UTF-8.") from None
        except OSError as error:
            raise Mistake(f"--context {file}: {error.strerror}.") from None
    return found
