"""Do explanations point at the words that people point at?

DeYoung et al. 2020 (ERASER), section 4.1: agreement with human rationales is *plausibility*. It says nothing of whether
an explanation is faithful to the model (Jacovi & Goldberg 2020), so its verdict has no say in the headline: a model may
be right for other reasons than people, and an explanation that shows them is a good one.

    precision   token F1 of as many of the strongest words as the evidence has (then precision = recall = F1)
    best_f1     token F1 at the best threshold of each text, which nobody knows beforehand: a bound
    iou_f1      F1 of spans that share at least half of their union with one of the evidence
    auprc       area under the curve of precision and recall over all thresholds

Scores are of the predicted label and are ranked with their sign, because people mark what speaks for a label
(`absolute` ranks by |score|). Texts without marked words are counted and left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from numpy.random import Generator

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
)
from heedful.experiments.ground_truth.verdict import COLUMNS, Claim, figures_of, method_title, reasons, verdict_of

if TYPE_CHECKING:
    from heedful.models.network import Network

BARS = (0.2, 0.5)
CLAIM = Claim(
    question="Do explanations point at the words that people point at?",
    measure="precision",
    bars=BARS,
    rule=(
        f"Of the way from a random order to all of the marked words, attention gets {BARS[1]:.0%} or more: yes; from "
        f"{BARS[0]:.0%} on: in part; below, or no better than chance: no. People themselves do not mark the same "
        "words, so the bars are low. This is plausibility: it does not count in the headline."
    ),
    wordings={
        "for": Wording("Yes", "points at the words that people point at"),
        "mixed": Wording("In part", "points at some of the words that people point at"),
        "against": Wording("No", "points at other words than people do"),
    },
    told=(
        "Of the most attended words, as many as people have marked, {value} are marked (token F1); in a random order "
        "it would be {chance} ({p})."
    ),
    counts=False,
)


class RationalesConfig(EvidenceConfig):
    absolute: bool = False  # people mark what speaks for a label


def run(
    model: Network, batches: Batches, config: RationalesConfig, rng: Generator, states: States | None = None
) -> Iterator[Chunk]:
    """One row for each text and `method`: see `found_by_method`."""
    import torch

    RATIONALES.check(model.can)
    methods, generator_of = scorers(model, config, states or {}), generators(rng)
    for examples, batch in batches:
        evidence = evidence_of(batch, RATIONALES.name)
        with torch.no_grad():
            output = model(batch)
        base = common_columns(model, examples, batch, output)
        rngs = [generator_of(i) for i in examples]
        for chunk in found_by_method(methods, batch, output, evidence, config.absolute, rngs):
            yield base | chunk


RATIONALES = Experiment(
    name="rationales",
    question=CLAIM.question,
    asks="whether its explanations point at the words that people point at",
    paper="DeYoung et al. 2020, section 4.1",
    run=run,
    columns=COLUMNS,
    config=RationalesConfig,
    needs=frozenset({"predicts"}),
    version="1",
    by="method",
    summarise=summarise_evidence,
    measures=(
        Measure(
            "plausibility",
            "token F1 of attention with human evidence",
            "token F1",
            "precision",
            "methods.attention.overall.precision",
            "attention",
        ),
    ),
    judge=verdict_of(CLAIM),
    scale="marked words that attention finds: 0 as a random order, 1 all of them",
    takes=Takes(
        forwards=(60, 1),  # integrated gradients takes most of it
        explainers=explainers_of,
    ),
    pages=Presentation(
        group_title=method_title,
        statistics=(
            Statistic(
                "AUPRC with human evidence",
                "methods.attention.overall.auprc.mean",
                "AUPRC with human evidence: how well attention ranks the words that people marked.",
            ),
        ),
        draw=figures_of(("precision", "iou_f1", "auprc", "best_f1")),
        examples=reasons,
        has_say=False,
    ),
    audit=ForAudit(
        measures=(
            MethodMeasure(
                "token_f1",
                "token F1 with the words that people marked",
                "1: the strongest words are those.",
                "precision",
                chance="chance",
                possible=1.0,
                about="plausibility",
            ),
            MethodMeasure(
                "auprc",
                "AUPRC with the words that people marked",
                "1: they stand above all others.",
                "auprc",
                possible=1.0,
                about="plausibility",
            ),
        )
    ),
)
