"""What the page knows of a run: its description and its results, as the run folder has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, Published, Trial, find, without_verdict
from heedful.experiments.caveats import that_warn, warnings_of
from heedful.experiments.certainty import control
from heedful.experiments.description import Setting
from heedful.experiments.verdict import Verdict
from heedful.explanation import Explanation
from heedful.records import Example, Split
from heedful.report.examples import Choice
from heedful.report.sample import evidence
from heedful.store.run import Run, runs_in
from heedful.store.titles import attention_title

if TYPE_CHECKING:
    from heedful.report.opening import Opening


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
    description: str  # of the model, in words
    split: Split = "test"
    kept: Mapping[str, Verdict] = field(default_factory=dict)  # verdicts that the summaries have
    published: Sequence[Published] = ()  # in this setting
    sources: Sequence[str] = ()  # of published numbers, the most trusted first
    warnings: Sequence[
        str
    ] = ()  # that an experiment's outcome puts on all others, of this run or of one on the same data

    @property
    def labels(self) -> list[str]:
        return list(self.info["labels"])

    @property
    def setting(self) -> Setting:
        config, about = self.info["config"], self.info.get("model", {})
        model = config.get("model") or {
            "encoder": about.get("architecture"),
            "attention": about.get("attention"),
        }
        attention = attention_title(str(model["attention"]), config)
        return config["dataset"], str(model["encoder"]), attention

    @property
    def seed(self) -> int | None:
        """Of the model's training; None where nobody knows."""
        seed = (
            self.info.get("model", {}).get("seed")
            if "source" in self.info["config"]
            else self.info["config"]["seed"]
        )
        return None if seed is None else int(seed)

    @property
    def but_seed(self) -> str:
        """The configuration without its seed, to compare."""
        return json.dumps({**self.info["config"], "seed": None}, sort_keys=True)

    def trial(self, experiment: str) -> Trial:
        return Trial(
            experiment,
            self.tables[experiment],
            self.summaries[experiment],
            self.asked.get(experiment, {}).get("options", {}),
            self.labels,
            self.info["task"],
            [row for row in self.published if row.experiment == experiment],
            self.sources,
            {name: summary for name, summary in self.summaries.items() if name != experiment},
        )

    def verdicts(self) -> dict[str, Verdict]:
        """By experiment: as it was stored, or where it was not, made from the rows."""
        found = {name: self.kept.get(name) or find(name).verdict(self.trial(name)) for name in self.tables}
        return {name: verdict for name, verdict in found.items() if verdict is not None}


@dataclass(frozen=True, slots=True)
class Illustrated:
    """Findings with texts: those that were asked about, the chosen ones explained, and a sample explained."""

    findings: Findings
    examples: Mapping[int, Example] = field(default_factory=dict)  # by their place in the split
    choices: Sequence[Choice] = ()
    chosen: Explanation = field(default_factory=lambda: Explanation(()))  # of `choices`, in their order
    sample: Explanation = field(default_factory=lambda: Explanation(()))
    sampled: Sequence[int] = ()  # places of `sample`
    counted: Explanation = field(
        default_factory=lambda: Explanation(())
    )  # attention and leave-one-out of many texts
    counted_places: Sequence[int] = ()
    opening: Opening | None = None  # the text that the page begins with

    def verdicts(self) -> dict[str, Verdict]:
        """By experiment; `evidence` where the deciding words of the texts are known."""
        found = evidence(self.counted, [self.examples[place].evidence for place in self.counted_places])
        return ({} if found is None else {"evidence": found}) | self.findings.verdicts()


def verdicts_of_report(runs: Sequence[Illustrated]) -> list[dict[str, Verdict]]:
    """The verdicts of each run of one report: false discovery is controlled over all their statements."""
    return control([run.verdicts() for run in runs])


def read(run: Run) -> Findings:
    """The results of a run folder; a run without any is a mistake."""
    from heedful.report.published import published_in

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
    stored = {name: without_verdict(run.summary(name)) for name in found}
    setting = info["config"]["dataset"], run.architecture, run.attention
    published, sources = published_in(setting)
    summaries = {name: summary for name, (summary, _) in stored.items()}
    return Findings(
        name=run.name,
        path=str(run.path),
        info=info,
        performance=run.summary("performance"),
        tables=tables,
        summaries=summaries,
        asked=asked,
        description=run.description,
        split=splits.pop(),
        kept={name: verdict for name, (_, verdict) in stored.items() if verdict is not None},
        published=published,
        sources=sources,
        warnings=warnings_of(summaries) or _warnings_beside(run),
    )


def _warnings_beside(run: Run) -> list[str]:
    """Warnings about the same data that another run of the folder has found, with its name."""
    for other in runs_in(run.path.parent):
        found = {name: other.results.summary(name) for name in that_warn() if other.name != run.name}
        said = warnings_of({name: summary for name, summary in found.items() if summary is not None})
        if said and other.info["data"]["fingerprint"] == run.info["data"]["fingerprint"]:
            return [f"{sentence} (Found of {other.name}.)" for sentence in said]
    return []


def _asked(table: pa.Table) -> dict[str, Any]:
    """How the rows were made, from the metadata of their file."""
    about: dict[str, Any] = json.loads((table.schema.metadata or {}).get(b"heedful", b"{}"))
    return about
