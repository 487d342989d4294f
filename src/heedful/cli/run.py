"""`heedful run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.cli.options import DataDir, Json, Quiet, Setting, parse_settings


def run(
    experiment: Annotated[
        list[str], typer.Argument(help="An experiment; several are asked of the same run.")
    ],
    model: Annotated[Path, typer.Option("--model", help="A run folder.")],
    split: Annotated[str, typer.Option(help="The split of the run's corpus: train, dev or test.")] = "test",
    limit: Annotated[int | None, typer.Option(help="So many texts of the split, evenly spread.")] = None,
    method: Annotated[str | None, typer.Option(help="Of adversarial: exact or adam.")] = None,
    setting: Setting = None,
    cores: Annotated[int | None, typer.Option(help="Cores to use. Otherwise all that are allowed.")] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run experiments on a trained model; rows and summaries are kept in its folder.

    Example: heedful run correlation adversarial --model runs/sst-bilstm-additive-s0-1a2b3c4d --limit 200
    """
    from heedful.cli.study import show, show_failures
    from heedful.engine.carry_out import carry_out
    from heedful.engine.plan import plan_for_run
    from heedful.engine.progress import Progress
    from heedful.engine.workspace import Workspace
    from heedful.errors import Mistake
    from heedful.store.run import Run

    if not model.is_dir():
        raise Mistake(f"--model {model} is not a folder; `heedful train` makes run folders.")
    opened = Run(model.resolve())
    settings = [*(setting or ()), *([f"method={method}"] if method else [])]
    asks = questions(list(dict.fromkeys(experiment)), settings, split, limit)
    folders = tuple(data_dir or ())
    plan = plan_for_run(opened, asks, folders)
    workspace = Workspace(opened.path.parent, folders)
    progress = Progress(quiet=quiet or as_json)
    try:
        if len(asks) == 1:  # in this process, where an error shows itself in full
            report = carry_out(plan, workspace, progress, "here", cores=cores, strict=True)
        else:
            report = carry_out(plan, workspace, progress, "local", cores=cores)
    except KeyboardInterrupt:
        progress.say("stopped; the same command goes on from here")
        raise typer.Exit(130) from None
    if as_json:
        failed = {failure.task.name: failure.error for failure in report.failed}
        summaries = (
            {ask.experiment: opened.results.summary(ask.experiment) for ask in asks} if not failed else {}
        )
        typer.echo(json.dumps({"run": str(model), "summaries": summaries, "failed": failed}))
    else:
        show(plan, report)
        show_failures(report, workspace)
        for ask in asks if report.complete else ():
            typer.echo(str(model / "results" / f"{ask.experiment}.summary.json"))
    if not report.complete:
        raise typer.Exit(1)


def questions(names: list[str], settings: list[str], split: str, limit: int | None) -> list[Any]:
    """Each setting goes to every experiment that has it; one that none has is a mistake."""
    from heedful import experiments
    from heedful.engine.plan import ask
    from heedful.errors import Mistake

    given = parse_settings(settings)
    known = {name: set(experiments.find(name).config.model_fields) for name in names}
    for key in given:
        if not any(key in fields for fields in known.values()):
            all_known = ", ".join(sorted(set().union(*known.values())))
            raise Mistake(f"--set {key}: none of the experiments has this setting. Known: {all_known}.")
    return [
        ask(name, {key: value for key, value in given.items() if key in known[name]}, split, limit)
        for name in names
    ]
