"""`heedful doctor`."""

from __future__ import annotations

import json

import typer

from heedful.cli.options import DataDir, Json


def doctor(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Say what is installed, which corpora and vectors are found, what is missing and how to get it.

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
