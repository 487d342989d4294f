"""Studies: train and ask a whole grid, and set the outcome beside what was published; and the demonstration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.api.experiments import run
from heedful.api.models import as_paths, train
from heedful.api.pages import write_report
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.registry import EXPERIMENTS

if TYPE_CHECKING:
    from heedful.config import RunConfig
    from heedful.engine.running.execute import Engine
    from heedful.engine.running.schedule import Report
    from heedful.engine.running.workspace import Workspace
    from heedful.engine.tasks.estimate import Estimate
    from heedful.engine.tasks.plan import Plan
    from heedful.engine.tasks.task import Request
    from heedful.report.export import Written
    from heedful.store.run import Run
    from heedful.studies.comparison import Finished
    from heedful.studies.part import StudyPart


@dataclass(frozen=True)
class PlannedStudy:
    """The part of a study that is to be run, as tasks."""

    name: str
    vectors: str | None
    plan: Plan
    workspace: Workspace
    missing: Mapping[str, str]  # dataset -> how to get it
    published: bool  # sizes as published: an estimate, nothing that could be run
    known: int = 0  # runs that were asked for and are known from elsewhere

    def estimate(self, cores: int | None = None) -> Estimate:
        from heedful.engine.tasks.estimate import estimate

        return estimate(self.plan, self.workspace, cores, published=self.published)

    def run(
        self, progress: Progress, engine: Engine = "local", *, cores: int | None = None, address: str | None = None
    ) -> Report:
        from heedful.engine.running.execute import execute

        if self.published:
            raise Mistake("--as-published is for --dry-run: what is not here cannot be run.")
        return execute(self.plan, self.workspace, progress, engine, cores=cores, address=address)

    def finished(self) -> list[Finished]:
        """Every finished run of the study in the folder."""
        from heedful.studies.comparison import finished_runs
        from heedful.studies.file import read_study

        return finished_runs(self.workspace.runs, read_study(self.name), self.vectors)


def compare(name: str, runs: Sequence[Finished], figure: str = "") -> str:
    """Runs of a study beside what was published: its page, as Markdown. `figure`: the Markdown of its figure."""
    from heedful.studies.comparison import page
    from heedful.studies.file import current_name, notes_of, read_study

    return page(current_name(name), runs, read_study(name), notes_of(name), figure)


def write_comparison(name: str, runs: Sequence[Finished], path: Path) -> list[Path]:
    """The page, and beside it its figure as SVG, where there is something to draw. What was written."""
    from heedful.report.export import svg
    from heedful.studies.figure import study_figure
    from heedful.studies.file import read_study

    drawn, image = study_figure(runs, read_study(name)), path.with_suffix(".svg")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(compare(name, runs, drawn.markdown(image.name) if drawn else ""), encoding="utf-8")
    if drawn is None:
        return [path]
    image.write_text(svg(drawn.spec), encoding="utf-8")
    return [path, image]


def kept_runs(name: str, path: Path) -> list[Finished]:
    """The runs of a study whose summaries a file has."""
    from heedful.studies.file import read_study
    from heedful.studies.summaries_file import read_summaries

    return read_summaries(path, read_study(name))


def keep_runs(name: str, path: Path, runs: Sequence[Finished]) -> list[Finished]:
    """Adds runs to a file of summaries, in place of those with the same setting and seed. All that it then has."""
    from heedful.studies.summaries_file import write_summaries

    before = kept_runs(name, path) if path.exists() else []
    both = {(run.setting, run.seed): run for run in (*before, *runs)}
    write_summaries(path, list(both.values()))
    return kept_runs(name, path)


def plan_study(
    name: str,
    *,
    runs: str | Path = "runs",
    data_dirs: Sequence[Path] = (),
    vectors: str | None = None,
    checkpoint_every: float = 30.0,
    gpus: float = 0.0,
    engine: str = "local",
    as_published: bool = False,
    known: Sequence[Finished] = (),
    **part: Any,
) -> PlannedStudy:
    """A study by name or TOML file. `part` is what of it (`engine.study_part.select`): datasets, encoders, seeds, ...

    `known`: runs that were finished elsewhere. They are not planned again; what was asked of them must be what is asked
    now, because one page is made of both. Which were asked by another version of an experiment is said on the page.
    """
    from heedful.engine.running.workspace import Workspace
    from heedful.engine.sources.data import DataSource
    from heedful.engine.tasks.plan import plan
    from heedful.studies.file import read_study
    from heedful.studies.part import select

    check_gpus(gpus, engine)
    data_dirs = as_paths(data_dirs)
    if not 0 <= checkpoint_every < math.inf:
        raise Mistake(f"--checkpoint-every {checkpoint_every}: seconds, 0 or more.")
    chosen = select(read_study(name), vectors=vectors, data_dirs=data_dirs, also_missing=as_published, **part)
    if not chosen.configs:
        raise Mistake(f"none of the datasets could be found: {', '.join(chosen.missing)}. See `heedful data list`.")
    asked = len(chosen.configs)
    check_alike(chosen, known, usual=part.get("split", "test") == "test" and part.get("limit") is None)
    chosen = without(chosen, known)
    workspace = Workspace(Path(runs), tuple(data_dirs), checkpoint_every, gpus)
    instead = {c.dataset: DataSource("published", 0, "size as published") for c in chosen.configs}
    planned = plan(
        chosen.configs, chosen.asks, data_dirs, instead if as_published else None, workspace.hash_file, chosen.asks_on
    )
    already = asked - len(chosen.configs)
    return PlannedStudy(name, vectors, planned, workspace, chosen.missing, as_published, already)


def check_alike(chosen: StudyPart, known: Sequence[Finished], usual: bool) -> None:
    """Refuses known runs of which the same experiment was asked in another way: of other texts, with other options.

    `usual`: of the texts that the study says. A file that is older than `asked` has nothing else.
    """
    for finished in known:
        assert finished.config is not None
        for ask in chosen.asks_of(finished.config.dataset):
            before = finished.asked.get(ask.experiment)
            if before is None and ask.experiment in finished.stored and not usual:
                raise Mistake(
                    "the file does not say which texts its runs were asked about: with --split or --limit give another."
                )
            if before is not None and before != ask.model_copy(update={"version": before.version}):
                raise Mistake(
                    f"the file has {ask.experiment} of {finished.config.dataset} as it was asked otherwise: "
                    f"{differences(before, ask)}. One page cannot be made of both: give another file."
                )


def differences(before: Request, now: Request) -> str:
    """What differs, in words: "limit was none and is 50"."""

    def settings(ask: Request) -> dict[str, Any]:
        return {"split": ask.split, "limit": ask.limit, **ask.options}

    old, new = settings(before), settings(now)
    names = [name for name in old | new if old.get(name) != new.get(name)]
    return ", ".join(f"{name} was {plain(old.get(name))} and is {plain(new.get(name))}" for name in names)


def plain(value: Any) -> str:
    return "none" if value is None else str(value)


def without(chosen: StudyPart, known: Sequence[Finished]) -> StudyPart:
    """What is left to run of a selection: the runs of which something is asked that is not known."""

    def answered(config: RunConfig) -> bool:
        asked = {ask.experiment for ask in chosen.asks_of(config.dataset)}
        return any(run.config == config and asked <= run.stored.keys() for run in known)

    return replace(chosen, configs=tuple(config for config in chosen.configs if not answered(config)))


def check_gpus(gpus: float, engine: str) -> None:
    if not 0 <= gpus < 1000 or (gpus > 1 and gpus != int(gpus)):
        raise Mistake(f"--gpus {gpus:g}: a share of one GPU (0.5), or a whole number of them.")
    if gpus and engine != "ray":
        raise Mistake("--gpus is for --engine ray: this machine's own engine computes on its CPUs.")


def states_by_run(plan: Plan, report: Report) -> dict[str, dict[str, str]]:
    """Run -> train and each experiment -> finished, failed or blocked."""
    from heedful.engine.tasks.kinds import TASK_KINDS

    state = {task.key: "finished" for task in (*report.done, *report.kept)}
    state |= {failure.task.key: "failed" for failure in report.failed}
    state |= {task.key: "blocked" for task in report.blocked}
    rows: dict[str, dict[str, str]] = {}
    for task in plan.tasks.values():
        column = TASK_KINDS[task.kind].heading(task)
        row = rows.setdefault(task.run, {})
        if row.get(column, "finished") == "finished":  # rows and summary share a column: the worse is shown
            row[column] = state[task.key]
    return rows


def failures(report: Report, workspace: Workspace) -> list[dict[str, str]]:
    """What failed, why, and the command that does this one task alone, where it is not known to fail again."""
    from heedful.engine.tasks.commands import command

    return [
        {"task": one.task.name, "error": one.error} | ({} if one.mistake else {"again": command(one.task, workspace)})
        for one in report.failed
    ]


@dataclass(frozen=True)
class Demonstration:
    """What `heedful demo` shows."""

    run: Run
    trained_on: int  # texts
    headline: str  # what all tests together say of the attention
    planted: str  # and how often it finds the planted words
    written: Written


def demonstrate(rule: str, seed: int, runs: Path, output: Path, progress: Progress) -> Demonstration:
    """Train on a built-in corpus whose deciding words are known, test its attention, and write a report."""
    from heedful.data.corpora import load as corpora
    from heedful.experiments.framework.verdict import headline
    from heedful.studies.demonstration import KNOWN_WORDS, QUESTIONS

    name = f"planted-{rule}"
    trained = train(name, seed=seed, runs=runs, embedding_dim=50, hidden_dim=64, epochs=4, progress=progress)
    corpus = corpora.load(name)
    for experiment, limit in QUESTIONS.items():
        cheaper = EXPERIMENTS[experiment].audit.within_budget if limit is not None else {}
        run(experiment, trained, limit=limit, progress=progress, **cheaper)
    command = f"heedful report {trained.path} -o {output}"
    written = write_report([trained], output, progress=progress, command=command)
    made = written.verdicts[trained.name]
    verdicts = {name: made[name] for name in (KNOWN_WORDS, *QUESTIONS) if name in made}
    texts = len(corpus["train"])
    return Demonstration(trained, texts, headline([*verdicts.values()]), verdicts[KNOWN_WORDS].sentence, written)
