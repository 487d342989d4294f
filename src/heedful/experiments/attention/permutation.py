"""Would the prediction change if the same weights were given to other words?

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

from heedful.experiments.edited_attention.choice import AttentionChoice
from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, mean_of, number, seeds
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic, places_by, quartiles
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Floats, Summary, generators
from heedful.experiments.framework.parts import Presentation
from heedful.experiments.framework.summary import Line, column, grouped, quantiles, spread
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, grade_at, interval
from heedful.figures.figure import Figure
from heedful.measure.statistics import between_seeds, quantile

if TYPE_CHECKING:
    from heedful.experiments.edited_attention.observe import Observed
    from heedful.models.network import Network

QUESTION = "Would the prediction change if the same weights were given to other words?"
HARDLY, MUCH = 0.05, 0.2  # TVD of the output
RULE = (
    f"Median change of the output below {HARDLY:g}: hardly; below {MUCH:g}: somewhat; from there on: yes. "
    "Change: total variation distance, which is the change of the probability where there are two labels."
)
MEANINGS: dict[Grade, str] = {  # on this model
    "for": "the prediction depends on which word gets which weight",
    "mixed": "the weights matter, but they do not decide alone",
    "against": "the attention weights are not what decides",
}
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "decides much of the prediction"),
    "mixed": Wording("Somewhat", "moves the prediction somewhat when it is shuffled"),
    "against": Wording("Hardly", "can be shuffled and hardly changes the prediction"),
}
_CELLS = 1 << 22  # weights of permuted attention held at once: 32 MB


class PermutationConfig(AttentionChoice):
    """Defaults of the paper."""

    permutations: int = Field(default=100, ge=1, le=100_000)


def run(model: Network, batches: Batches, config: PermutationConfig, rng: np.random.Generator) -> Iterator[Chunk]:
    """Rows: `median`, `mean` and `max` of the TVD over the permutations; undefined without words."""
    from heedful.experiments.edited_attention.observe import in_float64, observer

    PERMUTATION.check(model.can)
    observe, generator_of = observer(in_float64(model), config.view()), generators(rng)
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
    return spread(median, within=COLUMNS["median"].possible) | quantiles(median)


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (HARDLY, MUCH))


def verdict(trial: Result) -> Verdict:
    """The median over texts of the median TVD under permuted attention, with its order-statistic interval."""
    values = column(trial.table, "median")
    defined = values[~np.isnan(values)]
    if not defined.size:
        return JUDGEMENT.unclear("Undefined", "No text has words to shuffle.", "is empty")
    found = quantile(defined)
    grade = grade_at(found.value, HARDLY, MUCH, rising=True)
    # A change of more than 1/2 always turns the answer of a model with two labels.
    turned = float((defined > 0.5).mean())
    more = f" For {turned:.0%} of the texts most shuffles change it by more than 0.5." if turned >= 0.005 else ""
    digits = 3 if found.value < 0.1 else 2
    sentence = (
        f"Shuffling the attention weights over the words of a text changes the prediction by "
        f"{interval(found, digits)} in the median of {defined.size:,} texts: on this model {MEANINGS[grade]}.{more}"
    )
    return JUDGEMENT.of(found, sentence, grade)


def figures(trial: Result) -> list[Figure]:
    """Figure 3: the median change of the output under permuted attention, against the largest weight."""
    from heedful.figures.drawing import by_max_attention

    about = COLUMNS["median"]
    return [
        Figure(
            "permutation",
            "Change of the prediction when attention is shuffled",
            "Each point is a text: the sharper its attention (right), the more a shuffle should change the prediction "
            "(up). Boxes hold the middle half of the texts, thick lines are medians. Points at the bottom right are "
            "texts with sharp attention that does not matter.",
            "Change of the output under shuffled attention against the largest weight; "
            f"{quartiles(trial.summary['overall'])}.",
            by_max_attention(trial.frame("median"), trial.labels, f"change when shuffled ({about.unit})", (0.0, 1.0)),
        )
    ]


def reasons(trial: Result) -> Iterator[Reason]:
    rows = trial.table
    change, peak = column(rows, "median"), column(rows, "max_attention")
    # For two labels, a change of the probability by more than one half always turns the answer.
    turned = np.nanmax(change, initial=0.0) > 0.5 and set(rows["predicted"].to_pylist()) <= {0, 1}
    told = ": most shuffles turn it into the other label" if turned else ""
    most = f"The prediction that shuffled attention changes most{told}."
    yield Reason("Shuffling matters most", most, places_by(rows, -change))
    calm = "Attention is sharp (its largest weight is above one half), and shuffling it changes nothing."
    sharp = places_by(rows, np.where(peak > 0.5, change, np.nan))
    yield Reason("Sharp, and without effect", calm, sharp)


def compare(evidence: Evidence) -> Comparison:
    """The median change of output when attention is permuted, over all texts and in four bins of the largest weight.

    Figure 3 also has it by class; that is in the summary (`by_class_and_max_attention`), not in this table.
    """
    rows = []
    for setting, found in evidence:
        means = between_seeds([one["overall"]["mean"] for one in found])
        median = sum(one["overall"]["q50"] for one in found) / len(found)
        bins = [
            number(mean_of([one["by_max_attention"][name]["mean"] for one in found]))
            for name in found[0]["by_max_attention"]
        ]
        rows.append((*setting, seeds(means), number(median), *bins))
    header = (*SETTING, "mean Δŷ", "median Δŷ", "max α < .25", "< .5", "< .75", "≥ .75")
    note = (
        "Median output change Δŷ over 100 permutations of the attention of each text: mean and median over texts, and "
        "the mean in four bins of the largest weight. The paper's figure 3 has it by class, too; this table does not."
    )
    return Comparison(tables=(Table("Permuted attention", header, tuple(rows), note),) if rows else ())


COLUMNS = {
    "median": Column(
        "median change of the output",
        0,
        1,
        "Near 0: shuffling the attention weights over the words leaves the prediction where it was.",
        unit="TVD",
    ),
    "mean": Column("mean change of the output", 0, 1, "The mean over all permutations.", unit="TVD"),
    "max": Column("largest change of the output", 0, 1, "What the most harmful permutation did.", unit="TVD"),
}

PERMUTATION = Experiment(
    name="permutation",
    question=QUESTION,
    asks="whether the prediction changes when attention is shuffled",
    paper="Jain & Wallace 2019, section 4.2.1",
    run=run,
    columns=COLUMNS,
    config=PermutationConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="2",
    summarise=summarise,
    measures=(Measure("permutation", "output change under shuffled attention", "Δŷ shuffled", "median", "overall"),),
    judge=verdict,
    scale="change of the prediction when the attention is shuffled, 1 being all of it",
    pages=Presentation(
        statistics=(
            Statistic(
                "change when shuffled",
                "overall.q50",
                "Change when shuffled: median change of the prediction under shuffled attention.",
                ".3f",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
    ),
)
