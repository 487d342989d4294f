"""Which words mattered? Every method of the system, on one screen."""

from __future__ import annotations

from heedful.explainers.attention_weights import attention
from heedful.explainers.controls import random, uniform
from heedful.explainers.explainer import Axiom, Explainer, Scores
from heedful.explainers.gradient import gradient, gradient_x_input
from heedful.explainers.integrated_gradients import integrated_gradients
from heedful.explainers.occlusion import masking, occlusion
from heedful.explainers.omission import omission
from heedful.explainers.relevance import lrp
from heedful.explainers.surrogate import lime, shap

COMPLETENESS = Axiom(
    "completeness gap", 0.05, "integrated gradients missed {missed} of the change: raise --n-steps"
)
CONSERVATION = Axiom(
    "conservation gap",
    0.5,
    "{missed} of the score stayed in biases and markers and did not reach the words: read LRP with care",
)
FIT = Axiom(
    "1 - R²",
    0.5,
    "LIME's linear model misses {missed} of what the model does around this text: do not trust it",
)
EFFICIENCY = Axiom("completeness gap", 0.05, "SHAP missed {missed} of the change: this should not happen")

EXPLAINERS: dict[str, Explainer] = {
    "attention": Explainer("attention", "attention", False, "1 forward", attention),
    "gradient": Explainer("gradient", "sensitivity", False, "1 forward, 1 backward", gradient),
    "gradient_x_input": Explainer(
        "gradient_x_input", "saliency", True, "1 forward, 1 backward", gradient_x_input
    ),
    "integrated_gradients": Explainer(
        "integrated_gradients",
        "saliency",
        True,
        "n_steps forward and backward",
        integrated_gradients,
        removal="embedding of the baseline",
        axiom=COMPLETENESS,
    ),
    "lrp": Explainer("lrp", "saliency", True, "1 forward, 1 backward", lrp, axiom=CONSERVATION),
    "occlusion": Explainer(
        "occlusion", "saliency", True, "n + 1 forward", occlusion, removal="embedding set to zero"
    ),
    "omission": Explainer("omission", "saliency", True, "n + 1 forward", omission, removal="word deleted"),
    "mask": Explainer(
        "mask", "saliency", True, "n + 1 forward", masking, removal="word replaced by the unknown word"
    ),
    "lime": Explainer("lime", "saliency", True, "n_samples forward", lime, removal="word deleted", axiom=FIT),
    "shap": Explainer(
        "shap",
        "saliency",
        True,
        "n_permutations (2 n + 1) forward",
        shap,
        removal="word deleted",
        axiom=EFFICIENCY,
    ),
    "random": Explainer("random", "control", False, "none", random),
    "uniform": Explainer("uniform", "control", False, "none", uniform),
}

__all__ = ["EXPLAINERS", "Axiom", "Explainer", "Scores"]
