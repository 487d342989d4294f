"""Which runs there are. A name from an address is only ever looked up here, never joined to a path."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from heedful.errors import Mistake, one_of
from heedful.experiments import EXPERIMENTS, without_verdict
from heedful.experiments.framework.verdict import Verdict
from heedful.store.run import Run

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


@dataclass(eq=False)
class RunEntry:
    """A run as it was found: its description, and its results. What is wrong with it is found when it is made."""

    run: Run
    summaries: dict[str, dict[str, Any]]  # by experiment; `performance` among them
    verdicts: dict[str, Verdict]  # that the summaries have
    tables: dict[str, tuple[Path, Stamp]]  # rows by experiment

    def __post_init__(self) -> None:
        run = self.run
        self.name, self.path, self.info = run.name, run.path, run.info
        self.dataset, self.labels = run.dataset, run.labels
        self.encoder, self.attention, self.seed = run.architecture, run.attention, run.seed
        self.model = run.trial.source.name if run.trial is not None else ""  # the name of one that is elsewhere
        self.performance = self.summaries.get("performance", {})

    @property
    def trial(self) -> bool:
        """Whether the model is elsewhere: these are its answers about other data."""
        return "source" in self.info["config"]

    @property
    def playable(self) -> bool:
        """Whether there is a model to ask."""
        return self.trial or (self.path / "model.safetensors").is_file()

    def recommended(self) -> tuple[str, str] | None:
        """(the explainer that its audit recommends, by name, empty where it recommends none; what the audit says of
        it); None where no audit is stored."""
        audit = self.run.audit()
        said = [] if audit is None else [str(sentence) for sentence in audit["recommendation"]]
        if audit is None or not said:
            return None
        return str(audit.get("recommended") or ""), said[0]

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
        self._lock, self._looked = threading.Lock(), -FRESH
        self._entries: dict[str, RunEntry] = {}
        self._stamps: dict[str, Any] = {}

    def entries(self) -> dict[str, RunEntry]:
        with self._lock:
            if time.monotonic() - self._looked >= FRESH:
                self._look()
                self._looked = time.monotonic()
            return self._entries

    def find(self, name: str) -> RunEntry:
        entries = self.entries()
        if name in self.broken:
            raise Mistake(f"{name} cannot be read: {self.broken[name]}")
        if name not in entries:
            raise Missing(str(one_of("run", name[:100], sorted(entries)[:20])))
        return entries[name]

    def _look(self) -> None:
        paths = [(path.name, path) for path in self.runs]
        found: dict[str, RunEntry] = {}
        stamps: dict[str, Any] = {}
        broken: dict[str, str] = {}
        if self.folder is not None:
            try:
                with os.scandir(self.folder) as listed:  # a link could lead out of the folder: it is not followed
                    inside = sorted(entry.name for entry in listed if entry.is_dir(follow_symlinks=False))
                paths += [(name, self.folder / name) for name in inside]
            except OSError as error:  # it was removed, or may not be read any more
                broken[str(self.folder)] = f"the folder of runs cannot be read any more ({error.strerror})."
        for name, path in paths:
            if name.startswith(".") or name in found:
                continue
            try:
                files = _files(path)
                if "config.json" not in files:
                    continue
                old = self._entries.get(name)
                same = old is not None and old.path == path and self._stamps.get(name) == files
                found[name] = old if old is not None and same else _entry(path, files)
                stamps[name] = files
            except Mistake as mistake:
                broken[name] = str(mistake)
            except Exception as error:  # whatever is wrong with one run is not a matter of the others
                broken[name] = f"its files are damaged ({type(error).__name__}: {error})."
        if stamps != self._stamps or broken != self.broken:
            self.version += 1
        self._entries, self._stamps, self.broken = found, stamps, broken


def _entry(path: Path, files: dict[str, Stamp]) -> RunEntry:
    """What the files of a run say; whatever is wrong with it is found here, not in a page."""
    run = Run(path)
    check_description(run.info)
    summaries, verdicts, tables = {}, {}, {}
    for file, stamp in sorted(files.items()):
        experiment = file.removeprefix("results/").split(".")[0]
        if file.endswith(".summary.json"):
            summaries[experiment], verdict = without_verdict(checked_summary(experiment, run.summary(experiment)))
            if verdict is not None:
                verdicts[experiment] = verdict
        elif file.startswith("results/") and file.endswith(".parquet"):
            tables[experiment] = (path / file, stamp)
    known = [experiment for experiment in EXPERIMENTS if experiment in tables]
    names = (*known, *(name for name in tables if name not in known))
    return RunEntry(run, summaries, verdicts, {name: tables[name] for name in names})


def check_description(info: object) -> None:
    """Refuses a config.json with anything of another kind than what pages take it for."""

    def check(value: object, kind: type | tuple[type, ...], said: str, where: str) -> None:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise Mistake(f"{where} of its config.json is not {said}.")

    def within(value: Any, name: str) -> Mapping[str, Any]:
        part = value.get(name, {})
        check(part, Mapping, "a JSON object", name)
        return cast("Mapping[str, Any]", part)

    check(info, Mapping, "a JSON object", "the whole")
    config, data, about = (within(info, name) for name in ("config", "data", "model"))
    within(info, "versions")
    check(config.get("dataset"), str, "a name", "config.dataset")
    labels = cast("Mapping[str, Any]", info).get("labels")
    check(labels, Sequence, "a list", "labels")
    if not labels or isinstance(labels, str) or not all(isinstance(label, str | int | float) for label in labels):
        raise Mistake("labels of its config.json is not a list of names.")
    check(cast("Mapping[str, Any]", info).get("task"), str, "a name", "task")
    for split, n in within(data, "examples").items():
        check(n, int, "a number", f"data.examples.{split}")
    if "source" not in config:
        sizes = within(config, "model")
        for name in ("encoder", "attention"):
            check(sizes.get(name), str, "a name", f"config.model.{name}")
        check(config.get("seed"), int, "a number", "config.seed")
        within(config, "training")
    for name in ("architecture", "attention", "description"):
        check(about.get(name) or "", str, "a name", f"model.{name}")


def checked_summary(experiment: str, summary: Any) -> dict[str, Any]:
    """A summary as pages take it."""
    if not isinstance(summary, dict):
        raise Mistake(f"the summary of its {experiment} is not a JSON object: make it again.")
    if experiment == "performance":
        baseline = summary.get("baseline") or {}
        numbers = {name: summary.get(name) for name in ("accuracy", "f1", "roc_auc", "examples")}
        if isinstance(baseline, Mapping):
            numbers["baseline"] = baseline.get("accuracy")
        wrong = [name for name, n in numbers.items() if n is not None and not isinstance(n, int | float)]
        if wrong or not isinstance(baseline, Mapping):
            raise Mistake(f"{', '.join(wrong) or 'baseline'} of its performance is not a number.")
    return summary


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
                wanted = file.name == "config.json" if not prefix else file.name.endswith((".parquet", ".summary.json"))
                if wanted and not file.name.startswith(".") and file.is_file():
                    if file.is_symlink() and not Path(file.path).resolve().is_relative_to(run.resolve()):
                        continue
                    status = file.stat()
                    found[prefix + file.name] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found
