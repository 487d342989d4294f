"""What there is: methods, experiments, corpora, and what is installed."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

EXTRAS = {
    "hf": ("transformers", "tokenizers", "datasets"),
    "surrogate": ("lime", "shap"),
    "interactions": ("shapiq",),
    "ray": ("ray",),
    "web": ("duckdb", "fastapi", "uvicorn"),
}


def list_explainers() -> list[str]:
    """The names of all explainers."""
    from heedful.explainers import EXPLAINERS

    return list(EXPLAINERS)


def list_experiments() -> list[str]:
    """The names of all experiments."""
    from heedful.experiments import EXPERIMENTS

    return list(EXPERIMENTS)


def list_corpora() -> list[str]:
    """The names of all corpora that are known or found."""
    from heedful.data.corpora.prepare import catalogue

    return [row.name for row in catalogue()]


def inspect_installation(data_dirs: Sequence[Path] = ()) -> dict[str, Any]:
    """Packages, corpora and vectors that are here, and what other packages have added."""
    from heedful.data.corpora.locate import data_dirs as all_folders
    from heedful.data.corpora.prepare import catalogue
    from heedful.data.text.vectors import vectors_in

    core = {re.split(r"[<>=;\[ ]", line)[0] for line in requires("heedful") or () if "extra ==" not in line}
    folders = all_folders(data_dirs)
    return {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "packages": {name: find_version(name) for name in sorted(core)},
        "extras": {extra: {name: find_version(name) for name in names} for extra, names in EXTRAS.items()},
        "added": list_added(),
        "data_folders": {str(folder): folder.is_dir() for folder in folders},
        "corpora": {row.name: row.state for row in catalogue(data_dirs)},
        "vectors": vectors_in(folders),
    }


def list_added() -> list[dict[str, str]]:
    """What other packages have added through entry points: what it is, its name, whose it is."""
    from heedful.data.corpora.registry import CORPORA
    from heedful.registry import REGISTRIES, package_of

    return [
        {"what": registry.what, "name": name, "package": package_of(point)}
        for registry in (*REGISTRIES, CORPORA)
        for name, point in registry.found.items()
    ]


def find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
