"""Which runs there are. A name from an address is only ever looked up here, never joined to a path."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import Mistake, one_of
from heedful.experiments import EXPERIMENTS

T = TypeVar("T")
Stamp = tuple[int, int, int]  # of a file: when it was changed, its size, its place on the disk

FRESH = 1.0  # seconds before the folders are looked at again


class Missing(Mistake):
    """What was asked for by its address does not exist."""


def stamp_of(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def refuse_link_out(run: Path, *names: str) -> None:
    """A file of a run that is a link to elsewhere is not read."""
    for name in names:
        if not (run / name).resolve().is_relative_to(run.resolve()):
            raise Mistake(f"{name} of {run.name} is a link that leads out of its run, and is not followed.")


class Cache:
    """What was read from files, until they change."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], tuple[Stamp, Any]] = {}

    def read(self, path: Path, stamp: Stamp, read: Callable[[Path], T], of: str = "") -> T:
        key = (str(path), of)
        found = self._kept.get(key)
        if found is None or found[0] != stamp:
            found = self._kept[key] = (stamp, read(path))
        value: T = found[1]
        return value


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A run as it was found: its description, and its files with results."""

    name: str
    path: Path
    info: dict[str, Any]  # config.json
    summaries: dict[str, dict[str, Any]]  # by experiment; `performance` among them
    tables: dict[str, tuple[Path, Stamp]]  # rows by experiment

    @property
    def dataset(self) -> str:
        return Path(str(self.info["config"]["dataset"])).name

    @property
    def encoder(self) -> str:
        return str(self.info["config"]["model"]["encoder"])

    @property
    def attention(self) -> str:
        return str(self.info["config"]["model"]["attention"])

    @property
    def seed(self) -> int:
        return int(self.info["config"]["seed"])

    @property
    def labels(self) -> list[str]:
        return [str(label) for label in self.info["labels"]]

    @property
    def performance(self) -> dict[str, Any]:
        return self.summaries.get("performance", {})

    def label(self, number: int | None) -> str:
        """The name of a label; its number, where a damaged file has one that does not exist."""
        if number is None:
            return "unknown"
        return self.labels[number] if 0 <= number < len(self.labels) else str(number)

    def table(self, experiment: str) -> tuple[Path, Stamp]:
        if experiment not in self.tables:
            known = ", ".join(self.tables) or "none"
            raise Missing(f"{self.name} has no results of {experiment!r} (it has: {known}).")
        return self.tables[experiment]


class Library:
    """The runs of a folder, and those that were named. Files are read again only when they changed."""

    def __init__(self, folder: Path | None, runs: Sequence[Path] = ()) -> None:
        if folder is not None and not folder.is_dir():
            raise Mistake(f"there is no folder of runs {folder}: train a model first, or give --runs.")
        for path in runs:
            if not (path / "config.json").is_file():
                raise Mistake(f"{path} is not a run folder: it has no config.json.")
        self.folder, self.runs = folder, tuple(runs)
        self.version = 0  # changes whenever anything in the listing does
        self.broken: dict[str, str] = {}  # runs that cannot be read, and why
        self._cache, self._lock, self._looked = Cache(), threading.Lock(), -FRESH
        self._entries: dict[str, Entry] = {}
        self._stamps: dict[str, Any] = {}

    def entries(self) -> dict[str, Entry]:
        with self._lock:
            if time.monotonic() - self._looked >= FRESH:
                self._look()
                self._looked = time.monotonic()
            return self._entries

    def find(self, name: str) -> Entry:
        entries = self.entries()
        if name not in entries:
            raise Missing(str(one_of("run", name[:100], sorted(entries)[:20])))
        return entries[name]

    def _look(self) -> None:
        paths = [(path.name, path) for path in self.runs]
        if self.folder is not None:
            with os.scandir(self.folder) as listed:  # a link could lead out of the folder: it is not followed
                inside = sorted(entry.name for entry in listed if entry.is_dir(follow_symlinks=False))
            paths += [(name, self.folder / name) for name in inside]
        found: dict[str, Entry] = {}
        stamps: dict[str, Any] = {}
        broken: dict[str, str] = {}
        for name, path in paths:
            if name.startswith(".") or name in found:
                continue
            try:
                files = _files(path)
                if "config.json" not in files:
                    continue
                old = self._entries.get(name)
                same = old is not None and old.path == path and self._stamps.get(name) == files
                found[name] = old if old is not None and same else self._read(name, path, files)
                stamps[name] = files
            except (OSError, ValueError, KeyError, TypeError) as error:
                broken[name] = f"{type(error).__name__}: {error}"
        if stamps != self._stamps:
            self.version += 1
        self._entries, self._stamps, self.broken = found, stamps, broken

    def _read(self, name: str, path: Path, files: dict[str, Stamp]) -> Entry:
        def load(file: str) -> Any:
            return self._cache.read(path / file, files[file], lambda p: json.loads(p.read_text("utf-8")))

        summaries, tables = {}, {}
        for file, stamp in sorted(files.items()):
            experiment = file.removeprefix("results/").split(".")[0]
            if file.endswith(".summary.json"):
                summary = load(file)
                summaries[experiment] = {k: v for k, v in summary.items() if k not in ("sha256", "task")}
            elif file.startswith("results/") and file.endswith(".parquet"):
                tables[experiment] = (path / file, stamp)
        known = [experiment for experiment in EXPERIMENTS if experiment in tables]
        tables = {
            experiment: tables[experiment] for experiment in (*known, *(t for t in tables if t not in known))
        }
        entry = Entry(name, path, load("config.json"), summaries, tables)
        _ = (
            entry.dataset,
            entry.encoder,
            entry.attention,
            entry.seed,
            entry.labels,
        )  # fails here, not in a page
        return entry


def _files(run: Path) -> dict[str, Stamp]:
    """The files of a run that pages read. A link that leads out of its run is not followed."""
    found: dict[str, Stamp] = {}
    for folder, prefix in ((run, ""), (run / "results", "results/")):
        try:
            listed = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        with listed as files:
            for file in files:
                wanted = (
                    file.name == "config.json"
                    if not prefix
                    else file.name.endswith((".parquet", ".summary.json"))
                )
                if wanted and not file.name.startswith(".") and file.is_file():
                    if file.is_symlink() and not Path(file.path).resolve().is_relative_to(run.resolve()):
                        continue
                    status = file.stat()
                    found[prefix + file.name] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
