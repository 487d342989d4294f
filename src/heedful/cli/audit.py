"""`heedful audit`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli import options

if TYPE_CHECKING:
    from heedful.auditing.record import Audit


@options.of_subject
def audit(
    model: Annotated[str, typer.Argument(help="A run folder, or a Hugging Face folder or id.")],
    data: options.Data = None,
    split: options.SplitName = "test",
    budget: Annotated[
        str, typer.Option(help="Time budget (90s, 5m, 1h30m). Less time means fewer texts and wider intervals.")
    ] = "5m",
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            help="Also audit this explainer, one that is left out by default because it is slow (lime). Repeatable.",
        ),
    ] = None,
    experiment: Annotated[
        list[str] | None,
        typer.Option(
            "--experiment",
            help="Also run this experiment, one that is left out by default because it is slow. Repeatable.",
        ),
    ] = None,
    plant: Annotated[
        bool,
        typer.Option(
            "--plant", help="Plant a shortcut in a copy of the data and the model, and test whether explainers find it."
        ),
    ] = False,
    shortcut: Annotated[
        str | None, typer.Option("--shortcut", help="Which shortcut to --plant: single, ordered or context.")
    ] = None,
    bar: Annotated[
        list[str] | None,
        typer.Option(
            *("--require", "--bar"),
            metavar="REQUIREMENT",
            help="For example 'faithfulness(lrp).comprehensiveness >= 0.2'. Exit code 1 if it is not met. Repeatable.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write the page to this file (.html).")
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the requirements to this file as JUnit XML.")
    ] = None,
    model_card: Annotated[
        Path | None, typer.Option("--model-card", help="Write a section for a model card to this file (.md).")
    ] = None,
    annotate: Annotated[
        bool, typer.Option("--annotate", help="Print annotations for GitHub (always on under GitHub Actions).")
    ] = False,
    *,
    reading: options.Reading,
    setting: options.Setting = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random order in which texts are asked about.")] = 0,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="Where results are kept (default: beside the run, otherwise `runs`).")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be computed, without computing it.")
    ] = False,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Find out which explainer to use for a model, which to avoid, and how certain that is.

    Example: heedful audit my-checkpoint --data reviews.csv --budget 5m -o audit.html
    """
    from heedful.auditing.ask.audit import execute, given_texts, keep, prepare, write_files
    from heedful.cli.study import going_on
    from heedful.report.export import check_page

    if output is not None:
        check_page(output)
    for option, path in (("--output", output), ("--junit", junit), ("--model-card", model_card)):
        if path is not None:
            options.check_output(path, option)
    how = reading(split, settings=options.parse_settings(setting or []))
    progress = options.watched(quiet or as_json)
    texts = given_texts(None, None, data, how, runs)
    with going_on(progress):
        named = (bar or (), method or (), experiment or (), shortcut or plant)
        prepared = prepare(model, texts, budget, *named, progress, seed)
        if dry_run:
            typer.echo(prepared.preview())
            return
        found = execute(prepared, options.typed())
        keep(found)
        write_files(found, output, junit, model_card)
    if as_json:
        from heedful.auditing.record import plain

        typer.echo(json.dumps(plain(found.to_json()), ensure_ascii=False))
    else:
        show(found, [output, junit, model_card])
    if annotate or os.environ.get("GITHUB_ACTIONS") == "true":
        from heedful.auditing.pages.exports import annotation_lines

        for line in annotation_lines(found):
            typer.echo(line, err=as_json)
    if open_it:
        page = output or (found.subject.folder / "audit.html" if found.subject.folder else None)
        if page is not None:
            typer.launch(page.resolve().as_uri())
    if not found.passed:
        raise typer.Exit(1)


def show(found: Audit, written: list[Path | None]) -> None:
    """Table, recommendation, bars, what was left out; whole, however wide the terminal is."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from heedful.auditing.outcome.budget import in_time
    from heedful.auditing.outcome.table import HEADER, cells
    from heedful.experiments.framework.verdict import MARKS

    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    table = Table(*HEADER, box=SIMPLE, title=None)
    for line in cells(found):
        table.add_row(*line.cells)
    console.print(table)
    for sentence in found.recommendation:
        typer.echo(sentence)
    typer.echo(found.decided)
    typer.echo(found.sensitivity)
    for warning in found.warnings:
        typer.echo(f"Note: {warning}")
    if found.verdicts:
        typer.echo("\nIts attention:")
        for verdict in found.verdicts.values():
            typer.echo(f"  {MARKS[verdict.grade]} {verdict.question} {verdict.answer}.")
    if found.outcomes:
        typer.echo("\nRequirements:")
        for outcome in found.outcomes:
            typer.echo(f"  {'✓' if outcome.met else '✗'} {outcome.sentence}")
    asked = ", ".join(f"{one.experiment} {one.texts:,}" for one in found.questions)
    typer.echo(f"\nTexts (of {found.subject.size:,}): {asked}. {in_time(found.seconds)} of {in_time(found.budget)}.")
    for reason in found.left_out_in_short:
        typer.echo(f"Left out: {reason}")
    if found.subject.folder is not None:
        typer.echo(f"Kept in {found.subject.folder} (heedful serve {found.subject.folder})")
    for path in written:
        if path is not None:
            typer.echo(str(path))
