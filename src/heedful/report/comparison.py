"""A study's finished runs beside what was published: every experiment's own tables, on one page.

As Markdown, for files and for the terminal; no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.config import RunConfig
from heedful.engine.study import Study
from heedful.experiments import EXPERIMENTS, Published, without_verdict
from heedful.experiments.comparison import SETTING, Comparison, Evidence, Table, beside
from heedful.experiments.description import Setting, setting_of
from heedful.experiments.verdict import Verdict
from heedful.measure.statistics import between_seeds
from heedful.report.seeds import verdicts_by_configuration
from heedful.report.variant_answers import (
    answers,
    overview_table,
    published_table,
    variant_tables,
    verdict_table,
)
from heedful.report.variants import VariantRun, effects
from heedful.store.run import runs_in

PERFORMANCE = "performance"  # of the models themselves: summarised like an experiment
SOURCES = ("paper", "files")  # columns of a study that names no sources


@dataclass(frozen=True, slots=True)
class Finished:
    """A run's summaries by experiment; PERFORMANCE among them."""

    setting: Setting
    seed: int
    summaries: Mapping[str, Mapping[str, Any]]
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)  # by experiment
    variant: VariantRun | None = None  # its rows, where the study compares variants


def finished_runs(folder: Path, variant_of: Callable[[RunConfig], str | None]) -> list[Finished]:
    """The finished runs of a folder that are of a variant of the study, and the summaries they have."""
    found = []
    for run in runs_in(folder):
        if not run.finished or run.trial is not None:  # what a model did on other data is no run of a study
            continue
        config = run.config
        variant = variant_of(config)
        if variant is not None:
            kept = {name: run.results.summary(name) for name in (PERFORMANCE, *EXPERIMENTS)}
            setting = setting_of(config.dataset, config.model.encoder, config.model.attention, variant)
            parts = {name: without_verdict(one) for name, one in kept.items() if one}
            verdicts = {name: verdict for name, (_, verdict) in parts.items() if verdict is not None}
            summaries = {name: one for name, (one, _) in parts.items()}
            rows = VariantRun(config.dataset, variant, config.seed, run) if variant else None
            found.append(Finished(setting, config.seed, summaries, verdicts, rows))
    return found


def by_setting(runs: Sequence[Finished], study: Study) -> dict[Setting, list[Finished]]:
    """Runs that differ only in their seed, in the order of the study."""
    variants, encoders = list(study.variants), list(study.encoders)
    order: list[list[str]] = [list(study.datasets), variants, encoders, list(study.attentions)]

    def place(setting: Setting) -> list[int]:
        dataset, encoder, (attention, _, variant) = *setting[:2], setting[2].partition(", ")
        named = zip(order, (dataset, variant, encoder, attention), strict=True)
        return [names.index(name) if name in names else 99 for names, name in named]

    settings = sorted({run.setting for run in runs}, key=place)
    return {s: sorted((r for r in runs if r.setting == s), key=lambda r: r.seed) for s in settings}


def evidence(
    experiment: str,
    runs: Mapping[Setting, Sequence[Finished]],
    published: Sequence[Published],
    sources: Sequence[str],
) -> Evidence:
    """What a study has of one experiment."""
    return Evidence(
        {s: [r.summaries[experiment] for r in here if experiment in r.summaries] for s, here in runs.items()},
        [row for row in published if row.experiment == experiment],
        tuple(sources) or SOURCES,
    )


def compare(experiment: str, found: Evidence) -> Comparison:
    return scores(found) if experiment == PERFORMANCE else EXPERIMENTS.find(experiment).compare(found)


def comparisons(runs: Sequence[Finished], study: Study) -> list[Comparison]:
    """The scores, then every experiment."""
    here, sources = by_setting(runs, study), [source.name for source in study.sources]
    names = (PERFORMANCE, *EXPERIMENTS)
    return [compare(name, evidence(name, here, study.numbers, sources)) for name in names]


def page(name: str, runs: Sequence[Finished], study: Study, notes: str = "") -> str:
    """The whole comparison as Markdown."""
    found, variants = comparisons(runs, study), _compare_variants(runs, study)
    sources = "; ".join(f"`{source.name}`: {source.title}" for source in study.sources)
    lines = [
        f"# {study.title}",
        "",
        f"Written by `heedful study {name} --write FILE` from {len(runs)} finished runs."
        + (f" Published numbers: {sources}." if sources else ""),
        "",
        *(line for one in found for headline in one.headlines for line in (headline, "")),
        *variants.headlines,
        notes,
    ]
    over_runs = verdicts_by_configuration(
        (setting, run.seed, setting, run.verdicts)
        for setting, here in by_setting(runs, study).items()
        for run in here
    )
    tables = [*([over_runs] if over_runs else []), *(table for one in found for table in one.tables)]
    if study.variants:  # their tables have all measures of all variants already
        tables = list(variants.tables)
    return "\n".join(lines) + "\n" + "\n".join(table.markdown() for table in tables)


def _compare_variants(runs: Sequence[Finished], study: Study) -> Comparison:
    """What each variant changes, in sentences and tables, and all that was published of them."""
    rows = sorted(
        (run.variant for run in runs if run.variant is not None),
        key=lambda run: study.datasets.index(run.dataset) if run.dataset in study.datasets else 99,
    )
    if not rows:
        return Comparison()
    measures = [key for question in study.questions for key in question.measures]
    found, sources = effects(rows, list(study.variants), measures), [source.name for source in study.sources]
    here = by_setting(runs, study)
    names = dict.fromkeys(row.experiment for row in study.numbers)
    published = published_table(study, {n: evidence(n, here, study.numbers, sources) for n in names})
    verdicts = verdict_table([(s, [run.verdicts for run in some]) for s, some in here.items()])
    tables = (overview_table(study, found), *variant_tables(study, found), verdicts, published)
    return Comparison(tuple(answers(study, found)), tuple(table for table in tables if table is not None))


def scores(found: Evidence) -> Comparison:
    """Table 1, its last column: the test score, for every encoder and attention."""
    cells = []
    for setting, summaries in found:
        metric = next((row.statistic for row in found.published if row.setting == setting), "accuracy")
        ours, theirs = between_seeds([one[metric] for one in summaries]), found.theirs(setting, metric)
        cells.append(((*setting, metric), ours, theirs))
    header, rows = (
        (*SETTING, "metric", "ours", *found.sources, "ours - published (± expected)"),
        beside(cells),
    )
    note = "Scores of the models on the test split."
    if "files" in found.sources:
        note = (
            "Test scores (Table 1). `paper` has only the BiLSTM with additive attention; `files` are the authors' "
            "result files."
        )
    return Comparison(tables=(Table("Test scores", header, tuple(rows), note),) if rows else ())
