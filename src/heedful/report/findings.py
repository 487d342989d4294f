"""What the page knows of a run: its description and its results, as the run folder has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS
from heedful.experiments.adversarial import epsilon_of
from heedful.explanation import Explanation
from heedful.records import Example, Split
from heedful.report.examples import Choice
from heedful.store.run import Run


@dataclass(frozen=True, slots=True)
class Findings:
    """A run's results; experiments that were not asked are absent."""

    name: str
    path: str
    info: Mapping[str, Any]
    performance: Mapping[str, Any]
    tables: Mapping[str, pa.Table]
    summaries: Mapping[str, Mapping[str, Any]]
    asked: Mapping[str, Mapping[str, Any]]  # by experiment: split, limit, options
    split: Split = "test"

    @property
    def labels(self) -> list[str]:
        return list(self.info["labels"])

    @property
    def setting(self) -> tuple[str, str, str]:
        config = self.info["config"]
        return config["dataset"], config["model"]["encoder"], config["model"]["attention"]

    @property
    def epsilon(self) -> float | None:
        """What the adversary was allowed to change of the output."""
        options = self.asked.get("adversarial", {}).get("options", {})
        given = options.get("epsilon")
        return epsilon_of(given, self.info["task"] != "classification")


@dataclass(frozen=True, slots=True)
class Illustrated:
    """Findings with texts: those that were asked about, the chosen ones explained, and a sample explained."""

    findings: Findings
    examples: Mapping[int, Example] = field(default_factory=dict)  # by their place in the split
    choices: Sequence[Choice] = ()
    chosen: Explanation = field(default_factory=lambda: Explanation(()))  # of `choices`, in their order
    sample: Explanation = field(default_factory=lambda: Explanation(()))
    sampled: Sequence[int] = ()  # places of `sample`


def read(run: Run) -> Findings:
    """The results of a run folder; a run without any is a mistake."""
    if not run.path.is_dir():
        raise Mistake(f"there is no run folder {run.path}.")
    info = run.info  # says so where it is not a run folder
    found = [name for name in EXPERIMENTS if (run.path / "results" / f"{name}.parquet").exists()]
    if not found:
        raise Mistake(
            f"{run.path} has no results to report: run "
            f"`heedful run {' '.join(EXPERIMENTS)} --model {run.path}` first."
        )
    tables = {name: run.results.rows(name) for name in found}
    asked = {name: _asked(table) for name, table in tables.items()}
    splits = {about.get("split", "test") for about in asked.values()}
    if len(splits) > 1:
        raise Mistake(
            f"the results of {run.path} are of different splits ({', '.join(sorted(splits))}): "
            "run the experiments again with one --split."
        )
    return Findings(
        name=run.name,
        path=str(run.path),
        info=info,
        performance=run.summary("performance"),
        tables=tables,
        summaries={name: run.summary(name) for name in found},
        asked=asked,
        split=splits.pop(),
    )


def _asked(table: pa.Table) -> dict[str, Any]:
    """How the rows were made, from the metadata of their file."""
    about: dict[str, Any] = json.loads((table.schema.metadata or {}).get(b"heedful", b"{}"))
    return about
