"""`heedful demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.options import Quiet, Runs

SHOWN = 2  # texts whose attention is drawn in the terminal


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

    from heedful import api
    from heedful.data import corpora
    from heedful.engine.progress import Progress

    console, progress = Console(highlight=False), Progress(quiet=quiet)
    name = f"planted-{rule}"
    run = api.train(name, seed=seed, runs=runs, embedding_dim=50, hidden_dim=64, epochs=4, progress=progress)
    scores, model = run.summary("performance"), api.load(run)
    console.print(
        f"\nA BiLSTM with additive attention, trained on {name}: review-like sentences whose label is decided "
        f"by planted words. Test accuracy [bold]{scores['accuracy']:.3f}[/] on {scores['examples']} sentences.\n"
    )
    examples = corpora.load(name)["test"][:SHOWN]
    explanation = api.explain(model, examples, methods=["attention", "integrated_gradients"])
    for example, explained in zip(examples, explanation, strict=True):
        console.print(explained)
        planted = ", ".join(example.passage.surface(i) for i in example.evidence or ())
        console.print(f"[dim]planted:[/] {planted}\n", markup=True)
    for experiment in api.list_experiments():
        api.run(experiment, run, progress=progress)
    command = f"heedful report {run.path} -o {output}"
    written = api.write_report([run], output, progress=progress, command=command)
    for verdict in written.verdicts[run.name].values():
        console.print(f"[bold]{verdict.question} {verdict.answer}.[/] {verdict.sentence}\n")
    first = examples[0].passage.text.replace('"', "'")
    console.print(
        f'The page: {output}\nThe run: {run.path}\nAsk it yourself: heedful explain {run.path} "{first}"',
        soft_wrap=True,
    )
    if open_it:
        typer.launch(output.resolve().as_uri())
