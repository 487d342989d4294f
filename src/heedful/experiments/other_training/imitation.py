"""Can a model be trained that says the same and attends elsewhere?

Wiegreffe & Pinter 2019, section 4: a fresh model is trained for TVD(y, y_base) - lambda KL(alpha || alpha_base) on all
training texts (models/objectives/imitation.py), for several lambda. Its mean TVD and JSD on test texts, lambda by
lambda, are a curve. The paper's reading: where it is flat, attention can be manipulated at no cost; where it is
convex and steep, moving attention costs predictions. The exact adversary (adversarial.py) moves the weights of each
text apart, with the model's own states: it needs no model that would really attend so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pydantic import Field

from heedful.config import Config, EvaluationConfig, RunConfig, Seed
from heedful.experiments.adversarial.adversarial import AdversarialConfig, search
from heedful.experiments.framework.beside import plainly_trained, seed_floor
from heedful.experiments.framework.comparison import SETTING, Comparison, Evidence, Table, number
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic, places_by
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Floats, Summary, generators
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.summary import Line, quantiles, share, spread
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, interval
from heedful.figures.figure import Figure
from heedful.measure.columns import column, rows_of
from heedful.measure.statistics import Interval, mean_interval

if TYPE_CHECKING:
    from heedful.experiments.edited_attention.observe import Observed
    from heedful.models.network import Network


# The outcome of `imitation` in numbers: the curve of mean JSD and mean TVD over lambda, beside what is possible.


def summarise(table: pa.Table) -> Summary:
    """By lambda: mean, interval and quantiles of `jsd` and `tvd`, and how often the imitator stays below the text's
    optimum; the same adversary for all; and all imitators together (`overall`)."""
    lambdas = dict.fromkeys(table["lambda"].to_pylist())
    rows = {one: rows_of(table, "lambda", one) for one in lambdas}
    first = next(iter(rows.values()))
    return {
        "by_lambda": {one: _line(here) for one, here in rows.items()},
        "adversary": spread(column(first, "adversary")),
        "overall": {name: spread(column(table, name)) for name in ("jsd", "tvd")},
    }


def _line(table: pa.Table) -> Line:
    jsd, best, tvd, adversary = (column(table, name) for name in ("jsd", "optimum", "tvd", "adversary"))
    return {
        "jsd": spread(jsd) | quantiles(jsd),
        "tvd": spread(tvd) | quantiles(tvd),
        "kl": spread(column(table, "kl")),
        "optimum": spread(best),
        "below_optimum": share(jsd <= best, ~np.isnan(jsd) & ~np.isnan(best)),
        "below_adversary": share(jsd <= adversary, ~np.isnan(jsd) & ~np.isnan(adversary)),
    }


# What `imitation` says about itself: columns, verdict, figures, texts worth a look, comparison.


QUESTION = "Can a model be trained that says the same and attends elsewhere?"
LN2 = float(np.log(2))
AWAY = 0.35  # nats of JSD, about half of what is possible: an attention that is elsewhere
CHEAP, DEAR = 0.02, 0.1  # of TVD, beyond that of an imitator that is not driven away
RULE = (
    f"Of the imitators whose attention is {AWAY} nats of JSD away or more (0.69 is the most possible), the one that is "
    f"nearest in its outputs: beyond the TVD of an imitator with λ = 0, less than {CHEAP}: yes; from {DEAR} on: no; "
    "between: at a price."
)
COLUMNS = {
    "jsd": Column("JSD of the attentions", 0, LN2, "Right: the imitator attends elsewhere.", unit="nats"),
    "tvd": Column("TVD of the outputs", 0, 1, "Left: the imitator says the same."),
    "kl": Column("KL of the attentions", 0, None, "What the imitator was trained to make large.", unit="nats"),
    "adversary": Column(
        "ε-max JSD", 0, LN2, "How far weights can be moved, text by text, without moving the prediction.", unit="nats"
    ),
    "optimum": Column(
        "greatest JSD at the same TVD",
        0,
        LN2,
        "How far weights can be moved when the output may change as much as the imitator's.",
        unit="nats",
    ),
}
WORDINGS: dict[Grade, Wording] = {
    "for": Wording("No", "cannot be trained away without changing the predictions"),
    "mixed": Wording("At a price", "can be trained away at a price in predictions"),
    "against": Wording("Yes", "can be trained away while the predictions stay"),
    "unclear": Wording("Not told", "was not trained far enough away to tell what it costs"),
}
Lines = Mapping[str, Mapping[str, Any]]  # of a summary, by lambda


def nearest_elsewhere(lines: Lines) -> str | None:
    """Of the imitators that attend elsewhere, the one whose outputs are nearest."""
    away = [name for name, line in lines.items() if (line["jsd"]["mean"] or 0.0) >= AWAY]
    return min(away, key=lambda name: float(lines[name]["tvd"]["mean"]), default=None)


def not_driven(lines: Lines) -> str:
    """The imitator with the least lambda: what imitation alone does."""
    return min(lines, key=float)


JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, (CHEAP, DEAR), rising=False)


def verdict(trial: Result) -> Verdict:
    lines = summarise(trial.table)["by_lambda"]
    still, moved = not_driven(lines), nearest_elsewhere(lines)
    first = lines[still]
    if moved is None:
        farthest = max((line["jsd"]["mean"] or 0.0) for line in lines.values())
        sentence = (
            f"No imitator's attention is {AWAY} nats of JSD away or more; the farthest is {farthest:.3f} away. Ask "
            "again with greater λ."
        )
        answer, clause = WORDINGS["unclear"]
        return JUDGEMENT.unclear(answer, sentence, clause)
    cost = column(rows_of(trial.table, "lambda", moved), "tvd") - column(rows_of(trial.table, "lambda", still), "tvd")
    low, high = mean_interval(cost)
    found = Interval(float(cost.mean()), low, high)
    line = lines[moved]
    beyond = (
        ""
        if line["below_optimum"] is None
        else (
            f" In {line['below_optimum']:.0%} of the texts its attention is nearer to the model's than the farthest "
            f"one that changes the output as little (whose mean JSD is {line['optimum']['mean']:.3f})."
        )
    )
    sentence = (
        f"With λ = {moved} an imitator's attention is {line['jsd']['mean']:.3f} nats of JSD away, at a mean TVD of "
        f"{line['tvd']['mean']:.3f}; with λ = {still} it is {first['jsd']['mean']:.3f} away at "
        f"{first['tvd']['mean']:.3f}. That is {interval(found, 3)} of TVD more, over {len(cost):,} texts.{beyond}"
    )
    return JUDGEMENT.of(found, sentence)


def curve_points(trial: Result) -> list[dict[str, Any]]:
    """(mean JSD, mean TVD) of each imitator; and of other seeds, where they are known."""
    points = [
        {"kind": "imitators", "name": f"λ = {name}", "x": line["jsd"]["mean"], "y": line["tvd"]["mean"]}
        for name, line in sorted(trial.summary["by_lambda"].items(), key=lambda item: float(item[0]))
    ]
    floor = seed_floor(trial)
    for seed, line in (floor.by_seed if floor else {}).items():
        points.append({"kind": "other seeds", "name": f"seed {seed}", "x": line["jsd"], "y": line["tvd"]})
    return [point for point in points if point["x"] is not None and point["y"] is not None]


def figures(trial: Result) -> list[Figure]:
    """The curve of Wiegreffe & Pinter 2019, section 4: mean JSD against mean TVD; and each text against its optimum."""
    from heedful.figures.charts import curve
    from heedful.figures.drawing import against, dots, groups_of, some

    adversary = trial.summary["adversary"]["mean"]
    lines = {} if adversary is None else {"exact adversary of each text": adversary}
    floor = seed_floor(trial)
    seeds = "" if floor is None else " Other seeds of the same model stand beside it: what chance alone does."
    points = curve_points(trial)
    told = "; ".join(f"{p['name']}: JSD {p['x']:.3f}, TVD {p['y']:.3f}" for p in points)
    made = [
        Figure(
            "imitation-curve",
            "What it costs to attend elsewhere",
            "Each point is a model that was trained to say the same and to attend elsewhere, more so with greater λ. "
            "A flat curve: attention can be manipulated at no cost in predictions. A convex and steep one: it "
            f"cannot. The line is how far weights can be moved text by text, without a model that attends so.{seeds}",
            f"Mean TVD against mean JSD: {told}.",
            curve(
                points,
                ("distance of the attentions (mean JSD)", "distance of the outputs (mean TVD)"),
                (0.0, 0.7),
                lines,
            ),
            wide=True,
        )
    ]
    moved = nearest_elsewhere(trial.summary["by_lambda"]) or max(trial.summary["by_lambda"], key=float)
    frame, best = trial.frame("jsd", "lambda", moved), trial.frame("optimum", "lambda", moved)
    drawn = some(np.flatnonzero(~np.isnan(frame.value) & ~np.isnan(best.value)))
    if len(drawn):
        groups, names = groups_of(frame.predicted, trial.labels)
        made.append(
            Figure(
                "imitation-optimum",
                "The imitator against the optimum of each text",
                f"Each point is a text under the imitator with λ = {moved}; above the line: weights could be moved "
                "farther than a trained model moves them, at the same change of the output.",
                f"Greatest JSD at the same TVD against the imitator's JSD, λ = {moved}.",
                against(
                    dots(frame.example, frame.value, best.value, drawn, groups, names),
                    names,
                    ("imitator (JSD)", "exact optimum at the same TVD (JSD)"),
                    (0.0, 0.7),
                    "Exact optimum at the same TVD against the imitator's JSD",
                ),
            )
        )
    return made


def reasons(trial: Result) -> Iterator[Reason]:
    """Under the imitator that attends elsewhere at the least cost, or the one with the greatest lambda."""
    lines = trial.summary["by_lambda"]
    name = nearest_elsewhere(lines) or max(lines, key=float)
    rows = rows_of(trial.table, "lambda", name)
    jsd, tvd = column(rows, "jsd"), column(rows, "tvd")
    yield Reason(
        "Attention was trained away",
        f"The imitator with λ = {name} says the same (TVD below .05) and attends elsewhere.",
        places_by(rows, np.where(tvd < 0.05, -jsd, np.nan)),
    )
    yield Reason("Attention would not move", f"The lowest JSD of the imitator with λ = {name}.", places_by(rows, jsd))


def compare(evidence: Evidence) -> Comparison:
    """The curve in numbers, and its slopes."""
    rows = []
    for setting, found in evidence:
        for one in found:
            lines = dict(sorted(one["by_lambda"].items(), key=lambda item: float(item[0])))
            slopes = ["-", *(slope(a, b) for a, b in pairwise(lines.values()))]
            for (name, line), steep in zip(lines.items(), slopes, strict=True):
                means = [_with_interval(line[which]) for which in ("tvd", "jsd")]
                share = "-" if line["below_optimum"] is None else f"{line['below_optimum']:.1%}"
                best, exact = number(line["optimum"]["mean"]), number(one["adversary"]["mean"])
                rows.append((*setting, name, *means, steep, best, share, exact))
    header = (*SETTING, "λ", "TVD", "JSD", "slope", "optimum at the same TVD", "texts below their optimum", "ε-max JSD")
    note = (
        "Fresh models trained for TVD(y, y_base) - λ KL(α ‖ α_base) (Wiegreffe & Pinter 2019, section 4): means over "
        "test texts with 95% intervals over texts. Slope: TVD paid for each nat of JSD since the λ before. Optimum: "
        "the greatest JSD of another attention over the base's states that changes each output as little as the "
        "imitator does; ε-max JSD: the same at TVD ≤ ε (the exact adversary)."
    )
    return Comparison(tables=(Table("Imitation", header, tuple(rows), note),) if rows else ())


def slope(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """TVD for each nat of JSD; where JSD did not grow there is none."""
    tvd, jsd = (after[name]["mean"] - before[name]["mean"] for name in ("tvd", "jsd"))
    return f"{tvd / jsd:.2f}" if jsd > 0.005 else "-"


def _with_interval(line: Mapping[str, Any]) -> str:
    return f"{line['mean']:.3f} ({line['low']:.3f} to {line['high']:.3f})"


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
