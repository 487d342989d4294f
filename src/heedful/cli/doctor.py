"""`heedful doctor`."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError, requires, version

import typer

from heedful.cli.options import DataDir, Json

EXTRAS = {
    "hf": ("transformers", "tokenizers", "datasets"),
    "surrogate": ("lime", "shap"),
    "ray": ("ray",),
    "web": ("duckdb", "fastapi", "uvicorn"),
}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def doctor(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Say what is installed, which corpora and vectors are found, what is missing and how to get it.

    Example: heedful doctor
    """
    import os
    import re

    from heedful.data.catalogue import catalogue
    from heedful.data.locate import data_dirs
    from heedful.data.vectors import vectors_in

    core = sorted(
        {re.split(r"[<>=;\[ ]", line)[0] for line in requires("heedful") or () if "extra ==" not in line}
    )
    installed = {name: _version(name) for name in core}
    extras = {extra: {name: _version(name) for name in names} for extra, names in EXTRAS.items()}
    folders = data_dirs(data_dir or ())
    found = catalogue(data_dir or ())
    report = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "packages": installed,
        "extras": extras,
        "data_folders": {str(folder): folder.is_dir() for folder in folders},
        "corpora": {row.name: row.state for row in found},
        "vectors": vectors_in(folders),
    }
    if as_json:
        typer.echo(json.dumps(report))
        return
    typer.echo(f"Python {report['python']}, {report['cores']} cores")
    typer.echo(
        "Packages: " + ", ".join(f"{name} {number or 'MISSING'}" for name, number in installed.items())
    )
    for extra, packages in extras.items():
        missing = [name for name, number in packages.items() if number is None]
        state = f"missing {', '.join(missing)}: pip install 'heedful[{extra}]'" if missing else "installed"
        typer.echo(f"Extra {extra}: {state}")
    for folder in folders:
        typer.echo(f"Data folder {folder}: {'found' if folder.is_dir() else 'not there'}")
    for state in sorted({row.state for row in found}):
        typer.echo(f"Corpora {state}: {', '.join(row.name for row in found if row.state == state)}")
    typer.echo(f"Word vectors: {', '.join(map(str, report['vectors'])) or 'none found'}")  # type: ignore[arg-type]
    typer.echo("More: heedful data list")
