"""From what a person typed to a full configuration: what is not said, the corpus or the paper says."""

from __future__ import annotations

from typing import Any

from heedful.config import RunConfig
from heedful.data.registry import CORPORA


def configure(
    dataset: str,
    *,
    data: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    training: dict[str, Any] | None = None,
    vectors: str | None = None,
    seed: int = 0,
) -> RunConfig:
    """None means: not said."""
    entry = CORPORA.get(dataset)
    values = {
        "dataset": dataset,
        "data": {"min_df": entry.min_df if entry else None} | drop_unset(data),
        "model": dict(entry.model if entry else {}) | drop_unset(model),
        "training": dict(entry.training if entry else {}) | drop_unset(training),
        "vectors": vectors,
        "seed": seed,
    }
    return RunConfig.parse(values, f"training on {dataset}")


def drop_unset(values: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (values or {}).items() if value is not None}
