"""Everything that heedful finds by name, on one screen: the name, and where the thing is.

A thing is one file and one line here. Other people's packages add theirs through the entry point that stands
beside each list, without a line here. Nothing is loaded before it is asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, TypeVar

from heedful.errors import Mistake, one_of

if TYPE_CHECKING:
    from heedful.data.edits import CorpusEdit
    from heedful.engine.model_sources import ModelFamily
    from heedful.experiments.experiment import Experiment
    from heedful.explainers.explainer import Explainer
    from heedful.models.objectives import Objective

T = TypeVar("T")


class Registry(Mapping[str, T]):
    """name -> thing. `found` is what other packages have added through the entry point `group`."""

    def __init__(self, what: str, group: str, places: Mapping[str, str | T]) -> None:
        self.what, self.group, self.places = what, group, places
        self._loaded: dict[str, T] = {}

    @cached_property
    def found(self) -> dict[str, EntryPoint]:
        found: dict[str, EntryPoint] = {}
        for point in entry_points(group=self.group):
            if point.name in self.places:
                raise Mistake(
                    f"the package {package_of(point)!r} adds the {self.what} {point.name!r}, which heedful has itself."
                )
            found[point.name] = point
        return found

    def __iter__(self) -> Iterator[str]:
        return iter([*self.places, *self.found])

    def __len__(self) -> int:
        return len(self.places) + len(self.found)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.places or name in self.found)

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            if name in self.places:
                place = self.places[name]
                self._loaded[name] = _load(place) if isinstance(place, str) else place
            elif name in self.found:
                self._loaded[name] = self._load_found(self.found[name])
            else:
                raise KeyError(name)
        return self._loaded[name]

    def check(self, name: str) -> str:
        """The name itself, or the mistake that lists the right ones."""
        if name not in self:
            raise one_of(self.what, name, list(self))
        return name

    def find(self, name: str) -> T:
        """By name; a wrong one lists the right ones."""
        return self[self.check(name)]

    def _load_found(self, point: EntryPoint) -> T:
        try:
            thing: T = point.load()
        except Exception as error:
            raise Mistake(
                f"the {self.what} {point.name!r} of the package {package_of(point)!r} cannot be loaded "
                f"({type(error).__name__}: {error})."
            ) from error
        return thing


def _load(place: str) -> Any:
    module, variable = place.split(":")
    return getattr(import_module(module), variable)


def package_of(point: EntryPoint) -> str:
    """The package that added it."""
    return point.dist.name if point.dist is not None else point.value.split(".")[0]


EXPERIMENTS: Registry[Experiment] = Registry(
    "experiment",
    "heedful.experiments",
    {
        "correlation": "heedful.experiments.correlation:CORRELATION",
        "permutation": "heedful.experiments.permutation:PERMUTATION",
        "adversarial": "heedful.experiments.adversarial:ADVERSARIAL",
        "erasure": "heedful.experiments.erasure:ERASURE",
        "flips": "heedful.experiments.flips:FLIPS",
        "importance_sets": "heedful.experiments.importance_sets:IMPORTANCE_SETS",
        "uniform": "heedful.experiments.uniform:UNIFORM",
        "uniform_inference": "heedful.experiments.uniform_inference:UNIFORM_INFERENCE",
        "seeds": "heedful.experiments.seeds:SEEDS",
        "frozen": "heedful.experiments.frozen:FROZEN",
        "imitation": "heedful.experiments.imitation:IMITATION",
        "heads": "heedful.experiments.heads:HEADS",
        "deception": "heedful.experiments.deception:DECEPTION",
        "masked_twin": "heedful.experiments.masked_twin:MASKED_TWIN",
        "faithfulness": "heedful.experiments.faithfulness:FAITHFULNESS",
        "planted": "heedful.experiments.planted:PLANTED",
        "pointing": "heedful.experiments.pointing:POINTING",
        "retrain": "heedful.experiments.retrain:RETRAIN",
        "rationales": "heedful.experiments.rationales:RATIONALES",
        "conicity": "heedful.experiments.conicity:CONICITY",
    },
)

EXPLAINERS: Registry[Explainer] = Registry(
    "explainer",
    "heedful.explainers",
    {
        "attention": "heedful.explainers.attention_weights:ATTENTION",
        "rollout": "heedful.explainers.rollout:ROLLOUT",
        "attention_flow": "heedful.explainers.rollout:ATTENTION_FLOW",
        "attention_x_norm": "heedful.explainers.attention_x_norm:ATTENTION_X_NORM",
        "value_zeroing": "heedful.explainers.value_zeroing:VALUE_ZEROING",
        "gradient": "heedful.explainers.gradient:GRADIENT",
        "gradient_x_input": "heedful.explainers.gradient:GRADIENT_X_INPUT",
        "integrated_gradients": "heedful.explainers.integrated_gradients:INTEGRATED_GRADIENTS",
        "lrp": "heedful.explainers.relevance:LRP",
        "occlusion": "heedful.explainers.occlusion:OCCLUSION",
        "omission": "heedful.explainers.occlusion:OMISSION",
        "mask": "heedful.explainers.occlusion:MASK",
        "lime": "heedful.explainers.surrogate:LIME",
        "shap": "heedful.explainers.surrogate:SHAP",
        "random": "heedful.explainers.controls:RANDOM",
        "uniform": "heedful.explainers.controls:UNIFORM",
    },
)

# Those of them that learn from a run's training texts first (`Explainer.fit`): planning must not load them all to know.
LEARNING: frozenset[str] = frozenset()

# Each is called with (embedding size, hidden size), and with those settings of ModelConfig that it names.
ENCODERS: Registry[Any] = Registry(
    "encoder",
    "heedful.encoders",
    {
        "bilstm": "heedful.models.encoders:BiLSTM",
        "bigru": "heedful.models.encoders:BiGRU",
        "lstm": "heedful.models.encoders:LSTM",
        "orthogonal": "heedful.models.orthogonal:OrthogonalLSTM",
        "cnn": "heedful.models.encoders:CNN",
        "average": "heedful.models.encoders:Average",
        "transformer": "heedful.models.encoders:Transformer",
        "none": "heedful.models.encoders:NoEncoder",
    },
)

# Each is called with (hidden size, whether there is a query), and with those settings that it names.
ATTENTIONS: Registry[Any] = Registry(
    "attention",
    "heedful.attentions",
    {
        "additive": "heedful.models.attention:Additive",
        "dot": "heedful.models.attention:Dot",
        "general": "heedful.models.attention:General",
        "uniform": "heedful.models.attention:Uniform",
        "additive_sparsemax": "heedful.models.sparse:AdditiveSparsemax",
        "additive_entmax": "heedful.models.sparse:AdditiveEntmax",
        "dot_sparsemax": "heedful.models.sparse:DotSparsemax",
        "dot_entmax": "heedful.models.sparse:DotEntmax",
        "latent": "heedful.models.latent:Latent",
        "variational": "heedful.models.latent:Variational",
    },
)

# What training makes small: an object with a `config` and `loss(...)`, see models/objectives.py.
OBJECTIVES: Registry[Objective] = Registry(
    "objective",
    "heedful.objectives",
    {
        "cross_entropy": "heedful.models.objectives:CROSS_ENTROPY",
        "deception": "heedful.models.objective_deception:DECEPTION",
        "imitation": "heedful.models.objective_imitation:IMITATION",
        "imposed": "heedful.models.objective_imposed:IMPOSED",
        "variational": "heedful.models.objective_variational:VARIATIONAL",
        "diversity": "heedful.models.objective_diversity:DIVERSITY",
        "word_distance": "heedful.models.objective_word_distance:WORD_DISTANCE",
        "masked_words": "heedful.models.objective_masked_words:MASKED_WORDS",
        "supervised": "heedful.models.objective_supervised:SUPERVISED",
    },
)

# What can be done to the texts of a corpus before a model reads them: see data/edits.py.
CORPUS_EDITS: Registry[CorpusEdit] = Registry(
    "edit of a corpus",
    "heedful.corpus_edits",
    {
        "plant": "heedful.data.plant:PLANT",
        "remove": "heedful.data.remove:REMOVE",
        "anonymise": "heedful.data.anonymise:ANONYMISE",
    },
)

# Where a model can come from: an object with `claims(what)` and `source(what)`, see engine/model_sources.py. The first
# that claims a folder or an id reads it.
MODEL_FAMILIES: Registry[ModelFamily] = Registry(
    "kind of model",
    "heedful.models",
    {
        "run": "heedful.engine.model_sources:RUN_FOLDERS",
        "huggingface": "heedful.engine.huggingface_sources:CHECKPOINTS",
    },
)

REGISTRIES: tuple[Registry[Any], ...] = (
    EXPERIMENTS,
    EXPLAINERS,
    ENCODERS,
    ATTENTIONS,
    OBJECTIVES,
    CORPUS_EDITS,
    MODEL_FAMILIES,
)

# The corpora stand in data/registry.py, each with its source and its form; entry point: heedful.corpora.
