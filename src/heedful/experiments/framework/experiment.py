"""What an experiment is: one question asked of a model, answered in rows, a summary of the rows, and a
description of both, which is all that the rest of heedful knows of it.

`run` yields chunks of rows and touches no file; `summarise` is a pure function of the finished table and
needs no torch. Chance comes in as a generator and is dealt out by example (`generators`), so an example's
rows are the same in any batch, in any order, and after an interruption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from heedful.config import Config
from heedful.errors import Mistake
from heedful.experiments.edited_attention.choice import KNOWN, beside_bars
from heedful.experiments.framework.certainty import settle
from heedful.experiments.framework.comparison import Comparison, Evidence, measures_beside
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.summary import ends_of_columns, measures_of_columns, summary_of_columns
from heedful.experiments.framework.verdict import Verdict, from_json, to_json
from heedful.figures.figure import Figure

if TYPE_CHECKING:
    from heedful.records import Batch

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Cells = NDArray[Any] | list[str] | list[NDArray[np.float64]]
Chunk = dict[str, Cells]  # rows in columns; every chunk of an experiment has the same columns
Batches = Iterable[tuple[Ints, "Batch"]]  # indices of the examples, and their batch
Summary = dict[str, Any]
States = Mapping[str, Mapping[str, NDArray[Any]]]  # what each explainer has learnt, by name

COMMON = ("example", "predicted", "max_attention", "n_words")  # columns that every table has
VERDICT = "verdict"  # the key of a stored summary


LEFT_OUT: Any = None  # of an experiment: made from its columns


@dataclass(frozen=True, slots=True)
class Experiment:
    """A question by name.

    `run(model, batches, config, rng)` yields chunks with the columns `example` (index), `predicted`
    (label), `max_attention`, `n_words`, and its own. An experiment one of whose `explainers` learns is also given
    `states`: what each has learnt, by name. One that compares with other `runs` is given `others` (other_runs.py), by
    its own names for them.

    What follows `columns` may be left out: then rows are summarised, listed and drawn as the columns say. Every
    function but `run` is pure, and none needs torch.
    """

    name: str
    question: str
    paper: str  # where it was first asked
    run: Callable[..., Iterator[Chunk]]
    columns: Mapping[str, Column] = field(default_factory=dict)  # the first that is drawn is shown first
    config: type[Config] = Config
    needs: frozenset[str] = frozenset({"predicts"})  # of a model, by the names of models/network.py
    version: str = "1"  # it changes whenever the rows would
    by: str | None = None  # the column that tells the several rows of one text apart
    summarise: Callable[[pa.Table], Summary] = LEFT_OUT
    measures: tuple[Measure, ...] = LEFT_OUT
    judge: Callable[[Result], Verdict] | None = None  # None: the experiment has no say in the headline
    asks: str = ""  # the question as a clause: "whether its attention agrees with other explanations"
    scale: str = ""  # what the value of its verdict is, in words, for the bar on a page
    takes: Takes = field(default_factory=Takes)
    pages: Presentation = field(default_factory=Presentation)
    audit: ForAudit = field(default_factory=ForAudit)

    def __post_init__(self) -> None:
        if self.summarise is LEFT_OUT:
            object.__setattr__(self, "summarise", summary_of_columns(self.columns, self.by))
        if self.measures is LEFT_OUT:
            object.__setattr__(self, "measures", measures_of_columns(self.columns, self.name))

    def check(self, can: frozenset[str], model: str = "this model") -> None:
        """Refuse by name a model that lacks what the question needs."""
        from heedful.models.network import require

        require(self.needs, can, self.name, model)

    @property
    def conditions(self) -> list[str]:
        """That what it tells of each explainer may be asked under, where a setting lists them."""
        settings = dict.fromkeys(one.setting for one in self.audit.measures if one.setting is not None)
        return [name for setting in settings for name in self.config.model_fields[setting].default]

    @property
    def statistics(self) -> tuple[Statistic, ...]:
        """What a table that compares runs shows of each: its own statistics, or else the means of its measures."""
        return self.pages.statistics or tuple(
            Statistic(one.short, f"{one.line}.mean", f"{one.short}: mean of the texts.") for one in self.measures
        )

    def figures(self, trial: Result) -> Sequence[Figure]:
        """What a page draws: its own figures, or else a histogram of every column that can be drawn."""
        if self.pages.draw is not None:
            return self.pages.draw(trial)
        from heedful.experiments.framework.plain_figures import plain_figures

        return plain_figures(self, trial)

    def examples(self, trial: Result) -> Iterable[Reason]:
        """Texts worth a look: its own, or else those with the highest and the lowest value of its first column."""
        if self.pages.examples is not None:
            return self.pages.examples(trial)
        return ends_of_columns(self.columns, trial)

    @property
    def counts(self) -> bool:
        """Whether the headline rests on its verdict, too: not where models whose attention is right cannot be told by
        it from those whose attention is irrelevant."""
        return self.judge is not None and self.pages.has_say and (self.name not in KNOWN or KNOWN[self.name].tells)

    def verdict(self, trial: Result) -> Verdict | None:
        """What the experiment says, and `undecided` where its interval does not allow to say it (certainty.py)."""
        if self.judge is None:
            return None
        texts = len(pc.unique(trial.table["example"]))
        settled = settle(self.judge(trial), texts)
        found = replace(settled, scale=self.scale, counts=settled.counts and self.counts)
        return found if self.name not in KNOWN else replace(found, source=beside_bars(self.name))

    def compare(self, evidence: Evidence) -> Comparison:
        """Runs of a study beside published numbers."""
        if self.pages.tabulate is not None:
            return self.pages.tabulate(evidence)
        return measures_beside(self.question, self.measures, evidence)

    def drawable(self, types: Mapping[str, str]) -> list[str]:
        """Of a table's columns (name -> type) those with a number for each text: the described ones first."""
        numbers = [name for name, kind in types.items() if kind in ("double", "float") and name not in COMMON]
        known = [name for name, about in self.columns.items() if about.drawn and name in numbers]
        return known + [name for name in numbers if name not in self.columns]

    def column(self, name: str) -> Column:
        return self.columns.get(name) or Column(name.replace("_", " "))

    def groups(self, table: pa.Table) -> list[str]:
        """The values of the column `by`, in the order of the rows."""
        if self.by is None or self.by not in table.column_names:
            return []
        return [str(group) for group in dict.fromkeys(table[self.by].to_pylist())]

    @property
    def code(self) -> tuple[str, ...]:
        """The modules that decide a summary: when one of them changes, summaries are made again."""
        own = [made.__module__ for made in (self.summarise, self.judge) if made is not None]
        names = (
            "experiments.framework.certainty",
            "experiments.edited_attention.choice",
            "experiments.framework.summary",
            "experiments.framework.verdict",
            "measure.agreement",
            "measure.columns",
            "measure.paired",
            "measure.tests",
            "measure.statistics",
        )
        return tuple(dict.fromkeys([*own, *(f"heedful.{name}" for name in names)]))


def summary_with_verdict(experiment: Experiment, trial: Result) -> Summary:
    """The summary of a trial as it is stored; the trial's own `summary` is not read."""
    summary = experiment.summarise(trial.table)
    verdict = experiment.verdict(replace(trial, summary=summary))
    return summary if verdict is None else {**summary, VERDICT: to_json(verdict)}


def without_verdict(stored: Mapping[str, Any]) -> tuple[Summary, Verdict | None]:
    """(summary, verdict) of what was stored; None where it has none."""
    kept = stored.get(VERDICT)
    verdict = from_json(kept) if isinstance(kept, Mapping) else None
    return {name: value for name, value in stored.items() if name != VERDICT}, verdict


def stranger(name: str) -> Experiment:
    """Stands in for an experiment that is not installed here: its rows can still be listed and drawn."""

    def refuse(*_: Any) -> Any:
        raise Mistake(f"the experiment {name!r} is not installed here: its results can only be read.")

    return Experiment(name, name, "", refuse, needs=frozenset(), version="", summarise=refuse)


def to_table(chunks: Iterable[Mapping[str, Cells]]) -> pa.Table:
    """Chunks as one Arrow table in the order of the examples. What is undefined (nan) becomes null."""
    tables = list(map(_chunk_to_table, chunks))
    if not tables:
        raise Mistake("there are no rows, because the split has no examples.")
    table = pa.concat_tables(tables)
    order = np.argsort(table["example"].to_numpy(), kind="stable")
    return table.take(pa.array(order)).combine_chunks()


def _chunk_to_table(chunk: Mapping[str, Cells]) -> pa.Table:
    return pa.table({name: _array(column) for name, column in chunk.items()})


def _array(column: Cells) -> pa.Array:
    if isinstance(column, np.ndarray):
        return pa.array(column, from_pandas=True)
    if column and isinstance(column[0], str):
        return pa.array(column, type=pa.string())
    return pa.array(column, type=pa.list_(pa.float64()))


def generators(rng: np.random.Generator) -> Callable[[int], np.random.Generator]:
    """One generator for each example, all from one draw of `rng`: no example feels the others."""
    seed = int(rng.integers(2**63))
    return lambda example: np.random.default_rng([seed, int(example)])
