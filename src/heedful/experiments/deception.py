"""Can the model be trained to hide from its attention the words that it uses, and do other methods still see them?

Pruthi et al. 2020, section 3: copies of the model are trained with a penalty lambda on the attention that falls to
impermissible words (models/deception.py), and one copy is trained without these words, as a control: if it does worse,
the words are needed. A copy that keeps its accuracy while hardly attending to them uses them unseen. What saliency
methods then say of the hidden words is the test that Bastings & Filippova 2020, section 4 ask for: scores of the
predicted label, by their size, of the words as a person sees them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from heedful.config import FINE_TUNING, Config, RunConfig, TrialConfig
from heedful.errors import Mistake
from heedful.experiments.deception_description import (
    COLUMNS,
    QUESTION,
    compare,
    figures,
    reasons,
    verdict,
)
from heedful.experiments.deception_summary import summarise
from heedful.experiments.description import Measure, Statistic
from heedful.experiments.experiment import Batches, Chunk, Experiment, Floats, States
from heedful.experiments.other_runs import OtherRun, require_others
from heedful.measure.pointing import Pointing, point

if TYPE_CHECKING:
    from torch import Tensor

    from heedful.models.network import Network
    from heedful.records import Batch

CONTROL = "anonymised"
OWN = "as it is"  # a checkpoint that was not trained here; its copies are fine-tuned, also the one with lambda 0
METHODS = ("attention", "gradient_x_input", "integrated_gradients", "lrp", "omission")
Rows = dict[str, NDArray[Any]]


class DeceptionConfig(Config):
    """The penalties of the paper. `words` are impermissible wherever they stand; None: the evidence of the corpus."""

    penalties: tuple[float, ...] = Field(default=(0.1, 1.0), min_length=1)
    words: tuple[str, ...] | None = None
    heads: Literal["mean", "max"] = "mean"
    layers: tuple[int, ...] | None = (-1,)  # of a checkpoint; None: all
    methods: tuple[str, ...] = Field(default=METHODS, min_length=1)


def name_of(penalty: float) -> str:
    return f"lambda {penalty:g}"


def runs(config: DeceptionConfig, about: RunConfig | TrialConfig) -> Mapping[str, RunConfig]:
    """A copy for each penalty, and the control."""
    base = about if isinstance(about, RunConfig) else _copy_of(about)
    data = base.data
    if config.words is not None:
        data = data.model_copy(update={"evidence_words": config.words})
    named = {} if isinstance(about, RunConfig) else {name_of(0): base.model_copy(update={"data": data})}
    for penalty in dict.fromkeys(config.penalties):
        options = {
            "penalty": penalty,
            "heads": config.heads,
            "layers": None if config.layers is None else list(config.layers),
        }
        training = base.training.model_copy(
            update={"objective": "deception", "objective_options": options, "metric": "loss"}
        )
        named[name_of(penalty)] = base.model_copy(update={"data": data, "training": training})
    hidden = data.model_copy(update={"anonymise": True})
    return {**named, CONTROL: base.model_copy(update={"data": hidden})}


def _copy_of(about: TrialConfig) -> RunConfig:
    """A checkpoint on data that it was not trained on is fine-tuned on them."""
    if about.model is not None:
        raise Mistake(
            f"deception trains copies of a model: ask {about.source.name} about the data that it was trained on."
        )
    return RunConfig(
        dataset=about.dataset, data=about.data, start=about.source, training=FINE_TUNING, seed=about.seed
    )


def run(
    model: Network,
    batches: Batches,
    config: DeceptionConfig,
    rng: np.random.Generator,
    others: Mapping[str, OtherRun],
    states: States | None = None,
) -> Iterator[Chunk]:
    """Rows: one for each text, model and method. `share`, `auc`, `first`, `precision` say how much of the method falls
    to the impermissible words, `chance` what a random order would get (measure/pointing.py); undefined for a text
    without such words. `attention_mass` is that of the model, its `max_` the head's that attends to them most."""
    require_others(others, DECEPTION.name)
    DECEPTION.check(model.can)
    trained = {name: other for name, other in others.items() if name != CONTROL}
    own = OWN if name_of(0) in trained else name_of(0)
    for places, batch in batches:
        texts = {name: other.batch(places) for name, other in trained.items()}
        asked = {
            own: (model, batch),
            **{name: (other.network, texts[name]) for name, other in trained.items()},
        }
        marked = _marked(batch, *texts.values())  # (batch, words)
        seen = {name: _look(network, some, marked, config) for name, (network, some) in asked.items()}
        first, n_words = seen[own], _words_of(batch)
        unseen = _right(others[CONTROL].network, others[CONTROL].batch(places))
        last = list(seen)[-1]
        for name, found in seen.items():
            for method in config.methods:
                yield {
                    "example": np.asarray(places, dtype=np.int64),
                    "predicted": first["predicted"],
                    "max_attention": first["max_attention"],
                    "n_words": n_words,
                    "question": [f"{name}: {method}"] * len(places),
                    "model": [name] * len(places),
                    "method": [method] * len(places),
                    **{key: found[f"{method} {key}"] for key in Pointing.__slots__},
                    **{key: found[key] for key in ("correct", "attention_mass", "max_attention_mass")},
                    "deceived_mass": seen[last]["attention_mass"],
                    "control_correct": unseen,
                }


def _look(network: Network, batch: Batch, marked: NDArray[np.bool_], config: DeceptionConfig) -> Rows:
    """What one model says of a batch, and where its attention and each method's scores fall."""
    import torch

    from heedful.explainers import EXPLAINERS

    with torch.no_grad():
        output = network(batch)
    heads = _attention_of_words(network, batch, config.layers)  # (batch, heads, words)
    mass = (heads * marked[:, None]).sum(-1)  # (batch, heads)
    defined = marked.any(1)
    rows: Rows = {
        "predicted": output.predicted.cpu().numpy(),
        "correct": _correct(output.predicted, batch),
        "attention_mass": np.where(defined, mass.mean(1), np.nan),
        "max_attention_mass": np.where(defined, mass.max(1), np.nan),
        "max_attention": np.where(_words_of(batch) > 0, heads.mean(1).max(1), np.nan),
    }
    for method in config.methods:
        explainer = EXPLAINERS.find(method)
        explainer.check(network.can, "one of the models")
        options = {"parts": "passage"} if "parts" in explainer.options else {}
        scores = explainer.run(network, batch, output.predicted, **options).passage
        found = [
            point(one[:n], here[:n])
            for one, here, n in zip(by_word(scores, batch), marked, _words_of(batch), strict=True)
        ]
        rows |= {
            f"{method} {key}": np.array([getattr(one, key) for one in found]) for key in Pointing.__slots__
        }
    return rows


def _attention_of_words(network: Any, batch: Batch, layers: Sequence[int] | None) -> Floats:
    """Of the token that is read, every head of the chosen layers: (batch, heads, words)."""
    import torch

    from heedful.models.deception import read_attention
    from heedful.models.network import AttendedOutput

    with torch.no_grad():
        every = network.attentions(batch)
    output = AttendedOutput(every, network.link, every)
    alpha = read_attention(output, batch, getattr(network, "reads", "first"), layers).flatten(1, 2)
    width = batch.passage.ids.shape[1]
    words = [by_word(alpha[:, head, :width], batch) for head in range(alpha.shape[1])]
    return np.stack(words, axis=1)


def by_word(values: Tensor, batch: Batch) -> Floats:
    """Values of the tokens of the passage as sums over the pieces of each word: (batch, length) -> (batch, words)."""
    import torch

    tokens = batch.passage
    index = tokens.mask.cumsum(1) - 1 if tokens.word_index is None else tokens.word_index
    n = max(1, int((index * tokens.mask).max()) + 1)
    summed = torch.zeros(len(values), n, dtype=torch.float64, device=values.device)
    kept = values.detach().double() * tokens.mask
    found: Floats = summed.scatter_add(1, index.clamp(min=0), kept).cpu().numpy()
    return found


def _words_of(batch: Batch) -> NDArray[np.int64]:
    """How many words each text has."""
    tokens = batch.passage
    index = tokens.mask.cumsum(1) - 1 if tokens.word_index is None else tokens.word_index
    found: NDArray[np.int64] = (index.masked_fill(~tokens.mask, -1).max(1).values + 1).cpu().numpy()
    return found


def _marked(*batches: Batch) -> NDArray[np.bool_]:
    """The impermissible words: of the first batch that knows them (batch, words); none of them where none does."""
    for batch in batches:
        if "evidence" in batch.targets:
            found: NDArray[np.bool_] = by_word(batch.targets["evidence"], batch) > 0
            return found
    return np.zeros((len(batches[0]), max(1, int(_words_of(batches[0]).max()))), dtype=np.bool_)


def _right(network: Network, batch: Batch) -> Floats:
    import torch

    with torch.no_grad():
        return _correct(network(batch).predicted, batch)


def _correct(predicted: Tensor, batch: Batch) -> Floats:
    """1 where the label is right; nan where a text has none."""
    if batch.labels is None:
        return np.full(len(batch), np.nan)
    return (predicted == batch.labels).cpu().numpy().astype(np.float64)


DECEPTION = Experiment(
    name="deception", question=QUESTION, paper="Pruthi et al. 2020, section 3; Bastings & Filippova 2020, section 4",
    config=DeceptionConfig, needs=frozenset({"attends", "differentiable"}), version="1", run=run,
    summarise=summarise, asks="whether copies of it can be trained to hide the words that they use from attention",
    columns=COLUMNS, by="question",
    measures=(
        Measure("deception", "attention that the strongest penalty leaves on hidden words", "α hidden",
                "deceived_mass", "overall"),
    ),
    statistics=(
        Statistic(
            "attention left on hidden words", "overall.mean",
            "Attention left on hidden words: of the copy with the strongest penalty, mean over the texts.", ".3f",
        ),
    ),
    draw=figures, judge=verdict, examples=reasons, tabulate=compare, forwards=(20, 6),
    explainers=lambda config: config.methods, runs=runs,
)  # fmt: skip
