"""`heedful run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli import options
from heedful.cli import options as complete
from heedful.errors import Mistake


@options.of_subject
def run(
    experiment: Annotated[
        list[str],
        typer.Argument(
            metavar="EXPERIMENT... MODEL",
            help="One or more experiments, then the model: a run folder, or a Hugging Face folder or id.",
            autocompletion=complete.experiments_and_runs,
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", help="The model, instead of as the last argument.", autocompletion=complete.runs),
    ] = None,
    data: options.Data = None,
    split: options.SplitName = "test",
    limit: options.Limit = None,
    method: Annotated[str | None, typer.Option(help="Search used by `adversarial`: exact or adam.")] = None,
    setting: options.Setting = None,
    *,
    reading: options.Reading,
    runs: Annotated[
        Path | None, typer.Option("--runs", help="Where results on other data are kept (default: beside the model).")
    ] = None,
    cores: Annotated[
        int | None, typer.Option(help="Number of cores to use. By default all that are available.")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Run experiments on a model, with its own data or others; rows and summaries are kept.

    Example: heedful run correlation adversarial runs/sst-bilstm-additive-s0-1a2b3c4d --limit 200
    """
    from heedful.api.experiments import ask_subject, parse_questions, sort_data_settings
    from heedful.cli.study import going_on, show, show_failures
    from heedful.engine.sources.subject import Subject

    experiment, model = split_model(experiment, model)
    given = options.parse_settings([*(setting or ()), *([f"method={method}"] if method else [])])
    data_options, settings = sort_data_settings(experiment, given)
    how = reading(split, settings=data_options)
    asks = parse_questions(experiment, settings, split, limit)
    progress = options.watched(quiet or as_json)
    with going_on(progress):
        subject = Subject.resolve(model, data, how).say(progress)
        answers = ask_subject(asks, subject, runs=runs, cores=cores, progress=progress)
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


def split_model(given: list[str], model: str | None) -> tuple[list[str], str]:
    """The experiments and the model: it stands last, unless it was given by --model."""
    from heedful.registry import EXPERIMENTS

    if model is not None:
        return given, model
    *names, last = given
    if not names or (last in EXPERIMENTS and not Path(last).exists()):
        known = last in EXPERIMENTS
        raise Mistake(
            f"{'which model is to be asked' if known else 'which experiment is to be run'}? Type heedful run "
            f"{' '.join(given) if known else 'EXPERIMENT'} {'MODEL' if known else last[:200]}"
            + (", a run folder or a Hugging Face folder or id." if known else f"; they are {', '.join(EXPERIMENTS)}.")
        )
    return names, last
