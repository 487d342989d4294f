"""Ask a model one experiment's question about some texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heedful import experiments
from heedful.data.corpora.assemble import spread_places
from heedful.data.text.batching import Encoded
from heedful.engine.running.progress import ProgressBar
from heedful.engine.tasks.task import Request
from heedful.errors import Mistake
from heedful.experiments.framework.experiment import no_runs
from heedful.experiments.framework.other_runs import OtherRun
from heedful.models.model import Model
from heedful.models.network import token_budget
from heedful.records import Batch, Example

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Ints = NDArray[np.int64]
TOKENS, TEXTS = 2**13, 256  # of a batch: gradients keep every step's tensors, so this bounds memory


@dataclass(frozen=True)
class ExperimentRows:
    """What `heedful.run` returns: an experiment's rows, and their summary."""

    experiment: str
    table: pa.Table

    @cached_property
    def summary(self) -> dict[str, Any]:
        return experiments.find(self.experiment).summarise(self.table)

    def to_pandas(self) -> pd.DataFrame:
        frame: pd.DataFrame = self.table.to_pandas()
        return frame

    def __len__(self) -> int:
        return int(self.table.num_rows)


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
    encoded = model.encode([examples[i] for i in places.tolist()], experiment.marks_sentences)
    rng = np.random.default_rng([seed, *experiment.name.encode()])

    def batches() -> Iterator[tuple[Ints, Batch]]:
        texts = min(TEXTS, model.batch_size or TEXTS)
        for indices, batch in encoded.batches(texts, token_budget=token_budget(model.network, TOKENS)):
            yield places[indices], batch
            bar.advance(len(indices))

    given: dict[str, Any] = {"states": states} if states else {}
    if experiment.runs is not no_runs:
        given["others"] = others or {}
    return experiments.to_table(experiment.run(model.network, batches(), config, rng, **given))


def select_places(size: int, ask: Request) -> Ints:
    """Places in the split: all of them, or `limit` evenly spread (corpora are often sorted by label)."""
    if size == 0:
        raise Mistake(f"there is no {ask.split} split to ask about; choose another with --split.")
    return spread_places(size, ask.limit)
