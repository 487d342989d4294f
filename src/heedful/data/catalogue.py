"""What there is: every known corpus, and every other one found in the data folders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from heedful.data import locate
from heedful.data.registry import CORPORA, OTHERS

State = Literal["found", "built in", "missing"]


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    title: str
    state: State
    licence: str
    get: str
    form: str | None = None  # simple or original, where found
    folder: str | None = None
    size: int | None = None  # bytes on disk

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def catalogue(data_dirs: Sequence[Path] = ()) -> list[Listed]:
    """The known corpora in their order, then others in the simple form by name."""
    folders = locate.data_dirs(data_dirs)
    rows = []
    for name, entry in CORPORA.items():
        found = locate.find(name, folders)
        state: State = "found" if found else "built in" if entry.built_in else "missing"
        row = Listed(name, entry.title, state, entry.licence, entry.get)
        rows.append(_with_place(row, found) if found else row)
    for name in locate.others(folders):
        found = locate.find(name, folders)
        if name in CORPORA or found is None:
            continue
        other = OTHERS.get(name)
        title = other.title if other else "found by its folder's name"
        row = Listed(name, title, "found", other.licence if other else "see its source", "found")
        rows.append(_with_place(row, found))
    return rows


def _with_place(row: Listed, found: locate.Location) -> Listed:
    return Listed(
        row.name,
        row.title,
        row.state,
        row.licence,
        row.get,
        found.form,
        str(found.folder),
        sum(path.stat().st_size for path in found.folder.rglob("*") if path.is_file()),
    )
