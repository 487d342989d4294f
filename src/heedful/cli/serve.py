"""`heedful serve`."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from heedful.cli.options import DataDir
from heedful.data.corpora import locate
from heedful.errors import Mistake

GRACE = 2  # seconds that answers under way have when the server ends
PORTS = 20  # tried one after the other where none was asked for


def serve(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="RUN...", help="Run folders to show. By default all of --runs.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--runs", help="A folder of runs (default: `runs`, if no RUN is given).")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any other than this machine's is open to the network.")
    ] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="Port to listen on (default: the first free one from 8765).")] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the overview in the browser.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Browse runs and texts and try out the models, in a browser on this machine.

    Example: heedful serve --runs runs --open
    """
    try:
        import uvicorn

        from heedful.figures import script
        from heedful.server.app import create_app
        from heedful.server.stored.library import Library
    except ImportError as error:
        raise Mistake(f"serve needs {error.name}: pip install 'heedful[web]'.") from None
    if folder is not None and not locate.is_dir(folder):
        raise Mistake(f"--runs {str(folder)[:200]} is not a folder.")
    library = Library(folder if folder is not None or runs else Path("runs"), runs or ())
    everywhere = host in ("0.0.0.0", "::")
    name = f"[{host}]" if ":" in host else host
    application = create_app(
        library, data_dir or (), [socket.gethostname() if everywhere else name], any_address=everywhere
    )
    listening = listen(host, port)
    address = f"http://{'127.0.0.1' if everywhere else name}:{listening.getsockname()[1]}/"
    typer.echo(f"{len(library.entries())} runs at {address} (Ctrl-C ends it)")
    if host not in ("127.0.0.1", "localhost", "::1"):
        typer.echo(f"Anyone who can reach {host} can read these runs and texts.", err=True)
    if open_browser:
        typer.launch(address)
    script.expect()
    settings = uvicorn.Config(
        application, log_level="warning", lifespan="off", server_header=False, timeout_graceful_shutdown=GRACE
    )

    class Ending(uvicorn.Server):
        """Ends questions under way with itself: their threads look whether they are still wanted."""

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            application.close()
            super().handle_exit(sig, frame)

    try:
        Ending(settings).run(sockets=[listening])
    except KeyboardInterrupt:  # uvicorn raises the signal again that ended it
        sys.stdout.flush()
        os._exit(0)  # without waiting for corpora that are still being read


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens; without a port, at the first free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in [port] if port is not None else range(8765, 8765 + PORTS):
        made = socket.socket(family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, candidate))
        except (OSError, OverflowError, TypeError, UnicodeError) as error:
            made.close()
            reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        else:
            made.listen(256)
            return made
    where = f"--port {port}" if port is not None else f"ports 8765 to {8765 + PORTS - 1}"
    raise Mistake(f"cannot listen at {host}, {where}: {reason}.")
