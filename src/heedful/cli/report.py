"""`heedful report`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli.options import Json, Quiet, check_output


@options.of_subject
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Run folders with results; with --data, models that were run on these data."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write the page to.")] = Path("report.html"),
    figures: Annotated[Path | None, typer.Option("--figures", help="Folder for each figure as PNG and SVG.")] = None,
    texts: Annotated[
        bool, typer.Option("--texts/--no-texts", help="Whether the page shows texts, or only numbers and figures.")
    ] = True,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    data: options.Data = None,
    split: options.SplitName = "test",
    *,
    reading: options.Reading,
    folder: Annotated[
        Path | None,
        typer.Option("--runs", help="With --data: where the results are (default: beside the run, otherwise `runs`)."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a self-contained page about one or several runs: verdicts, figures, examples.

    Example: heedful report runs/sst-bilstm-additive-s0-1a2b3c4d -o report.html --figures figures
    """
    from heedful import api

    check_output(output, "--output")
    words = ["heedful", "report", *map(str, runs), "-o", str(output), *([] if texts else ["--no-texts"])]
    words += [] if data is None else ["--data", data]
    how = reading(split)
    written = api.write_report(
        runs,
        output,
        figures=figures,
        texts=texts,
        data=data,
        options=how,
        folder=folder,
        progress=options.watched(quiet or as_json),
        command=shlex.join(words),
    )
    if as_json:
        typer.echo(json.dumps({"report": str(output), "figures": [str(path) for path in written.figures]}))
    else:
        typer.echo(f"{output} ({output.stat().st_size / 1e6:.1f} MB)")
        if figures is not None:
            typer.echo(f"{len(written.figures)} files in {figures}")
    if open_it:
        typer.launch(output.resolve().as_uri())
