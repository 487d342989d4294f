"""The part of a study that is to be run: of its grid the runs, and the questions that each is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from heedful.config import RunConfig
from heedful.data.corpora import locate
from heedful.data.corpora.registry import CORPORA
from heedful.engine.sources.data import find_data
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import ask
from heedful.engine.tasks.task import Request
from heedful.errors import Mistake, one_of
from heedful.studies.study import MOST_SEEDS, OnDataset, Study, Variant


@dataclass(frozen=True, slots=True)
class StudyPart:
    """The part of a study that is to be run: configurations, questions, and the datasets that are not here."""

    configs: tuple[RunConfig, ...]
    asks: tuple[Request, ...]
    missing: dict[str, str]  # dataset -> how to get it
    asks_on: Mapping[str, tuple[Request, ...]] = field(default_factory=dict)  # by dataset, where they are others

    def asks_of(self, dataset: str) -> tuple[Request, ...]:
        """What is asked of the models of a dataset."""
        return self.asks_on.get(dataset, self.asks)


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
) -> StudyPart:
    """Any part of the grid, and datasets beyond it; what is not given is the study's own.

    Datasets that are not here are left out, unless nothing is to be carried out (`also_missing`).
    """
    if seeds is not None and not 1 <= seeds <= MOST_SEEDS:
        raise Mistake(f"--seeds {seeds}: at least one seed is needed, and at most {MOST_SEEDS:,}.")
    for variant in variants:
        if variant not in study.variants:
            raise one_of("variant", variant, list(study.variants))
    known = study.variants or {"": Variant()}
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
            [name for name in variants or known if known[name].fits(dataset)],
        )  # the variants of one seed stand together: what is finished can be compared
        configs += [
            study.config(dataset, encoder, attention, seed, vectors, variant)
            for encoder, attention, seed, variant in grid
        ]

    def asks(here: OnDataset) -> tuple[Request, ...]:
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
    return StudyPart(tuple(configs), asks(OnDataset()), missing, others)


def not_here(dataset: str, data_dirs: Sequence[Path]) -> str | None:
    """How to get a known corpus that is in none of the data folders; None if it is here."""
    entry = CORPORA.get(dataset)
    if entry is None or entry.built_in or locate.find(dataset, locate.data_dirs(data_dirs)):
        if entry is None:
            find_data(dataset, configure(dataset).data, data_dirs)  # says what is wrong with the name
        return None
    return entry.get
