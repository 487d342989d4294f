"""Classifiers of transformers as networks. Needs the extra `hf`."""

from __future__ import annotations

from heedful.errors import Mistake

try:
    import transformers as _transformers
except ImportError:
    raise Mistake("models of Hugging Face need transformers: pip install 'heedful[hf]'.") from None

from heedful.models.huggingface.files import fingerprint
from heedful.models.huggingface.load import load, load_pipeline, wrap
from heedful.models.huggingface.network import HuggingFaceNetwork

__all__ = ["HuggingFaceNetwork", "fingerprint", "load", "load_pipeline", "wrap"]
del _transformers
