"""What methods, pairs of methods and their checks are called on a page."""

from __future__ import annotations

from typing import Any

from heedful.attribution import Attribution

# Sharp attention bends the path of integrated gradients: on pages they take as many steps as they need, up to a bound.
STEPS: dict[str, Any] = {"tolerance": 0.05, "max_steps": 400}

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


def check_says(a: Attribution) -> str:
    """How far a method met its own promise. On a page nobody can raise an option, so it says what to make of it."""
    check = a.check
    if check is None:
        return ""
    steps, missed = a.options.get("max_steps"), check.relative
    if check.ok or missed is None or a.method != "integrated_gradients" or steps is None:
        return str(check)
    share = f"{missed:.0%}" if missed < 1 else "all"
    return f"✗ after {steps} steps {share} of the change is still missing: read these scores with care"
