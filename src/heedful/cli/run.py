"""`heedful run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli import options as complete


def run(
    experiment: Annotated[
        list[str],
        typer.Argument(help="An experiment; several are asked of the same model.", autocompletion=complete.experiments),
    ],
    model: Annotated[
        str,
        typer.Option("--model", help="A run folder, or a Hugging Face folder or id.", autocompletion=complete.runs),
    ],
    data: Annotated[
        str | None,
        typer.Option("--data", help="Other data than the model's own: a corpus, one's own file, or hf:ID."),
    ] = None,
    split: Annotated[str, typer.Option(help="The split of the data: train, dev or test.")] = "test",
    limit: Annotated[int | None, typer.Option(help="So many texts of the split, evenly spread.")] = None,
    method: Annotated[str | None, typer.Option(help="Of adversarial: exact or adam.")] = None,
    setting: options.Setting = None,
    text_column: options.TextColumn = None,
    label_column: options.LabelColumn = None,
    query_column: options.QueryColumn = None,
    split_column: options.SplitColumn = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Names for the labels of a Hugging Face model; with a run folder, the data's labels in order.",
        ),
    ] = None,
    skip_bad: options.SkipBad = False,
    runs: Annotated[
        Path | None,
        typer.Option("--runs", help="Where answers about other data are kept (default: beside the model)."),
    ] = None,
    cores: Annotated[int | None, typer.Option(help="Cores to use. Otherwise all that are allowed.")] = None,
    data_dir: options.DataDir = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run experiments on a model, on its own data or on others; rows and summaries are kept.

    Example: heedful run correlation adversarial --model runs/sst-bilstm-additive-s0-1a2b3c4d --limit 200
    """
    from heedful import api
    from heedful.api.experiments import parse_questions, sort_data_settings
    from heedful.cli.study import going_on, show, show_failures
    from heedful.engine.running.progress import Progress
    from heedful.engine.sources.models import RUN_FOLDERS

    given = options.parse_settings([*(setting or ()), *([f"method={method}"] if method else [])])
    data_options, settings = sort_data_settings(experiment, given)
    own = RUN_FOLDERS.claims(model)
    data_options |= options.gather_data_options(
        text_column, label_column, query_column, split_column, labels if own else None, skip_bad
    )
    asks = parse_questions(experiment, settings, split, limit)
    progress = Progress(quiet=quiet or as_json)
    with going_on(progress):
        answers = api.run_experiments(
            asks,
            model,
            data=data,
            data_options=data_options,
            labels=None if own else options.parse_labels(labels),
            runs=runs,
            data_dirs=data_dir or (),
            cores=cores,
            progress=progress,
        )
    report = answers.report
    if as_json:
        failed = {failure.task.name: failure.error for failure in report.failed}
        told = {"run": str(answers.run.path), "summaries": answers.summaries(), "failed": failed}
        typer.echo(json.dumps(told))
    else:
        show(answers.plan, report)
        show_failures(report, answers.workspace)
        for ask in asks if report.complete else ():
            typer.echo(str(answers.run.path / "results" / f"{ask.experiment}.summary.json"))
    if not report.complete:
        raise typer.Exit(1)
