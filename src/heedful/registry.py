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
    from heedful.data.edits.edit import CorpusEdit
    from heedful.engine.sources.models import ModelFamily
    from heedful.experiments.framework.experiment import Experiment
    from heedful.explainers.explainer import Explainer
    from heedful.models.objectives.objective import Objective

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
        "correlation": "heedful.experiments.correlation.correlation:CORRELATION",
        "permutation": "heedful.experiments.attention.permutation:PERMUTATION",
        "adversarial": "heedful.experiments.adversarial.adversarial:ADVERSARIAL",
        "erasure": "heedful.experiments.erasure.erasure:ERASURE",
        "flips": "heedful.experiments.erasure.flips:FLIPS",
        "importance_sets": "heedful.experiments.erasure.importance_sets:IMPORTANCE_SETS",
        "uniform": "heedful.experiments.other_training.uniform:UNIFORM",
        "uniform_inference": "heedful.experiments.attention.uniform_inference:UNIFORM_INFERENCE",
        "seeds": "heedful.experiments.other_training.seeds:SEEDS",
        "frozen": "heedful.experiments.other_training.frozen:FROZEN",
        "imitation": "heedful.experiments.other_training.imitation:IMITATION",
        "heads": "heedful.experiments.attention.heads:HEADS",
        "deception": "heedful.experiments.other_training.deception:DECEPTION",
        "masked_twin": "heedful.experiments.other_training.masked_twin:MASKED_TWIN",
        "faithfulness": "heedful.experiments.faithfulness.faithfulness:FAITHFULNESS",
        "planted": "heedful.experiments.ground_truth.planted:PLANTED",
        "pointing": "heedful.experiments.ground_truth.pointing:POINTING",
        "alignment": "heedful.experiments.ground_truth.alignment:ALIGNMENT",
        "retrain": "heedful.experiments.ground_truth.retrain:RETRAIN",
        "rationales": "heedful.experiments.ground_truth.rationales:RATIONALES",
        "planted_pairs": "heedful.experiments.ground_truth.planted_pairs:PLANTED_PAIRS",
        "contrast_sets": "heedful.experiments.ground_truth.contrast_sets:CONTRAST_SETS",
        "stability": "heedful.experiments.sanity.stability:STABILITY",
        "conicity": "heedful.experiments.attention.conicity:CONICITY",
        "trojans": "heedful.experiments.sanity.trojans:TROJANS",
    },
)

EXPLAINERS: Registry[Explainer] = Registry(
    "explainer",
    "heedful.explainers",
    {
        "attention": "heedful.explainers.attention:ATTENTION",
        "rollout": "heedful.explainers.attention:ROLLOUT",
        "attention_flow": "heedful.explainers.attention:ATTENTION_FLOW",
        "attention_x_norm": "heedful.explainers.attention:ATTENTION_X_NORM",
        "value_zeroing": "heedful.explainers.attention:VALUE_ZEROING",
        "gradient": "heedful.explainers.gradients:GRADIENT",
        "gradient_x_input": "heedful.explainers.gradients:GRADIENT_X_INPUT",
        "integrated_gradients": "heedful.explainers.gradients:INTEGRATED_GRADIENTS",
        "lrp": "heedful.explainers.lrp:LRP",
        "occlusion": "heedful.explainers.perturbation:OCCLUSION",
        "omission": "heedful.explainers.perturbation:OMISSION",
        "mask": "heedful.explainers.perturbation:MASK",
        "lime": "heedful.explainers.perturbation:LIME",
        "shap": "heedful.explainers.perturbation:SHAP",
        "sources": "heedful.explainers.sources:SOURCES",
        "integrated_hessians": "heedful.explainers.interactions:INTEGRATED_HESSIANS",
        "removal_interactions": "heedful.explainers.interactions:REMOVAL_INTERACTIONS",
        "shapley_interactions": "heedful.explainers.interactions:SHAPLEY_INTERACTIONS",
        "archipelago": "heedful.explainers.interactions:ARCHIPELAGO",
        "bilrp": "heedful.explainers.interactions:BILRP",
        "rationale": "heedful.explainers.selection:RATIONALE",
        "random": "heedful.explainers.controls:RANDOM",
        "uniform": "heedful.explainers.controls:UNIFORM",
    },
)

# Each is called with (embedding size, hidden size), and with those settings of ModelConfig that it names.
ENCODERS: Registry[Any] = Registry(
    "encoder",
    "heedful.encoders",
    {
        "bilstm": "heedful.models.attentive.encoders:BiLSTM",
        "bigru": "heedful.models.attentive.encoders:BiGRU",
        "lstm": "heedful.models.attentive.encoders:LSTM",
        "orthogonal": "heedful.models.attentive.orthogonal:OrthogonalLSTM",
        "cnn": "heedful.models.attentive.encoders:CNN",
        "average": "heedful.models.attentive.encoders:Average",
        "transformer": "heedful.models.attentive.encoders:Transformer",
        "none": "heedful.models.attentive.encoders:NoEncoder",
    },
)

# Each is called with (hidden size, whether there is a query), and with those settings that it names.
ATTENTIONS: Registry[Any] = Registry(
    "attention",
    "heedful.attentions",
    {
        "additive": "heedful.models.attentive.attention:Additive",
        "dot": "heedful.models.attentive.attention:Dot",
        "general": "heedful.models.attentive.attention:General",
        "uniform": "heedful.models.attentive.attention:Uniform",
        "additive_sparsemax": "heedful.models.attentive.sparse:AdditiveSparsemax",
        "additive_entmax": "heedful.models.attentive.sparse:AdditiveEntmax",
        "dot_sparsemax": "heedful.models.attentive.sparse:DotSparsemax",
        "dot_entmax": "heedful.models.attentive.sparse:DotEntmax",
        "latent": "heedful.models.attentive.latent:Latent",
        "variational": "heedful.models.attentive.latent:Variational",
    },
)

# What the decoder of a translator attends with: called with (hidden size), see models/translation/attention.py.
STEP_ATTENTIONS: Registry[Any] = Registry(
    "attention of a decoder",
    "heedful.step_attentions",
    {
        "additive": "heedful.models.translation.attention:AdditiveSteps",
        "dot": "heedful.models.translation.attention:DotSteps",
        "general": "heedful.models.translation.attention:GeneralSteps",
        "concat": "heedful.models.translation.attention:ConcatSteps",
        "local_p": "heedful.models.translation.attention:LocalSteps",
        "uniform": "heedful.models.translation.attention:UniformSteps",
        "random": "heedful.models.translation.attention:RandomSteps",
        "additive_sparsemax": "heedful.models.translation.attention:AdditiveSparsemaxSteps",
        "additive_entmax": "heedful.models.translation.attention:AdditiveEntmaxSteps",
        "general_sparsemax": "heedful.models.translation.attention:GeneralSparsemaxSteps",
        "general_entmax": "heedful.models.translation.attention:GeneralEntmaxSteps",
    },
)

# How a model selects the words that it reads. Each is called with the hidden size, and the settings that it names.
RATIONALES: Registry[Any] = Registry(
    "kind of rationale",
    "heedful.rationales",
    {
        "hardkuma": "heedful.models.rationale.gates:HardKumaGates",
        "bernoulli": "heedful.models.rationale.gates:BernoulliGates",
        "sparse": "heedful.models.rationale.gates:SparseGates",
        "supervised": "heedful.models.rationale.gates:SupervisedGates",
    },
)

# What training makes small: an object with a `config` and `loss(...)`, see models/objectives/objective.py.
OBJECTIVES: Registry[Objective] = Registry(
    "objective",
    "heedful.objectives",
    {
        "cross_entropy": "heedful.models.objectives.objective:CROSS_ENTROPY",
        "deception": "heedful.models.objectives.deception:DECEPTION",
        "imitation": "heedful.models.objectives.imitation:IMITATION",
        "imposed": "heedful.models.objectives.imitation:IMPOSED",
        "variational": "heedful.models.objectives.variational:VARIATIONAL",
        "diversity": "heedful.models.objectives.diversity:DIVERSITY",
        "word_distance": "heedful.models.objectives.words:WORD_DISTANCE",
        "masked_words": "heedful.models.objectives.words:MASKED_WORDS",
        "supervised": "heedful.models.objectives.supervised:SUPERVISED",
        "rationale": "heedful.models.objectives.rationale:RATIONALE",
    },
)

# What can be done to the texts of a corpus before a model reads them: see data/edits/edit.py.
CORPUS_EDITS: Registry[CorpusEdit] = Registry(
    "edit of a corpus",
    "heedful.corpus_edits",
    {
        "plant": "heedful.data.edits.plant:PLANT",
        "remove": "heedful.data.edits.remove:REMOVE",
        "anonymise": "heedful.data.edits.anonymise:ANONYMISE",
    },
)

# Where a model can come from: an object with `claims(what)` and `source(what)`, see engine/sources/models.py. The first
# that claims a folder or an id reads it.
MODEL_FAMILIES: Registry[ModelFamily] = Registry(
    "kind of model",
    "heedful.models",
    {
        "translator": "heedful.engine.sources.translators:TRANSLATORS",
        "run": "heedful.engine.sources.models:RUN_FOLDERS",
        "language": "heedful.engine.sources.other_checkpoints:LANGUAGE_MODELS",
        "places": "heedful.engine.sources.other_checkpoints:PLACES_MODELS",
        "embedding": "heedful.engine.sources.other_checkpoints:EMBEDDING_MODELS",
        "huggingface": "heedful.engine.sources.huggingface:CHECKPOINTS",
    },
)

REGISTRIES: tuple[Registry[Any], ...] = (
    EXPERIMENTS,
    EXPLAINERS,
    ENCODERS,
    ATTENTIONS,
    STEP_ATTENTIONS,
    RATIONALES,
    OBJECTIVES,
    CORPUS_EDITS,
    MODEL_FAMILIES,
)

# The corpora stand in data/corpora/registry.py, each with its source and its form; entry point: heedful.corpora.
