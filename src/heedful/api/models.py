"""Models: train one, load one."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.engine.running.progress import Progress
from heedful.engine.sources.subject import SubjectOptions
from heedful.errors import Mistake, short

if TYPE_CHECKING:
    from heedful.config import RunConfig
    from heedful.engine.tasks.estimate import Estimate
    from heedful.models.model import Model
    from heedful.store.run import Run


def load(model: Any, *, device: str | None = None, **options: Any) -> Model:
    """A trained model: a run folder, a folder or id of Hugging Face, a pipeline, or a source.

    `options` are those of the kind of model; of Hugging Face: labels, query, long, problem_type, revision, dtype,
    offline (see docs/huggingface.md), and of a model that generates language. `device` is the processor unless told
    otherwise; a pipeline stays where it is.
    """
    from heedful.engine.running.processors import torch_device
    from heedful.engine.sources.models import find_source

    if hasattr(model, "model") and hasattr(model, "tokenizer") and hasattr(model, "task"):
        from heedful.models.huggingface import load_pipeline

        return load_pipeline(model, **options if device is None else {**options, "device": device})
    source = find_source(model, **options)
    place = torch_device(device)
    source = source.on_device(device)
    if source.caution is not None:
        warnings.warn(source.caution, stacklevel=2)
    return source.load(place)


def wrap(model: Any, tokenizer: Any = None, **options: Any) -> Model:
    """One's own model: a module with its tokenizer, or a function from a list of texts to probabilities.

    `options`: labels, query, problem_type, name; of a module long, of a function mask and batch_size. A module that
    generates is found out to be a language model: its options are name and language.
    """
    from torch import nn

    if isinstance(model, nn.Module):
        if tokenizer is None:
            raise Mistake(f"{type(model).__name__} reads token ids: give its tokenizer, too: wrap(module, tokenizer).")
        from heedful.models.huggingface import wrap as wrap_module
        from heedful.models.huggingface.kinds import answered_at_places
        from heedful.models.language.loading import module_generates, wrap_language_model

        if module_generates(model):
            if unknown := sorted(set(options) - {"name", "language"}):
                raise Mistake(f"{unknown[0]!r} is not an option of a language model. They are: name, language.")
            return wrap_language_model(model, tokenizer, **options)

        if "pooling" in options:
            from heedful.models.embedding.loading import wrap_embedding_model

            if unknown := sorted(set(options) - {"name", "pooling", "limit"}):
                raise Mistake(f"{unknown[0]!r} is not an option of an embedding model. They are: name, pooling, limit.")
            return wrap_embedding_model(model, tokenizer, **options)
        if answered_at_places(type(model).__name__) is not None or "kind" in options:
            from heedful.models.places.loading import wrap_places_model

            if unknown := sorted(set(options) - {"name", "labels", "kind"}):
                raise Mistake(
                    f"{unknown[0]!r} is not an option of a model that answers at places of a text. They are: name, "
                    "labels, kind."
                )
            return wrap_places_model(model, tokenizer, **options)
        return wrap_module(model, tokenizer, **options)
    if tokenizer is not None:
        raise Mistake("a function reads texts, so it takes no tokenizer.")
    if "labels" not in options:
        raise Mistake("the labels of a function are not known: give labels=[...].")
    from heedful.models.black_box import wrap_predict

    return wrap_predict(model, **options)


def train(
    dataset: str,
    *,
    encoder: str | None = None,
    attention: str | None = None,
    seed: int = 0,
    vectors: str | None = None,
    start: str | Path | None = None,
    runs: str | Path = "runs",
    data_dirs: Sequence[str | Path] = (),
    data: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Train on a corpus by name, one's own file, or "hf:ID"; a run that is finished is not done again.

    `start` is a folder or id of Hugging Face: it is fine-tuned, and stays as it is; the run holds the trained copy.

    `settings` are those of ModelConfig and TrainingConfig (epochs, hidden_dim, objective, ...), `data` those of
    DataOptions (text_column, label_column, ...).
    """
    if data is not None and not isinstance(data, Mapping):
        raise Mistake(f"data={short(data)}: give settings by name, {{'text_column': 'review'}}.")
    given = {"encoder": encoder, "attention": attention, **settings}
    config = configure(dataset, settings=given, data=data, vectors=vectors, seed=seed, start=start)
    return train_config(config, runs=runs, data_dirs=data_dirs, progress=progress)


def configure(
    dataset: str,
    *,
    settings: Mapping[str, Any] | None = None,
    data: Mapping[str, Any] | None = None,
    vectors: str | None = None,
    seed: int = 0,
    start: str | Path | None = None,
) -> RunConfig:
    """A full configuration from settings by their names, be they of the data, the model or the training."""
    from heedful.engine.tasks.configure import configure as with_defaults
    from heedful.engine.tasks.configure import sort_settings

    parts = sort_settings(settings or {})
    parts["data"] = {**(data or {}), **parts["data"]}
    return with_defaults(dataset, **parts, vectors=vectors, seed=seed, start=start)


def train_config(
    config: RunConfig,
    *,
    runs: str | Path = "runs",
    data_dirs: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> Run:
    """Train one configuration in this process, or take the run that is there."""
    from heedful.engine.running.execute import train_one
    from heedful.engine.running.workspace import Workspace

    return train_one(config, Workspace(as_path(runs, "a folder for runs"), as_paths(data_dirs)), progress or Progress())


def estimate_training(
    config: RunConfig, *, runs: str | Path = "runs", data_dirs: Sequence[str | Path] = ()
) -> Estimate:
    """What `train_config` would take."""
    from heedful.engine.running.workspace import Workspace
    from heedful.engine.tasks.estimate import estimate
    from heedful.engine.tasks.plan import plan

    workspace = Workspace(Path(runs), as_paths(data_dirs))
    return estimate(plan([config], (), workspace.data_dirs, hash_file=workspace.hash_file), workspace)


def open_run(path: str | Path | Run) -> Run:
    """A run folder that is there."""
    from heedful.data.corpora import locate
    from heedful.store.run import Run

    run = path if isinstance(path, Run) else Run(as_path(path, "a run folder"))
    if not locate.is_dir(run.path):
        raise Mistake(f"there is no run folder {run.path}.")
    return run


def as_path(given: Any, what: str) -> Path:
    """A path that a system can be asked about."""
    if not isinstance(given, str | Path) or "\x00" in str(given):
        raise Mistake(f"{short(given)} is not the path of {what}.")
    return Path(given)


def as_paths(folders: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """One folder is one, not its letters."""
    from heedful.data.corpora import locate

    given = [folders] if isinstance(folders, str | Path) else folders
    if not isinstance(given, Sequence):
        raise Mistake(f"data_dirs={short(folders)}: give a list of folders.")
    paths = tuple(as_path(folder, "a data folder") for folder in given)
    locate.data_dirs(paths)  # says so where one is not there
    return paths


def subject_options(
    data_options: Mapping[str, Any] | None,
    labels: Sequence[str] | None,
    label_map: Mapping[str, str] | None,
    split: str,
    dtype: str | None,
    device: str | None,
    batch_size: int | None,
    data_dirs: Sequence[str | Path],
    queries: bool = False,
) -> SubjectOptions:
    """What a function of Python was told of a model and its data."""
    if data_options is not None and not isinstance(data_options, Mapping):
        raise Mistake(f"data_options={short(data_options)}: give options by name, {{'text_column': 'review'}}.")
    reading = dict(data_options or {})
    if label_map is not None:
        strings = isinstance(label_map, Mapping)
        reading["label_map"] = {str(label): name for label, name in label_map.items()} if strings else label_map
    return SubjectOptions(reading, labels, split, dtype, device, batch_size, as_paths(data_dirs), queries)
