"""`heedful demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Quiet, Runs, check_output, watched

if TYPE_CHECKING:
    from heedful.api.studies import Demonstration


def demo(
    runs: Runs = Path("runs"),
    rule: Annotated[
        str, typer.Option(help="How labels follow from the words: single, negation, majority or order.")
    ] = "single",
    seed: Annotated[int, typer.Option(help="Seed for the weights and the order of the examples.")] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write the report to.")] = Path(
        "heedful-demo.html"
    ),
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    quiet: Quiet = False,
) -> None:
    """Train a model on a built-in corpus whose deciding words are known, test its attention, and write a report.

    Example: heedful demo --rule negation --open
    """
    from rich.console import Console

    from heedful.api.studies import demonstrate

    check_output(output, "--output")
    shown = demonstrate(rule, seed, runs, output, watched(quiet))
    for line in last_screen(shown, rule, output):
        Console(highlight=False, markup=False).print(line)
    if open_it:
        typer.launch(output.resolve().as_uri())


def last_screen(shown: Demonstration, rule: str, page: Path) -> list[str]:
    """What is left on the screen: at most twelve lines of 80 columns, for somebody who has read nothing."""
    scores = shown.run.summary("performance")
    decides = "one planted word decides the label" if rule == "single" else "a few planted words decide the label"
    return [
        f"heedful trained a classifier on {shown.trained_on:,} generated film reviews, in which {decides}. It is right "
        f"in {scores['accuracy']:.1%} of {scores['examples']:,} other reviews.",
        shown.headline,
        shown.planted,
        f"Explain a text of your own: heedful explain {shown.run.path} TEXT",
        f"The report, with every test, figure and text: {page}",
    ]
