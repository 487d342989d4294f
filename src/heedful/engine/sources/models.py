"""Where a model comes from: who it is, what decides its answers, and how to get it.

`find_source` goes from what a person gives (a folder, an id, a `Run`, a `Model`) to a `ModelSource`. A family (our own
run folders, another library's folders) is one file and a line in registry.py (MODEL_FAMILIES).
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from heedful.config import ModelConfig
from heedful.data.corpora import locate
from heedful.errors import Mistake
from heedful.records import TokenizerName
from heedful.registry import MODEL_FAMILIES
from heedful.store.checks import SUMS, HashFile, sha256
from heedful.store.run import Run

if TYPE_CHECKING:
    import torch

    from heedful.models.model import Model


class ModelSource(Protocol):
    """A model that may not be in memory yet. Nothing but `load` needs torch."""

    name: str
    place: str | None = None  # that finds it again in another process: a folder, an id; None: only in memory
    description: str  # for people: "a bidirectional LSTM with additive attention"
    architecture: str  # the encoder of one of ours, the class of a foreign one
    attention: str  # what kind of attention it has
    labels: tuple[str, ...]
    task: str
    seed: int | None = None  # of its training; None where nobody knows
    tokenizer: TokenizerName | None = None  # that cuts texts into its words; None: it reads any
    config: ModelConfig | None = None  # the sizes of one of our own models

    @property
    def fingerprint(self) -> str | None:
        """Of what decides its answers: weights, configuration, tokenizer. None: nobody knows, so nothing is kept."""
        ...

    def load(self, device: torch.device) -> Model: ...

    def of_pairs(self) -> ModelSource | None:
        """The same model as one of pairs of texts, where nobody has said what it reads; None: it is known."""
        return None

    def on_device(self, device: str | None) -> ModelSource:
        """The same model as it is computed there: what is usual for its numbers may depend on it."""
        return self

    @property
    def caution(self) -> str | None:
        """What whoever asks it must be told, if anything."""
        return None


class ModelFamily(Protocol):
    """A kind of model: what it looks like from outside, and its sources."""

    title: str  # "a run folder"

    def claims(self, what: str | Path) -> bool:
        """Whether this folder or id is one of its own. Looks at names of files, loads nothing."""
        ...

    def source(self, what: str | Path, **options: Any) -> ModelSource: ...


class MemorySource(ModelSource):
    """A model that is here already. Nobody knows what decides its answers, so nothing of it is kept."""

    description, architecture, attention = "a model in memory", "unknown", "unknown"
    fingerprint = None

    def __init__(self, model: Model) -> None:
        self.model = model
        self.name, self.labels, self.task, self.seed = model.name, model.labels, model.task, model.seed
        self.tokenizer = getattr(model.text, "tokenizer", None)

    def load(self, device: torch.device) -> Model:
        return self.model


class RunSource(ModelSource):
    """A model that `heedful train` made."""

    def __init__(self, run: Run) -> None:
        self.run, self.name, self.place = run, run.name, str(run.path.absolute())
        self.description, self.architecture, self.attention = run.description, run.architecture, run.attention
        self.labels, self.task, self.seed = run.labels, str(run.info["task"]), run.seed
        if run.config.start is None:  # a fine-tuned checkpoint reads words of any tokenizer, and has its own sizes
            self.tokenizer, self.config = run.info["tokenizer"], run.config.model

    @cached_property
    def fingerprint(self) -> str | None:
        return self.run.fingerprint()

    @property
    def caution(self) -> str | None:
        path = self.run.path
        if not self.run.interrupted:
            return None
        return f"{path} is not finished: its weights are those of the best epoch so far. Give the command again."

    def load(self, device: torch.device) -> Model:
        from heedful.engine.tasks.train import load_network

        return load_network(self.run, device)


class RunFolders:
    """The family of our own runs."""

    title = "a run folder"

    def claims(self, what: str | Path) -> bool:
        """By the files that only a run has; a folder of another library has a config.json, too."""
        folder = Path(what)
        return any(locate.is_file(folder / name) for name in ("vocabulary.json", SUMS))

    def source(self, what: str | Path, **options: Any) -> ModelSource:
        hash_file = options.pop("hash_file", sha256)
        options.pop("query", None)  # a run knows by itself whether it reads pairs
        if options:
            raise Mistake(f"{what} is a run folder, which takes no option {next(iter(options))!r}.")
        return source_of(Run(Path(what), hash_file))


RUN_FOLDERS: ModelFamily = RunFolders()


def find_source(what: object, hash_file: HashFile = sha256, **options: Any) -> ModelSource:
    """The source of a model: `what` is a folder or an id, a `Run`, a `Model`, or a source itself.

    `options` are for the family that claims a folder or an id, which refuses those that it does not know.
    """
    if isinstance(what, Run):
        return source_of(what)
    if isinstance(what, (str, Path)):
        for family in MODEL_FAMILIES.values():
            if family.claims(what):
                return family.source(what, hash_file=hash_file, **options)
        raise Mistake(unknown(what))
    if hasattr(what, "load") and hasattr(what, "fingerprint"):
        source: ModelSource = what  # type: ignore[assignment]
        return source
    if hasattr(what, "network") and hasattr(what, "labels"):
        model: Model = what  # type: ignore[assignment]
        return MemorySource(model)
    raise Mistake(f"a {type(what).__name__} is not a model: give {titles()}, or a loaded model.")


def source_of(run: Run) -> ModelSource:
    """Of a run: its own model. Of a model on other data: that model, which must be what it was."""
    if run.trial is None:
        return RunSource(run)
    told = run.trial.source
    beside = run.path.parent / told.place
    found = find_source(beside if beside.exists() else told.place, run.hash_file)
    if found.fingerprint != told.fingerprint:
        raise Mistake(f"{told.place} has changed since {run.path} was made.")
    return found


def unknown(what: str | Path) -> str:
    """Why nothing can be read there, as precisely as can be told."""
    path = Path(what)
    if not (locate.is_dir(path) or locate.is_file(path)):
        return f"there is no run folder {str(what)[:200]}; models of the hub are owner/name, or hf:name."
    if not path.is_dir():
        return f"{path} is a file; a model is {titles()}."
    if (path / "adapter_config.json").is_file():
        return f"{path} holds only an adapter: merge it into its model (peft's merge_and_unload), and save that."
    if not (path / "config.json").is_file():
        return f"{path} is not a run folder: it has no config.json."
    try:
        info = json.loads((path / "config.json").read_text(encoding="utf-8"))
        kind = info.get("model_type") or ", ".join(info.get("architectures") or ())
    except (ValueError, AttributeError):
        return f"{path / 'config.json'} is damaged (it is not a JSON object)."
    if kind:
        return f"{path} holds a model of type {kind!r}, which heedful cannot read; it reads {titles()}."
    return f"{path} is not a run folder: it has no vocabulary.json."


def titles() -> str:
    *first, last = (family.title for family in MODEL_FAMILIES.values())
    return f"{', '.join(first)} or {last}"
