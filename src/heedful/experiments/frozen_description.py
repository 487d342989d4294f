"""What `frozen` says about itself: columns, verdict, figures, texts worth a look, comparison."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heedful.experiments.beside import by_run
from heedful.experiments.comparison import SETTING, Comparison, Evidence, Table, number
from heedful.experiments.description import Column, Reason, Trial, places_by
from heedful.experiments.frozen_summary import summarise
from heedful.experiments.uniform_description import p_value
from heedful.experiments.verdict import Grade, Verdict, Wording, border, ends, grade_at, interval
from heedful.figures.figure import Figure
from heedful.measure.columns import rows_of
from heedful.measure.levels import over_runs
from heedful.measure.statistics import Interval

QUESTION = "Does attention carry over to a simpler model?"
GUIDES = {
    "uniform": "uniform attention",
    "trained": "attention of its own",
    "base": "the model's attention",
    "adversary": "an adversary's attention",
}
LOSS, GAIN = -0.02, 0.0  # of accuracy, against an attention of its own
RULE = (
    "Accuracy of a token-wise model on which the model's attention is imposed, against one that learns its own: at "
    f"least {GAIN:g} more: yes; from {LOSS} on: nearly; below: no."
)
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("Yes", "carries over to a simpler model"),
    "mixed": Wording("Nearly", "nearly carries over to a simpler model"),
    "against": Wording("No", "does not carry over to a simpler model"),
}
COLUMNS = {
    "right": Column("right", 0, 1, "1: the token-wise model is right.", bins=2),
    "tvd": Column("TVD of the outputs", 0, 1, "Left: the token-wise model says what the model says."),
    "right_base": Column("the model is right", 0, 1, "1: the asked model is right.", bins=2),
    "truth": Column("right label", drawn=False),
    "token_wise": Column("predicted by the token-wise model", drawn=False),
}


def verdict(trial: Trial) -> Verdict:
    """What the model's attention gives to a token-wise one, more than its own."""
    bars, summary = (LOSS, GAIN), summarise(trial.table)
    guides = summary["by_guide"]
    if not {"base", "trained"} <= set(guides) or guides["base"]["gain"]["mean"] is None:
        sentence = (
            "The comparison needs texts with labels under the guides base and trained, and there are none."
        )
        return Verdict(
            QUESTION, "unclear", "Not told", sentence, RULE, "was not tried on a simpler model", bars=bars
        )
    right = [by_run(rows_of(trial.table, "guide", guide), "right", "seed") for guide in ("base", "trained")]
    more = over_runs(right[0] - right[1])
    found = Interval(more.mean, more.low, more.high)
    grade = grade_at(found.value, *bars, rising=True)
    answer, clause = WORDINGS[grade]
    scores = ", ".join(f"{GUIDES[guide]} {line['accuracy']['mean']:.3f}" for guide, line in guides.items())
    sentence = (
        f"Accuracy of a token-wise model, whose states know nothing of other words, with {scores} (means of "
        f"{more.runs} seeds); the model itself has {summary['base']['accuracy']:.3f}. Its attention gives the "
        f"token-wise model {interval(found, 3)} more than its own, over {more.texts:,} "
        f"texts.{border(found, *bars)}"
    )
    return Verdict(
        QUESTION, grade, answer, sentence, RULE, clause, *ends(found), bars=bars, contains=more.contains
    )


def figures(trial: Trial) -> list[Figure]:
    """Accuracy by guide, each with its interval."""
    from heedful.figures.intervals import intervals

    lines = {
        GUIDES.get(guide, guide): tuple(line["accuracy"][end] for end in ("mean", "low", "high"))
        for guide, line in trial.summary["by_guide"].items()
    }
    told = "; ".join(f"{name} {mean:.3f}" for name, (mean, _, _) in lines.items())
    own = {"the model itself": trial.summary["base"]["accuracy"]}
    return [
        Figure(
            "frozen-accuracy",
            "A token-wise model under each attention",
            "Accuracy of a model whose states know only their own word, under attention of four origins, with "
            "intervals over texts and seeds. If the model's attention says which words matter, it helps the simpler "
            "model at least as much as attention that the simpler model learns.",
            f"Accuracy of token-wise models: {told}.",
            intervals(lines, "accuracy", own),
        )
    ]


def reasons(trial: Trial) -> Iterator[Reason]:
    """Where the model's attention helps the token-wise model, and where it does not."""
    guides = trial.summary["by_guide"]
    guide = "base" if "base" in guides else next(iter(guides))
    rows = rows_of(trial.table, "guide", guide)
    first = rows_of(rows, "seed", rows["seed"][0].as_py())
    right, tvd = by_run(rows, "right", "seed").mean(0), by_run(rows, "tvd", "seed").mean(0)
    named = GUIDES.get(guide, guide)
    yield Reason(
        "Words alone are not enough", f"Token-wise models with {named} are wrong, and farthest from the model.",
        places_by(first, np.where(right < 0.5, -tvd, np.nan)),
    )  # fmt: skip
    yield Reason(
        "Words alone say the same", f"Token-wise models with {named} are nearest.", places_by(first, tvd)
    )


def compare(evidence: Evidence) -> Comparison:
    """The table of section 3.3."""
    rows = []
    for setting, found in evidence:
        for one in found:
            for guide, line in one["by_guide"].items():
                accuracy, f1, gain = line["accuracy"], line["f1"], line.get("gain")
                told = f"{accuracy['mean']:.3f} ({number(accuracy['low'])} to {number(accuracy['high'])})"
                more, p = ("-", "-") if gain is None or guide == "trained" else (
                    f"{gain['mean']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})", p_value(gain["p"])
                )  # fmt: skip
                theirs = evidence.theirs(setting, f"by_guide.{guide}.f1.mean")
                cells = (str(line["runs"]), f"{f1['mean']:.3f} ({number(f1['std'])})", *map(number, theirs))
                rows.append((*setting, GUIDES.get(guide, guide), *cells, told, more, p))
            base = one["base"]
            blank = ("-",) * len(evidence.sources)
            rows.append(
                (
                    *setting,
                    "(the model itself)",
                    "1",
                    f"{base['f1']:.3f} (-)",
                    *blank,
                    f"{base['accuracy']:.3f}",
                    "-",
                    "-",
                )
            )
    header = (
        *SETTING, "guide", "seeds", "F1 (std of seeds)", *evidence.sources, "accuracy", "more than its own", "p",
    )  # fmt: skip
    note = (
        "A token-wise network (each word's embedding, 128 tanh units) under attention of four origins (Wiegreffe & "
        "Pinter 2019, section 3.3). Intervals hold other texts and other seeds; p flips the signs of texts."
    )
    return Comparison(tables=(Table("Frozen attention", header, tuple(rows), note),) if rows else ())
