"""Explanations by asking about edited texts: one planner of edits, faster ways for some encoders, surrogates.

Declared here without torch.
"""

from __future__ import annotations

from heedful.explainers.explainer import Axiom, Explainer, Passes, Size

HERE = "heedful.explainers.perturbation"
DELETED = "word deleted"


def each_word(size: Size) -> Passes:
    """A part as it is, and without each of its words."""
    return Passes(sum(1 + words for words in size.words))


OCCLUSION = Explainer(
    "occlusion",
    "saliency",
    True,
    "n + 1 forward",
    f"{HERE}.occlusion:occlusion",
    removal="embedding set to zero",
    needs=frozenset({"differentiable"}),
    passes=each_word,
    citation="eq. 5; Zeiler & Fergus 2014; Li et al. 2016b",
    usual=True,
    one_word=True,
)
MASK = Explainer(
    "mask",
    "saliency",
    True,
    "n + 1 forward",
    f"{HERE}.occlusion:mask",
    removal="word replaced by the unknown word",
    passes=each_word,
    citation="the word replaced",
    one_word=True,
    replaces=True,
)
OMISSION = Explainer(
    "omission",
    "saliency",
    True,
    "n + 1 forward",
    f"{HERE}.occlusion:omission",
    removal=DELETED,
    passes=each_word,
    title="leave-one-out",
    citation="Kádár et al. 2017; leave-one-out of Jain & Wallace 2019",
    usual=True,
    one_word=True,
)
LIME = Explainer(
    "lime",
    "saliency",
    True,
    "n_samples to 4 n_samples forward",
    f"{HERE}.surrogate:lime",
    removal=DELETED,
    axiom=Axiom(
        "1 - R²",
        0.5,
        "LIME's linear model misses {missed} of what the model does around this text: trust it only so far",
        kept=0.1,  # a linear model is a summary
    ),
    passes=f"{HERE}.surrogate:lime_passes",
    title="LIME",
    citation="Ribeiro et al. 2016",
)
SHAP = Explainer(
    "shap",
    "saliency",
    True,
    "n_permutations (2 n + 1) forward, to 4 times as many",
    f"{HERE}.surrogate:shap",
    removal=DELETED,
    axiom=Axiom(
        "sampling error", 0.1, "SHAP's values are uncertain by {missed} of the largest: raise n_permutations", kept=0.1
    ),
    passes=f"{HERE}.surrogate:shap_passes",
    title="SHAP",
    citation="Lundberg & Lee 2017",
)
