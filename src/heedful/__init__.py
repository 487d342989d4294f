"""heedful: which words made the model say that, and can I trust the answer?

>>> import heedful
>>> model = heedful.load("runs/...")                                # doctest: +SKIP
>>> heedful.explain(model, ["a waste of time"]).show()              # doctest: +SKIP

Everything is loaded on first use, so `import heedful` is instant and needs no torch.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.api import (
        adversary,
        counterfactual,
        explain,
        list_corpora,
        list_experiments,
        list_explainers,
        load,
        run,
        train,
        wrap,
    )
    from heedful.api.language import cite
    from heedful.auditing.ask.audit import audit
    from heedful.errors import Mistake
    from heedful.explanation.explanation import Explanation

__version__ = version("heedful")

# Same key, same result: without it the last bits of MKL's products depend, on some processors, on where in memory the
# numbers lie. It costs no time, and does nothing where the products are not MKL's.
os.environ.setdefault("MKL_CBWR", "AUTO")

_PUBLIC = {
    "Explanation": "heedful.explanation.explanation",
    "Mistake": "heedful.errors",
    "adversary": "heedful.api",
    "audit": "heedful.auditing.ask.audit",
    "cite": "heedful.api.language",
    "counterfactual": "heedful.api",
    "explain": "heedful.api",
    "list_corpora": "heedful.api",
    "list_experiments": "heedful.api",
    "list_explainers": "heedful.api",
    "load": "heedful.api",
    "run": "heedful.api",
    "train": "heedful.api",
    "wrap": "heedful.api",
}

__all__ = [
    "Explanation",
    "Mistake",
    "adversary",
    "audit",
    "cite",
    "counterfactual",
    "explain",
    "list_corpora",
    "list_experiments",
    "list_explainers",
    "load",
    "run",
    "train",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'heedful' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
