"""Do explanations find the word of the source that a word was made of?

A text is one word that a translator says: the words before it have been said, and what links it to words of the source
is known (people linked them, or the languages are made up; data/translation). Each method explains why it is said, and
what it finds is read as links in two ways, as Ding et al. 2019 (section 4) and Kobayashi et al. 2020 (section 5) do:

    best        one link, to the word of the highest score
    threshold   links to all words with at least a share t of the scores above 0; t is chosen on other sentences: each
                half of the sentences has the t that makes AER least on the other

AER, precision and recall are in links.py; a rank measure without any threshold (`auc`) and how often the
best word is a right one (`hit`) stand beside them. Words that are linked to nothing count as the definition says: a
link from them is a wrong one. Always the word that is in the data is explained, whether the model would have said it
or not (forced decoding). Controls: a random order, and the diagonal, which needs no model at all.

Of a classifier the same is asked about its predicted label and the evidence of the text.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from numpy.typing import NDArray

from heedful.data.translation import DIAGONAL, POSSIBLE
from heedful.experiments.correlation.correlation import by_word, random_scores
from heedful.experiments.framework.description import Column, Result, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, States, Summary, generators
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.summary import column, plain, summary_of_columns
from heedful.experiments.framework.verdict import Judgement, Verdict, Wording, interval
from heedful.experiments.ground_truth.evidence import (
    ATTENTION,
    METHODS,
    RANDOM,
    EvidenceConfig,
    common_columns,
    evidence_of,
    method_scorer,
    words_of,
)
from heedful.experiments.ground_truth.links import Counts, alignment, count_links, error_rate, with_chosen_threshold
from heedful.experiments.ground_truth.verdict import method_title
from heedful.measure import evidence as measure
from heedful.measure.columns import Floats, rows_of
from heedful.measure.paired import paired
from heedful.measure.statistics import Interval
from heedful.measure.statistics import summarise as summarise_values
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from heedful.models.network import Network
    from heedful.records import Batch

ALIGNERS = (*METHODS, "occlusion")
THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5)  # shares of the scores above 0
COUNTED = ("links", "sure_links", "possible_links")  # |A|, |A & S|, |A & P|


class AlignmentConfig(EvidenceConfig):
    """methods None: those of ALIGNERS that the model can be explained by. The controls are always there."""

    absolute: bool = False  # a word that speaks against what is said is no source of it


def aligners(config: AlignmentConfig) -> list[str]:
    return list(ALIGNERS if config.methods is None else config.methods)


def run(
    model: Network, batches: Batches, config: AlignmentConfig, rng: Generator, states: States | None = None
) -> Iterator[Chunk]:
    """One row for each word that is said and `method`."""
    import torch

    ALIGNMENT.check(model.can)
    names = [name for name in aligners(config) if name != RANDOM]
    if config.methods is None:
        names = [name for name in names if EXPLAINERS.find(name).fits(model)]
    this = 1 if "generates" in model.can else None  # the word itself, and not "anything else"
    methods = {name: method_scorer(model, name, states or {}, this) for name in names}
    generator_of = generators(rng)
    for examples, batch in batches:
        sure, real = evidence_of(batch, ALIGNMENT.name), words_of(batch)
        possible = _marked(batch, POSSIBLE) | sure
        with torch.no_grad():
            output = model(batch)
        base = common_columns(model, examples, batch, output) | {
            "sentence": _sentences(batch),
            "sure": sure.sum(1).astype(np.int64),
            "chance": np.where(possible.any(1), possible.sum(1) / np.maximum(real.sum(1), 1), np.nan),
        }
        ties = random_scores(real, [generator_of(i) for i in examples])
        controls: dict[str, Floats] = {RANDOM: ties}
        if DIAGONAL in batch.targets:
            controls[DIAGONAL] = _marked(batch, DIAGONAL).astype(np.float64)
        for name, method in methods.items():
            scores = by_word(method(batch, output), batch.passage).astype(np.float64)
            scores = np.abs(scores) if config.absolute else scores
            yield base | {"method": [name] * len(batch)} | links_of(scores, real, sure, possible, ties)
        for name, scores in controls.items():
            yield base | {"method": [name] * len(batch)} | links_of(scores, real, sure, possible, ties)


def links_of(
    scores: Floats, real: NDArray[np.bool_], sure: NDArray[np.bool_], possible: NDArray[np.bool_], ties: Floats
) -> Chunk:
    """What scores (words said, words of the source) say as links, and how good that is. Ties are broken by chance."""
    ranked = measure.Ranked.of(scores, real, possible)
    order = np.lexsort((ties, np.where(real, scores, -np.inf)), axis=1)  # the last is the best
    best = np.zeros_like(real)
    rows = np.flatnonzero(real.any(1))
    best[rows, order[rows, -1]] = True
    found: Chunk = {"hit": np.where(possible.any(1), (best & possible).any(1), np.nan), "auc": measure.roc_auc(ranked)}
    found |= _columns("", count_links(best, sure, possible))
    above = np.where(real, np.maximum(scores, 0), 0)
    total = above.sum(1, keepdims=True)
    shares = above / np.where(total > 0, total, 1)
    for t in THRESHOLDS:
        found |= _columns(f"_{round(t * 100)}", count_links((shares >= t) & real, sure, possible))
    return found


def _columns(ending: str, counts: Counts) -> Chunk:
    return {f"{name}{ending}": counts[:, i].astype(np.int64) for i, name in enumerate(COUNTED)}


def _marked(batch: Batch, name: str) -> NDArray[np.bool_]:
    """The words that a mark is on; none where the data do not have it."""
    marks = batch.targets.get(name, batch.passage.mask & False)
    return by_word(marks & batch.passage.mask, batch.passage) > 0


def _sentences(batch: Batch) -> NDArray[np.int64]:
    """A number for each source, the same for the same words."""
    ids, present = batch.passage.ids.cpu().numpy(), batch.passage.present.cpu().numpy()
    return np.array([zlib.crc32(row[there].tobytes()) for row, there in zip(ids, present, strict=True)], dtype=np.int64)


# Rows to numbers.


def summarise(table: pa.Table) -> Summary:
    """`alignment`: of each method AER with its interval, precision, recall, F1, by the best word and by a threshold;
    `paired`: AER of each against attention, sentence by sentence."""
    each = {name: rows_of(table, "method", name) for name in dict.fromkeys(table["method"].to_pylist())}
    best = {name: _by_sentence(rows, "") for name, rows in each.items()}
    found: dict[str, Any] = {}
    for name, rows in each.items():
        many = np.stack([_by_sentence(rows, f"_{round(t * 100)}") for t in THRESHOLDS], 1)
        found[name] = {
            "best": plain(asdict(alignment(best[name]))),
            "threshold": plain(asdict(alignment(with_chosen_threshold(many)))),
        }
    beside = {}
    for name in each:
        if ATTENTION in each and name != ATTENTION:
            test = paired(error_rate(best[name]), error_rate(best[ATTENTION]))
            beside[f"{name}/{ATTENTION}"] = plain(
                {"n": test.n, "difference": test.difference, "low": test.low, "high": test.high, "p": test.p}
            )
    sentences = len(next(iter(best.values())))
    plain_columns: Summary = COLUMN_SUMMARY(table)
    return plain_columns | {"sentences": sentences, "alignment": found, "paired": beside}


def _by_sentence(rows: pa.Table, ending: str) -> Counts:
    """(sentences, 4), in an order that is the same for every method."""
    counts = np.stack([rows[name].to_numpy() for name in (*(f"{one}{ending}" for one in COUNTED), "sure")], 1)
    _, of = np.unique(rows["sentence"].to_numpy(), return_inverse=True)
    summed = np.zeros((int(of.max()) + 1, 4))
    np.add.at(summed, of, counts)
    return summed


def verdict(trial: Result) -> Verdict:
    """By how often the most attended word is a right one."""
    rows = trial.table.filter(pa.array([method == ATTENTION for method in trial.table["method"].to_pylist()]))
    values = column(rows, "hit")
    found = summarise_values(values, within=COLUMNS["hit"].possible, yes_or_no=True)
    if not found.n:
        return JUDGEMENT.unclear(
            "Undefined", "No word that attention was asked about is linked to any.", "is undefined"
        )
    share = Interval(found.mean, found.low, found.high)
    chance = column(rows, "chance")[~np.isnan(values)].mean()
    sentence = (
        f"The most attended word is one that was linked to what was said for {interval(share)} of {found.n:,} words; "
        f"a random word would be for {chance:.2f}."
    )
    return JUDGEMENT.of(share, sentence)


QUESTION = "Do explanations find the word of the source that a word was made of?"
BARS = (0.5, 0.8)
JUDGEMENT = Judgement(
    QUESTION,
    f"The most attended word is a right one for {BARS[1]:.0%} of the words or more: yes; from {BARS[0]:.0%} on: often; "
    "below: no.",
    {
        "for": Wording("Yes", "finds the word that was translated"),
        "mixed": Wording("Often", "often finds the word that was translated"),
        "against": Wording("No", "does not find the word that was translated"),
    },
    BARS,
)
COLUMNS = {
    "hit": Column("best word is a right one", 0, 1, "1: the word of the highest score is linked to what was said."),
    "auc": Column("right words above others", 0, 1, "How often a linked word stands above another: .5 by chance."),
    "chance": Column("a random word is a right one", 0, 1, "The share of the source that is linked.", drawn=False),
}
COLUMN_SUMMARY = summary_of_columns(COLUMNS, "method")

ALIGNMENT = Experiment(
    name="alignment",
    question=QUESTION,
    asks="whether its explanations find the words of the source that a word was made of",
    paper="Ding et al. 2019, section 4",
    run=run,
    columns=COLUMNS,
    config=AlignmentConfig,
    needs=frozenset({"predicts"}),
    version="1",
    by="method",
    summarise=summarise,
    judge=verdict,
    scale="how often the most attended word is a right one",
    takes=Takes(forwards=(61, 10), explainers=lambda config: aligners(config)),
    audit=ForAudit(only_for="translations whose words are linked to those of their source"),
    pages=Presentation(
        group_title=method_title,
        statistics=(
            Statistic(
                "AER of attention",
                "alignment.attention.best.aer",
                "Alignment error rate of the most attended word: 0 is perfect.",
            ),
        ),
    ),
)
