"""`heedful study`."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.options import DataDir, Json, Quiet, Runs

if TYPE_CHECKING:
    from heedful.engine.data_sources import DataSource
    from heedful.engine.plan import Plan
    from heedful.engine.schedule import Report
    from heedful.engine.study import Selection
    from heedful.engine.workspace import Workspace


class EngineName(StrEnum):
    local = "local"
    ray = "ray"


def study(
    name: Annotated[
        str, typer.Argument(help="A published study (jain-wallace), or a TOML file of one's own.")
    ],
    dataset: Annotated[list[str] | None, typer.Option(help="Only this dataset; repeat for more.")] = None,
    encoder: Annotated[list[str] | None, typer.Option(help="Only this encoder; repeat for more.")] = None,
    attention: Annotated[list[str] | None, typer.Option(help="Only this attention; repeat for more.")] = None,
    seeds: Annotated[int | None, typer.Option(help="So many seeds, from 0.")] = None,
    experiment: Annotated[
        list[str] | None, typer.Option(help="Only this experiment; repeat for more.")
    ] = None,
    vectors: Annotated[
        str | None, typer.Option(help="Word vectors: a file, a folder, or a name in the data folder.")
    ] = None,
    split: Annotated[str, typer.Option(help="The split that the experiments ask about.")] = "test",
    limit: Annotated[int | None, typer.Option(help="So many texts of the split, evenly spread.")] = None,
    engine: Annotated[
        EngineName, typer.Option(help="local: this machine. ray: a Ray cluster.")
    ] = EngineName.local,
    address: Annotated[
        str | None,
        typer.Option(help="Of the Ray cluster: auto, or ray://HOST:PORT. Otherwise one is started."),
    ] = None,
    gpus: Annotated[
        float,
        typer.Option(help="On Ray: share of a GPU for each training and experiment (0.25: four on one)."),
    ] = 0.0,
    cores: Annotated[int | None, typer.Option(help="Cores to use. Otherwise all that are allowed.")] = None,
    checkpoint_every: Annotated[float, typer.Option(help="Seconds of training that a kill may cost.")] = 30.0,
    runs: Runs = Path("runs"),
    data_dir: DataDir = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    as_published: Annotated[
        bool, typer.Option("--as-published", help="With --dry-run: all datasets, at their published sizes.")
    ] = False,
    write: Annotated[
        Path | None,
        typer.Option("--write", help="Write the comparison here, as Markdown, instead of showing it."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train what is missing and run a study's experiments; finished work is not done twice.

    Example: heedful study jain-wallace --dataset sst --encoder bilstm --seeds 3
    """
    from heedful.engine.carry_out import carry_out
    from heedful.engine.plan import plan as make_plan
    from heedful.engine.progress import Progress
    from heedful.engine.study import read_study, select
    from heedful.engine.workspace import Workspace
    from heedful.errors import Mistake

    folders = tuple(data_dir or ())
    chosen = select(
        read_study(name),
        datasets=dataset or (),
        encoders=encoder or (),
        attentions=attention or (),
        seeds=seeds,
        experiments=experiment or (),
        vectors=vectors,
        split=split,
        limit=limit,
        data_dirs=folders,
        also_missing=as_published,
    )
    progress = Progress(quiet=quiet or as_json)
    for missing, how in chosen.missing.items():
        progress.say(f"{missing} is left out: it was not found in the data folders. To get it: {how}.")
    if not chosen.configs:
        raise Mistake(
            f"none of the datasets was found: {', '.join(chosen.missing)}. See `heedful data list`."
        )
    if as_published and not dry_run:
        raise Mistake("--as-published is for --dry-run: what is not here cannot be run.")
    check_gpus(gpus, engine)
    workspace = Workspace(runs, folders, checkpoint_every, gpus)
    plan = make_plan(
        chosen.configs, chosen.asks, folders, published_sources(chosen) if as_published else None
    )
    if dry_run:
        from heedful.engine.estimate import estimate

        found = estimate(plan, workspace, cores, published=as_published)
        typer.echo(json.dumps(found.to_json()) if as_json else found.describe())
        return
    try:
        report = carry_out(plan, workspace, progress, engine.value, cores=cores, address=address)
    except KeyboardInterrupt:
        progress.say("stopped; the same command goes on from here")
        raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(as_plain(plan, workspace, report, chosen.missing)))
    else:
        show(plan, report)
        show_failures(report, workspace)
        compare(name, vectors, runs, write)
    if not report.complete:
        raise typer.Exit(1)


def check_gpus(gpus: float, engine: EngineName) -> None:
    from heedful.errors import Mistake

    if gpus and engine is not EngineName.ray:
        raise Mistake("--gpus is for --engine ray: this machine's own engine computes on its CPUs.")
    if gpus < 0 or (gpus > 1 and gpus != int(gpus)):
        raise Mistake(f"--gpus {gpus:g}: a share of one GPU (0.5), or a whole number of them.")


def published_sources(chosen: Selection) -> dict[str, DataSource]:
    """In workspace of files: what the paper says of them."""
    from heedful.engine.data_sources import DataSource

    return {config.dataset: DataSource("published", 0, "size as published") for config in chosen.configs}


def compare(name: str, vectors: str | None, runs: Path, write: Path | None) -> None:
    """Ours beside what was published, from every finished run of the study in the folder."""
    from rich.console import Console
    from rich.markdown import Markdown

    from heedful.engine.study import notes_of, read_study
    from heedful.report.comparison import finished_runs, page

    study = read_study(name)
    found = finished_runs(runs, lambda config: study.has(config, vectors))
    text = page(name, found, study, notes_of(name))
    if write is None:
        Console(soft_wrap=True).print(Markdown(text))
    else:
        write.parent.mkdir(parents=True, exist_ok=True)
        write.write_text(text, encoding="utf-8")
        typer.echo(f"written to {write}")


def states(plan: Plan, report: Report) -> dict[str, dict[str, str]]:
    """Run -> train and each experiment -> finished, failed or blocked."""
    state = {task.key: "finished" for task in (*report.done, *report.kept)}
    state |= {failure.task.key: "failed" for failure in report.failed}
    state |= {task.key: "blocked" for task in report.blocked}
    rows: dict[str, dict[str, str]] = {}
    for task in plan.tasks.values():
        column = "train" if task.ask is None else task.ask.experiment
        row = rows.setdefault(task.run, {})
        if row.get(column, "finished") == "finished":  # rows and summary share a column: the worse is shown
            row[column] = state[task.key]
    return rows


def show(plan: Plan, report: Report) -> None:
    """One line for each run, whole however wide the terminal is."""
    rows = states(plan, report)
    headings = list(dict.fromkeys(column for row in rows.values() for column in row))
    width = max(map(len, rows), default=0)
    typer.echo("  ".join(["run".ljust(width), *(heading.ljust(11) for heading in headings)]).rstrip())
    for run, row in rows.items():
        typer.echo("  ".join([run.ljust(width), *(row[heading].ljust(11) for heading in headings)]).rstrip())
    typer.echo(
        f"{len(report.done)} tasks done, {len(report.kept)} were finished before, "
        f"{len(report.failed)} failed, {len(report.blocked)} blocked"
    )


def show_failures(report: Report, workspace: Workspace) -> None:
    from heedful.engine.commands import command

    for failure in report.failed:
        typer.echo(
            f"failed: {failure.task.name}\n  {failure.error}\n  again: {command(failure.task, workspace)}",
            err=True,
        )
    for task in report.blocked:
        if task.kind == "experiment":
            typer.echo(f"blocked: {task.name} needs what failed", err=True)


def as_plain(plan: Plan, workspace: Workspace, report: Report, missing: dict[str, str]) -> dict[str, Any]:
    from heedful.engine.commands import command

    return {
        "runs": {str(workspace.runs / run): row for run, row in states(plan, report).items()},
        "done": len(report.done),
        "kept": len(report.kept),
        "failed": [
            {"task": f.task.name, "error": f.error, "again": command(f.task, workspace)}
            for f in report.failed
        ],
        "blocked": [task.name for task in report.blocked],
        "missing": missing,
    }
