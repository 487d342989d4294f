"""A study's finished runs beside what was published: every experiment's own tables, on one page.

As Markdown, for files and for the terminal; no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from heedful.config import RunConfig
from heedful.engine.tasks.task import Request
from heedful.experiments import EXPERIMENTS, Published, without_verdict
from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Point, Table, beside
from heedful.experiments.framework.description import Setting, setting_of
from heedful.experiments.framework.verdict import Verdict
from heedful.measure.statistics import between_seeds
from heedful.store.run import Run, runs_in
from heedful.studies.file import Notes
from heedful.studies.seeds import verdicts_by_configuration
from heedful.studies.study import Study
from heedful.studies.variant_answers import answers, overview_table, published_table, variant_tables, verdict_table
from heedful.studies.variants import VariantRun, effects, measured

PERFORMANCE = "performance"  # of the models themselves: summarised like an experiment
AGREEMENT = "Each variant by itself, over its seeds; what the columns mean is said on the page of the study it is like."


@dataclass(frozen=True, slots=True)
class Finished:
    """A run's summaries by experiment, as they were stored; PERFORMANCE among them."""

    setting: Setting
    seed: int
    stored: Mapping[str, Mapping[str, Any]]
    variant: VariantRun | None = None  # what its rows say, where the study asks questions of variants
    config: RunConfig | None = None  # its settings
    asked: Mapping[str, Request] = field(default_factory=dict)  # how each experiment was, where that is known

    @property
    def summaries(self) -> Mapping[str, Mapping[str, Any]]:
        """Without their verdicts."""
        return {name: without_verdict(one)[0] for name, one in self.stored.items()}

    @property
    def verdicts(self) -> Mapping[str, Verdict]:
        """By experiment."""
        found = ((name, without_verdict(one)[1]) for name, one in self.stored.items())
        return {name: verdict for name, verdict in found if verdict is not None}


def finished_runs(folder: Path, study: Study, vectors: str | None = None) -> list[Finished]:
    """The finished runs of a folder that are of the study, and the summaries they have."""
    measures = asked_of_variants(study)
    found = []
    for run in runs_in(folder):
        if not run.finished or run.trial is not None:  # what a model did on other data is not a run of a study
            continue
        config = run.config
        variant = study.variant_of(config, vectors)
        if variant is not None:
            kept = {name: run.results.summary(name) for name in (PERFORMANCE, *EXPERIMENTS)}
            setting = setting_of(config.dataset, config.model.encoder, config.model.attention, variant)
            stored = {name: one for name, one in kept.items() if one}
            rows = VariantRun(config.dataset, variant, config.seed, measured(run, measures)) if measures else None
            asked = {name: how for name in stored if (how := asked_of(run, name)) is not None}
            found.append(Finished(setting, config.seed, stored, rows, config, asked))
    return found


def asked_of(run: Run, experiment: str) -> Request | None:
    """How the experiment was asked of a run."""
    made_by = run.results.made_by(experiment)
    if made_by is None:
        return None
    return Request.model_validate(
        {name: made_by[name] for name in Request.model_fields if name in made_by} | {"experiment": experiment}
    )


def asked_of_variants(study: Study) -> list[str]:
    """The measures that its questions are about."""
    return [key for question in study.questions for key in question.measures]


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
    experiment: str, runs: Mapping[Setting, Sequence[Finished]], published: Sequence[Published], sources: Sequence[str]
) -> Evidence:
    """What a study has of one experiment."""
    return Evidence(
        {s: [r.summaries[experiment] for r in here if experiment in r.summaries] for s, here in runs.items()},
        [row for row in published if row.experiment == experiment],
        tuple(sources) or tuple(dict.fromkeys(row.source for row in published)),
    )


def compare(experiment: str, found: Evidence) -> Comparison:
    return scores(found) if experiment == PERFORMANCE else EXPERIMENTS.find(experiment).compare(found)


def comparisons(runs: Sequence[Finished], study: Study) -> list[Comparison]:
    """The scores, then every experiment."""
    here, sources = by_setting(runs, study), [source.name for source in study.sources]
    names = (PERFORMANCE, *EXPERIMENTS)
    return [compare(name, evidence(name, here, study.numbers, sources)) for name in names]


def page(name: str, runs: Sequence[Finished], study: Study, notes: Notes | None = None, figure: str = "") -> str:
    """The whole comparison as Markdown: the finding, the figure, the counts; then an appendix with all tables, folded.

    `figure`: its Markdown.
    """
    notes = (notes or Notes()).of([run.setting[0] for run in runs])
    found, variants = comparisons(runs, study), _compare_variants(runs, study)
    headlines = [
        *(line for sentence in of_other_versions(runs) for line in (sentence, "")),
        *(line for one in found for headline in one.headlines for line in (headline, "")),
        *variants.headlines,
    ]
    over_runs = verdicts_by_configuration(
        (setting, run.seed, setting, run.verdicts) for setting, here in by_setting(runs, study).items() for run in here
    )
    tables = [*([over_runs] if over_runs else []), *(table for one in found for table in one.tables)]
    if study.variants:  # their tables have all measures of all variants already
        tables = list(variants.tables)
    sources = "; ".join(f"`{source.name}`: {source.title}" for source in study.sources)
    made_by = f"Written by `heedful study {name} --write FILE` from {len(runs)} finished runs." + (
        f" Published numbers: {sources}." if sources else ""
    )
    return assemble(study.title, made_by, headlines, tables, notes, figure)


def assemble(
    title: str, made_by: str, headlines: Sequence[str], tables: Sequence[Table], notes: Notes, figure: str
) -> str:
    """The parts of a study's page in the order in which people ask for them."""
    counts = ["## The numbers in short", "", *headlines] if headlines else []
    folded = ["## Appendix: all tables", "", made_by, "", *(line for table in tables for line in (*_folded(table), ""))]
    parts = [[f"# {title}"], [notes.finding], [figure], counts, [notes.appendix], folded]
    return "\n\n".join(text for part in parts if (text := "\n".join(part).strip())) + "\n"


def _folded(table: Table) -> list[str]:
    """A table behind its title; a reader of the page opens it. In the terminal, which folds nothing, it is open."""
    rows = "1 row" if len(table.rows) == 1 else f"{len(table.rows)} rows"
    summary = f"<summary>{escape(table.title)} ({rows})</summary>"
    return ["<details>", summary, "", table.markdown().replace("## ", "### ", 1).strip(), "", "</details>"]


def of_other_versions(runs: Sequence[Finished]) -> list[str]:
    """A sentence for each experiment of which some summaries are not of today's version."""
    others: dict[str, list[str]] = {}
    for run in runs:
        for name, ask in run.asked.items():
            if name in EXPERIMENTS and ask.version != EXPERIMENTS.find(name).version:
                others.setdefault(name, []).append(ask.version)
    return [
        f"{name}: the summaries of {len(versions)} of the runs are of version {' and '.join(sorted(set(versions)))} of "
        f"the experiment, and today's is {EXPERIMENTS.find(name).version}."
        for name, versions in others.items()
    ]


def _compare_variants(runs: Sequence[Finished], study: Study) -> Comparison:
    """What each variant changes, in sentences and tables, and all that was published of them."""
    if study.variants and not study.questions:  # nothing is asked of them but how well they agree
        return Comparison(tables=tuple(agreement_tables(runs, study)))
    rows = sorted(
        (run.variant for run in runs if run.variant is not None),
        key=lambda run: study.datasets.index(run.dataset) if run.dataset in study.datasets else 99,
    )
    if not rows:
        return Comparison()
    found = effects(rows, list(study.variants), asked_of_variants(study))
    sources = [source.name for source in study.sources]
    here = by_setting(runs, study)
    names = dict.fromkeys(row.experiment for row in study.numbers)
    published = published_table(study, {n: evidence(n, here, study.numbers, sources) for n in names})
    verdicts = verdict_table([(s, [run.verdicts for run in some]) for s, some in here.items()])
    tables = (overview_table(study, found), *variant_tables(study, found), verdicts, published)
    return Comparison(tuple(answers(study, found)), tuple(table for table in tables if table is not None))


def agreement_tables(runs: Sequence[Finished], study: Study) -> Iterator[Table]:
    """For each experiment: how well each variant agrees with what was published, dataset by dataset."""
    sources = [source.name for source in study.sources]
    by_variant = runs_of_variants(runs, study)
    for experiment in EXPERIMENTS:
        agreed = {
            about: compare(experiment, evidence(experiment, by_setting(some, study), study.numbers, sources))
            for about, some in by_variant.items()
        }
        headings = list(dict.fromkeys(heading for one in agreed.values() for heading in one.agreement))
        rows = [
            (*about, str(len(by_variant[about])), *(one.agreement.get(heading, "-") for heading in headings))
            for about, one in agreed.items()
            if one.agreement
        ]
        if rows:
            title = f"{experiment}: agreement with what was published"
            yield Table(title, ("dataset", "variant", "runs", *headings), tuple(rows), AGREEMENT)


def runs_of_variants(runs: Sequence[Finished], study: Study) -> dict[tuple[str, str], list[Finished]]:
    """(dataset, variant) -> its runs, as if they were of a study without variants."""
    by_variant: dict[tuple[str, str], list[Finished]] = {}
    for setting, here in by_setting(runs, study).items():
        dataset, encoder, (attention, _, variant) = *setting[:2], setting[2].partition(", ")
        plain = [replace(run, setting=(dataset, encoder, attention)) for run in here]
        by_variant.setdefault((dataset, variant), []).extend(plain)
    return by_variant


def points_of_variants(runs: Sequence[Finished], study: Study) -> dict[tuple[str, str], list[Point]]:
    """(dataset, variant) -> each of its numbers that was published, beside the published one."""
    return {
        about: [point for one in comparisons(some, study) for point in one.points]
        for about, some in runs_of_variants(runs, study).items()
    }


def scores(found: Evidence) -> Comparison:
    """Table 1, its last column: the test score, for every encoder and attention."""
    cells = []
    for setting, summaries in found:
        metric = next((row.statistic for row in found.published if row.setting == setting), "accuracy")
        ours, theirs = between_seeds([one[metric] for one in summaries]), found.theirs(setting, metric)
        cells.append(((*setting, metric), ours, theirs))
    header = (*SETTING, "metric", "ours", *found.sources, "ours - published (± expected)")
    rows = beside(cells)
    if not found.sources:
        header, rows = header[:-1], [row[:-1] for row in rows]
    note = "Scores of the models on the test split."
    if "files" in found.sources:
        note = (
            "Test scores (Table 1). `paper` has only the BiLSTM with additive attention; `files` are the authors' "
            "result files."
        )
    return Comparison(tables=(Table("Test scores", header, tuple(rows), note),) if rows else ())
