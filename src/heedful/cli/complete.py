"""What a shell offers after TAB, each with what it is. Nothing here loads torch: a shell waits for it.

`heedful --install-completion` sets it up for bash, zsh, fish and PowerShell.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

Offers = list[tuple[str, str]]  # what can be typed, and what it is


def starting(with_: str, offers: Iterable[tuple[str, str]]) -> Offers:
    return [(name, " ".join(what.split())) for name, what in offers if name.startswith(with_)]


def explainers(incomplete: str) -> Offers:
    """By name alone: what they are stands beside code that loads torch."""
    from heedful.registry import EXPLAINERS

    return starting(
        incomplete, [("all", "every method that the model can be asked by"), *((n, "") for n in EXPLAINERS)]
    )


def experiments(incomplete: str) -> Offers:
    from heedful.registry import EXPERIMENTS

    names = [name for name in EXPERIMENTS if name.startswith(incomplete)]
    return [(name, EXPERIMENTS[name].question) for name in names]


def corpora(incomplete: str) -> Offers:
    from heedful.data.registry import CORPORA

    return starting(incomplete, [(name, entry.title) for name, entry in CORPORA.items()])


def studies(incomplete: str) -> Offers:
    from heedful.engine.study_file import read_study, study_names

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
            about = f"{told['config']['dataset']}, {told.get('model', {}).get('description', '')}".rstrip(
                ", "
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # a folder that is no run is not offered
        found.append((str(config.parent), about))
    return starting(incomplete, found)
