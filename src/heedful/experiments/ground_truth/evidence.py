"""Rows of the experiments that know which words matter: what each method's scores find of them.

`rationales` (people marked the words), `planted` (the words decide by construction) and `pointing` (the words come from
texts of the predicted label) differ in where the evidence comes from, and share everything here. Beside the methods
stand three controls: a random order, uniform scores, and the first words of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from pydantic import field_validator

from heedful.config import Config
from heedful.errors import Mistake
from heedful.experiments.correlation.correlation import by_word, random_scores
from heedful.experiments.framework.experiment import Chunk, Ints, States, Summary
from heedful.experiments.framework.summary import Line, column, mean, plain, spread
from heedful.measure import evidence as measure
from heedful.measure.agreement import Floor
from heedful.measure.columns import Bools, Floats, rows_of
from heedful.measure.evidence import average_precision_expected, hit_floor, precision_floor
from heedful.measure.paired import paired
from heedful.measure.tests import benjamini_hochberg
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Network, Output
    from heedful.records import Batch


ATTENTION, RANDOM, UNIFORM, FIRST_WORDS = "attention", "random", "uniform", "first_words"
METHODS = (ATTENTION, "gradient", "gradient_x_input", "integrated_gradients", "lrp", "omission")
CONTROLS = (RANDOM, UNIFORM, FIRST_WORDS)
MEASURES = ("hit", "precision", "best_f1", "iou_f1", "auprc", "rank", "auc")

Scorer = Callable[["Batch", "Output"], "Tensor"]  # scores of tokens for the predicted label: (batch, length)


class EvidenceConfig(Config):
    """methods None: those of METHODS that the model can be explained by. The controls are always there."""

    methods: tuple[str, ...] | None = None
    absolute: bool = True  # rank by |score|

    @field_validator("methods")
    @classmethod
    def _known(cls, methods: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in methods or ():
            EXPLAINERS.check(name)
        if methods is not None and len(set(methods)) < len(methods):
            raise ValueError("each method is given once")
        return methods


def explainers_of(config: EvidenceConfig) -> list[str]:
    return list(METHODS if config.methods is None else config.methods)


def scorers(model: Network, config: EvidenceConfig, states: States) -> dict[str, Scorer]:
    """Each method as a function; one that was asked for by name and does not fit the model is refused."""
    names = [name for name in explainers_of(config) if name not in CONTROLS]
    if config.methods is None:
        names = [name for name in names if EXPLAINERS.find(name).fits(model)]
    return {name: method_scorer(model, name, states) for name in names}


def method_scorer(model: Network, name: str, states: States, label: int | None = None) -> Scorer:
    """Of the predicted label, or of one that is the same for all texts."""
    explainer = EXPLAINERS.find(name).with_state(states.get(name))
    explainer.check(model.can)
    options = {"parts": "passage"} if "parts" in explainer.options else {}
    knows = "output" in explainer.keywords
    limit = getattr(model, "limit", None) if "attends" in explainer.needs else None

    def scores(batch: Batch, output: Output) -> Tensor:
        """A text that is read in windows has no one attention: what needs it is nan for all its words."""
        import torch

        from heedful.experiments.faithfulness.scores import reads_at_once

        target = output.predicted if label is None else torch.full_like(output.predicted, label)
        whole = np.ones(len(batch), dtype=np.bool_) if limit is None else reads_at_once(batch) <= limit
        if whole.all():
            known = {"output": output} if knows else {}
            return explainer.run(model, batch, target, **options, **known).passage
        found = torch.full(batch.passage.ids.shape, torch.nan, dtype=model.dtype, device=model.device)
        rows = torch.from_numpy(np.flatnonzero(whole)).to(model.device)
        if len(rows):
            some = explainer.run(model, batch.rows(rows), target[rows], **options).passage
            found[rows] = 0.0
            found[rows, : some.shape[1]] = some.detach().to(found.dtype)
        return found

    return scores


def common_columns(model: Network, examples: Ints, batch: Batch, output: Output) -> Chunk:
    """What every experiment's rows have; without one attention over all of a text its largest weight is undefined."""
    real = words_of(batch)
    peak = np.full(len(batch), np.nan)
    if EXPLAINERS.find(ATTENTION).needs <= model.can:
        weights = by_word(method_scorer(model, ATTENTION, {})(batch, output), batch.passage)
        peak = np.where(real.any(1), weights.astype(np.float64).max(1, initial=0.0), np.nan)
    return {
        "example": np.asarray(examples, dtype=np.int64),
        "predicted": output.predicted.cpu().numpy(),
        "max_attention": peak,
        "n_words": real.sum(1),
    }


def words_of(batch: Batch) -> Bools:
    """Which places hold words: (batch, words)."""
    return by_word(batch.passage.mask, batch.passage) > 0


def evidence_of(batch: Batch, experiment: str) -> Bools:
    """The words that are known to matter, (batch, words), as the batch has them; of a text that does not say, none."""
    from heedful.data.text.batching import EVIDENCE, SOME_EVIDENCE

    known = batch.targets.get(EVIDENCE, batch.targets.get(SOME_EVIDENCE))
    if known is None:
        raise Mistake(
            f"{experiment} needs texts whose evidence is known, and these have none: give a corpus that has it, or "
            "your own file with --set evidence_column=COLUMN."
        )
    return by_word(known & batch.passage.mask, batch.passage) > 0


def found_by_method(
    methods: dict[str, Scorer], batch: Batch, output: Output, evidence: Bools, absolute: bool, rngs: list[Generator]
) -> Iterator[Chunk]:
    """A chunk for each method and control: `method`, `ranked_words`, `evidence_words` of them, `chance` (the
    share of the words that are evidence, which is what hit and precision of a random order are on average), and the
    MEASURES.

    The random order also decides between words of equal score, where a choice has to be made (`iou_f1`).
    """
    real = words_of(batch)
    ties = random_scores(real, rngs)
    places = np.broadcast_to(np.arange(real.shape[1]), real.shape)
    controls: dict[str, Floats] = {
        RANDOM: ties,
        UNIFORM: real.astype(np.float64),
        FIRST_WORDS: -places.astype(np.float64),
    }
    n, m = real.sum(1), (evidence & real).sum(1)
    about: Chunk = {"ranked_words": n, "evidence_words": m, "chance": np.where(m > 0, m / np.maximum(n, 1), np.nan)}
    for name, method in methods.items():
        scores = by_word(method(batch, output), batch.passage).astype(np.float64)
        scores = measure.join_near(np.abs(scores) if absolute else scores, real)
        yield {"method": [name] * len(batch)} | about | measure_scores(scores, real, evidence, ties)
    for name, scores in controls.items():
        yield {"method": [name] * len(batch)} | about | measure_scores(scores, real, evidence, ties)


def measure_scores(scores: Floats, real: Bools, evidence: Bools, ties: Floats) -> Chunk:
    """The MEASURES of scores (texts, words): (texts,) each, nan without evidence."""
    ranked = measure.Ranked.of(scores, real, evidence)
    chosen = measure.first_words(scores, real, ranked.m, ties)
    return {
        "hit": measure.hit(ranked),
        "precision": measure.precision(ranked),
        "best_f1": measure.best_f1(ranked),
        "iou_f1": np.where(ranked.m > 0, measure.iou_f1(chosen, evidence & real), np.nan),
        "auprc": measure.average_precision(ranked),
        "rank": measure.mean_rank(ranked),
        "auc": measure.roc_auc(ranked),
    }


# What rows of known evidence add up to: each method with intervals, against chance, and against attention.


FLOORS: dict[str, Callable[[Ints, Ints], Floor]] = {"hit": hit_floor, "precision": precision_floor}


def methods_of(table: pa.Table) -> list[str]:
    """In the order of the rows."""
    return list(dict.fromkeys(table["method"].to_pylist()))


def summarise_evidence(table: pa.Table) -> Summary:
    """`methods`: the mean of each measure with its interval, overall and by predicted class. `chance`: what a random
    order gets, exactly. `against_chance`: the difference from it, with p by the law of random orders and q over all
    methods (Benjamini & Hochberg). `paired`: each method against attention, text by text, by precision."""
    each = {name: rows_of(table, "method", name) for name in methods_of(table)}
    first = next(iter(each.values()))
    n, m = _counts(first)
    return {
        "texts": int((m > 0).sum()),
        "without_evidence": int((m == 0).sum()),
        "methods": {name: _by_class(rows) for name, rows in each.items()},
        "chance": {
            "hit": mean(column(first, "chance")),
            "precision": mean(column(first, "chance")),
            "auprc": mean(average_precision_expected(n, m)),
            "rank": mean(np.where(m > 0, (n + 1) / 2, np.nan)),
        },
        "against_chance": {name: _against_chance(each, name) for name in FLOORS},
        "paired": {
            f"{name}/{ATTENTION}": _against(rows, each[ATTENTION])
            for name, rows in each.items()
            if ATTENTION in each and name != ATTENTION
        },
    }


def _counts(rows: pa.Table) -> tuple[Ints, Ints]:
    """Words, and words of evidence, of each text."""
    return rows["ranked_words"].to_numpy(), rows["evidence_words"].to_numpy()


def _by_class(rows: pa.Table) -> Line:
    predicted = rows["predicted"].to_numpy()
    classes = {str(c): _line(rows.filter(pa.array(predicted == c))) for c in np.unique(predicted)}
    return {"overall": _line(rows), "by_class": classes}


def _line(rows: pa.Table) -> Line:
    return {name: spread(column(rows, name), yes_or_no=name == "hit") for name in MEASURES}


def _against_chance(each: dict[str, pa.Table], name: str) -> dict[str, Line]:
    p = [chance_p(rows, name) for rows in each.values()]
    lines = {}
    for method, rows, one, q in zip(each, each.values(), p, benjamini_hochberg(p), strict=True):
        line = spread(column(rows, name) - column(rows, "chance"))
        difference = {key: line[key] for key in ("n", "mean", "low", "high")}
        lines[method] = difference | plain({"p": one, "q": float(q)})
    return lines


def chance_p(rows: pa.Table, name: str) -> float:
    """How often random orders of the words of these texts have a mean as far from chance."""
    values: Floats = column(rows, name)
    n, m = _counts(rows)
    known = ~np.isnan(values)
    if not known.any():
        return float("nan")
    return FLOORS[name](n[known], m[known]).surprise(float(values[known].mean()))


def _against(rows: pa.Table, attention: pa.Table) -> Line:
    ours, theirs = column(rows, "precision"), column(attention, "precision")
    test = paired(ours, theirs)
    found = {"n": test.n, "difference": test.difference, "low": test.low, "high": test.high, "p": test.p}
    return plain(found | {"effect_size": test.rank_biserial})
