"""Ask a model one experiment's question about some texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heedful import experiments
from heedful.data.corpora.assemble import spread_places
from heedful.data.text.batching import Encoded
from heedful.engine.running.progress import ProgressBar
from heedful.engine.tasks.task import Request
from heedful.errors import Mistake
from heedful.experiments.framework.description import Result
from heedful.experiments.framework.other_runs import OtherRun
from heedful.experiments.framework.parts import no_runs
from heedful.experiments.framework.verdict import Verdict
from heedful.models.model import Model
from heedful.models.network import token_budget
from heedful.records import Batch, Example

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Ints = NDArray[np.int64]
TOKENS, TEXTS = 2**13, 256  # of a batch: gradients keep every step's tensors, so this bounds memory
SLOW_TEXTS = 8  # where each question is passes through layers of self-attention: a batch is what a bar moves by


SHOWN = 5  # rows that stand for all where they are looked at
WIDEST = 12  # columns of them


@dataclass(frozen=True, repr=False)
class ExperimentRows:
    """What `heedful.run` returns: an experiment's rows, and their summary. A notebook shows what they say."""

    experiment: str
    table: pa.Table
    labels: tuple[str, ...] = ()
    task: str = "classification"
    options: Mapping[str, Any] = field(default_factory=dict)  # that it was asked with

    @cached_property
    def verdict(self) -> Verdict | None:
        """What they say of the question; None of an experiment that says nothing, and of too few rows."""
        about = experiments.find(self.experiment)
        if about.judge is None:
            return None
        with suppress(KeyError, ValueError, ArithmeticError):  # a few texts can leave nothing to judge
            return about.verdict(
                Result(self.experiment, self.table, self.summary, self.options, self.labels, self.task)
            )
        return None

    @cached_property
    def summary(self) -> dict[str, Any]:
        return experiments.find(self.experiment).summarise(self.table)

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        """The question, of how many texts, what they say, and the first rows."""
        return "\n".join([*self._said(), "", self._head().to_string(index=False), self._rest()])

    def _repr_html_(self) -> str:
        question, *said = map(escape, self._said())
        table = self._head().to_html(index=False, border=0, na_rep="")
        return "".join([f"<p><b>{question}</b></p>", *(f"<p>{one}</p>" for one in said), table, self._rest("p")])

    def _said(self) -> list[str]:
        about, n = experiments.find(self.experiment), len(self.table["example"].unique())
        rows = "" if n == len(self) else f", {len(self):,} rows"
        verdict = self.verdict
        judged = [] if verdict is None else [f"{verdict.answer}. {verdict.sentence}"]
        return [about.question, f"{self.experiment}, asked of {n:,} text{'s' * (n != 1)}{rows}.", *judged]

    def _head(self) -> pd.DataFrame:
        """The first rows, without columns of lists."""
        import pyarrow.types as kinds

        plain = [field.name for field in self.table.schema if not kinds.is_nested(field.type)][:WIDEST]
        frame: pd.DataFrame = self.table.select(plain).slice(0, SHOWN).to_pandas()
        return frame.round(3)

    def _rest(self, tag: str = "") -> str:
        shown = len(self._head().columns)
        more = f", {shown} of {self.table.num_columns} columns" if shown < self.table.num_columns else ""
        said = f"The first {min(SHOWN, len(self)):,} of {len(self):,} rows{more}; all: .to_pandas(), .table, .summary."
        return f"<{tag}>{escape(said)}</{tag}>" if tag else said


@dataclass(frozen=True)
class RepeatedPasses:
    """Batches of like length, again and again: each `for` is one pass over the texts."""

    encoded: Encoded
    texts: int
    tokens: int

    def __iter__(self) -> Iterator[tuple[Ints, Batch]]:
        return self.encoded.batches(self.texts, token_budget=self.tokens)


def ask_model(
    model: Model,
    examples: Mapping[int, Example],
    places: Ints,
    ask: Request,
    seed: int,
    bar: ProgressBar,
    states: Mapping[str, Mapping[str, NDArray[Any]]] | None = None,
    others: Mapping[str, OtherRun] | None = None,
) -> pa.Table:
    """Rows about the texts at `places` of a split, which the column `example` names.

    Chance depends on the seed, the experiment and that place alone, so a text's rows do not depend on `limit`.
    `states` is what the explainers that it uses have learnt, by name; `others` are the runs that it compares with.
    """
    experiment = experiments.find(ask.experiment)
    experiment.check(model.network.can, model.name)
    config = experiment.config.parse(ask.options, f"the options of {experiment.name}")
    encoded = model.encode([examples[i] for i in places.tolist()], experiment.takes.sentences)
    rng = np.random.default_rng([seed, *experiment.name.encode()])

    def batches() -> Iterator[tuple[Ints, Batch]]:
        most = SLOW_TEXTS if "self_attends" in model.network.can else TEXTS
        texts = min(most, model.batch_size or most)
        for indices, batch in encoded.batches(texts, token_budget=token_budget(model.network, TOKENS)):
            yield places[indices], batch
            bar.advance(len(indices))

    given: dict[str, Any] = {"states": states} if states else {}
    if experiment.takes.runs is not no_runs:
        given["others"] = others or {}
    return experiments.to_table(list(experiment.run(model.network, batches(), config, rng, **given)))


def select_places(size: int, ask: Request) -> Ints:
    """Places in the split: all of them, or `limit` evenly spread (corpora are often sorted by label)."""
    if size == 0:
        raise Mistake(f"there is no {ask.split} split; choose another with --split.")
    return spread_places(size, ask.limit)
