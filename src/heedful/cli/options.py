"""Options that several commands share, so that they are spelt and explained once."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from heedful.errors import Mistake

Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds the runs.")]
DataDir = Annotated[
    list[Path] | None,
    typer.Option(
        "--data-dir",
        help="Where corpora and vectors are looked for, before HEEDFUL_DATA and the user's folder.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
TextColumn = Annotated[
    str | None, typer.Option("--text-column", help="The column of one's own file with the text.")
]
LabelColumn = Annotated[str | None, typer.Option("--label-column", help="The column with the label.")]
QueryColumn = Annotated[
    str | None,
    typer.Option("--query-column", help="The column with the question or hypothesis, if there is one."),
]
SplitColumn = Annotated[
    str | None, typer.Option("--split-column", help="The column that says train, dev or test.")
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels", metavar="A,B,...", help="The labels in their order; otherwise found in the data, sorted."
    ),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave broken rows out and list them, instead of stopping.")
]
Setting = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting by its name, as JSON or plain; repeat."),
]


def check_output(path: Path, option: str) -> None:
    """Before any work is done for it: a file can be made there."""
    try:
        folder = next(above for above in path.absolute().parents if above.exists())
        possible = folder.is_dir() and os.access(folder, os.W_OK) and not path.is_dir()
    except (OSError, ValueError):
        possible = False
    if not possible or len(path.name.encode(errors="replace")) > 255:
        raise Mistake(f"{option} {str(path)[:200]}: no file can be written there.")


def typed() -> str:
    """The command as it was typed, for a page that says how it was made."""
    return shlex.join(["heedful", *sys.argv[1:]])


def parse_labels(text: str | None) -> tuple[str, ...] | None:
    """neg,pos; None where none are given."""
    return None if text is None else tuple(label.strip() for label in text.split(","))


def gather_data_options(
    text_column: str | None, label_column: str | None, query_column: str | None, split_column: str | None,
    labels: str | None, skip_bad: bool, **others: str | int | None
) -> dict[str, Any]:  # fmt: skip
    """What was said of the data on the command line, by the names of config.DataOptions."""
    said = {
        "text_column": text_column,
        "label_column": label_column,
        "query_column": query_column,
        "split_column": split_column,
        "labels": parse_labels(labels),
        "skip_bad": skip_bad or None,
        **others,
    }
    return {name: value for name, value in said.items() if value is not None}


def parse_settings(texts: list[str]) -> dict[str, Any]:
    """KEY=VALUE each, the value as JSON (0.05, true, null, [..]) or, if it is none, as a plain string."""
    settings: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise Mistake(f"--set {text}: KEY=VALUE is expected, for example --set epsilon=0.05.")
        try:
            settings[key] = json.loads(value)
        except RecursionError:
            raise Mistake(f"--set {key}: the value has too many brackets.") from None
        except ValueError:
            settings[key] = value
    return settings
