"""What stands beside a headline: warnings that one experiment's outcome puts on all others, and tests not made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from heedful.experiments.framework.parts import no_runs, no_warning
from heedful.experiments.framework.verdict import Verdict
from heedful.registry import EXPERIMENTS

Summaries = Mapping[str, Mapping[str, Any]]  # by experiment


def that_warn() -> list[str]:
    """The experiments whose outcome can be a warning."""
    return [name for name, experiment in EXPERIMENTS.items() if experiment.pages.warn is not no_warning]


def warnings_of(summaries: Summaries) -> list[str]:
    """What the outcomes of a run's experiments say of every other conclusion about the same data."""
    said = [EXPERIMENTS[name].pages.warn(summaries[name]) for name in that_warn() if name in summaries]
    return [sentence for sentence in said if sentence]


def not_made(made: Collection[str], other_data: bool) -> list[str]:
    """The experiments with a say in the headline that were not asked; of a model on other data (`other_data`) those
    that train more models cannot be."""
    return [
        name
        for name, experiment in EXPERIMENTS.items()
        if name not in made and experiment.counts and not (other_data and experiment.takes.runs is not no_runs)
    ]


def not_made_sentence(verdicts: Mapping[str, Verdict], other_data: bool, path: str) -> str:
    """Which tests the headline does not rest on, and the command that makes them; empty where it rests on all.

    `verdicts` are those of the page, that of words which are known to decide among them: what has no say is not a test
    that the headline rests on."""
    missing = not_made(verdicts, other_data)
    if not missing:
        return "It rests on all tests there are."
    made = sum(verdict.counts for verdict in verdicts.values())
    count = f"{made} of {made + len(missing)} tests"
    return f"It rests on {count}. Not made: {', '.join(missing)} (heedful run TEST --model {path})."
