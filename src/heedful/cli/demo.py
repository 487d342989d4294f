"""`heedful demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Quiet, Runs, check_output


def demo(
    runs: Runs = Path("runs"),
    rule: Annotated[str, typer.Option(help="single, negation, majority or order.")] = "single",
    seed: Annotated[int, typer.Option(help="Decides weights and order of the examples.")] = 0,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("heedful-demo.html"),
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    quiet: Quiet = False,
) -> None:
    """Train on the built-in corpus, whose deciding words are known, put its attention on trial, and write a page.

    Example: heedful demo --rule negation --open
    """
    from rich.console import Console

    from heedful.api.studies import demonstrate
    from heedful.engine.running.progress import Progress

    check_output(output, "--output")
    console = Console(highlight=False)
    shown = demonstrate(rule, seed, runs, output, Progress(quiet=quiet))
    scores = shown.run.summary("performance")
    console.print(
        f"\nA BiLSTM with additive attention, trained on planted-{rule}: review-like sentences whose label is decided "
        f"by planted words. Test accuracy [bold]{scores['accuracy']:.3f}[/] on {scores['examples']} sentences.\n"
    )
    for example, explained in zip(shown.examples, shown.explanation, strict=True):
        console.print(explained)
        planted = ", ".join(example.passage.surface(i) for i in example.evidence or ())
        console.print(f"[dim]planted:[/] {planted}\n", markup=True)
    for verdict in shown.written.verdicts[shown.run.name].values():
        console.print(f"[bold]{verdict.question} {verdict.answer}.[/] {verdict.sentence}\n")
    first = shown.examples[0].passage.text.replace('"', "'")
    console.print(
        f'The page: {output}\nThe run: {shown.run.path}\nAsk it yourself: heedful explain {shown.run.path} "{first}"',
        soft_wrap=True,
    )
    if open_it:
        typer.launch(output.resolve().as_uri())
