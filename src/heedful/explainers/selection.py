"""What a model selects is its explanation: a word that it did not select has no part in the answer (models/rationale).

This is the one method with a guarantee: whatever stands in the place of a word with the score 0, the answer stays, bit
for bit. What it does not say is whether the selected words are reasons, or signs by which the selector tells the
predictor the label; that is the question of the experiment `trojans`.
"""

from __future__ import annotations

from heedful.explainers.explainer import Explainer, Passes

RATIONALE = Explainer(
    "rationale",
    "selection",
    False,
    "1 forward",
    "heedful.explainers.selected:rationale",
    needs=frozenset({"selects"}),
    removal="not selected",
    passes=lambda size: Passes(1),
    citation="Bastings et al. 2019",
    usual=True,
    refusal="heedful.explainers.selected:why_not",
)
