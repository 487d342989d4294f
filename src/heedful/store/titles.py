"""What a run's model is called where runs stand side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def attention_title(kind: str, config: Mapping[str, Any]) -> str:
    """The kind of attention, and what makes models differ whose encoder and attention are called alike: what the states
    are joined by, and what it was trained for where that is not cross-entropy."""
    model, training = config.get("model") or {}, config.get("training") or {}
    joined = ["concatenate"] if model.get("concatenate") else []
    trained_for = [str(training["objective"])] if "objective" in training else []
    return ", ".join(dict.fromkeys([kind, *joined, *trained_for]))
