"""What methods and pairs of methods are called on a page."""

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
