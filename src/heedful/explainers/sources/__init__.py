"""Which units of a text (sentences, documents, words) an answer rests on: by leaving several of them out at once.

Declared here without torch.
"""

from __future__ import annotations

from heedful.explainers.explainer import Axiom, Explainer

HERE = "heedful.explainers.sources"

SOURCES = Explainer(
    "sources",
    "saliency",
    True,
    "2^n forward to n = exact, else n_ablations",
    f"{HERE}.explainer:sources",
    removal="word deleted",
    axiom=Axiom(
        "surrogate error",
        0.6,
        "1 - the surrogate's rank correlation with the model, on ablations that it was not fitted to, is {missed}: "
        "raise n_ablations, or give larger units",
    ),
    passes=f"{HERE}.explainer:passes",
    citation="Shapley 1953; Banzhaf 1965; ContextCite, Cohen-Wang et al. 2024",
    takes_long=True,  # up to 2^12 passes for a text of twelve words
    help={
        "value": "what is made of the answers to all subsets",
        "exact": "up to so many words or units all subsets are asked about",
        "n_ablations": "random ablations that the surrogate is fitted to",
        "keep": "the share of the units that an ablation keeps",
        "penalty": "of the surrogate's weights (LASSO)",
    },
)
