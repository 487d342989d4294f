"""What a study is: a grid of runs, what is asked of them, and what was published of it."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from heedful.config import AS_PUBLISHED, AttentionName, Config, EncoderName, RunConfig
from heedful.engine.tasks.configure import configure
from heedful.experiments import Published

MOST_SEEDS = 10_000


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

    def fits(self, dataset: str) -> bool:
        return self.datasets is None or dataset in self.datasets


class VariantQuestion(Config):
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
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)  # of an experiment, where not its defaults
    limits: dict[str, int] = Field(default_factory=dict)  # experiment -> so many texts; others: all
    vectors: str | None = None
    data: dict[str, Any] = Field(default_factory=dict)  # how files of one's own are to be read (DataOptions)
    model: dict[str, Any] = Field(default_factory=dict)  # settings that differ from those of the corpus
    by_encoder: dict[EncoderName, dict[str, Any]] = Field(default_factory=dict)  # and those of one encoder
    training: dict[str, Any] = Field(default_factory=dict)
    on: dict[str, OnDataset] = Field(default_factory=dict)  # and those that differ on one dataset
    variants: dict[str, Variant] = Field(default_factory=dict)  # the first is what the others are compared with
    questions: tuple[VariantQuestion, ...] = ()  # asked of the variants
    like: str | None = None  # the study that everything is of that this one does not say itself
    numbers: tuple[Published, ...] = ()  # in the file: rows, or the name of a CSV file beside it
    sources: tuple[PublishedBy, ...] = ()  # of the numbers, the most trusted first

    def config(
        self, dataset: str, encoder: str, attention: str, seed: int, vectors: str | None = None, variant: str = ""
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
            data=layered(self.data, here.data, own.data),
            model=layered(self.model, sizes, here.model, sizes_here, chosen),
            training=layered(self.training, here.training, own.training),
            vectors=(vectors or self.vectors) if here.vectors else None,
            seed=seed,
        )

    def variant_of(self, config: RunConfig, vectors: str | None = None) -> str | None:
        """The variant that a run is of, "" in a study without variants; None: it is not a run of the study.

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


def layered(*layers: dict[str, Any]) -> dict[str, Any]:
    """Later settings over earlier ones, and those of the section `as_published` one by one, too."""
    merged: dict[str, Any] = {}
    for layer in layers:
        before, own = merged.get(AS_PUBLISHED), layer.get(AS_PUBLISHED)
        merged |= layer
        if isinstance(before, dict) and isinstance(own, dict):
            merged[AS_PUBLISHED] = before | own
    return merged
