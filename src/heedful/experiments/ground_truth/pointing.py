"""Do explanations point at the part of a document that speaks for its label?

Poerner et al. 2018, section 4: a hybrid document is made of sentences of several texts (hybrid.py). The model predicts
a label for it, and an explanation of that label should point into a sentence that comes from a text of that label:
`hit` says whether the strongest word does (the pointing game), `auprc` and `auc` how the scores of all words separate
such sentences from others. Only documents whose predicted label is among those of their sentences count, and of
these only those with another label, too: for the rest everything is undefined. By chance `hit` is the share of the
words that stand in the right sentences, exactly.

A row is about the document that text `example` gives a sentence to; `predicted`, `max_attention` and `n_words` are
those of the text itself, `document_predicted` and `ranked_words` those of the document. Scores are ranked with their
sign.

With `documents="given"` the texts are not mixed: the strongest word should be the one that is known to decide. That is
their second paradigm, agreement: a model predicts a verb's number from the words before it, which depends on the
subject and on no other noun (corpora `agreement_linzen`, `agreement_gulordava`; data/formats/agreement.py). Only texts
that are predicted rightly count: of the others nobody knows what decided. Prompts of language models are always taken
as they are: sentences of several would ask nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.random import Generator
from pydantic import Field

from heedful.errors import Mistake
from heedful.experiments.correlation.correlation import by_word
from heedful.experiments.framework.description import Measure, MethodMeasure, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, States, generators
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.verdict import Wording
from heedful.experiments.ground_truth.evidence import (
    EvidenceConfig,
    common_columns,
    evidence_of,
    explainers_of,
    found_by_method,
    scorers,
    summarise_evidence,
    words_of,
)
from heedful.experiments.ground_truth.verdict import COLUMNS, Claim, figures_of, method_title, reasons, verdict_of

if TYPE_CHECKING:
    from heedful.models.network import Network

BARS = (0.5, 0.8)
TOGETHER = 32  # documents that are explained at once
CLAIM = Claim(
    question="Do explanations point at the sentences that speak for the predicted label?",
    measure="hit",
    bars=BARS,
    rule=(
        f"Of the way from chance to always, the most attended word gets {BARS[1]:.0%} or more: yes; from {BARS[0]:.0%} "
        "on: often; below, or no better than chance: no. By chance it is the share of words in such sentences."
    ),
    wordings={
        "for": Wording("Yes", "points at the sentences that speak for the label"),
        "mixed": Wording("Often", "often points at the sentences that speak for the label"),
        "against": Wording("No", "does not point at the sentences that speak for the label"),
    },
    told=(
        "The most attended word is one of those that speak for the predicted label (in hybrid documents: it stands in "
        "a sentence from a text of that label) in {value}; a random word would be in {chance} ({p})."
    ),
)


class PointingConfig(EvidenceConfig):
    absolute: bool = False  # a word that speaks against the label is not a reason for it
    documents: Literal["hybrid", "given"] = "hybrid"  # mixed sentences, or the texts with their own evidence
    # of a hybrid document, each of another text; fewer where there are fewer texts
    sentences: int = Field(default=10, ge=2, le=10_000)


def run(
    model: Network, batches: Batches, config: PointingConfig, rng: Generator, states: States | None = None
) -> Iterator[Chunk]:
    """One row for each document and `method`: see `found_by_method`."""
    POINTING.check(model.can)
    ask = _given if config.documents == "given" or "generates" in model.can else _hybrid
    yield from ask(model, batches, config, rng, states or {})


def _given(model: Network, batches: Batches, config: PointingConfig, rng: Generator, states: States) -> Iterator[Chunk]:
    """The texts as they are."""
    import torch

    methods, generator_of = scorers(model, config, states), generators(rng)
    for examples, batch in batches:
        if batch.labels is None:
            raise Mistake(
                "pointing at the evidence of given texts needs their labels: those that are predicted rightly count."
            )
        evidence = evidence_of(batch, POINTING.name)
        with torch.no_grad():
            output = model(batch)
        predicted = output.predicted.cpu().numpy()
        evidence &= (predicted == batch.labels.cpu().numpy())[:, None]
        base = common_columns(model, examples, batch, output) | {"document_predicted": predicted}
        rngs = [generator_of(i) for i in examples]
        for chunk in found_by_method(methods, batch, output, evidence, config.absolute, rngs):
            yield base | chunk


def _hybrid(
    model: Network, batches: Batches, config: PointingConfig, rng: Generator, states: States
) -> Iterator[Chunk]:
    """Sentences of ten texts each."""
    import torch

    from heedful.experiments.ground_truth.hybrid import Source, as_batch, mix, read_sources
    from heedful.models.black_box import BlackBox

    if model.has_query:
        raise Mistake(
            "pointing mixes the sentences of texts: it does not work for a model that reads a query beside each text."
        )
    if isinstance(model, BlackBox):
        raise Mistake("pointing joins texts by their tokens, which a function from strings to numbers does not have.")
    methods, generator_of = scorers(model, config, states), generators(rng)
    sources: dict[int, Source] = {}
    rows: dict[int, dict[str, np.generic]] = {}
    like = None
    for examples, batch in batches:
        with torch.no_grad():
            common = common_columns(model, examples, batch, model(batch))
        for row, (example, source) in enumerate(zip(examples, read_sources(batch), strict=True)):
            sources[int(example)] = source
            rows[int(example)] = {name: np.asarray(values)[row] for name, values in common.items()}
        like = batch.passage
    places = sorted(sources)
    if like is None:
        return
    pool = [sources[place] for place in places]
    for begin in range(0, len(places), TOGETHER):
        some = range(begin, min(begin + TOGETHER, len(places)))
        rngs = [generator_of(places[i]) for i in some]
        documents = [mix(pool, i, config.sentences, one) for i, one in zip(some, rngs, strict=True)]
        batch, label = as_batch(documents, like)
        with torch.no_grad():
            output = model(batch)
        right = (label == output.predicted.unsqueeze(1)) & batch.passage.mask
        evidence, real = by_word(right, batch.passage) > 0, words_of(batch)
        evidence &= (evidence != real).any(1)[
            :, None
        ]  # where every sentence has the label there is nothing to point at
        base: Chunk = {name: np.array([rows[places[i]][name] for i in some]) for name in rows[places[begin]]}
        about: Chunk = {"document_predicted": output.predicted.cpu().numpy()}
        for chunk in found_by_method(methods, batch, output, evidence, config.absolute, rngs):
            yield base | about | chunk


POINTING = Experiment(
    name="pointing",
    question=CLAIM.question,
    asks="whether its explanations point at the sentences that speak for the predicted label",
    paper="Poerner et al. 2018, section 4",
    run=run,
    columns=COLUMNS,
    config=PointingConfig,
    needs=frozenset({"predicts"}),
    version="1",
    by="method",
    summarise=summarise_evidence,
    measures=(
        Measure(
            "pointing",
            "most attended word in a sentence of the label",
            "points",
            "hit",
            "methods.attention.overall.hit",
            "attention",
        ),
    ),
    judge=verdict_of(CLAIM),
    scale="how often attention points there: 0 as a random word, 1 always",
    takes=Takes(
        forwards=(61, 10),  # a document has ten sentences
        explainers=explainers_of,
        sentences=True,
    ),
    pages=Presentation(
        group_title=method_title,
        statistics=(
            Statistic(
                "points at the label",
                "methods.attention.overall.hit.mean",
                "Points at the label: share of hybrid documents whose most attended word is in a "
                "sentence of the label.",
            ),
        ),
        draw=figures_of(("hit", "auprc", "auc")),
        examples=reasons,
    ),
    audit=ForAudit(
        measures=(
            MethodMeasure(
                "hit",
                "strongest word speaks for the predicted label",
                "1: it stands in a sentence from a text of that label, or is the word that decides.",
                "hit",
                chance="chance",
                possible=1.0,
                about="ground truth",
            ),
        ),
        # a first look at two texts can have documents of two sentences only: of ten it would say nothing of what they
        # take
        within_budget={"sentences": 3},
    ),
)
