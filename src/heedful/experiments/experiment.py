"""What an experiment is: one question asked of a model, answered in rows, and a summary of the rows.

`run` yields chunks of rows and touches no file; `summarise` is a pure function of the finished table and
needs no torch. Chance comes in as a generator and is dealt out by example (`generators`), so an example's
rows are the same in any batch, in any order, and after an interruption.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedful.config import Config
from heedful.errors import Mistake

if TYPE_CHECKING:
    from heedful.records import Batch

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Column = NDArray[Any] | list[str] | list[NDArray[np.float64]]
Chunk = dict[str, Column]  # rows in columns; every chunk of an experiment has the same columns
Batches = Iterable[tuple[Ints, "Batch"]]  # indices of the examples, and their batch
Summary = dict[str, Any]


def no_explainers(config: Config) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """A question by name.

    `run(model, batches, config, rng)` yields chunks with the columns `example` (index), `predicted`
    (label), `max_attention`, `n_words`, and its own. `version` changes whenever the rows would. An experiment
    one of whose `explainers` learns is also given `states`: what each has learnt, by name.
    """

    name: str
    question: str
    paper: str  # where it was first asked
    config: type[Config]
    needs: frozenset[str]  # what the model must be able to do, by the names of models/network.py
    version: str
    run: Callable[..., Iterator[Chunk]]
    summarise: Callable[[pa.Table], Summary]
    explainers: Callable[[Any], Iterable[str]] = (
        no_explainers  # that it uses, by name, given its configuration
    )

    def check(self, can: frozenset[str], model: str = "this model") -> None:
        """Refuse by name a model that lacks what the question needs."""
        from heedful.models.network import require

        require(self.needs, can, self.name, model)


def to_table(chunks: Iterable[Mapping[str, Column]]) -> pa.Table:
    """Chunks as one Arrow table in the order of the examples. What is undefined (nan) becomes null."""
    tables = [pa.table({name: _array(column) for name, column in chunk.items()}) for chunk in chunks]
    if not tables:
        raise Mistake("there are no rows: the split that was asked for has no examples.")
    table = pa.concat_tables(tables)
    order = np.argsort(table["example"].to_numpy(), kind="stable")
    return table.take(pa.array(order)).combine_chunks()


def _array(column: Column) -> pa.Array:
    if isinstance(column, np.ndarray):
        return pa.array(column, from_pandas=True)
    if column and isinstance(column[0], str):
        return pa.array(column, type=pa.string())
    return pa.array(column, type=pa.list_(pa.float64()))


def generators(rng: np.random.Generator) -> Callable[[int], np.random.Generator]:
    """One generator for each example, all from one draw of `rng`: no example feels the others."""
    seed = int(rng.integers(2**63))
    return lambda example: np.random.default_rng([seed, int(example)])
