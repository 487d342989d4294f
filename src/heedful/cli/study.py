"""`heedful study`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options as complete
from heedful.cli.options import DataDir, Json, Quiet, Runs, check_output
from heedful.errors import Mistake

if TYPE_CHECKING:
    from heedful.api.studies import PlannedStudy
    from heedful.engine.running.progress import Progress
    from heedful.engine.running.schedule import Report
    from heedful.engine.running.workspace import Workspace
    from heedful.engine.tasks.plan import Plan
    from heedful.studies.comparison import Finished


class EngineName(StrEnum):
    local = "local"
    ray = "ray"


def study(
    name: Annotated[
        str,
        typer.Argument(
            help="A published study (jain-wallace), or your own TOML file.", autocompletion=complete.studies
        ),
    ],
    dataset: Annotated[list[str] | None, typer.Option(help="Only this dataset. Repeatable.")] = None,
    encoder: Annotated[list[str] | None, typer.Option(help="Only this encoder. Repeatable.")] = None,
    attention: Annotated[list[str] | None, typer.Option(help="Only this attention. Repeatable.")] = None,
    variant: Annotated[
        list[str] | None, typer.Option(help="Only this variant of the configuration. Repeatable.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, counted from 0.")] = None,
    experiment: Annotated[list[str] | None, typer.Option(help="Only this experiment. Repeatable.")] = None,
    vectors: Annotated[
        str | None, typer.Option(help="Word vectors: a file, a folder, or a name in the data folder.")
    ] = None,
    split: Annotated[str, typer.Option(help="The split that the experiments use.")] = "test",
    limit: Annotated[int | None, typer.Option(help="Use only this many texts, evenly spread over the split.")] = None,
    engine: Annotated[
        EngineName, typer.Option(help="Where to compute: local (this machine) or ray (a Ray cluster).")
    ] = EngineName.local,
    address: Annotated[
        str | None,
        typer.Option(help="Address of the Ray cluster: auto, or ray://HOST:PORT. By default one is started."),
    ] = None,
    gpus: Annotated[
        float, typer.Option(help="With Ray: share of a GPU for each training and experiment (0.25: four share one).")
    ] = 0.0,
    cores: Annotated[
        int | None, typer.Option(help="Number of cores to use. By default all that are available.")
    ] = None,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints of a training: the most that is lost when it is killed.")
    ] = 30.0,
    runs: Runs = Path("runs"),
    data_dir: DataDir = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, without doing it.")] = False,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="With --dry-run: plan for all datasets at their published sizes.")
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option(
            "--write",
            help="Write the comparison to this Markdown file, with its figure beside it (.svg), instead of showing it.",
        ),
    ] = None,
    summaries: Annotated[
        Path | None,
        typer.Option(
            "--summaries",
            help="Add the summaries of the runs to this small Parquet file and compare everything in it; runs that "
            "it already holds are not repeated. Use --from to compare without running anything.",
        ),
    ] = None,
    kept: Annotated[
        Path | None, typer.Option("--from", help="Run nothing: make the comparison from the summaries in this file.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a study: train what is missing, then run its experiments. Finished work is not repeated.

    Example: heedful study jain-wallace --dataset sst --encoder bilstm --seeds 3
    """
    from heedful.api.studies import keep_runs, kept_runs, plan_study

    for path, option in ((write, "--write"), (summaries, "--summaries")):
        if path is not None:
            check_output(path, option)
    name = say_new_name(name)
    if kept is not None:
        show_comparison(name, kept_runs(name, kept), write)
        return
    # read before anything is run: what cannot be added to is said, and what is there is not run again
    known = kept_runs(name, summaries) if summaries is not None and summaries.exists() else []
    planned = plan_study(
        name,
        runs=runs,
        data_dirs=data_dir or (),
        vectors=vectors,
        checkpoint_every=checkpoint_every,
        gpus=gpus,
        engine=engine.value,
        as_published=as_published,
        known=known,
        datasets=dataset or (),
        encoders=encoder or (),
        attentions=attention or (),
        variants=variant or (),
        seeds=seeds,
        experiments=experiment or (),
        split=split,
        limit=limit,
    )
    progress = complete.watched(quiet or as_json)
    for missing, how in planned.missing.items():
        progress.say(f"{missing} is left out: it was not found in the data folders. To get it: {how}.")
    if planned.known:
        progress.say(f"{planned.known} of the runs asked for are in {summaries} already")
    if cores is not None and cores < 1:
        raise Mistake(f"--cores {cores}: at least one core is needed.")
    if dry_run:
        found = planned.estimate(cores)
        typer.echo(json.dumps(found.to_json()) if as_json else found.describe())
        return
    with going_on(progress):
        report = planned.run(progress, engine.value, cores=cores, address=address)
    finished = planned.finished()
    if summaries is not None:
        finished = keep_runs(name, summaries, finished)
        progress.say(f"summaries of {len(finished)} runs are in {summaries}")
    if as_json:
        typer.echo(json.dumps(as_plain(planned, report)))
    else:
        show(planned.plan, report)
        show_failures(report, planned.workspace)
        show_comparison(name, finished, write)
    if not report.complete:
        raise typer.Exit(1)


@contextmanager
def going_on(progress: Progress) -> Iterator[None]:
    """Ctrl-C ends a command that can be given again."""
    try:
        yield
    except KeyboardInterrupt:
        progress.say("stopped; the same command goes on from here")
        raise typer.Exit(130) from None


def show_comparison(name: str, runs: Sequence[Finished], write: Path | None) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    from heedful.api.studies import compare, write_comparison

    if write is None:
        Console(soft_wrap=True).print(Markdown(compare(name, runs)))
        return
    for path in write_comparison(name, runs, write):
        typer.echo(f"written to {path}")


def say_new_name(name: str) -> str:
    """A study's name of today; who typed an older one is told, beside the results."""
    from heedful.studies.file import current_name

    current = current_name(name)
    if current != name:
        typer.echo(f"The study `{name}` is now called `{current}`; both names work.", err=True)
    return current


def show(plan: Plan, report: Report) -> None:
    """One line for each run, whole however wide the terminal is."""
    from heedful.api.studies import states_by_run

    rows = states_by_run(plan, report)
    headings = list(dict.fromkeys(column for row in rows.values() for column in row))
    width = max(map(len, rows), default=0)
    typer.echo("  ".join(["run".ljust(width), *(heading.ljust(11) for heading in headings)]).rstrip())
    for run, row in rows.items():
        cells = (row.get(heading, "").ljust(11) for heading in headings)
        typer.echo("  ".join([run.ljust(width), *cells]).rstrip())
    typer.echo(
        f"{len(report.done)} tasks done, {len(report.kept)} were finished before, "
        f"{len(report.failed)} failed, {len(report.blocked)} blocked"
    )


def show_failures(report: Report, workspace: Workspace) -> None:
    from heedful.api.studies import failures

    for failed in failures(report, workspace):
        again = f"\n  again: {failed['again']}" if "again" in failed else ""
        typer.echo(f"failed: {failed['task']}\n  {failed['error']}{again}", err=True)
    for task in report.blocked:
        if task.kind == "experiment":
            typer.echo(f"blocked: {task.name} needs what failed", err=True)


def as_plain(planned: PlannedStudy, report: Report) -> dict[str, Any]:
    from heedful.api.studies import failures, states_by_run

    rows = states_by_run(planned.plan, report)
    return {
        "runs": {str(planned.workspace.runs / run): row for run, row in rows.items()},
        "done": len(report.done),
        "kept": len(report.kept),
        "failed": failures(report, planned.workspace),
        "blocked": [task.name for task in report.blocked],
        "missing": dict(planned.missing),
    }
