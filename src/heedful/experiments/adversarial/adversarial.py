"""Could a very different attention have given the same prediction? How different can it be?

Jain & Wallace 2019, section 4.2.2, Algorithm 3, figures 4 and 5: for each text the epsilon-max JSD, the
greatest JSD(alpha, alpha^) of a distribution with TVD[y(alpha), y^] <= epsilon, and that distribution.
Method "exact" gives the maximum itself for two labels (exact.py); for more labels and with a query,
the farthest that was found and an upper bound (search.py). Method "adam" is the published search
(adversary_adam). `compare` runs both: how far below the truth the published search was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from heedful.errors import Mistake
from heedful.experiments.adversarial.exact import PROVED
from heedful.experiments.adversarial.verdict import COLUMNS, QUESTION, epsilon_of, figures, reasons, verdict
from heedful.experiments.edited_attention.choice import AttentionChoice
from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, mean_of, number, seeds
from heedful.experiments.framework.description import Measure, Statistic, WeightsPair, number_at
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Floats, Summary, generators
from heedful.experiments.framework.parts import ForAudit, Presentation
from heedful.experiments.framework.summary import Line, column, grouped, mean, plain, quantiles, share, spread
from heedful.measure.statistics import between_seeds

if TYPE_CHECKING:
    from heedful.experiments.adversarial.exact import Adversary
    from heedful.experiments.edited_attention.observe import Observed
    from heedful.models.network import Network


class AdversarialConfig(AttentionChoice):
    """Defaults of the paper (footnotes 6 and 7), except that the default method is the exact one.

    epsilon None is .01, and .05 for models with a query (`epsilon_of`). The paper gives .05 "for QA datasets";
    SNLI was run by the authors' code for QA, with the same decoder, so it counts as QA here.
    """

    method: Literal["exact", "adam"] = "exact"
    epsilon: float | None = Field(default=None, gt=0, lt=1)
    compare: bool = False  # exact and adam on the same texts
    k: int = Field(default=5, ge=1, le=1000)  # distributions that Adam looks for at once
    steps: int = Field(default=500, ge=1, le=1_000_000)
    learning_rate: float = Field(default=0.01, gt=0)
    penalty: float = Field(default=500.0, ge=0)  # lambda; the authors' code has no 1/k before it: 2500
    refine: bool = False  # several labels, method exact: start from the published search's answers, too
    # Several labels: linear programs that the bound of one text may take, 0 for none. Came later: see ModelConfig.
    programs: int = Field(default=20, ge=0, le=1_000_000, exclude_if=lambda value: value == 20)


def run(model: Network, batches: Batches, config: AdversarialConfig, rng: np.random.Generator) -> Iterator[Chunk]:
    """Rows: `jsd` (epsilon-max JSD), `delta_y`, `bound`, `exact`, `ceiling`, `attention`, `adversarial`.

    `bound` is an upper bound of the true epsilon-max JSD, and `exact` says that `jsd` reaches it; `ceiling`
    is what could be had if the prediction did not matter. `feasible` is False where Adam found nothing within
    epsilon: then `jsd` is 0 and `adversarial` is the model's own attention. `attention` and `adversarial`
    are lists over the real words. With `compare` also `jsd_exact`, `jsd_adam`, their `gap`,
    `delta_y_adam` and `adversarial_adam`.
    """
    from heedful.experiments.adversarial.search import ceiling
    from heedful.experiments.edited_attention.observe import in_float64, observer

    ADVERSARIAL.check(model.can)
    observe, generator_of = observer(in_float64(model), config.view()), generators(rng)
    for examples, batch in batches:
        seen = observe(examples, batch)
        exact, adam = search(seen, config, generator_of)
        best = adam if config.method == "adam" else exact
        assert best is not None
        chunk: Chunk = seen.rows() | {
            "jsd": best.jsd,
            "delta_y": best.delta_y,
            "bound": best.bound,
            "exact": best.exact,
            "ceiling": ceiling(seen),
            "feasible": best.feasible,
            "attention": seen.words(seen.alpha),
            "adversarial": seen.words(best.alpha),
        }
        if exact is not None and adam is not None and config.compare:
            chunk |= {
                "jsd_exact": exact.jsd,
                "jsd_adam": adam.jsd,
                "gap": exact.jsd - adam.jsd,
                "delta_y_adam": adam.delta_y,
                "adversarial_adam": seen.words(adam.alpha),
            }
        without = seen.n_words == 0
        for name in ("jsd", "delta_y", "bound", "ceiling", "jsd_exact", "jsd_adam", "gap", "delta_y_adam"):
            if name in chunk:
                chunk[name] = np.where(without, np.nan, chunk[name])
        yield chunk


def search(
    seen: Observed, config: AdversarialConfig, generator_of: Callable[[int], np.random.Generator]
) -> tuple[Adversary | None, Adversary | None]:
    """(exact, adam) for a batch, None for what was not asked."""
    from heedful.experiments.adversarial.adam import adam_adversaries, farthest_feasible, initial
    from heedful.experiments.adversarial.general import general_adversary
    from heedful.experiments.adversarial.search import ceiling, search_adversary
    from heedful.experiments.edited_attention.mixed import two_label_adversary
    from heedful.experiments.edited_attention.pooled import PooledStates

    epsilon = epsilon_of(config.epsilon, seen.has_query)
    if not isinstance(seen, PooledStates):
        if config.compare or config.method == "adam":
            raise Mistake("Adam's search only works for models that pool by attention; use method=exact only.")
        return general_adversary(seen, epsilon), None
    two_labels = two_label_adversary(seen, epsilon)
    exact = adam = dense = None
    refined = config.refine and two_labels is None and (config.compare or config.method == "exact")
    if config.compare or config.method == "adam" or refined:
        texts = zip(seen.n_words, seen.examples, strict=True)
        starts = [initial(n, config.k, generator_of(example)) for n, example in texts]
        rate, penalty = config.learning_rate, config.penalty
        dense = adam_adversaries(seen, starts, epsilon, steps=config.steps, rate=rate, penalty=penalty)
        adam = farthest_feasible(seen, dense, epsilon, ceiling(seen))
    if config.compare or config.method == "exact":
        exact = two_labels or search_adversary(seen, epsilon, dense if refined else None, config.programs)
    return exact, adam


def summarise(table: pa.Table) -> Summary:
    """Overall, by class (figure 4), by max attention (figure 5), by both: see `_line`."""
    return grouped(table, _line)


def _line(table: pa.Table) -> Line:
    """Mean, quantiles and shares of epsilon-max JSD; how much of what is possible; exact against Adam."""
    jsd, ceiling = column(table, "jsd"), column(table, "ceiling")
    defined = ~np.isnan(jsd)
    line = spread(jsd, within=COLUMNS["jsd"].possible) | quantiles(jsd)
    line["above_half"] = share(jsd > 0.5, defined)
    line["mean_of_ceiling"] = mean(np.divide(jsd, ceiling, out=np.full_like(jsd, np.nan), where=ceiling > 0))
    line["exact"] = share(column(table, "exact") > 0, defined)
    line["proved"] = share(column(table, "bound") - jsd <= PROVED + 1e-9, defined)
    line["feasible"] = share(column(table, "feasible") > 0, defined)
    line["mean_bound"] = mean(column(table, "bound"))
    if "attention" in table.column_names:  # words with weight: fewer than all where attention is sparse
        line["support"] = mean(support(table))
    if "gap" in table.column_names:
        gap, adam = column(table, "gap"), column(table, "jsd_adam")
        line["adam"] = spread(adam, within=COLUMNS["jsd"].possible) | quantiles(adam)
        line["gap"] = spread(gap) | quantiles(gap)
        line["gap"]["max"] = plain({"max": float(np.nanmax(gap)) if defined.any() else np.nan})["max"]
    return line


def support(table: pa.Table) -> Floats:
    """Share of each text's words whose weight is above 0; nan without words: (rows,)."""
    weights, n = table["attention"].combine_chunks(), column(table, "n_words")
    text = np.repeat(np.arange(len(weights)), np.diff(weights.offsets.to_numpy()))
    some = np.bincount(text, weights.flatten().to_numpy() > 0, minlength=len(weights))
    found: Floats = np.divide(some, n, out=np.full(len(n), np.nan), where=n > 0)
    return found


def compare(evidence: Evidence) -> Comparison:
    """Means over all texts, and how far below the truth the published search was.

    Figures 4 and 5 divide the texts by class and by the largest weight; that is in the summary, not in this table.
    """
    rows = []
    for setting, summaries in evidence:
        found = [one["overall"] for one in summaries]
        ours = between_seeds([one["mean"] for one in found])
        adam = mean_of([one.get("adam", {}).get("mean") for one in found])
        gap = mean_of([one.get("gap", {}).get("mean") for one in found])
        above = mean_of([one["above_half"] for one in found])
        proved = mean_of([one["exact"] for one in found])
        bound = mean_of([number_at(one, "mean_bound") for one in found])
        cells = (seeds(ours), number(bound), *map(number, (above, proved, adam, gap)))
        rows.append((*setting, *cells))
    header = (*SETTING, "ε-max JSD, found", "upper bound", "share > .5", "proved optimal", "Adam's", "missed by Adam")
    note = (
        "The greatest Jensen-Shannon divergence (at most ln 2 = 0.693) from the model's attention that leaves "
        "the prediction within ε: mean over texts of what was found and of the upper "
        "bound (the truth is between them, and they are one where the maximum is proved), the share of texts above .5, "
        "the share for which the maximum is proved, the mean of the published search with Adam on the same texts, "
        "and the mean by which Adam falls short. The paper's figures 4 and 5 divide the texts by class and by the "
        "largest weight; this table does not."
    )
    return Comparison(tables=(Table("Adversarial attention", header, tuple(rows), note),) if rows else ())


def _caption(row: Mapping[str, Any]) -> str:
    return (
        f"The prediction changes by {row['delta_y']:.4f} between the two (Δŷ); "
        f"their distance is {row['jsd']:.2f} (JSD, at most 0.69)."
    )


ADVERSARIAL = Experiment(
    name="adversarial",
    question=QUESTION,
    asks="whether a very different attention gives the same prediction",
    paper="Jain & Wallace 2019, section 4.2.2",
    run=run,
    columns=COLUMNS,
    config=AdversarialConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="5",
    summarise=summarise,
    measures=(
        Measure("adversarial", "ε-max JSD of adversarial attention", "ε-max JSD", "jsd", "overall", rising=False),
    ),
    judge=verdict,
    scale="how far attention can be moved while the prediction stays, 1 being as far as possible",
    pages=Presentation(
        statistics=(
            Statistic(
                "replaceable",
                "overall.mean_of_ceiling",
                "Replaceable: how far attention can be moved without changing the prediction, as a share of what is "
                "possible.",
                ".0%",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
        weights=WeightsPair(
            "attention",
            "adversarial",
            ("the model's attention", "adversarial attention"),
            "The model's attention, and another that gives the same prediction",
            _caption,
        ),
    ),
    audit=ForAudit(fast_with=frozenset({"pools_by_attention"})),
)
