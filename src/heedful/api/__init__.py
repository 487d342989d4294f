"""The public surface in Python: what `heedful.<name>` is, and what each command of the command line calls.

Command line and Python go one way: `cli` parses and prints, what is done stands here, each function one call into the
layers below.
"""

from __future__ import annotations

from heedful.api.changes import counterfactual
from heedful.api.experiments import Answers, run
from heedful.api.explaining import explain_to, parts_of
from heedful.api.inputs import read_texts
from heedful.api.lists import list_corpora, list_experiments, list_explainers
from heedful.api.models import configure, load, train, train_config, wrap
from heedful.api.pages import write_report
from heedful.api.words import adversary, explain, write

__all__ = [
    "Answers",
    "adversary",
    "configure",
    "counterfactual",
    "explain",
    "explain_to",
    "list_corpora",
    "list_experiments",
    "list_explainers",
    "load",
    "parts_of",
    "read_texts",
    "run",
    "train",
    "train_config",
    "wrap",
    "write",
    "write_report",
]
