"""Can what masking words says of this model be believed?

A metric that hides the words that an explanation points at, and looks how far the prediction falls, also measures how
strange a text with hidden words is to the model (Hooker et al. 2019). Madsen et al. 2024: a twin is trained with words
hidden at random, so that such texts are inside what it knows (models/training.py), and the metric is repeated on it.
Two things are then known:

    in distribution   with random words hidden, how many labels does the model still predict, and how many the twin?
                      Both have lost the same words: what the model predicts less is its own trouble with such texts.
    order             is a method that is better than another by the metric on the model better on the twin, too?

Each model is explained for its own prediction of the whole text, and the words of highest score are hidden, a larger
share each time. `drop` is how much of the probability of that label is lost, `sufficiency` how much where these words
alone stay: means over the shares are comprehensiveness and sufficiency as `faithfulness` has them under its operator
`mask` (DeYoung et al. 2020).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.random import Generator
from pydantic import Field

from heedful.config import EvaluationConfig, RunConfig
from heedful.errors import Mistake
from heedful.experiments.correlation.correlation import by_word, random_scores
from heedful.experiments.framework.description import Measure, MethodMeasure, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Floats, States, generators
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import ForAudit, Presentation, Takes
from heedful.experiments.framework.summary import copy_of
from heedful.experiments.ground_truth.evidence import (
    RANDOM,
    EvidenceConfig,
    common_columns,
    explainers_of,
    scorers,
    words_of,
)
from heedful.experiments.other_training.masked_twin_pages import (
    COLUMNS,
    QUESTION,
    figures,
    group_title,
    reasons,
    summarise,
    verdict,
)
from heedful.measure.agreement import how_many
from heedful.measure.columns import Bools
from heedful.measure.evidence import first_words

if TYPE_CHECKING:
    from heedful.models.network import Network, Output
    from heedful.records import Batch

TWIN = "twin"
Share = Annotated[float, Field(gt=0, le=1)]
ASKED = ("drop", "sufficiency", "correct")


class MaskedTwinConfig(EvidenceConfig):
    absolute: bool = False  # what speaks for the label is hidden first
    fractions: tuple[Share, ...] = Field(default=(0.1, 0.3, 0.5, 0.7, 0.9), min_length=1)  # of the words
    mask_words: float = Field(default=0.5, gt=0, le=1)  # of the texts that the twin is trained on


def twin(config: MaskedTwinConfig, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
    return {TWIN: copy_of(about, mask_words=config.mask_words)}


def run(
    model: Network,
    batches: Batches,
    config: MaskedTwinConfig,
    rng: Generator,
    states: States | None = None,
    *,
    others: Mapping[str, OtherRun],
) -> Iterator[Chunk]:
    """Rows for each text, `method` and `fraction`, which `masking` names in one: `drop`, `sufficiency`, `correct` (1:
    the label of the text is predicted although words are hidden) of the model, and `twin_...` of the twin."""
    import torch

    MASKED_TWIN.check(model.can)
    require_others(others, MASKED_TWIN.name)
    other, generator_of = others[TWIN], generators(rng)
    methods, twins = scorers(model, config, states or {}), scorers(other.network, config, states or {})
    for examples, batch in batches:
        theirs = other.batch(examples)
        found = []
        for network, own, texts in ((model, methods, batch), (other.network, twins, theirs)):
            with torch.no_grad():
                output = network(texts)
            scores = {name: _by_word(method(texts, output), texts, config) for name, method in own.items()}
            random = random_scores(words_of(texts), [generator_of(i) for i in examples])  # the same words of both
            found.append(hide(network, texts, output, scores | {RANDOM: random}, config.fractions))
            if network is model:
                base = common_columns(model, examples, batch, output)
        for asked, here in found[0].items():
            method, fraction = asked
            there = found[1][asked]
            yield base | {
                "masking": [f"{method} {fraction:g}"] * len(batch),
                "method": [method] * len(batch),
                "fraction": np.full(len(batch), fraction),
                **{name: here[name] for name in ASKED},
                **{f"twin_{name}": there[name] for name in ASKED},
            }


def _by_word(scores: object, batch: Batch, config: MaskedTwinConfig) -> Floats:
    values = by_word(scores, batch.passage).astype(np.float64)  # type: ignore[arg-type]
    return np.abs(values) if config.absolute else values


def hide(
    model: Network, batch: Batch, output: Output, scores: Mapping[str, Floats], fractions: tuple[float, ...]
) -> dict[tuple[str, float], dict[str, Floats]]:
    """By method and fraction: ASKED.

    Scores (texts, words); of equal ones the first in the text is hidden first. All questions go to the model together.
    """
    import torch

    from heedful.explainers.perturbation.edits import Edits
    from heedful.explainers.perturbation.perturb import predict

    if batch.labels is None:
        raise Mistake("masked_twin needs labels, and these texts have none.")
    n, real, tokens = len(batch), words_of(batch), batch.passage
    width = torch.arange(tokens.ids.shape[1]).expand(tokens.ids.shape)
    index = (width if tokens.word_index is None else tokens.word_index).clamp(min=0).cpu().numpy()
    asked = [(method, fraction) for method in scores for fraction in fractions]
    first = [np.take_along_axis(strongest(scores[m], real, f), index, 1) for m, f in asked]  # (texts, length) each
    kept = np.concatenate([*(~one for one in first), *first])
    edits = Edits.keeping(tokens, np.tile(np.arange(n), 2 * len(asked)), kept)
    logits = predict(model, batch, edits, "replace")
    p = model.link.probabilities(logits).double().view(2, len(asked), n, -1)
    before = output.probabilities.double().gather(1, output.predicted.unsqueeze(1))[:, 0]  # (texts,)
    label = output.predicted.view(1, 1, n, 1).expand(2, len(asked), n, 1)
    lost = (before - p.gather(3, label)[..., 0]).cpu().numpy()  # (2, asked, texts)
    correct = model.link.predicted(logits).view(2, len(asked), n)[0] == batch.labels
    right = correct.double().cpu().numpy()
    for i, (method, _) in enumerate(asked):  # of a text of which a method says nothing
        silent = (np.isnan(scores[method]) & real).any(1)
        lost[:, i, silent], right[i, silent] = np.nan, np.nan
    return {
        question: {"drop": lost[0, i], "sufficiency": lost[1, i], "correct": right[i]}
        for i, question in enumerate(asked)
    }


def strongest(scores: Floats, real: Bools, fraction: float) -> Bools:
    """The first `fraction` of the words by falling score, at least one: (texts, words)."""
    places = -np.broadcast_to(np.arange(real.shape[1], dtype=np.float64), real.shape)
    return first_words(scores, real, how_many(real.sum(1), float(fraction)), places)


MASKED_TWIN = Experiment(
    name="masked_twin",
    question=QUESTION,
    asks="whether what masking words says of it can be believed",
    paper="Madsen et al. 2024",
    run=run,
    columns=COLUMNS,
    config=MaskedTwinConfig,
    needs=frozenset({"predicts"}),
    version="1",
    by="masking",
    summarise=summarise,
    measures=(Measure("masked_twin", "probability lost with words hidden", "drop", "drop", "overall"),),
    judge=verdict,
    scale="accuracy that masking takes only because masked texts are strange to the model",
    takes=Takes(forwards=(190, 2), explainers=explainers_of, runs=twin),
    pages=Presentation(
        group_title=group_title,
        statistics=(
            Statistic(
                "lost by strangeness",
                "strangeness.mean",
                "Lost by strangeness: accuracy of the twin minus that of the model, random words hidden.",
            ),
        ),
        draw=figures,
        examples=reasons,
        has_say=False,
    ),
    audit=ForAudit(
        measures=(
            MethodMeasure(
                "comprehensiveness",
                "comprehensiveness of a twin that knows masked texts",
                "More: the twin loses more of its probability where these words are masked.",
                "twin_drop",
            ),
            MethodMeasure(
                "sufficiency",
                "sufficiency of a twin that knows masked texts",
                "Less is better: these words alone keep the twin's probability.",
                "twin_sufficiency",
                rising=False,
            ),
        )
    ),
)
