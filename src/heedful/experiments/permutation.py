"""Would the prediction have been another, had the same weights been given to other words?

Jain & Wallace 2019, section 4.2.1, Algorithm 2 and figure 3: the model's attention is permuted over the
real words 100 times, the states stay as they are, and the median of TVD[y(permuted), y] is set against the
largest weight. All permutations of a batch are one matrix product: (B, 100, T) x (B, T, outputs).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pydantic import Field

from heedful.config import Config
from heedful.experiments.experiment import Batches, Chunk, Experiment, Floats, Summary, generators
from heedful.experiments.summary import Line, column, grouped, quantiles, spread

if TYPE_CHECKING:
    from heedful.experiments.observe import Observed
    from heedful.models.network import Network

_CELLS = 1 << 22  # weights of permuted attention held at once: 32 MB


class PermutationConfig(Config):
    """Defaults of the paper."""

    permutations: int = Field(default=100, ge=1)


def run(
    model: Network,
    batches: Batches,
    config: PermutationConfig,
    rng: np.random.Generator,
) -> Iterator[Chunk]:
    """Rows: `median`, `mean` and `max` of the TVD over the permutations; undefined without words."""
    from heedful.experiments.observe import observer

    PERMUTATION.check(model.can)
    observe, generator_of = observer(model), generators(rng)
    for examples, batch in batches:
        seen = observe(examples, batch)
        at_once = max(1, _CELLS // (config.permutations * max(1, seen.alpha.shape[1])))
        for start in range(0, len(batch), at_once):
            part = seen[start : start + at_once]
            change = changes(part, [generator_of(i) for i in part.examples], config.permutations)
            change[part.n_words == 0] = np.nan
            yield part.rows() | {
                "median": np.median(change, axis=1),
                "mean": change.mean(axis=1),
                "max": change.max(axis=1),
            }


def changes(seen: Observed, rngs: list[np.random.Generator], permutations: int) -> Floats:
    """TVD[y(alpha^p), y] for each text and permutation p: (B, permutations)."""
    import torch

    width = seen.alpha.shape[1]
    places = np.broadcast_to(np.arange(width), (len(rngs), permutations, width)).copy()  # padding stays
    for row, (rng, n) in enumerate(zip(rngs, seen.n_words, strict=True)):
        places[row, :, :n] = rng.permuted(places[row, :, :n], axis=1)
    with torch.no_grad():
        y_permuted = seen.permute(torch.from_numpy(places))  # (B, permutations, labels)
        change: Floats = seen.distance(y_permuted, seen.y.unsqueeze(1)).numpy()  # (B, permutations)
    return change


def summarise(table: pa.Table) -> Summary:
    """Mean and quantiles of the median change: overall, by class, by max attention (figure 3), by both."""
    return grouped(table, _line)


def _line(table: pa.Table) -> Line:
    median = column(table, "median")
    return spread(median) | quantiles(median)


PERMUTATION = Experiment(
    name="permutation",
    question="Would the prediction have been another, had the same weights been given to other words?",
    paper="Jain & Wallace 2019, section 4.2.1",
    config=PermutationConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="1",
    run=run,
    summarise=summarise,
)
