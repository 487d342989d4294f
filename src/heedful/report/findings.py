"""What the page knows of a run: its description and its results, as the run folder has them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, Published, Result, find, without_verdict
from heedful.experiments.framework.caveats import that_warn, warnings_of
from heedful.experiments.framework.certainty import control
from heedful.experiments.framework.description import Reason, Setting
from heedful.experiments.framework.verdict import Verdict
from heedful.explanation.explanation import Explanation
from heedful.records import Example, Split
from heedful.report.sample import evidence
from heedful.store.run import Run, runs_in
from heedful.store.titles import attention_title

if TYPE_CHECKING:
    from heedful.report.opening import Opening


# Examples that are worth a look, each chosen for a reason that is said.


READABLE = (6, 45)  # words: texts that one takes in at a glance, where there are any
NEARLY = 20  # where all are long, the shortest of so many


@dataclass(frozen=True, slots=True)
class Choice:
    """A text by its place in the split, and why it is shown."""

    place: int
    title: str
    reason: str
    ranked_by: tuple[str, ...] = ()  # see `Reason`
    experiment: str = ""  # whose reason it is


def choose(trials: Iterable[Result], examples: Mapping[int, Example]) -> list[Choice]:
    """One text for each reason that the results allow, no text twice."""
    taken: dict[int, Choice] = {}
    for experiment, why in _reasons(list(trials), examples):
        known = [p for p in why.places if p in examples and p not in taken and len(examples[p].passage)]
        short = [p for p in known if READABLE[0] <= len(examples[p].passage) <= READABLE[1]]
        shortest = sorted(known[:NEARLY], key=lambda p: len(examples[p].passage))
        for place in (short or shortest)[:1]:
            taken[place] = Choice(place, why.title, why.reason, why.ranked_by, experiment)
    return list(taken.values())


def _reasons(trials: list[Result], examples: Mapping[int, Example]) -> Iterator[tuple[str, Reason]]:
    """Those of every experiment, with its name, and wrong predictions."""
    for trial in trials:
        yield from ((trial.experiment, why) for why in find(trial.experiment).examples(trial))
    for trial in trials[:1]:
        frame = trial.frame("predicted")
        predicted = dict(zip(frame.example.tolist(), frame.predicted.tolist(), strict=True))
        peaks = dict(zip(frame.example.tolist(), np.nan_to_num(frame.max_attention).tolist(), strict=True))
        wrong = [p for p, label in predicted.items() if p in examples and examples[p].label not in (None, label)]
        wrong.sort(key=lambda place: (-peaks[place], place))
        yield "", Reason("A wrong prediction", "Wrong, with the sharpest attention.", wrong)
        yield "", Reason("Another wrong prediction", "Wrong, with the most even attention.", wrong[::-1])


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
        model = config.get("model") or {"encoder": about.get("architecture"), "attention": about.get("attention")}
        attention = attention_title(str(model["attention"]), config)
        return config["dataset"], str(model["encoder"]), attention

    @property
    def seed(self) -> int | None:
        """Of the model's training; None where nobody knows."""
        seed = (
            self.info.get("model", {}).get("seed") if "source" in self.info["config"] else self.info["config"]["seed"]
        )
        return None if seed is None else int(seed)

    @property
    def but_seed(self) -> str:
        """The configuration without its seed, to compare."""
        return json.dumps({**self.info["config"], "seed": None}, sort_keys=True)

    def trial(self, experiment: str) -> Result:
        return Result(
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
    counted: Explanation = field(default_factory=lambda: Explanation(()))  # attention and leave-one-out of many texts
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
            f"{run.path} has no results to report: run `heedful run {' '.join(EXPERIMENTS)} --model {run.path}` first."
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
        try:
            found = {name: other.results.summary(name) for name in that_warn() if other.name != run.name}
            said = warnings_of({name: summary for name, summary in found.items() if summary is not None})
            same = said and other.info["data"]["fingerprint"] == run.info["data"]["fingerprint"]
        except (Mistake, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # what is wrong with another run is not this page's matter
        if same:
            return [f"{sentence} (Found of {other.name}.)" for sentence in said]
    return []


def _asked(table: pa.Table) -> dict[str, Any]:
    """How the rows were made, from the metadata of their file."""
    about: dict[str, Any] = json.loads((table.schema.metadata or {}).get(b"heedful", b"{}"))
    return about
