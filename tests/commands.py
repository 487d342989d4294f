"""Commands for tests: each in a process and a folder of its own, as a person types it.

A new interpreter takes seconds to import torch, SciPy and transformers, and the tests give a hundred commands. So they
are forked from one process that has imported these libraries and nothing of heedful.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        "altair",
        "pandas",
        "pyarrow.parquet",
        "scipy.optimize",
        "scipy.stats",
        "sklearn.feature_extraction.text",
        "sklearn.linear_model",
        "sklearn.metrics",
        "spacy",
        "torch._dynamo",
        "transformers",
        "typer",
    ]
)

Done = subprocess.CompletedProcess[str]


def heedful(*words: str | Path, folder: Path | None = None, installed: Sequence[Path] = ()) -> Done:
    """`heedful words...` in this folder, with the packages that are installed in these, and what it printed."""
    return _typed("heedful", *words, folder=folder, installed=installed)


def script(path: Path, *words: str | Path) -> Done:
    """`python path words...`."""
    return _typed(path, *words)


def _typed(*given: str | Path, folder: Path | None = None, installed: Sequence[Path] = ()) -> Done:
    words, known = [str(word) for word in given], {**os.environ, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as printed:
        process = FORKS.Process(target=_type, args=(words, folder or Path.cwd(), installed, known, Path(printed)))
        process.start()
        process.join()
        assert process.exitcode is not None
        out, err = ((Path(printed) / name).read_text(encoding="utf-8") for name in ("out", "err"))
    return subprocess.CompletedProcess(words, process.exitcode, out, err)


def _type(words: list[str], folder: Path, installed: Sequence[Path], known: dict[str, str], printed: Path) -> None:
    """In the new process."""
    assert "heedful" not in sys.modules
    paths = [*map(str, installed), *filter(None, [known.get("PYTHONPATH")])]
    os.environ.clear()
    os.environ.update(known, PYTHONPATH=os.pathsep.join(paths))  # of the workers that it starts
    os.chdir(folder)
    for name, number in (("out", 1), ("err", 2)):
        os.dup2(os.open(printed / name, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    sys.argv, sys.path[:0] = words, map(str, installed)
    importlib.invalidate_caches()
    if words[0] == "heedful":
        runpy.run_module("heedful", run_name="__main__")
    else:
        sys.path.insert(0, str(Path(words[0]).parent))
        runpy.run_path(words[0], run_name="__main__")
