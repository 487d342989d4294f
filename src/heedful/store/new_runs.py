"""New run folders, each whole from the moment it is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.files import whole_folder, write_json
from heedful.store.checks import SUMS, write_sums
from heedful.store.run import NONE, SEALED_TRIAL, Arrays, Run


def create(
    path: Path,
    info: Mapping[str, Any],
    words: tuple[str, ...],
    weights: Arrays,
    arrays: Arrays,
    notes: Mapping[str, Any],
    pretrained: Mapping[str, bytes] = NONE,
) -> Run:
    """A new run folder with its first checkpoint, whole from the moment it is there."""
    with whole_folder(path) as temporary:
        run = Run(temporary)
        run.write_description(info, words, pretrained)
        run.write_training(weights, notes["history"])
        run.write_checkpoint(arrays, notes)
    return Run(path)


def write_trial(path: Path, info: Mapping[str, Any]) -> Run:
    """The folder of a model on other data, whole from the moment it is there. Results that it has stay."""

    def write(folder: Path) -> None:
        (folder / SUMS).unlink(missing_ok=True)  # until it is whole again, nobody takes it for damaged
        write_json(folder / "config.json", info)
        write_sums(folder, SEALED_TRIAL)

    if path.exists():
        write(path)
    else:
        with whole_folder(path) as temporary:
            write(temporary)
    return Run(path)
