"""heedful data list | describe NAME | prepare NAME --from PATH"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli import options
from heedful.cli.options import DataDir, Json, OneOfEach

if TYPE_CHECKING:
    from heedful.data.corpora.describe import Description


app = typer.Typer(no_args_is_help=True, help="Which corpora there are, what is in them, and how to get them.")


@app.command("list", cls=OneOfEach)
def list_(data_dir: options.DataDir = None, as_json: options.Json = False) -> None:
    """List every corpus: whether it is built in, found or missing, its licence and size, and how to get it.

    Example: heedful data list --data-dir ~/corpora
    """
    from heedful.data.corpora.prepare import catalogue

    rows = catalogue(data_dir or ())
    if as_json:
        print(json.dumps([row.to_json() for row in rows], ensure_ascii=False, indent=1))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("name", "state", "size", "what", "licence", "where, or how to get it"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("name", "state", "size"))
    colours = {"found": "green", "built in": "cyan", "missing": "yellow"}
    for row in rows:
        size = "" if row.size is None else _size(row.size)
        state = f"[{colours[row.state]}]{row.state}[/]"
        table.add_row(row.name, state, size, row.title, row.licence, row.folder or row.get)
    _console().print(table)


@app.command(cls=OneOfEach)
@options.of_data
def describe(
    name: Annotated[str, typer.Argument(help="A corpus by name, a file, a folder, or hf:ID.")],
    data_dir: options.DataDir = None,
    task: Annotated[str | None, typer.Option(help="For your own files: classification, qa or nli.")] = None,
    *,
    reading: options.DataSaid,
    as_json: options.Json = False,
) -> None:
    """Describe a corpus as in Table 1 of the paper, our numbers beside the published ones.

    Example: heedful data describe sst
    """
    from heedful.config import DataOptions
    from heedful.data.corpora.describe import describe as in_numbers
    from heedful.data.corpora.load import load

    values = {**reading, **({} if task is None else {"task": task})}
    chosen = DataOptions.parse(values, f"describing {name}")
    description = in_numbers(load(name, data_dirs=data_dir or (), options=chosen))
    if as_json:
        print(json.dumps(description.to_json(), ensure_ascii=False, indent=1))
    else:
        _show(description)


@app.command(cls=OneOfEach)
def prepare(
    name: Annotated[str, typer.Argument(help="A known corpus, by name.")],
    original: Annotated[Path, typer.Option("--from", help="Folder with the unpacked original distribution.")],
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", help="Folder to write to (default: HEEDFUL_DATA, or your own data folder)."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite it if it exists.")] = False,
    skip_bad: options.SkipBad = False,
    as_json: options.Json = False,
) -> None:
    """Convert the original files of a corpus to a simple format in the data folder.

    Example: heedful data prepare imdb --from ~/Downloads/aclImdb
    """
    from heedful.data.corpora import locate
    from heedful.data.corpora.prepare import prepare as write

    folder = data_dir if data_dir is not None else locate.data_dirs()[0]
    done = write(name, original, folder, skip_bad=skip_bad, replace=replace)
    if as_json:
        result = {"folder": str(done.folder), "counts": done.counts, "left_out": done.left_out, "skipped": done.skipped}
        print(json.dumps(result, ensure_ascii=False, indent=1))
        return
    console = _console()
    for split, counts in done.counts.items():
        shown = ", ".join(f"{label} {n}" for label, n in sorted(counts.items())[:10])
        console.print(f"{split}: {sum(counts.values())} ({shown}{', ...' if len(counts) > 10 else ''})")
    for what, n in done.left_out.items():
        console.print(f"left out: {n} {what}")
    _show_skipped(done.skipped)
    console.print(f"written to {done.folder}")


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=False)


def _size(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _show(d: Description) -> None:
    from rich.markup import escape
    from rich.table import Table

    from heedful.data.corpora.describe import show_counts

    console, published = _console(), d.published
    console.print(f"[bold]{escape(d.name)}[/] ({d.task}) from {escape(d.source)}")
    labels = ", ".join(d.labels[:12]) + (f", ... ({len(d.labels)} in all)" if len(d.labels) > 12 else "")
    console.print(f"labels: {escape(labels)}")
    for split, counts in d.counts.items():
        console.print(escape(f"{split}: {show_counts(counts)}"))
    table = Table(box=None, pad_edge=False)
    for heading in ("", "vocabulary", "mean length", "train", "test"):
        table.add_column(heading)
    totals = published is not None and len(published.train) == 1  # the table has no classes for QA
    train, test = ((sum(d.train),), (sum(d.test),)) if totals or len(d.labels) > 12 else (d.train, d.test)
    table.add_row("ours", str(d.vocabulary), f"{d.mean_length:.0f}", _slashes(train), _slashes(test))
    if published is not None:
        p = published
        row = (str(p.vocabulary), str(p.mean_length), _slashes(p.train), _slashes(p.test))
        table.add_row("Jain & Wallace 2019", *row)
    console.print(table)
    if published is not None:
        console.print(f"published test score (BiLSTM): {published.score} {published.metric}")
    if d.differences:
        console.print(f"counts differ from the paper's: {'; '.join(d.differences)}")
    if d.with_evidence:
        console.print(f"with known evidence: {d.with_evidence}")
    console.print(f"example {escape(str(d.example['id']))}: {escape(' '.join(d.example['words']))}")
    for key in ("query", "evidence", "label"):
        if key in d.example:
            value = d.example[key]
            console.print(f"  {key}: {escape(value if isinstance(value, str) else ' '.join(value))}")
    _show_skipped(d.skipped)
    for warning in d.warnings:
        console.print(f"[yellow]warning:[/] {escape(warning)}")


def _show_skipped(skipped: tuple[str, ...]) -> None:
    from rich.markup import escape

    if skipped:
        _console().print(f"skipped {len(skipped)}:")
        for sentence in skipped:
            _console().print(f"  {escape(sentence)}")


def _slashes(counts: tuple[int, ...]) -> str:
    return " / ".join(map(str, counts))


# `heedful doctor`.


def doctor(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Check the installation: packages, corpora and vectors that are there or missing, and how to get them.

    Example: heedful doctor
    """
    from heedful.api.lists import inspect_installation

    found = inspect_installation(data_dir or ())
    if as_json:
        typer.echo(json.dumps(found))
        return
    typer.echo(f"Python {found['python']}, {found['cores']} cores")
    packages = (f"{name} {number or 'MISSING'}" for name, number in found["packages"].items())
    typer.echo(f"Packages: {', '.join(packages)}")
    for extra, versions in found["extras"].items():
        missing = [name for name, number in versions.items() if number is None]
        state = f"missing {', '.join(missing)}: pip install 'heedful[{extra}]'" if missing else "installed"
        typer.echo(f"Extra {extra}: {state}")
    added = [f"{one['what']} {one['name']} (of {one['package']})" for one in found["added"]]
    typer.echo(f"Added by other packages: {', '.join(added) or 'nothing'}")
    for folder, there in found["data_folders"].items():
        typer.echo(f"Data folder {folder}: {'found' if there else 'not there'}")
    for state in sorted(set(found["corpora"].values())):
        names = (name for name, one in found["corpora"].items() if one == state)
        typer.echo(f"Corpora {state}: {', '.join(names)}")
    typer.echo(f"Word vectors: {', '.join(map(str, found['vectors'])) or 'none found'}")
    typer.echo("More: heedful data list")
