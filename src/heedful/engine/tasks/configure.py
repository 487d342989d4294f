"""From what a person typed to a full configuration: what is not said, the corpus or the paper says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.config import (
    AS_PUBLISHED,
    CROSS_ENTROPY,
    FINE_TUNING,
    RATIONALE,
    Config,
    DataOptions,
    ModelConfig,
    RunConfig,
    SourceConfig,
    TrainingConfig,
)
from heedful.data.corpora.registry import CORPORA
from heedful.errors import Mistake, one_of, short


def configure(
    dataset: str,
    *,
    data: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    training: dict[str, Any] | None = None,
    vectors: str | None = None,
    seed: int = 0,
    start: str | Path | None = None,
) -> RunConfig:
    """None means: not said. The objective's own settings are completed with its defaults.

    With `start`, a folder or id, the usual settings are those of fine-tuning, and there is no model to be described.
    """
    if not isinstance(dataset, str | Path) or not str(dataset) or "\x00" in str(dataset):
        raise Mistake(f"{short(dataset)} is not a data set: give a corpus by name, a file, or hf:ID.")
    dataset = str(dataset)
    entry = CORPORA.get(dataset) if start is None else None
    usual = dict(entry.training) if entry else ({} if start is None else FINE_TUNING.model_dump())
    if drop_unset(model).get("rationale") is not None:
        usual |= RATIONALE
    values: dict[str, Any] = {
        "dataset": dataset,
        "data": {"min_df": entry.min_df if entry else None} | drop_unset(data),
        "model": dict(entry.model if entry else {}) | drop_unset(model),
        "training": usual | drop_unset(training),
        "vectors": vectors,
        "seed": seed,
    }
    if start is not None:
        if given := [*drop_unset(model), *(["vectors"] if vectors else [])]:
            raise Mistake(f"{given[0]!r} describes a model of our own; with start={str(start)!r} there is one already.")
        values["start"] = find_start(start)
    config = RunConfig.parse(values, f"training on {dataset[:200]}")
    return complete_objective(config) if config.training.objective != CROSS_ENTROPY else plain_objective(config)


def find_start(what: str | Path) -> SourceConfig:
    """The checkpoint that training is to begin with: where it is, and what it is."""
    from heedful.engine.sources.huggingface import checkpoint_of

    source = checkpoint_of(what)
    assert source.place is not None
    assert source.fingerprint is not None
    return SourceConfig(place=source.place, name=source.name, fingerprint=source.fingerprint)


def complete_objective(config: RunConfig) -> RunConfig:
    """With every setting of its objective, defaults included: they decide the weights, so they decide the key."""
    from heedful.models.objectives.objective import parse_options

    options = parse_options(config.training).model_dump(mode="json")
    training = config.training.model_copy(update={"objective_options": options})
    return config.model_copy(update={"training": training})


def plain_objective(config: RunConfig) -> RunConfig:
    if config.training.objective_options:
        given = next(iter(config.training.objective_options))
        raise Mistake(f"objective_options: {CROSS_ENTROPY} has no setting {given!r}; name the objective that has it.")
    return config


def sort_settings(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Settings by their names, each with the part of the configuration that it belongs to."""
    parts: dict[str, type[Config]] = {"data": DataOptions, "model": ModelConfig, "training": TrainingConfig}
    sorted_out: dict[str, dict[str, Any]] = {part: {} for part in parts}
    for name, value in settings.items():
        if name == AS_PUBLISHED:
            _sort_published(value, sorted_out, parts)
            continue
        homes = [part for part, fields in parts.items() if name in fields.model_fields]
        if not homes:
            raise one_of(
                "setting", name, sorted({n for fields in parts.values() for n in fields.model_fields} - {AS_PUBLISHED})
            )
        sorted_out[homes[0]][name] = value
    return sorted_out


def _sort_published(given: Any, sorted_out: dict[str, dict[str, Any]], parts: Mapping[str, type[Config]]) -> None:
    """Each part has a section of this name, and each section its own settings."""
    if not isinstance(given, Mapping):
        raise Mistake(f"{AS_PUBLISHED}={short(given)}: give settings by name, {{'keep_from': 2}}.")
    sections = {part: fields.model_fields[AS_PUBLISHED].default for part, fields in parts.items()}
    for name, value in given.items():
        homes = [part for part, section in sections.items() if name in type(section).model_fields]
        if not homes:
            known = sorted(n for section in sections.values() for n in type(section).model_fields)
            raise one_of(f"setting of {AS_PUBLISHED}", name, known)
        sorted_out[homes[0]].setdefault(AS_PUBLISHED, {})[name] = value


def drop_unset(values: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (values or {}).items() if value is not None}
