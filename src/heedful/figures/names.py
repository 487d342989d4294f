"""What methods and pairs of methods are called in figures and on pages."""

from __future__ import annotations

NAMES = {
    "gradient_x_input": "gradient × input",
    "lrp": "LRP",
    "lime": "LIME",
    "omission": "leave-one-out",
    "random": "random order",
    "shap": "SHAP",
}


def method_name(method: str) -> str:
    return NAMES.get(method, method.replace("_", " "))


def pair_name(pair: str) -> str:
    """ "attention/omission" in words."""
    return " and ".join(map(method_name, pair.split("/")))


def join_words(parts: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
