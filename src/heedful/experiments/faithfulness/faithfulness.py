"""Which methods point at the words that the prediction rests on, and how much of the possible do they reach?

Words are removed in the order of a method's scores and the model is asked again: comprehensiveness and sufficiency
over the bins of ERASER (DeYoung et al. 2020), deletion and insertion curves, decision flips, agreement with
leave-one-out (definitions: faithfulness_metrics.py), soft versions (faithfulness_soft.py). Each is also normalised
between a random order and the best order found, so that models and texts compare: exactly for texts of up to `exact`
words, of which all sets are asked, and by beam search in both directions for longer ones (Edin et al. 2024).

Ways of removing a word (`operators`), because a drop may only say that the edited text is odd (Hooker et al. 2019):

    delete   its tokens are taken out and the rest moves together: ids, never decoded text
    mask     its tokens become the model's mask, or its unknown word
    pad      it keeps its place and nothing attends to it
    zero     its embeddings are zeros
    soft     elements of its embeddings are dropped at random, the more the more it scores

Of a pair the passage is edited, the query stays. f is the probability of the explained label, and for models that
predict a number the number. What a model does not support is left out, by name, in the rows and in the summary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from numpy.random import Generator
from pydantic import Field, field_validator

from heedful.config import Config
from heedful.errors import Mistake
from heedful.experiments.faithfulness.pages import COLUMNS, QUESTION, compare, figures, reasons, title_of, verdict
from heedful.experiments.faithfulness.summary import summarise
from heedful.experiments.framework.description import Measure, MethodMeasure, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, States, generators
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes

if TYPE_CHECKING:
    from heedful.models.network import Network

METHODS = ("attention", "gradient_x_input", "integrated_gradients", "lrp", "omission", "random")
OPERATORS = ("delete", "mask", "pad", "zero", "soft")
BINS = (0.01, 0.05, 0.1, 0.2, 0.5)  # of the words: DeYoung et al. 2020, section 5


class FaithfulnessConfig(Config):
    """Defaults: the bins of ERASER; six methods, of which a model that lacks what one needs leaves it out.

    `options` are for one method: {"integrated_gradients": {"n_steps": 50}}.
    """

    methods: tuple[str, ...] = Field(default=METHODS, min_length=1)
    operators: tuple[str, ...] = Field(default=OPERATORS, min_length=1)
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    bins: tuple[float, ...] = Field(default=BINS, min_length=1)
    target: int | None = Field(default=None, ge=0, lt=2**63)  # a label by number; None: the predicted one of each text
    exact: int = Field(default=8, ge=0, le=12)  # words up to which all sets are asked
    beam: int = Field(default=2, ge=0, le=1000)  # sets kept at each size by the search in longer texts; 0: no search
    widest: int | None = Field(
        default=None, ge=1, le=1000
    )  # sets that each is followed by, by leave-one-out; None: all
    draws: int = Field(default=10, ge=1, le=10_000)  # random orders of longer texts
    control_draws: int = Field(default=1, ge=1, le=10_000)  # orders that the method `random` is the mean of
    soft_draws: int = Field(default=5, ge=1, le=10_000)
    points: int = Field(default=20, ge=2, le=10_000)  # of the curves of texts with more words than this

    @field_validator("methods", "operators")
    @classmethod
    def _once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("each is given once")
        return names

    @field_validator("operators")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in OPERATORS]
        if unknown:
            raise ValueError(f"there is no operator {unknown[0]!r}; there are {', '.join(OPERATORS)}")
        return names

    @field_validator("bins")
    @classmethod
    def _shares(cls, bins: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < share <= 1 for share in bins):
            raise ValueError("bins are shares of the words, above 0 and at most 1")
        return bins


def explainers_of(config: FaithfulnessConfig) -> list[str]:
    return list(config.methods)


def run(
    model: Network, batches: Batches, config: FaithfulnessConfig, rng: Generator, states: States | None = None
) -> Iterator[Chunk]:
    """One row for each text, method and operator: the metrics, their floors, best values and normalised forms, curves,
    and how many edited texts were asked (`forwards`: of this text and operator, by all methods together; `wanted`:
    what this row would have asked alone)."""
    from heedful.experiments.faithfulness.rows import rows_of_batch
    from heedful.experiments.faithfulness.scores import supported

    FAITHFULNESS.check(model.can)
    if config.target is not None and config.target >= model.n_labels:
        raise Mistake(f"target {config.target}: the labels of this model are 0 to {model.n_labels - 1}.")
    generator_of = generators(rng)
    found = None
    for examples, batch in batches:
        if found is None:
            found = supported(model, batch, config.methods, config.operators, config.options, states or {})
        yield from rows_of_batch(model, examples, batch, config, found, [generator_of(i) for i in examples])


def _measure(method: str, title: str) -> Measure:
    return Measure(
        f"reached_{method}",
        f"share of the best possible comprehensiveness reached by {title}",
        f"reached ({title})",
        "comprehensiveness_normalised",
        f"methods.{method}.delete.comprehensiveness.normalised",
        f"{method}/delete",
    )


def _method_measure(
    name: str, title: str, reading: str, rising: bool = True, ranks: bool = False, tau: bool = False
) -> MethodMeasure:
    """Between what a random order and what the best order found give; of tau no order is the best but its own."""
    return MethodMeasure(
        name,
        title,
        reading,
        name,
        condition="operator",
        setting="operators",
        chance=None if tau else f"{name}_floor",
        possible=1.0 if tau else f"{name}_best",
        rising=rising,
        ranks=ranks,
    )


METHOD_MEASURES = (
    _method_measure(
        "comprehensiveness", "comprehensiveness", "More: without its first words the output falls more.", ranks=True
    ),
    _method_measure(
        "sufficiency", "sufficiency", "Less: its first words alone keep the output.", rising=False, ranks=True
    ),
    _method_measure("deletion", "area over the deletion curve", "More: the output falls sooner."),
    _method_measure("insertion", "area under the insertion curve", "More: the output is there sooner."),
    _method_measure(
        "flip_fraction",
        "share of the words removed before the decision changes",
        "Less: fewer words are enough.",
        rising=False,
    ),
    _method_measure("tau", "τ with leave-one-out", "More: the same order as leaving out one word at a time.", tau=True),
)

FAITHFULNESS = Experiment(
    name="faithfulness",
    question=QUESTION,
    asks="whether its explanations point at the words that the prediction rests on",
    paper="DeYoung et al. 2020; Edin et al. 2024; Zhao & Aletras 2023",
    run=run,
    columns=COLUMNS,
    config=FaithfulnessConfig,
    needs=frozenset({"predicts"}),
    version="2",
    by="method_operator",
    summarise=summarise,
    measures=(_measure("attention", "attention"), _measure("omission", "leave-one-out")),
    judge=verdict,
    scale="how well attention finds the words that count: 0 as a random order, 1 as the best order found",
    takes=Takes(
        forwards=(40, 150),  # by word: six methods, two directions, draws and the beam, under four operators
        explainers=explainers_of,
    ),
    pages=Presentation(
        group_title=title_of,
        statistics=(
            Statistic(
                "best method reaches",
                "reached.mean",
                "Best method reaches: the share of the way from a random order to the best found, "
                "in comprehensiveness.",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
    ),
    audit=ForAudit(
        measures=METHOD_MEASURES,
        # What buys the narrowest intervals for the fewest passes: benchmarks/bench_audit.py.
        within_budget={
            "operators": ("delete", "mask"),
            "exact": 5,
            "points": 2,
            "draws": 3,
            "beam": 1,
            "widest": 4,
            "control_draws": 2,
        },
    ),
)
