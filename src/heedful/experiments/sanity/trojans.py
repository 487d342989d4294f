"""Does what a model selects tell the label by itself, and do the selected words tell it to anybody else?

A model that selects its words and predicts from these alone may fail in a way that accuracy does not show: the selector
decides, and tells the predictor by what it selects, where, or how much (Yu et al. 2019, section 2; Jacovi & Goldberg
2021, who call it a trojan). Two readers who have never seen the model are asked for its predictions, by five folds, so
that none is asked about a text that it has learnt from:

    told       a classifier of the mask alone: how many words are selected, which share, in how many runs, where
    majority   the most frequent prediction, always: what `told` has to be held against
    outsider   a bag of words, learnt from whole texts and asked about the selected words alone
    any_words  the same, asked about as many words that were drawn at random

Each is 1 where the reader says what the model says. `told` above `majority`: the selection is a code. `outsider` no
better than `any_words`: the selected words are reasons to nobody but the predictor. Nothing selected, or everything,
is counted. That a reader of words agrees does not prove that the selection is free of codes: one that is in the choice
among words that an outsider understands, too, is not found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from heedful.config import Config
from heedful.experiments.framework.description import Column, Measure, Reason, Result, Statistic, places_by
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, generators
from heedful.experiments.framework.parts import Presentation
from heedful.experiments.framework.summary import column
from heedful.experiments.framework.verdict import Grade, Judgement, Verdict, Wording, interval, percent
from heedful.experiments.ground_truth.evidence import common_columns
from heedful.measure.statistics import Interval
from heedful.measure.statistics import summarise as summarise_values

if TYPE_CHECKING:
    from heedful.models.network import Selects

FOLDS, FEWEST = 5, 50  # fewer texts teach a reader nothing
PLACES = 10  # parts of a text
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

QUESTION = "Does the selection tell the label by itself?"
BARS = (0.2, 0.5)
RULE = (
    f"Of the way from the most frequent prediction to all of them, a reader of the mask alone gets {BARS[1]:.0%} or "
    f"more, or a reader of the selected words is no better than of words drawn at random, or nothing or everything is "
    f"selected in most texts: degenerate; from {BARS[0]:.0%} on: in part; below: no. It does not count in the headline."
)
WORDINGS: dict[Grade, Wording] = {
    "against": Wording("Degenerate", "goes to a selection that is a code, or no selection"),
    "mixed": Wording("In part", "goes to words whose places tell the label in part"),
    "for": Wording("No", "goes to selected words, whose places do not tell the label"),
}
JUDGEMENT = Judgement(QUESTION, RULE, WORDINGS, BARS, rising=False, counts=False)


def run(model: Selects, batches: Batches, config: Config, rng: Generator) -> Iterator[Chunk]:
    """A row for each text, when all have been seen: readers learn from the others."""
    import torch

    TROJANS.check(model.can)
    chunks: list[dict[str, Any]] = []
    masks: list[Bools] = []
    ids: list[NDArray[np.int64]] = []
    for examples, batch in batches:
        with torch.no_grad():
            z = model.select(batch)
            output = model.predict(batch, z)
        words = batch.passage.mask.cpu().numpy()
        selected, tokens = (z > 0).cpu().numpy(), batch.passage.ids.cpu().numpy()
        masks += [selected[i, words[i]] for i in range(len(words))]
        ids += [tokens[i, words[i]] for i in range(len(words))]
        chunks.append(dict(common_columns(model, examples, batch, output)))
    if not chunks:
        return
    joined = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    order = np.argsort(joined["example"], kind="stable")  # readers must not depend on the batches
    generator_of = generators(rng)
    draws = [generator_of(int(joined["example"][i])) for i in order]
    predicted = joined["predicted"][order]
    found = read([masks[i] for i in order], [ids[i] for i in order], predicted, draws)
    yield {**{name: values[order] for name, values in joined.items()}, **found}


def read(
    masks: list[Bools], ids: list[NDArray[np.int64]], predicted: NDArray[np.int64], draws: list[Generator]
) -> dict[str, Floats]:
    """What both readers say of each text, by folds; undefined where there are too few texts, or one prediction."""
    n = len(masks)
    found = {name: np.full(n, np.nan) for name in ("told", "majority", "outsider", "any_words")}
    found["share"] = np.array([mask.mean() if len(mask) else np.nan for mask in masks])
    if n < FEWEST or len(np.unique(predicted)) < 2:
        return found
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    signs = np.array([signs_of(mask) for mask in masks])  # (texts, signs)
    random = [rng.permutation(mask) for mask, rng in zip(masks, draws, strict=True)]
    whole, chosen, drawn = (
        [{str(word): 1.0 for word in some} for some in texts]
        for texts in (
            ids,
            [words[mask] for words, mask in zip(ids, masks, strict=True)],
            [words[mask] for words, mask in zip(ids, random, strict=True)],
        )
    )
    fold = np.arange(n) % FOLDS
    for number in range(FOLDS):
        learn, ask = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        labels, answers = predicted[learn], predicted[ask]
        values, counts = np.unique(labels, return_counts=True)
        found["majority"][ask] = answers == values[counts.argmax()]
        if len(values) < 2:
            continue
        of_mask = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(signs[learn], labels)
        found["told"][ask] = of_mask.predict(signs[ask]) == answers
        of_words = make_pipeline(DictVectorizer(), LogisticRegression(max_iter=500)).fit(
            [whole[i] for i in learn], labels
        )
        found["outsider"][ask] = of_words.predict([chosen[i] for i in ask]) == answers
        found["any_words"][ask] = of_words.predict([drawn[i] for i in ask]) == answers
    return found


def signs_of(mask: Bools) -> Floats:
    """What can be seen of a selection without its words: number and share, runs, the longest of them, the share of each
    tenth of the text, and whether each of the first and last three words is selected."""
    n = len(mask)
    if not n:
        return np.zeros(4 + PLACES + 6)
    padded = np.concatenate([[False], mask, [False]]).astype(np.int8)
    changes = np.diff(padded)
    lengths = np.flatnonzero(changes == -1) - np.flatnonzero(changes == 1)
    tenth = np.arange(n) * PLACES // n
    in_tenth = np.bincount(tenth, weights=mask, minlength=PLACES) / np.maximum(np.bincount(tenth, minlength=PLACES), 1)
    ends = np.zeros(6)
    ends[: min(3, n)] = mask[:3]
    ends[3 : 3 + min(3, n)] = mask[::-1][:3]
    head = [mask.sum(), mask.mean(), len(lengths), lengths.max(initial=0)]
    return np.concatenate([head, in_tenth, ends])


def verdict(trial: Result) -> Verdict:
    """By how much better than the most frequent prediction a reader of the mask alone is."""
    told, majority, share = (column(trial.table, name) for name in ("told", "majority", "share"))
    if np.nanmean(share == 0) > 0.5 or np.nanmean(share == 1) > 0.5:
        most = "nothing" if np.nanmean(share == 0) > 0.5 else "everything"
        sentence = f"In most texts {most} is selected."
        answer, clause = WORDINGS["against"]
        return Verdict(QUESTION, "against", answer, sentence, RULE, clause, bars=BARS, counts=False, rising=False)
    always = np.nanmean(majority) if (~np.isnan(told)).any() else 1.0
    if always >= 1:
        sentence = f"The model predicts one label, or there are fewer than {FEWEST} texts."
        return JUDGEMENT.unclear("Undefined", sentence, "goes to a selection of which nothing can be told")
    gained = summarise_values((told - majority) / (1 - always))
    found = Interval(gained.mean, gained.low, gained.high)
    outside = summarise_values(column(trial.table, "outsider") - column(trial.table, "any_words"))
    sentence = (
        f"A reader of the mask alone says what the model says in {share_of(told)} of {gained.n:,} texts, where the "
        f"most frequent prediction is right in {always:.0%}: {interval(found)} of the way. A bag of words says it from "
        f"the selected words in {share_of(column(trial.table, 'outsider'))}, and from as many drawn at random in "
        f"{share_of(column(trial.table, 'any_words'))}."
    )
    return JUDGEMENT.of(found, sentence, "against" if outside.high <= 0 or outside.mean <= 0 else None)


def share_of(values: Floats) -> str:
    """ "68% (95% CI 66% to 70%)"."""
    found = summarise_values(values, yes_or_no=True)
    return percent(Interval(found.mean, found.low, found.high))


def reasons(trial: Result) -> Iterator[Reason]:
    share = column(trial.table, "share")
    yield Reason("Most selected", "The largest share of its words is selected.", places_by(trial.table, share))
    yield Reason("Least selected", "The smallest share of its words is selected.", places_by(trial.table, -share))


COLUMNS = {
    "told": Column("the mask tells the prediction", 0, 1, "1: a reader of the mask alone says what the model says."),
    "majority": Column("the most frequent prediction is right", 0, 1, "What the mask has to be held against."),
    "outsider": Column(
        "the selected words tell the prediction", 0, 1, "1: a bag of words says what the model says from them."
    ),
    "any_words": Column("as many words at random tell it", 0, 1, "What the selected words have to be held against."),
    "share": Column("share of the words that are selected", 0, 1, "The mean should be the rate that was asked for."),
}

TROJANS = Experiment(
    name="trojans",
    question=QUESTION,
    asks="whether what it selects tells the label by itself",
    paper="Jacovi & Goldberg 2021; Yu et al. 2019, section 2",
    run=run,
    columns=COLUMNS,
    needs=frozenset({"selects"}),
    measures=(Measure("told", "predictions that the mask alone tells", "told", "told", "told.overall", rising=False),),
    judge=verdict,
    scale="of the way from the most frequent prediction to all of them, what the mask alone tells",
    pages=Presentation(
        statistics=(
            Statistic(
                "told by the mask", "told.overall.mean", "Predictions that a reader of the mask alone says, too."
            ),
            Statistic("most frequent", "majority.overall.mean", "Predictions that are the most frequent one."),
        ),
        examples=reasons,
        has_say=False,
    ),
)
