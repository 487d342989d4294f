"""Options that several commands share, so that they are spelt and explained once."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from heedful.errors import Mistake, short

if TYPE_CHECKING:
    from heedful.engine.running.progress import Progress
    from heedful.engine.sources.subject import SubjectOptions

Runs = Annotated[Path, typer.Option("--runs", help="The folder that holds the runs.")]
DataDir = Annotated[
    list[Path] | None,
    typer.Option(
        "--data-dir",
        help="Folder to search for corpora and vectors, before HEEDFUL_DATA and your own data folder. Repeatable.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
TextColumn = Annotated[
    str | None, typer.Option("--text-column", help="The column that holds the text (your own file).")
]
LabelColumn = Annotated[str | None, typer.Option("--label-column", help="The column that holds the label.")]
QueryColumn = Annotated[
    str | None,
    typer.Option("--query-column", help="The column that holds the question or hypothesis, if there is one."),
]
SplitColumn = Annotated[str | None, typer.Option("--split-column", help="The column that says train, dev or test.")]
Labels = Annotated[
    str | None,
    typer.Option("--labels", metavar="A,B,...", help="The labels, in order. By default those in the data, sorted."),
]
# Of every command that takes a model and data.
Data = Annotated[
    str | None,
    typer.Option(
        "--data", help="The texts: a corpus by name, your own file or folder, or hf:ID. By default the run's own data."
    ),
]
SplitName = Annotated[str, typer.Option("--split", help="The split to use: train, dev or test.")]
Limit = Annotated[int | None, typer.Option("--limit", help="Use only this many texts, evenly spread over the split.")]
ModelLabels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        metavar="A,B,...",
        help="Names for the labels of a Hugging Face model; for a run folder, the labels of the data, in order.",
    ),
]
LabelMap = Annotated[
    str | None,
    typer.Option(
        "--label-map",
        metavar="good=positive,...",
        help="Maps each label of the data (left) to one of the model (right), where the names differ.",
    ),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype",
        help="Precision of a Hugging Face model: float32, float64, float16, bfloat16, or auto (that of the file, but "
        "float32 instead of 16 bits on a CPU).",
    ),
]
Device = Annotated[str | None, typer.Option("--device", help="Device to compute on: cpu, cuda or mps.")]
BatchSize = Annotated[int | None, typer.Option("--batch-size", help="Largest number of texts in one forward pass.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip broken rows and list them instead of stopping.")]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Any other setting by name; the value is JSON or plain text. Repeatable."
    ),
]

COLUMNS = {
    "text_column": TextColumn,
    "label_column": LabelColumn,
    "query_column": QueryColumn,
    "split_column": SplitColumn,
    "labels": Labels,
    "skip_bad": SkipBad,
}
SUBJECT = {
    **COLUMNS,
    "labels": ModelLabels,
    "label_map": LabelMap,
    "dtype": Dtype,
    "device": Device,
    "batch_size": BatchSize,
    "data_dir": DataDir,
}
DataSaid = dict[str, Any]
Reading = Callable[..., "SubjectOptions"]  # of a split
Command = Callable[..., None]


def taking(options: Mapping[str, Any], gather: Callable[[dict[str, Any]], Any]) -> Callable[[Command], Command]:
    """A command that has these options in place of its parameter `reading`, which is what `gather` makes of them."""
    shared = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=False if name == "skip_bad" else None, annotation=option)
        for name, option in options.items()
    ]

    def wrap(command: Command) -> Command:
        def called(**given: Any) -> None:
            said = {name: given.pop(name) for name in options}
            command(**given, reading=gather(said))

        parameters: list[Parameter] = []
        for one in signature(command, eval_str=True).parameters.values():
            parameters += shared if one.name == "reading" else [one.replace(kind=Parameter.KEYWORD_ONLY)]
        called.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {one.name: one.annotation for one in parameters}
        called.__name__, called.__doc__ = command.__name__, command.__doc__
        return called

    return wrap


def of_data(command: Command) -> Command:
    """It reads data."""
    return taking(COLUMNS, data_options)(command)


def of_subject(command: Command) -> Command:
    """It reads data and asks a model: `reading(split)` is both."""
    return taking(SUBJECT, lambda said: partial(subject_options, said))(command)


class OneOfEach(TyperCommand):
    """A command that refuses an option that takes one value and is given twice: the last would win in silence."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        single = [p for p in order if isinstance(p, TyperOption) and not p.multiple and not p.is_flag]
        for option in single:
            if single.count(option) > 1:
                raise Mistake(f"{option.opts[0]} is given twice, but takes one value: give it once.")
        ctx.call_on_close(_at_end.close)
        return super().parse_args(ctx, args)


_at_end = ExitStack()  # of the command under way


def watched(quiet: bool) -> Progress:
    """Progress of the command under way, which shows signs of life until it ends."""
    from heedful.engine.running.progress import Progress

    progress = Progress(quiet=quiet)
    if not quiet:
        _at_end.callback(progress.watch())
    return progress


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


def data_options(said: Mapping[str, Any]) -> dict[str, Any]:
    """What was said of the data on the command line, by the names of config.DataOptions."""
    given = {**said, "labels": parse_labels(said["labels"]), "skip_bad": said["skip_bad"] or None}
    return {name: value for name, value in given.items() if value is not None}


def parse_label_map(text: str | None) -> dict[str, str] | None:
    """good=positive,bad=negative; or a JSON object, for names that hold a comma or an equals sign."""
    if text is None:
        return None
    if text.lstrip().startswith("{"):
        try:
            pairs = json.loads(text)
        except (ValueError, RecursionError):
            pairs = None
    else:
        parts = [part.partition("=") for part in text.split(",")]
        pairs = {label.strip(): name.strip() for label, _, name in parts}
        pairs = None if len(pairs) < len(parts) else pairs
    if not isinstance(pairs, dict) or not all(isinstance(n, str) and n and label for label, n in pairs.items()):
        raise Mistake(
            f"--label-map {short(text)}: give each label of the data once, with its label in the model: "
            "good=positive,bad=negative."
        )
    return pairs


def subject_options(
    said: dict[str, Any], split: str, settings: Mapping[str, Any] | None = None, queries: bool = False
) -> SubjectOptions:
    """What was said of model and data on the command line; `settings` of the data by their names, from --set."""
    from heedful.api.models import subject_options as made

    label_map, data_dir = parse_label_map(said.pop("label_map")), said.pop("data_dir")
    dtype, device, batch_size = (said.pop(name) for name in ("dtype", "device", "batch_size"))
    labels = parse_labels(said["labels"])
    reading = {**(settings or {}), **data_options({**said, "labels": None})}
    return made(reading, labels, label_map, split, dtype, device, batch_size, data_dir or (), queries)


def parse_settings(texts: list[str]) -> dict[str, Any]:
    """KEY=VALUE each, each key once, the value as JSON (0.05, true, null, [..]) or, if it is not, as a plain string."""
    from heedful.config import read_settings

    return read_settings(texts, "--set", "--set epsilon=0.05")


# What a shell offers after TAB, each with what it is. Nothing here loads torch: a shell waits for it.
#
# `heedful --install-completion` sets it up for bash, zsh, fish and PowerShell.


Offers = list[tuple[str, str]]  # what can be typed, and what it is


def starting(with_: str, offers: Iterable[tuple[str, str]]) -> Offers:
    return [(name, " ".join(what.split())) for name, what in offers if name.startswith(with_)]


def explainers(incomplete: str) -> Offers:
    """Each with what it is called, what kind it is, and what it costs."""
    from heedful.explainers.methods import ALL, loadable

    known = [(one.name, f"{one.label}, {one.kind}, {one.cost}") for one in loadable()]
    return starting(incomplete, [(ALL, "every method that the model can be asked by"), *known])


def experiments(incomplete: str) -> Offers:
    from heedful.registry import EXPERIMENTS

    names = [name for name in EXPERIMENTS if name.startswith(incomplete)]
    return [(name, EXPERIMENTS[name].question) for name in names]


def experiments_and_runs(incomplete: str) -> Offers:
    return [*experiments(incomplete), *runs(incomplete)]


def corpora(incomplete: str) -> Offers:
    from heedful.data.corpora.registry import CORPORA

    return starting(incomplete, [(name, entry.title) for name, entry in CORPORA.items()])


def studies(incomplete: str) -> Offers:
    from heedful.studies.file import read_study, study_names

    names = [name for name in study_names() if name.startswith(incomplete)]
    return [(name, read_study(name).title) for name in names]


def encoders(incomplete: str) -> Offers:
    return starting(
        incomplete,
        {
            "bilstm": "two LSTMs, the usual one",
            "bigru": "two GRUs",
            "cnn": "convolutions of several widths",
            "average": "each word by itself",
            "transformer": "one layer of self-attention",
            "none": "attention on the word vectors",
        }.items(),
    )


def runs(incomplete: str) -> Offers:
    """Run folders in `runs`, or where the beginning of a path points to, with what was trained on what."""
    begun = Path(incomplete)
    folder = begun if incomplete.endswith("/") else begun.parent if "/" in incomplete else Path("runs")
    found: Offers = []
    for config in sorted(folder.glob("*/config.json")) if folder.is_dir() else ():
        try:
            told = json.loads(config.read_text(encoding="utf-8"))
            about = f"{told['config']['dataset']}, {told.get('model', {}).get('description', '')}".rstrip(", ")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # a folder that is not a run is not offered
        found.append((str(config.parent), about))
    return starting(incomplete, found)
