"""Gradients as explanations, all read off one path from a baseline to the input. Declared here without torch."""

from __future__ import annotations

from heedful.explainers.explainer import Axiom, Explainer, Passes, Size

HERE = "heedful.explainers.gradients"
NEEDS = frozenset({"differentiable"})


def one_each(size: Size) -> Passes:
    return Passes(1, 1)


GRADIENT = Explainer(
    "gradient",
    "sensitivity",
    False,
    "1 forward, 1 backward",
    f"{HERE}.gradient:gradient",
    needs=NEEDS,
    passes=one_each,
    citation="Bastings & Filippova 2020, eq. 2; Li et al. 2016a",
    usual=True,
)
GRADIENT_X_INPUT = Explainer(
    "gradient_x_input",
    "saliency",
    True,
    "1 forward, 1 backward",
    f"{HERE}.gradient:gradient_x_input",
    needs=NEEDS,
    passes=one_each,
    title="gradient × input",
    citation="eq. 3; Denil et al. 2015",
    usual=True,
)
INTEGRATED_GRADIENTS = Explainer(
    "integrated_gradients",
    "saliency",
    True,
    "n_steps forward and backward",
    f"{HERE}.integrated:integrated_gradients",
    removal="embedding of the baseline",
    axiom=Axiom("completeness gap", 0.05, "integrated gradients missed {missed} of the change: raise --n-steps"),
    needs=NEEDS,
    passes=f"{HERE}.integrated:passes_of",
    citation="eq. 4; Sundararajan et al. 2017",
    usual=True,
    # 49 points where those are enough (a text takes no more passes than with the default), up to 399 where they are not
    until_it_holds={"method": "fejer", "n_steps": 24, "tolerance": 0.02, "max_steps": 400},
)
