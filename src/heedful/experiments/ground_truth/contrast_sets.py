"""Do explanations point at the words that people changed to change the label?

A contrast set (Gardner et al. 2020; counterfactually augmented data, Kaushik et al. 2020) holds texts that people have
edited as little as they could so that the label becomes another (`cad_nli`). What they changed is a human's answer to
what the label rests on. Here two texts belong together if they are read with the same second text (or none), have
different labels, and share at least `shared` of their words in order; of several the nearest counts. Each text of such
a pair is explained, and the words that the other text does not have are the evidence: `precision`, `auc` and the rest
as in `rationales`, beside a random order, uniform scores and the first words, with intervals. A text from which nothing
was taken (words were only added) has no evidence, is counted, and left out.

Pairs are found among the texts that were asked about: `--limit` may part them. Like all agreement with people this is
plausibility, not faithfulness, and has no say in the headline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from pydantic import Field

from heedful.errors import Mistake
from heedful.experiments.framework.description import Measure
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, States, generators
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.verdict import Wording
from heedful.experiments.ground_truth.evidence import (
    EvidenceConfig,
    common_columns,
    explainers_of,
    found_by_method,
    scorers,
    summarise_evidence,
    words_of,
)
from heedful.experiments.ground_truth.verdict import COLUMNS, Claim, figures_of, method_title, reasons, verdict_of

if TYPE_CHECKING:
    from heedful.models.network import Network
    from heedful.records import Batch, Tokens

Ids = tuple[tuple[int, ...], ...]  # of each word its pieces
BARS = (0.2, 0.5)
CLAIM = Claim(
    question="Do explanations point at the words that people changed to change the label?",
    measure="precision",
    bars=BARS,
    rule=(
        f"Of the way from a random order to all of the changed words, attention gets {BARS[1]:.0%} or more: yes; from "
        f"{BARS[0]:.0%} on: in part; below, or no better than chance: no. This is plausibility: it does not count in "
        "the headline."
    ),
    wordings={
        "for": Wording("Yes", "points at the words that people changed"),
        "mixed": Wording("In part", "points at some of the words that people changed"),
        "against": Wording("No", "points at other words than people changed"),
    },
    told=(
        "Of the most attended words, as many as people changed, {value} are those that were changed; in a random "
        "order it would be {chance} ({p})."
    ),
    counts=False,
)


class ContrastSetsConfig(EvidenceConfig):
    absolute: bool = True  # a word may be changed because it speaks against the new label
    shared: float = Field(default=0.5, gt=0, lt=1)  # of the words of two texts, at least


def run(
    model: Network, batches: Batches, config: ContrastSetsConfig, rng: Generator, states: States | None = None
) -> Iterator[Chunk]:
    """One row for each text and `method`: see `found_by_method`."""
    import torch

    from heedful.models.black_box import BlackBox

    CONTRAST_SETS.check(model.can)
    if isinstance(model, BlackBox):
        raise Mistake(
            "contrast_sets compares texts by their tokens, which a function from strings to numbers does not have."
        )
    methods, generator_of = scorers(model, config, states or {}), generators(rng)
    kept = list(batches)
    changed = changed_words([(examples, batch) for examples, batch in kept], config.shared)
    for examples, batch in kept:
        with torch.no_grad():
            output = model(batch)
        base = common_columns(model, examples, batch, output)
        evidence = np.zeros_like(words_of(batch))
        for row, example in enumerate(examples):
            evidence[row, [place for place in changed.get(int(example), ()) if place < evidence.shape[1]]] = True
        rngs = [generator_of(i) for i in examples]
        for chunk in found_by_method(methods, batch, output, evidence, config.absolute, rngs):
            yield base | chunk


def changed_words(batches: list[tuple[NDArray[np.int64], Batch]], shared: float) -> dict[int, list[int]]:
    """Of each text that has a nearest one with another label: where its words that the other has not stand."""
    texts: dict[int, tuple[list[int], Ids, int]] = {}  # places of words, words, label
    beside: dict[Ids, list[int]] = defaultdict(list)
    for examples, batch in batches:
        for row, example in enumerate(examples.tolist()):
            label = -1 if batch.labels is None else int(batch.labels[row])
            texts[example] = (*words_in(batch.passage, row), label)
            beside[() if batch.query is None else words_in(batch.query, row)[1]].append(example)
    found = {}
    for together in beside.values():
        for one in together:
            places, words, label = texts[one]
            best, most = None, shared
            for other in together:
                there = texts[other]
                longest = max(len(words), len(there[1]), 1)
                if other == one or there[2] == label or min(len(words), len(there[1])) < most * longest:
                    continue
                matcher = SequenceMatcher(None, there[1], words, autojunk=False)
                if matcher.real_quick_ratio() < most or matcher.quick_ratio() < most:
                    continue
                same = matcher.get_matching_blocks()
                if (share := sum(block.size for block in same) / longest) > most or (best is None and share == most):
                    best, most = same, share
            if best is not None:
                stays = {place for block in best for place in range(block.b, block.b + block.size)}
                found[one] = [places[i] for i in range(len(words)) if i not in stays]
    return found


def words_in(tokens: Tokens, row: int) -> tuple[list[int], Ids]:
    """Where the words of a text are among those of `by_word`, and what each is."""
    mask, ids = tokens.mask[row].cpu().numpy(), tokens.ids[row].cpu().numpy()
    number = np.arange(len(ids)) if tokens.word_index is None else tokens.word_index[row].cpu().numpy()
    pieces: dict[int, list[int]] = defaultdict(list)
    for place in np.flatnonzero(mask).tolist():
        pieces[int(number[place])].append(int(ids[place]))
    return list(pieces), tuple(tuple(one) for one in pieces.values())


CONTRAST_SETS = Experiment(
    name="contrast_sets",
    question=CLAIM.question,
    asks="whether its explanations point at the words that people changed",
    paper="Kaushik et al. 2020; Gardner et al. 2020",
    run=run,
    columns=COLUMNS,
    config=ContrastSetsConfig,
    version="1",
    by="method",
    summarise=summarise_evidence,
    measures=(
        Measure(
            "contrast",
            "changed words that attention finds",
            "changed words",
            "precision",
            "methods.attention.overall.precision",
            "attention",
        ),
    ),
    judge=verdict_of(CLAIM),
    scale="changed words that attention finds: 0 as a random order, 1 all of them",
    takes=Takes(forwards=(60, 1), explainers=explainers_of),
    audit=ForAudit(only_for="texts that people have edited so that the label changes"),
    pages=Presentation(
        group_title=method_title, draw=figures_of(("precision", "auc", "auprc")), examples=reasons, has_say=False
    ),
)
