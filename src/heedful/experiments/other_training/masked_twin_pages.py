"""What the rows of `masked_twin` add up to and say: is the metric believable, do model and twin order methods alike?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from heedful.experiments.framework.description import Column, Reason, Result, places_by
from heedful.experiments.framework.experiment import Summary
from heedful.experiments.framework.summary import Line, column, plain, spread
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, interval
from heedful.figures.figure import Figure, method_name
from heedful.measure.columns import Floats, rows_of
from heedful.measure.paired import paired
from heedful.measure.rank import kendall
from heedful.measure.statistics import Interval

QUESTION = "Can what masking words says of this model be believed?"
RANDOM = "random"
BARS = (0.02, 0.1)
RULE = (
    "With random words hidden, the twin that was trained with hidden words predicts so much more of the labels than "
    f"the model (mean over the shares hidden): below {BARS[0]:g}: yes; below {BARS[1]:g}: with caution; from there on: "
    "no. It is about the metric, not about attention, so it does not count in the headline."
)
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "can be judged by masking words"),
    "mixed": Wording("With caution", "can be judged by masking words, but only with caution"),
    "against": Wording("No", "cannot be judged by masking words"),
}
COLUMNS = {
    "drop": Column(
        "probability lost with words hidden", -1, 1, "Above 0: the predicted label is less probable without the words."
    ),
    "sufficiency": Column(
        "probability lost with the others hidden", -1, 1, "Near 0: the strongest words alone are enough."
    ),
    "twin_sufficiency": Column("the same of the twin", -1, 1, "Near 0: its strongest words alone are enough."),
    "twin_drop": Column("the same of the twin", -1, 1, "Above 0: its label is less probable without the words."),
    "correct": Column("predicted rightly with words hidden", 0, 1, "1: rightly, 0: wrongly.", bins=2),
    "twin_correct": Column("the same of the twin", 0, 1, "1: rightly, 0: wrongly.", bins=2),
    "fraction": Column("share of the words hidden", 0, 1, "Of every text.", drawn=False),
}


def group_title(masking: str) -> str:
    method, _, fraction = masking.rpartition(" ")
    return f"{float(fraction):.0%} hidden by {method_name(method)}"


def methods_of(table: pa.Table) -> list[str]:
    return list(dict.fromkeys(table["method"].to_pylist()))


def by_text(table: pa.Table, method: str, name: str) -> Floats:
    """The mean over the fractions, of each text in the order of their places."""
    rows = rows_of(table, "method", method)
    _, place = np.unique(rows["example"].to_numpy(), return_inverse=True)
    return np.asarray(np.bincount(place, column(rows, name)) / np.bincount(place))


def _mean(values: Floats) -> float:
    """Over the texts of which a method says something."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def summarise(table: pa.Table) -> Summary:
    """`curves`: the four columns by method and fraction. `above_random`: by method, how much more is lost than with
    random words hidden, of the model and of the twin (relative area between curves, not normalised). `strangeness`:
    accuracy of the twin minus that of the model with random words hidden. `order`: Kendall's tau of the methods."""
    methods = methods_of(table)
    return {
        "overall": spread(column(table, "drop")),
        "curves": {name: _curve(rows_of(table, "method", name)) for name in methods},
        "above_random": {
            name: {who: _above_random(table, name, who) for who in ("drop", "twin_drop")}
            for name in methods
            if name != RANDOM
        },
        "strangeness": _strangeness(table),
        "order": plain({"tau": order_of_methods(table)}),
    }


def _curve(rows: pa.Table) -> list[Line]:
    fraction = column(rows, "fraction")
    return [
        {"fraction": float(one)}
        | {name: spread(column(rows, name)[fraction == one]) for name in COLUMNS if name != "fraction"}
        for one in np.unique(fraction)
    ]


def _above_random(table: pa.Table, method: str, who: str) -> Line:
    return _difference(by_text(table, method, who), by_text(table, RANDOM, who))


def _strangeness(table: pa.Table) -> Line:
    return _difference(by_text(table, RANDOM, "twin_correct"), by_text(table, RANDOM, "correct"))


def _difference(first: Floats, second: Floats) -> Line:
    test = paired(first, second)
    return plain({"n": test.n, "mean": test.difference, "low": test.low, "high": test.high, "p": test.p})


def order_of_methods(table: pa.Table) -> float:
    """Kendall's tau between the methods' means on the model and on the twin; nan for fewer than two."""
    methods = [name for name in methods_of(table) if name != RANDOM]
    if len(methods) < 2:
        return float("nan")
    means = [[_mean(by_text(table, name, who)) for name in methods] for who in ("drop", "twin_drop")]
    ours, theirs = (np.array([row]) for row in means)
    return float(kendall(ours, theirs, np.ones_like(ours, dtype=np.bool_)).tau[0])


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, BARS, rising=False, counts=False)


def verdict(trial: Result) -> Verdict:
    line = _strangeness(trial.table)
    if line["low"] is None or line["high"] is None:
        told = "One text is not enough for a comparison."
        return JUDGEMENT.unclear("Undefined", told, "was not asked")
    found = Interval(line["mean"], min(line["low"], line["mean"]), max(line["high"], line["mean"]))
    table, tau = trial.table, order_of_methods(trial.table)
    methods = [name for name in methods_of(table) if name != RANDOM]

    def ranking(who: str) -> str:
        means = {name: _mean(by_text(table, name, who)) for name in methods}
        return ", ".join(f"{method_name(name)} {means[name]:.2f}" for name in sorted(means, key=lambda n: -means[n]))

    order = "" if np.isnan(tau) else f" Their orders of the methods agree with Kendall's τ = {tau:.2f}."
    right = [_mean(by_text(table, RANDOM, name)) for name in ("correct", "twin_correct")]
    sentence = (
        f"With random words hidden the model predicts {right[0]:.2f} of the labels and its twin, which was trained "
        f"with hidden words, {right[1]:.2f}: {interval(found)} are lost because such texts are strange to it, in "
        f"{line['n']:,} texts. Probability lost without the strongest words, of the model: {ranking('drop')}; of the "
        f"twin: {ranking('twin_drop')}.{order}"
    )
    return JUDGEMENT.of(found, sentence)


def figures(trial: Result) -> list[Figure]:
    from heedful.figures.charts import curves

    found = trial.summary["curves"]

    def points(method: str, name: str) -> list[Line]:
        return [{"fraction": point["fraction"], **point[name]} for point in found[method]]

    strange = {"the model": points(RANDOM, "correct"), "its twin": points(RANDOM, "twin_correct")}
    made = [
        Figure(
            "strangeness",
            "Labels predicted with random words hidden",
            "Both models have lost the same words. Where the model's curve is below its twin's, texts with hidden "
            "words are strange to it, and what masking says of it is in part about that.",
            "Accuracy with random words hidden: "
            + "; ".join(f"{name} {line[-1]['mean'] or 0.0:.2f} at the largest share" for name, line in strange.items())
            + ".",
            curves(strange, ("share of the words hidden", "accuracy")),
            wide=True,
        )
    ]
    for name, who in (("drop", "the model"), ("twin_drop", "its twin")):
        lines = {method_name(method): points(method, name) for method in found}
        told = "; ".join(f"{method} {line[0]['mean'] or 0.0:.2f}" for method, line in lines.items())
        made.append(
            Figure(
                name.replace("_", "-"),
                f"Probability lost with the strongest words hidden: {who}",
                "The higher a curve is above that of random words, the more the method points at what the prediction "
                "rests on.",
                f"Probability lost at the smallest share hidden: {told}.",
                curves(lines, ("share of the words hidden", "probability lost")),
            )
        )
    return made


def reasons(trial: Result) -> Iterator[Reason]:
    texts = pa.table({"example": np.unique(trial.table["example"].to_numpy())})
    ours, theirs = (by_text(trial.table, RANDOM, name) for name in ("correct", "twin_correct"))
    strange = "With random words hidden the twin still predicts the label, and the model does not."
    yield Reason(
        "Strange without its words", strange, places_by(texts, -np.where(theirs > ours, theirs - ours, np.nan))
    )
    methods = [name for name in methods_of(trial.table) if name != RANDOM]
    if methods:
        drop = by_text(trial.table, methods[0], "drop")
        told = f"Most is lost when the words that {method_name(methods[0])} ranks highest are hidden."
        yield Reason("Rests on its strongest words", told, places_by(texts, -drop))
