"""Attention as an explanation: weights, rollout and flow, weights times norms, value zeroing.

Declared here without torch.
"""

from __future__ import annotations

from heedful.explainers.explainer import Explainer, Passes

HERE = "heedful.explainers.attention"
IN_LAYERS, EDITED = frozenset({"self_attends"}), frozenset({"self_attends", "edits_attention"})

ATTENTION = Explainer(
    "attention",
    "attention",
    False,
    "1 forward",
    f"{HERE}.weights:attention",
    needs=frozenset({"attends"}),
    passes=lambda size: Passes(1),
    citation="the model's own weights",
    usual=True,
)
ROLLOUT = Explainer(
    "rollout",
    "attention",
    False,
    "1 forward",
    f"{HERE}.rollout:rollout",
    needs=IN_LAYERS,
    passes=lambda size: Passes(1),
    citation="Abnar & Zuidema 2020, eq. 1",
)
ATTENTION_FLOW = Explainer(
    "attention_flow",
    "attention",
    False,
    "1 forward, n maximum flows",
    f"{HERE}.rollout:attention_flow",
    needs=IN_LAYERS,
    passes=lambda size: Passes(1),
    citation="Abnar & Zuidema 2020, section 3",
    takes_long=True,  # its maximum flows
)
ATTENTION_X_NORM = Explainer(
    "attention_x_norm",
    "attention",
    False,
    "heads + 2 forward",
    f"{HERE}.times_norm:attention_x_norm",
    needs=EDITED,
    passes=lambda size: Passes(size.heads + 2),
    title="attention × norm",
    citation="Kobayashi et al. 2020, section 3",
)
VALUE_ZEROING = Explainer(
    "value_zeroing",
    "attention",
    False,
    "n + 1 forward",
    f"{HERE}.value_zeroing:value_zeroing",
    needs=EDITED,
    passes=lambda size: Passes(1 + size.tokens),
    removal="value vector set to zero",
    citation="Mohebbi et al. 2023",
)
