"""Where a plan is carried out: what every worker has to know beside its task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKPOINT_EVERY = 30.0  # seconds: what a kill can cost, beside the epoch under way


@dataclass(frozen=True, slots=True)
class Workspace:
    runs: Path
    data_dirs: tuple[Path, ...] = ()
    checkpoint_every: float = CHECKPOINT_EVERY
    gpus: float = 0.0  # share of a GPU that a task has, on Ray; 0: the CPU computes

    def to_json(self) -> dict[str, Any]:
        """Absolute: a worker may be somewhere else."""
        return {
            "runs": str(self.runs.absolute()),
            "data_dirs": [str(folder.absolute()) for folder in self.data_dirs],
            "checkpoint_every": self.checkpoint_every,
            "gpus": self.gpus,
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Workspace:
        folders = tuple(Path(folder) for folder in values["data_dirs"])
        return cls(Path(values["runs"]), folders, values["checkpoint_every"], values["gpus"])
