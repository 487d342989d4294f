"""Can the model be trained to hide from its attention the words that it uses, and do other methods still see them?

Pruthi et al. 2020, section 3: copies of the model are trained with a penalty lambda on the attention that falls to
impermissible words (models/objectives/deception.py), and one copy is trained without these words, as a control: if it
does worse, the words are needed. A copy that keeps its accuracy while hardly attending to them uses them unseen. What
saliency methods then say of the hidden words is the test that Bastings & Filippova 2020, section 4 ask for: scores of
the predicted label, by their size, of the words as a person sees them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from heedful.config import Config, EditConfig, EvaluationConfig, RunConfig
from heedful.errors import Mistake
from heedful.experiments.correlation.correlation import by_word
from heedful.experiments.framework.description import Measure, Statistic
from heedful.experiments.framework.experiment import Batches, Chunk, Experiment, Floats, States
from heedful.experiments.framework.other_runs import OtherRun, require_others
from heedful.experiments.framework.parts import Presentation, Takes
from heedful.experiments.framework.summary import copy_of
from heedful.experiments.ground_truth.evidence import common_columns, evidence_of, method_scorer, words_of
from heedful.experiments.other_training.deception_pages import COLUMNS, QUESTION, compare, figures, reasons, verdict
from heedful.experiments.other_training.deception_summary import MEASURES, summarise
from heedful.measure.columns import Bools
from heedful.measure.evidence import Ranked, hit, precision, roc_auc
from heedful.registry import EXPLAINERS

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Network
    from heedful.records import Batch

CONTROL = "anonymised"
OWN = "as it is"  # a model that was not trained on these data; its copies are, also the one with lambda 0
METHODS = ("attention", "gradient_x_input", "integrated_gradients", "lrp", "omission")
MASSES = ("attention_mass", "max_attention_mass")
NOTHING_LEARNT: States = MappingProxyType({})


class DeceptionConfig(Config):
    """The penalties of the paper. `words` are impermissible wherever they stand; None: the evidence of the corpus."""

    penalties: tuple[float, ...] = Field(default=(0.1, 1.0), min_length=1)
    words: tuple[str, ...] | None = None
    heads: Literal["mean", "max"] = "mean"
    layers: tuple[int, ...] | None = (-1,)  # of a checkpoint; None: all
    methods: tuple[str, ...] = Field(default=METHODS, min_length=1)


def name_of(penalty: float) -> str:
    return f"lambda {penalty:g}"


def runs(config: DeceptionConfig, about: RunConfig | EvaluationConfig) -> Mapping[str, RunConfig]:
    """A copy for each penalty, and the control; of a model that was trained on other data also one without penalty."""
    if about.data.edit is not None:
        raise Mistake(f"deception: the texts of {about.dataset} are edited ({about.data.edit.name}) already.")
    if config.words is not None:
        about = about.model_copy(update={"data": about.data.model_copy(update={"evidence_words": config.words})})
    named = {} if isinstance(about, RunConfig) else {name_of(0): copy_of(about)}
    for penalty in dict.fromkeys(config.penalties):
        options = {"penalty": penalty} | config.model_dump(mode="json", include={"heads", "layers"})
        named[name_of(penalty)] = copy_of(about, objective="deception", objective_options=options, metric="dev_loss")
    return {**named, CONTROL: copy_of(about, EditConfig(name="anonymise"))}


def run(
    model: Network,
    batches: Batches,
    config: DeceptionConfig,
    rng: np.random.Generator,
    others: Mapping[str, OtherRun],
    states: States = NOTHING_LEARNT,
) -> Iterator[Chunk]:
    """Rows: one for each text, model and method. `share` of the method's scores that falls to the hidden words, `auc`,
    `hit` and `precision` of their ranks (measure/evidence.py), `chance` what hit and precision of a random order would
    be; undefined for a text without such words. `attention_mass` is that of the model, the mean over its heads, and
    `max_attention_mass` that of the head which attends to them most."""
    require_others(others, DECEPTION.name)
    DECEPTION.check(model.can)
    if config.methods == METHODS:
        config = config.model_copy(update={"methods": tuple(m for m in METHODS if EXPLAINERS[m].fits(model))})
    trained = {name: other for name, other in others.items() if name != CONTROL}
    own = OWN if name_of(0) in trained else name_of(0)
    for places, batch in batches:
        asked = {own: (model, batch)} | {n: (one.network, one.batch(places)) for n, one in trained.items()}
        marked = _marked([some for _, some in asked.values()])  # (batch, words)
        seen = {name: _look(network, some, marked, config, states) for name, (network, some) in asked.items()}
        with torch_no_grad():
            output, unseen = model(batch), others[CONTROL].batch(places)
            right = _correct(others[CONTROL].network(unseen).predicted, unseen)
        about = common_columns(model, places, batch, output) | {
            "deceived_mass": seen[list(seen)[-1]]["attention_mass"],
            "control_correct": right,
        }
        for name, found in seen.items():
            for method in config.methods:
                here: Chunk = {"question": [f"{name}: {method}"] * len(places), "model": [name] * len(places)}
                measured: Chunk = {key: found[f"{method} {key}"] for key in MEASURES}
                models: Chunk = {key: found[key] for key in ("chance", "correct", *MASSES)}
                yield about | here | {"method": [method] * len(places)} | measured | models


def _look(network: Network, batch: Batch, marked: Bools, config: DeceptionConfig, states: States) -> dict[str, Floats]:
    """What one model says of a batch, and where its attention and each method's scores fall."""
    with torch_no_grad():
        output = network(batch)
    real = words_of(batch)
    marked = _as_wide(marked, real.shape[1])
    n, m = real.sum(1), marked.sum(1)
    mass = (_attention_of_words(network, batch, config.layers) * marked[:, None]).sum(-1)  # (batch, heads)
    columns: dict[str, Floats] = {
        "correct": _correct(output.predicted, batch),
        "attention_mass": np.where(m > 0, mass.mean(1), np.nan),
        "max_attention_mass": np.where(m > 0, mass.max(1), np.nan),
        "chance": np.where(m > 0, m / np.maximum(n, 1), np.nan),
    }
    for method in config.methods:
        scores = by_word(method_scorer(network, method, states)(batch, output), batch.passage)
        size = np.abs(scores.astype(np.float64)) * real
        ranked, total = Ranked.of(size, real, marked), size.sum(1)
        share = np.where((m > 0) & (total > 0), (size * marked).sum(1) / np.where(total > 0, total, 1), np.nan)
        columns[f"{method} share"] = share
        columns |= {
            f"{method} auc": roc_auc(ranked),
            f"{method} hit": hit(ranked),
            f"{method} precision": precision(ranked),
        }
    return columns


def _attention_of_words(network: Any, batch: Batch, layers: Sequence[int] | None) -> Floats:
    """Of the token that is read, every head of the chosen layers: (batch, heads, words)."""
    from heedful.models.network import AttendedOutput, read_attention

    with torch_no_grad():
        every = network.attentions(batch)  # (batch, layers, heads, to, from)
    output = AttendedOutput(every, network.link, every)
    alpha = read_attention(output, batch, getattr(network, "reads", "first"), layers).flatten(1, 2)
    tokens, width = batch.passage, batch.passage.ids.shape[1]
    heads = [by_word(alpha[:, head, :width] * tokens.mask, tokens) for head in range(alpha.shape[1])]
    return np.stack(heads, axis=1).astype(np.float64)


def _marked(batches: Sequence[Batch]) -> Bools:
    """The hidden words (batch, words), of the first batch that knows them; where none does, there are none."""
    from heedful.data.text.batching import EVIDENCE

    known = [batch for batch in batches if EVIDENCE in batch.targets]
    return evidence_of(known[0], DECEPTION.name) if known else words_of(batches[0]) & False


def _as_wide(marked: Bools, width: int) -> Bools:
    """The same texts may be padded further in another batch."""
    return np.pad(marked, ((0, 0), (0, max(0, width - marked.shape[1]))))[:, :width]


def _correct(predicted: Tensor, batch: Batch) -> Floats:
    """1 where the label is right; nan where a text has none."""
    if batch.labels is None:
        return np.full(len(batch), np.nan)
    return (predicted == batch.labels).cpu().numpy().astype(np.float64)


def torch_no_grad() -> Any:
    import torch

    return torch.no_grad()


DECEPTION = Experiment(
    name="deception",
    question=QUESTION,
    asks="whether copies of it can be trained to hide the words that they use from attention",
    paper="Pruthi et al. 2020, section 3; Bastings & Filippova 2020, section 4",
    run=run,
    columns=COLUMNS,
    config=DeceptionConfig,
    needs=frozenset({"attends", "differentiable"}),
    version="1",
    by="question",
    summarise=summarise,
    measures=(
        Measure(
            "deception",
            "attention that the strongest penalty leaves on hidden words",
            "α hidden",
            "deceived_mass",
            "overall",
        ),
    ),
    judge=verdict,
    scale="attention that a copy trained to hide its words leaves on them, 1 being what was there before",
    takes=Takes(forwards=(20, 6), explainers=lambda config: config.methods, runs=runs),
    pages=Presentation(
        statistics=(
            Statistic(
                "attention left on hidden words",
                "overall.mean",
                "Attention left on hidden words: of the copy with the strongest penalty, mean over the texts.",
                ".3f",
            ),
        ),
        draw=figures,
        examples=reasons,
        tabulate=compare,
    ),
)
