"""Layer-wise relevance propagation: of any network by freezing it, and by rules for the layers of our own.

Declared here without torch.
"""

from __future__ import annotations

from heedful.explainers.explainer import Axiom, Explainer, Passes

LRP = Explainer(
    "lrp",
    "saliency",
    True,
    "1 forward, 1 backward",
    "heedful.explainers.lrp.relevance:lrp",
    axiom=Axiom(
        "conservation gap",
        0.5,
        "{missed} of the score stayed in biases and markers and did not reach the words: read LRP with care",
        kept=0.1,  # markers are no words, and deserve some
    ),
    needs=frozenset({"differentiable"}),
    passes=lambda size: Passes(1, 1),
    title="LRP",
    citation="Bach et al. 2015; Arras et al. 2017; Ali et al. 2022 (lrp.md)",
    usual=True,
    help={"rule": "attention weights are constants (frozen), or take relevance, too (attnlrp)"},
    refusal="heedful.explainers.lrp.relevance:refusal",
)
