"""Does attention carry over to a simpler model?

Wiegreffe & Pinter 2019, section 3.3: a token-wise network, whose states know nothing of the words around them, is
trained with its attention frozen to that of a guide, or with its own: `uniform`, `trained` (learned by itself),
`base` (the asked run's), `adversary` (that of a model trained to say the same as the base and attend elsewhere,
imitation.py). Where the base's weights help the simpler model more than its own and more than uniform ones, they say
something about words that does not depend on the base's states; where the adversary's do not, it has only hidden in
its states what it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from heedful.config import EvaluationConfig, ModelConfig, RunConfig, Size
from heedful.experiments.framework.beside import by_run, f1_by_run, over_seeds, plainly_trained, seeds_beside
from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, number
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic, places_by
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Summary
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.summary import Line, column, mean, plain
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, interval
from heedful.experiments.other_training.imitation import ImitationTraining
from heedful.experiments.other_training.uniform import p_value
from heedful.figures.figure import Figure
from heedful.measure.columns import Floats, rows_of
from heedful.measure.levels import over_runs
from heedful.measure.paired import paired
from heedful.measure.performance import f1_of_labels
from heedful.measure.statistics import Interval

if TYPE_CHECKING:
    from heedful.models.network import Network


# The outcome of `frozen` in numbers: scores of token-wise models under each guide, and what one gives over another.


def summarise(table: pa.Table) -> Summary:
    """By guide: `accuracy` with an interval over seeds and texts, `f1` by seed, and how much more accuracy it has than
    the model with its own attention (`gain`, with the p-value of a test that flips the signs of texts); `base`: the
    score of the asked run itself; `overall`: of all guides together."""
    rows = {guide: rows_of(table, "guide", guide) for guide in dict.fromkeys(table["guide"].to_pylist())}
    right = {guide: by_run(here, "right", "seed") for guide, here in rows.items()}
    some = next(iter(rows.values()))
    first = rows_of(some, "seed", some["seed"][0].as_py())  # one row for each text
    base = {
        "accuracy": mean(column(first, "right_base")),
        "f1": f1_of_labels(column(first, "truth"), column(first, "predicted")),
    }
    return {
        "by_guide": {guide: _line(rows[guide], right[guide], right.get("trained")) for guide in rows},
        "base": plain(base),
        "overall": {"right": {"mean": mean(column(table, "right"))}},
    }


def _line(rows: pa.Table, right: Floats, trained: Floats | None) -> Line:
    found = over_runs(right)
    accuracy = {"mean": found.mean, "low": found.low, "high": found.high}
    line: Line = {"runs": found.runs, "n": found.texts, "accuracy": plain(accuracy)}
    line["f1"] = over_seeds(f1_by_run(rows, "token_wise", "seed"))
    if trained is not None:
        more = over_runs(right - trained)
        p = paired(right.mean(0), trained.mean(0)).p
        line["gain"] = plain({"mean": more.mean, "low": more.low, "high": more.high, "p": p})
    return line


# What `frozen` says about itself: columns, verdict, figures, texts worth a look, comparison.


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
    "right_base": Column("the model is right", 0, 1, "1: the model is right.", bins=2),
    "truth": Column("right label", drawn=False),
    "token_wise": Column("predicted by the token-wise model", drawn=False),
}


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (LOSS, GAIN))


def verdict(trial: Result) -> Verdict:
    """What the model's attention gives to a token-wise one, more than its own."""
    summary = summarise(trial.table)
    guides = summary["by_guide"]
    if not {"base", "trained"} <= set(guides) or guides["base"]["gain"]["mean"] is None:
        sentence = "The comparison needs texts with labels under the guides base and trained, and there are none."
        return JUDGEMENT.unclear("Not told", sentence, "was not tried on a simpler model")
    right = [by_run(rows_of(trial.table, "guide", guide), "right", "seed") for guide in ("base", "trained")]
    more = over_runs(right[0] - right[1])
    found = Interval(more.mean, more.low, more.high)
    scores = ", ".join(f"{GUIDES[guide]} {line['accuracy']['mean']:.3f}" for guide, line in guides.items())
    sentence = (
        f"Accuracy of a token-wise model, whose states know nothing of other words, with {scores} (means of "
        f"{more.runs} seeds); the model itself has {summary['base']['accuracy']:.3f}. Its attention gives the "
        f"token-wise model {interval(found, 3)} more than its own, over {more.texts:,} texts."
    )
    return JUDGEMENT.of(found, sentence, contains=more.contains)


def figures(trial: Result) -> list[Figure]:
    """Accuracy by guide, each with its interval."""
    from heedful.figures.charts import intervals

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


def reasons(trial: Result) -> Iterator[Reason]:
    """Where the model's attention helps the token-wise model, and where it does not."""
    guides = trial.summary["by_guide"]
    guide = "base" if "base" in guides else next(iter(guides))
    rows = rows_of(trial.table, "guide", guide)
    first = rows_of(rows, "seed", rows["seed"][0].as_py())
    right, tvd = by_run(rows, "right", "seed").mean(0), by_run(rows, "tvd", "seed").mean(0)
    named = GUIDES.get(guide, guide)
    yield Reason(
        "Words alone are not enough",
        f"Token-wise models with {named} are wrong, and farthest from the model.",
        places_by(first, np.where(right < 0.5, -tvd, np.nan)),
    )
    yield Reason("Words alone say the same", f"Token-wise models with {named} are nearest.", places_by(first, tvd))


def compare(evidence: Evidence) -> Comparison:
    """The table of section 3.3."""
    rows = []
    for setting, found in evidence:
        for one in found:
            for guide, line in one["by_guide"].items():
                accuracy, f1, gain = line["accuracy"], line["f1"], line.get("gain")
                told = f"{accuracy['mean']:.3f} ({number(accuracy['low'])} to {number(accuracy['high'])})"
                more, p = (
                    ("-", "-")
                    if gain is None or guide == "trained"
                    else (f"{gain['mean']:+.3f} ({gain['low']:+.3f} to {gain['high']:+.3f})", p_value(gain["p"]))
                )
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
    header = (*SETTING, "guide", "seeds", "F1 (std of seeds)", *evidence.sources, "accuracy", "more than its own", "p")
    note = (
        "A token-wise network (each word's embedding, 128 tanh units) under attention of four origins (Wiegreffe & "
        "Pinter 2019, section 3.3). Intervals hold other texts and other seeds; p flips the signs of texts."
    )
    return Comparison(tables=(Table("Frozen attention", header, tuple(rows), note),) if rows else ())


Guide = Literal["uniform", "trained", "base", "adversary"]


class FrozenConfig(ImitationTraining):
    """`seed`, `epochs` and `patience` are those of the adversary's training."""

    guides: tuple[Guide, ...] = Field(default=("uniform", "trained", "base", "adversary"), min_length=1)
    seeds: tuple[int, ...] = (1, 2)  # of further token-wise models, beside the run's own seed
    hidden_dim: Size = Field(default=128, ge=4, multiple_of=4)  # of the token-wise network, as published
    lambda_: float = Field(default=0.01, ge=0)  # of the adversary


def runs(config: FrozenConfig, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
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
        encoder="average",
        activation="tanh",
        hidden_dim=config.hidden_dim,
        embedding_dim=base.model.embedding_dim,
        attention=base.model.attention if guide == "trained" else "uniform",
        imposed=base.model if guide in ("base", "adversary") else None,
    )
    run = base.model_copy(update={"model": token_wise})
    if token_wise.imposed is None:
        return run
    source = base if guide == "base" else config.imitator(base, config.lambda_)
    objective = {"objective": "imposed", "objective_options": {"base": source.model_dump(mode="json")}}
    return run.model_copy(update={"training": base.training.model_copy(update=objective)})


def run(
    model: Network, batches: Batches, config: FrozenConfig, rng: np.random.Generator, others: Mapping[str, OtherRun]
) -> Iterator[Chunk]:
    """One row for each text, guide and seed: `guide`, `seed`, `truth`, what the token-wise model predicts
    (`token_wise`), 1 where it is `right`, 1 where the asked model is (`right_base`), and `tvd` of the two outputs."""
    from heedful.experiments.edited_attention.observe import observer
    from heedful.experiments.framework.beside import find_labels, observe_beside

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
    name="frozen",
    question=QUESTION,
    asks="whether its attention carries over to a simpler model",
    paper="Wiegreffe & Pinter 2019, section 3.3",
    run=run,
    columns=COLUMNS,
    config=FrozenConfig,
    needs=frozenset({"attends", "edits_attention"}),
    version="1",
    by="guide",
    summarise=summarise,
    measures=(
        Measure("frozen", "accuracy of token-wise models, all guides together", "token-wise", "right", "overall.right"),
    ),
    judge=verdict,
    scale="accuracy that its attention adds to a simpler model",
    takes=Takes(runs=runs),
    pages=Presentation(
        group_title=lambda guide: GUIDES.get(guide, guide),
        statistics=(
            Statistic(
                "base's attention, token-wise",
                "by_guide.base.accuracy.mean",
                "Base's attention, token-wise: accuracy of a token-wise model on which this model's "
                "attention is imposed.",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
    ),
)
