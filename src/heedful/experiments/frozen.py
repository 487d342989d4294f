"""Does attention carry over to a simpler model?

Wiegreffe & Pinter 2019, section 3.3: a token-wise network, whose states know nothing of the words around them, is
trained with its attention frozen to that of a guide, or with its own: `uniform`, `trained` (learned by itself),
`base` (the asked run's), `adversary` (that of a model trained to say the same as the base and attend elsewhere,
imitation.py). Where the base's weights help the simpler model more than its own and more than uniform ones, they say
something about words that does not depend on the base's states; where the adversary's do not, it has only hidden in
its states what it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field

from heedful.config import ModelConfig, RunConfig, Size, TrialConfig
from heedful.experiments.beside import plainly_trained, seeds_beside
from heedful.experiments.description import Measure, Statistic
from heedful.experiments.experiment import Batches, Chunk, Experiment
from heedful.experiments.frozen_description import (
    COLUMNS,
    GUIDES,
    QUESTION,
    compare,
    figures,
    reasons,
    verdict,
)
from heedful.experiments.frozen_summary import summarise
from heedful.experiments.imitation import ImitationTraining
from heedful.experiments.other_runs import OtherRun, require_others

if TYPE_CHECKING:
    from heedful.models.network import Network

Guide = Literal["uniform", "trained", "base", "adversary"]


class FrozenConfig(ImitationTraining):
    """`seed`, `epochs` and `patience` are those of the adversary's training."""

    guides: tuple[Guide, ...] = Field(default=("uniform", "trained", "base", "adversary"), min_length=1)
    seeds: tuple[int, ...] = (1, 2)  # of further token-wise models, beside the run's own seed
    hidden_dim: Size = Field(default=128, ge=4, multiple_of=4)  # of the token-wise network, as published
    lambda_: float = Field(default=0.01, ge=0)  # of the adversary


def runs(config: FrozenConfig, about: RunConfig | TrialConfig) -> Mapping[str, RunConfig]:
    """A token-wise model for each guide and seed, named "guide seed"."""
    own = plainly_trained(about, "frozen")
    made = {guide: with_guide(own, guide, config) for guide in dict.fromkeys(config.guides)}
    return {
        f"{guide} {seed}": run.model_copy(update={"seed": seed})
        for guide, run in made.items()
        for seed in (own.seed, *seeds_beside(own, config.seeds))
    }


def with_guide(base: RunConfig, guide: Guide, config: FrozenConfig) -> RunConfig:
    """The token-wise model: a tanh layer on each word's embedding, and the guide's attention."""
    token_wise = ModelConfig(
        encoder="average", activation="tanh", hidden_dim=config.hidden_dim, embedding_dim=base.model.embedding_dim,
        attention=base.model.attention if guide == "trained" else "uniform",
        imposed=base.model if guide in ("base", "adversary") else None,
    )  # fmt: skip
    run = base.model_copy(update={"model": token_wise})
    if token_wise.imposed is None:
        return run
    source = base if guide == "base" else config.imitator(base, config.lambda_)
    objective = {"objective": "imposed", "objective_options": {"base": source.model_dump(mode="json")}}
    return run.model_copy(update={"training": base.training.model_copy(update=objective)})


def run(
    model: Network,
    batches: Batches,
    config: FrozenConfig,
    rng: np.random.Generator,
    others: Mapping[str, OtherRun],
) -> Iterator[Chunk]:
    """One row for each text, guide and seed: `guide`, `seed`, `truth`, what the token-wise model predicts
    (`token_wise`), 1 where it is `right`, 1 where the asked model is (`right_base`), and `tvd` of the two outputs."""
    from heedful.experiments.beside import find_labels, observe_beside
    from heedful.experiments.observe import observer

    FROZEN.check(model.can)
    require_others(others, FROZEN.name)
    observe = observer(model)
    for examples, batch in batches:
        seen, labels = observe(examples, batch), find_labels(batch, FROZEN.name)
        for name, other in others.items():
            guide, seed = name.split(" ")
            theirs = observe_beside(other, seen)
            yield seen.rows() | {
                "guide": [guide] * len(examples),
                "seed": [seed] * len(examples),
                "truth": labels,
                "token_wise": theirs.predicted.astype(np.float64),
                "right": (theirs.predicted == labels).astype(np.float64),
                "right_base": (seen.predicted == labels).astype(np.float64),
                "tvd": seen.distance(seen.y, theirs.y).numpy(),
            }


FROZEN = Experiment(
    name="frozen", question=QUESTION, paper="Wiegreffe & Pinter 2019, section 3.3", config=FrozenConfig,
    needs=frozenset({"attends", "edits_attention"}), version="1", run=run, summarise=summarise,
    asks="whether its attention carries over to a simpler model", columns=COLUMNS, by="guide",
    scale="accuracy that its attention adds to a simpler model",
    group_title=lambda guide: GUIDES.get(guide, guide),
    measures=(
        Measure(
            "frozen", "accuracy of token-wise models, all guides together", "token-wise", "right", "overall.right"
        ),
    ),
    statistics=(
        Statistic(
            "base's attention, token-wise", "by_guide.base.accuracy.mean",
            "Base's attention, token-wise: accuracy of a token-wise model on which this model's attention is imposed.",
        ),
    ),
    draw=figures, judge=verdict, examples=reasons, tabulate=compare, runs=runs,
)  # fmt: skip
