"""Which words mattered? Every method is one function and its description; registry.py lists them all."""

from __future__ import annotations

from heedful.explainers.explainer import Axiom, Explainer, Scores
from heedful.registry import EXPLAINERS

find = EXPLAINERS.find

__all__ = ["EXPLAINERS", "Axiom", "Explainer", "Scores", "find"]
