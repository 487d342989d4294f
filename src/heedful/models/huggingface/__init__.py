"""Classifiers of transformers as networks. Needs the extra `hf`, which is imported on first use."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from heedful.errors import Mistake

if TYPE_CHECKING:
    from heedful.models.huggingface.files import fingerprint
    from heedful.models.huggingface.loading import load, load_pipeline, wrap
    from heedful.models.huggingface.network import HuggingFaceNetwork

_PUBLIC = {
    "HuggingFaceNetwork": "network",
    "fingerprint": "files",
    "load": "loading",
    "load_pipeline": "loading",
    "wrap": "loading",
}

__all__ = ["HuggingFaceNetwork", "fingerprint", "load", "load_pipeline", "wrap"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("transformers") is None:
        raise Mistake("models of Hugging Face need transformers: pip install 'heedful[hf]'.")
    return getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
