"""Where a plan is carried out: what every worker has to know beside its task."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.data.corpora.locate import check_name
from heedful.store.checks import FileHashes
from heedful.store.run import Run

CHECKPOINT_EVERY = 30.0  # seconds: what a kill can cost, beside the epoch under way


@dataclass(frozen=True, slots=True)
class Workspace:
    runs: Path
    data_dirs: tuple[Path, ...] = ()
    checkpoint_every: float = CHECKPOINT_EVERY
    gpus: float = 0.0  # share of a GPU that a task has, on Ray; 0: the CPU computes
    device: str | None = None  # that models are asked on; None: the processor, or Ray's GPU
    batch_size: int | None = None  # texts in a pass, at most; None: as many as memory and speed allow
    hash_file: FileHashes = field(default_factory=FileHashes, compare=False, repr=False)  # of this process

    def __post_init__(self) -> None:
        check_name(self.runs, "the folder of runs")  # its files say where they are, in UTF-8

    def run(self, name: str) -> Run:
        """A run by the name of its folder, or by an absolute path."""
        return Run(self.runs / name, self.hash_file)

    def to_json(self) -> dict[str, Any]:
        """Absolute: a worker may be somewhere else."""
        return {
            "runs": str(self.runs.absolute()),
            "data_dirs": [str(folder.absolute()) for folder in self.data_dirs],
            "checkpoint_every": self.checkpoint_every,
            "gpus": self.gpus,
            "device": self.device,
            "batch_size": self.batch_size,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Workspace:
        folders = tuple(Path(folder) for folder in values["data_dirs"])
        return cls(
            Path(values["runs"]),
            folders,
            values["checkpoint_every"],
            values["gpus"],
            values["device"],
            values["batch_size"],
        )
