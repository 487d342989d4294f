"""Copies of a model that an experiment trains to compare with: the same model on edited data, or trained otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.config import FINE_TUNING, EditConfig, RunConfig, TrainingConfig, TrialConfig


def copy_of(about: RunConfig | TrialConfig, edit: EditConfig | None = None, **training: Any) -> RunConfig:
    """The configuration of a run's copy, with its data edited or settings of its training changed.

    Of a model on other data it is a model of the same kind that is trained on these data: one of ours from the start, a
    checkpoint fine-tuned. A file that was asked about whole is then both what is trained on and, the same texts at the
    same places, the test split: a copy is asked about what was done to it, not about what it has learnt of the texts.
    """
    if isinstance(about, RunConfig):
        run = about
    else:
        data = about.data
        if data.only is not None:
            data = data.model_copy(update={"only": None, "test_file": Path(about.dataset)})
        values: dict[str, Any] = {
            "dataset": about.dataset,
            "data": data,
            "seed": about.seed,
            "vectors": about.vectors,
        }
        if about.model is None:
            values |= {"start": about.source, "training": FINE_TUNING}
        else:
            values["model"] = about.model
        run = RunConfig(**values)
    data = run.data if edit is None else run.data.model_copy(update={"edit": edit})
    changed = TrainingConfig.model_validate(run.training.model_dump() | training)
    return run.model_copy(update={"data": data, "training": changed})
