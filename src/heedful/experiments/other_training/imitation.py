"""Can a model be trained that says the same and attends elsewhere?

Wiegreffe & Pinter 2019, section 4: a fresh model is trained for TVD(y, y_base) - lambda KL(alpha || alpha_base) on all
training texts (models/objectives/imitation.py), for several lambda. Its mean TVD and JSD on test texts, lambda by
lambda, are a curve. The paper's reading: where it is flat, attention can be manipulated at no cost; where it is
convex and steep, moving attention costs predictions. The exact adversary (adversarial.py) moves the weights of each
text apart, with the model's own states: it needs no model that would really attend so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from heedful.config import Config, EvaluationConfig, RunConfig, Seed
from heedful.experiments.adversarial.adversarial import AdversarialConfig, search
from heedful.experiments.framework.beside import plainly_trained
from heedful.experiments.framework.description import Measure, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Floats, generators
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.other_training.imitation_pages import (
    COLUMNS,
    QUESTION,
    compare,
    figures,
    reasons,
    summarise,
    verdict,
)

if TYPE_CHECKING:
    from heedful.experiments.edited_attention.observe import Observed
    from heedful.models.network import Network


SWEEP = (0.0, 0.001, 0.003, 0.01, 0.03)  # ours: those of the paper are not published


class ImitationTraining(Config):
    """How imitators are trained: as published, but for the seed and the sum of losses (see the objective)."""

    seed: Seed | None = None  # of the fresh model; None: that of the run, plus one
    epochs: int = Field(default=80, ge=1, le=1_000_000)
    patience: int = Field(default=10, ge=1, le=1_000_000)  # epochs without a lower training loss

    def imitator(self, base: RunConfig, lambda_: float) -> RunConfig:
        """The run that imitates `base`: like it in everything but the seed and what it is trained for."""
        training = base.training.model_copy(
            update={
                "objective": "imitation",
                "metric": "loss",
                "epochs": self.epochs,
                "patience": self.patience,
                "objective_options": {"base": base.model_dump(mode="json"), "lambda_": lambda_},
            }
        )
        seed = base.seed + 1 if self.seed is None else self.seed
        return base.model_copy(update={"training": training, "seed": seed})


class ImitationConfig(ImitationTraining):
    lambdas: tuple[float, ...] = Field(default=SWEEP, min_length=1)
    epsilon: float | None = Field(default=None, gt=0, lt=1)  # of the exact adversary; None: the paper's


def runs(config: ImitationConfig, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
    own = plainly_trained(about, "imitation")
    return {f"{lambda_:g}": config.imitator(own, lambda_) for lambda_ in dict.fromkeys(config.lambdas)}


def run(
    model: Network, batches: Batches, config: ImitationConfig, rng: np.random.Generator, others: Mapping[str, OtherRun]
) -> Iterator[Chunk]:
    """One row for each text and lambda: `tvd` of the outputs, `jsd` and `kl` of the attentions, `adversary`: the
    epsilon-max JSD of the text (the same for every lambda); `optimum`: the greatest JSD that leaves the base's output
    within this imitator's `tvd` (two labels only, where it is exact)."""
    from heedful.experiments.edited_attention.observe import observer
    from heedful.experiments.framework.beside import observe_beside
    from heedful.measure.distance import jsd
    from heedful.models.objectives.imitation import attention_kl

    IMITATION.check(model.can)
    require_others(others, IMITATION.name)
    observe, generator_of = observer(model), generators(rng)
    adversarial = AdversarialConfig(epsilon=config.epsilon)
    for examples, batch in batches:
        seen = observe(examples, batch)
        some = seen.n_words > 0
        adversary, _ = search(seen, adversarial, generator_of)
        assert adversary is not None
        for lambda_, other in others.items():
            theirs = observe_beside(other, seen)
            tvd = seen.distance(seen.y, theirs.y).numpy()
            yield seen.rows() | {
                "lambda": [lambda_] * len(examples),
                "tvd": tvd,
                "jsd": np.where(some, jsd(seen.alpha.numpy(), theirs.alpha.numpy()), np.nan),
                "kl": np.where(some, attention_kl(theirs.alpha, seen.alpha).numpy(), np.nan),
                "adversary": np.where(some, adversary.jsd, np.nan),
                "optimum": np.where(some, optimum(seen, tvd), np.nan),
            }


def optimum(seen: Observed, tvd: Floats) -> Floats:
    """The greatest JSD of another attention over the model's own states that changes each output by at most its `tvd`:
    (B,); nan where it is not known exactly (more than two labels, a query)."""
    from heedful.experiments.edited_attention.mixed import two_label_adversary

    exact = two_label_adversary(seen, tvd)
    return np.full(len(tvd), np.nan) if exact is None else exact.jsd


IMITATION = Experiment(
    name="imitation",
    question=QUESTION,
    asks="whether a model can be trained that says the same and attends elsewhere",
    paper="Wiegreffe & Pinter 2019, section 4",
    run=run,
    columns=COLUMNS,
    config=ImitationConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="1",
    by="lambda",
    summarise=summarise,
    measures=(
        Measure(
            "imitation",
            "JSD of imitators' attention, all λ together",
            "JSD of imitators",
            "jsd",
            "overall.jsd",
            rising=False,
        ),
    ),
    judge=verdict,
    scale="change of the predictions that another attention costs",
    takes=Takes(runs=runs),
    pages=Presentation(
        group_title=lambda value: f"λ = {value}",
        statistics=(
            Statistic(
                "imitators' TVD",
                "overall.tvd.mean",
                "Imitators' TVD: how far the outputs of imitators are from the model's, mean over all λ.",
                ".3f",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
    ),
)
