"""The command line: one command is one call into the layers below.

Heavy imports are inside the commands, so that `heedful --help` answers at once. Exit codes: 0 done, 1 a
result that fails a stated bar, 2 a mistake in what was asked, 130 interrupted, 141 nobody reads the output any more.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from heedful.cli import audit, data, demo, explain, report, run, serve, study, train, words
from heedful.cli import data as doctor
from heedful.cli.options import OneOfEach
from heedful.cli.printing import Printable
from heedful.errors import Mistake, escape

INTERRUPTED, UNREAD = 130, 141  # as a shell says of SIGINT and SIGPIPE

app = typer.Typer(
    name="heedful",
    help="Which words made the model say that, and can I trust the answer?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", cls=OneOfEach)(demo.demo)
app.add_typer(data.app, name="data")
app.command("train", cls=OneOfEach)(train.train)
app.command("explain", cls=OneOfEach)(explain.explain)
app.command("cite", cls=OneOfEach)(explain.cite)
app.command("adversary", cls=OneOfEach)(explain.adversary)
app.command("counterfactual", cls=OneOfEach)(words.counterfactual)
app.command("run", cls=OneOfEach)(run.run)
app.command("study", cls=OneOfEach)(study.study)
app.command("words", cls=OneOfEach)(words.words)
app.command("audit", cls=OneOfEach)(audit.audit)
app.command("serve", cls=OneOfEach)(serve.serve)
app.command("report", cls=OneOfEach)(report.report)
app.command("doctor", cls=OneOfEach)(doctor.doctor)


def _version(wanted: bool) -> None:
    if wanted:
        from heedful import __version__

        typer.echo(f"heedful {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the full traceback of an error (allowed anywhere on the line).")
    ] = False,
) -> None:
    """Which words made the model say that, and can I trust the answer?"""


def warn_once() -> Callable[..., None]:
    """A warning in one line; the same is said once, however many methods meet it."""
    said: set[str] = set()

    def warn(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            typer.echo(f"warning: {escape(str(message))}", err=True)

    return warn


def main() -> None:
    """What the command `heedful` runs.

    Idle threads sleep instead of spinning: on a machine that does anything else, spinning costs more than it saves.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    warnings.showwarning = warn_once()
    streams = [Printable(sys.stdout), Printable(sys.stderr)]
    sys.stdout, sys.stderr = streams
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        try:
            app(arguments)
        finally:
            streams[0].flush()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            _end_unread(streams)
        raise
    except (Mistake, MemoryError, OSError) as mistake:
        if isinstance(mistake, BrokenPipeError):
            _end_unread(streams)
        if debug:
            raise
        said = str(mistake)
        if isinstance(mistake, MemoryError):
            said = f"memory ran out ({mistake}): ask for less at once."
        elif isinstance(mistake, OSError):  # a full disk, a folder that may not be written
            said = f"{mistake.filename or 'a file'} cannot be read or written: {mistake.strerror or mistake}."
        typer.echo(f"heedful: {escape(said)}", err=True)
        raise SystemExit(2) from None


def _end_unread(streams: Sequence[Printable]) -> None:
    """Where a reader has closed its end (`| head -1`), end as other programs do. Other pipes are not meant."""
    gone = [stream for stream in streams if stream.unread]
    for stream in gone:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # what is left in the buffer goes nowhere
    if gone:
        raise SystemExit(UNREAD) from None
