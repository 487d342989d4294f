"""A published study: what to run, and what was published of it. `studies/*.toml` is data, this reads it."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import Field

from heedful.config import AttentionName, Config, EncoderName, RunConfig
from heedful.data import locate
from heedful.data.registry import CORPORA
from heedful.engine.configure import configure
from heedful.engine.data_sources import find_data
from heedful.engine.plan import ask
from heedful.engine.task import Ask
from heedful.errors import Mistake, one_of, short
from heedful.experiments import EXPERIMENTS, Published

MOST_SEEDS = 10_000
DEEPEST = 5  # studies that are like one another
_FOLDER = files("heedful") / "studies"


class PublishedBy(Config):
    """Where published numbers come from."""

    name: str
    title: str


class OnDataset(Config):
    """What is different on one dataset."""

    vectors: bool = True  # False: word vectors are learned from the texts, whichever are given
    data: dict[str, Any] = Field(default_factory=dict)
    model: dict[str, Any] = Field(default_factory=dict)
    by_encoder: dict[EncoderName, dict[str, Any]] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)  # of an experiment
    limits: dict[str, int] = Field(default_factory=dict)  # of an experiment
    experiments: tuple[str, ...] | None = None  # in place of the study's
    seeds: int | None = Field(default=None, ge=1, le=MOST_SEEDS)


class Variant(Config):
    """What one of several compared variants has of its own, over all that the study and the dataset say."""

    data: dict[str, Any] = Field(default_factory=dict)
    model: dict[str, Any] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    datasets: tuple[str, ...] | None = None  # that it can be trained on; None: all
    judged_by: tuple[str, ...] = ()  # the measures that it was proposed by


class Question(Config):
    """What is asked of the variants, and the measures (`Measure.key`, or `accuracy`) that answer it."""

    title: str
    measures: tuple[str, ...]
    cost: bool = False  # not a merit that a variant could have beside the measure that it was judged by


class Study(Config):
    """The grid of a study and its published numbers."""

    title: str
    datasets: tuple[str, ...]
    encoders: tuple[EncoderName, ...]
    attentions: tuple[AttentionName, ...]
    seeds: int = Field(default=1, ge=1, le=MOST_SEEDS)
    experiments: tuple[str, ...]
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict
    )  # of an experiment, where not its defaults
    limits: dict[str, int] = Field(default_factory=dict)  # experiment -> so many texts; others: all
    vectors: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)  # how files of one's own are to be read (DataOptions)
    model: dict[str, Any] = Field(default_factory=dict)  # settings that differ from those of the corpus
    by_encoder: dict[EncoderName, dict[str, Any]] = Field(default_factory=dict)  # and those of one encoder
    training: dict[str, Any] = Field(default_factory=dict)
    on: dict[str, OnDataset] = Field(default_factory=dict)  # and those that differ on one dataset
    variants: dict[str, Variant] = Field(
        default_factory=dict
    )  # the first is what the others are compared with
    questions: tuple[Question, ...] = ()  # asked of the variants
    like: str | None = None  # the study that everything is of that this one does not say itself
    numbers: tuple[Published, ...] = ()  # in the file: rows, or the name of a CSV file beside it
    sources: tuple[PublishedBy, ...] = ()  # of the numbers, the most trusted first

    def config(
        self,
        dataset: str,
        encoder: str,
        attention: str,
        seed: int,
        vectors: str | None = None,
        variant: str = "",
    ) -> RunConfig:
        """One run of the study; `vectors` in place of the study's own. A variant may have an encoder or an attention of
        its own."""
        here, own = self.on.get(dataset, OnDataset()), self.variants.get(variant, Variant())
        chosen = {"encoder": encoder, "attention": attention, **own.model}
        sizes, sizes_here = (
            {str(name): settings for name, settings in some.by_encoder.items()}.get(chosen["encoder"], {})
            for some in (self, here)
        )
        return configure(
            dataset,
            data={**self.data, **here.data, **own.data},
            model={**self.model, **sizes, **here.model, **sizes_here, **chosen},
            training={**self.training, **here.training, **own.training},
            vectors=(vectors or self.vectors) if here.vectors else None,
            seed=seed,
        )

    def variant_of(self, config: RunConfig, vectors: str | None = None) -> str | None:
        """The variant that a run is of, "" in a study without variants; None: it is no run of the study.

        A dataset or a seed beyond its grid is one of it; an encoder or attention is, too, where there are no variants,
        which may differ in nothing else.
        """
        model = config.model
        for variant, own in (self.variants or {"": Variant()}).items():
            same = self.config(config.dataset, model.encoder, model.attention, config.seed, vectors, variant)
            inside = not self.variants or (
                ("encoder" in own.model or model.encoder in self.encoders)
                and ("attention" in own.model or model.attention in self.attentions)
            )
            if inside and config == same:
                return variant
        return None

    def has(self, config: RunConfig, vectors: str | None = None) -> bool:
        return self.variant_of(config, vectors) is not None


@dataclass(frozen=True, slots=True)
class Selection:
    """The part of a study that is to be run: configurations, questions, and the datasets that are not here."""

    configs: tuple[RunConfig, ...]
    asks: tuple[Ask, ...]
    missing: dict[str, str]  # dataset -> how to get it
    asks_on: Mapping[str, tuple[Ask, ...]] = field(default_factory=dict)  # by dataset, where they are others

    def asks_of(self, dataset: str) -> tuple[Ask, ...]:
        """What is asked of the models of a dataset."""
        return self.asks_on.get(dataset, self.asks)


def study_names() -> list[str]:
    """The studies that heedful has itself."""
    endings = [file.name for file in _FOLDER.iterdir() if file.name.endswith(".toml")]
    return sorted(name.removesuffix(".toml").replace("_", "-") for name in endings)


def read_study(name: str) -> Study:
    """A study by name ("jain-wallace") or a TOML file of one's own; unknown keys, and unused ones, are refused."""
    values, where = _values(name)
    study = Study.parse(values, where)
    check_sections(study, where)
    return study


def _values(name: str, above: tuple[str, ...] = ()) -> tuple[dict[str, Any], str]:
    """What a study's file says, and all else that the study says that it is `like`; and what to call it.

    `above`: the studies that are like this one, one after the other.
    """
    path = Path(name)
    folder: Traversable
    if path.suffix == ".toml":
        where, folder, text = str(path), path.parent, _read(path)
    else:
        if name not in study_names():
            raise one_of("study", name, study_names())
        where, folder = f"the study {name}", _FOLDER
        text = _read(folder / f"{name.replace('-', '_')}.toml")
    try:
        values = tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # also numbers of thousands of digits, and brackets without end
        raise Mistake(f"{where} is not TOML: {str(error)[:200]}.") from None
    if isinstance(values.get("numbers"), str):
        values["numbers"] = read_numbers(folder / values["numbers"])
    like = values.get("like")
    if not isinstance(like, str):
        return values, where
    if len(above) >= DEEPEST:
        raise Mistake(f"{where}: like: these studies refer to each other without end.")
    theirs, _ = _values(like, (*above, name))
    for part in ("datasets", "encoders", "experiments"):
        if not isinstance(values.get(part, []), list):
            raise Mistake(f"{where}: {part}: a list is needed.")
    return _without_strangers(theirs, values), where


OF_MODELS = ("vectors", "data", "model", "by_encoder", "training")  # of [on.DATASET]


def _without_strangers(theirs: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """What a study says, over what the one says that it is like: of that all but what is about something outside its
    grid, and how often and what the other asks on one dataset."""
    grid = theirs | values
    if "on" not in values:
        on = theirs.get("on", {}).items()
        grid["on"] = {
            name: {part: said for part, said in here.items() if part in OF_MODELS}
            for name, here in on
            if name in grid["datasets"]
        }
    for part, kept in {"by_encoder": "encoders", "options": "experiments", "limits": "experiments"}.items():
        if part not in values:
            grid[part] = {name: said for name, said in theirs.get(part, {}).items() if name in grid[kept]}
    return grid


def check_sections(study: Study, where: str) -> None:
    """A section about something outside the grid would be read and never used: a slip of the hand."""
    asked = {dataset: here.experiments or study.experiments for dataset, here in study.on.items()}
    experiments = tuple(
        dict.fromkeys([*study.experiments, *(name for some in asked.values() for name in some)])
    )
    encoders = (*study.encoders, *(own.model.get("encoder", "") for own in study.variants.values()))
    sections = [
        *((f"[on.{name}]", name, "dataset", study.datasets) for name in study.on),
        *((f"[by_encoder.{name}]", str(name), "encoder", encoders) for name in study.by_encoder),
        *(
            (f"[on.{dataset}.by_encoder.{name}]", str(name), "encoder", encoders)
            for dataset, here in study.on.items()
            for name in here.by_encoder
        ),
        *((f"[options.{name}]", name, "experiment", experiments) for name in study.options),
        *((f"[limits] {name}", name, "experiment", experiments) for name in study.limits),
        *(
            (f"[on.{dataset}.{part}.{name}]", name, "experiment", asked[dataset])
            for dataset, here in study.on.items()
            for part, names in (("options", here.options), ("limits", here.limits))
            for name in names
        ),
        *(
            (f"[variants.{variant}] datasets", name, "dataset", study.datasets)
            for variant, own in study.variants.items()
            for name in own.datasets or ()
        ),
    ]
    for section, name, what, grid in sections:
        if name not in grid:
            known = ", ".join(filter(None, grid))
            raise Mistake(
                f"{where}: {section} is never used: the study has no {what} {short(name)}, but {known}."
            )
    for name in experiments:
        EXPERIMENTS.check(name)


def read_numbers(file: Traversable) -> list[dict[str, Any]]:
    """Published numbers of a CSV file: the fields of `Published`, and `value`.

    Other columns are ends of the statistic: `mean` in the row of `overall.tau` is the statistic `overall.tau.mean`.
    """
    rows = csv.DictReader(_read(file).splitlines())
    fields = {name: about for name, about in Published.model_fields.items() if name != "value"}
    known = [name for name, about in fields.items() if about.is_required() or name in (rows.fieldnames or ())]
    missing = [field for field in known if field not in (rows.fieldnames or ())]
    if missing:
        raise Mistake(f"{file} has no column {missing[0]!r}: it needs {', '.join(known)}, and value.")
    numbers = []
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise Mistake(f"{file}, line {line}: it has not as many cells as the first line.")
        about = {field: row.pop(field) for field in known}
        for end, value in row.items():
            if value:
                path = about["statistic"] if end == "value" else f"{about['statistic']}.{end}"
                numbers.append(about | {"statistic": path, "value": value})
    return numbers


def notes_of(name: str) -> str:
    """What we make of a study's outcome, in words; empty for studies without notes."""
    path = _FOLDER / f"{name.replace('-', '_')}.md"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def select(
    study: Study,
    *,
    datasets: Sequence[str] = (),
    encoders: Sequence[str] = (),
    attentions: Sequence[str] = (),
    variants: Sequence[str] = (),
    seeds: int | None = None,
    experiments: Sequence[str] = (),
    vectors: str | None = None,
    split: str = "test",
    limit: int | None = None,
    data_dirs: Sequence[Path] = (),
    also_missing: bool = False,
) -> Selection:
    """Any part of the grid, and datasets beyond it; what is not given is the study's own.

    Datasets that are not here are left out, unless nothing is to be carried out (`also_missing`).
    """
    if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
        raise Mistake(f"--seeds {seeds}: at least one seed is needed, and at most {MOST_SEEDS:,}.")
    for variant in variants:
        if variant not in study.variants:
            raise one_of("variant", variant, list(study.variants))
    missing: dict[str, str] = {}
    configs = []
    for dataset in dict.fromkeys(datasets or study.datasets):
        if not also_missing and (how := not_here(dataset, data_dirs)) is not None:
            missing[dataset] = how
            continue
        grid = product(
            dict.fromkeys(encoders or study.encoders),
            dict.fromkeys(attentions or study.attentions),
            range(seeds or study.on.get(dataset, OnDataset()).seeds or study.seeds),
            [name for name in variants or study.variants or ("",) if _fits(study, name, dataset)],
        )  # the variants of one seed stand together: what is finished can be compared
        configs += [
            study.config(dataset, encoder, attention, seed, vectors, variant)
            for encoder, attention, seed, variant in grid
        ]

    def asks(here: OnDataset) -> tuple[Ask, ...]:
        names = dict.fromkeys(experiments or here.experiments or study.experiments)
        limits = {**study.limits, **here.limits}
        most = {name: limits.get(name) if limit is None else limit for name in names}
        options = {name: {**study.options.get(name, {}), **here.options.get(name, {})} for name in names}
        return tuple(ask(name, options[name], split, most[name]) for name in names)

    others = {
        name: asks(here)
        for name, here in study.on.items()
        if (here.options, here.limits, here.experiments) != ({}, {}, None)
    }
    return Selection(tuple(configs), asks(OnDataset()), missing, others)


def _fits(study: Study, variant: str, dataset: str) -> bool:
    """Whether a variant can be trained on a dataset."""
    datasets = study.variants.get(variant, Variant()).datasets
    return datasets is None or dataset in datasets


def not_here(dataset: str, data_dirs: Sequence[Path]) -> str | None:
    """How to get a known corpus that is in none of the data folders; None if it is here."""
    entry = CORPORA.get(dataset)
    if entry is None or entry.built_in or locate.find(dataset, locate.data_dirs(data_dirs)):
        if entry is None:
            find_data(dataset, configure(dataset).data, data_dirs)  # says what is wrong with the name
        return None
    return entry.get


def _read(file: Traversable) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise Mistake(f"{str(file)[:200]} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise Mistake(f"{file} is not UTF-8 (byte {error.start}).") from None
    except ValueError:  # a NUL in its name
        raise Mistake(f"{str(file)!r} is no name of a file.") from None
