"""A causal language model of transformers as a `LanguageModel`: a folder, an id, or a module with its tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.errors import Mistake
from heedful.models.huggingface.files import checkpoint_folder
from heedful.models.huggingface.loading import (
    DAMAGED,
    ONLY_HERE,
    dtype_of,
    embedding_table,
    one_line,
    quiet,
    read_tokenizer,
    tokens_at_most,
)
from heedful.models.huggingface.probe import make_probe
from heedful.models.language.generator import Generator
from heedful.models.language.model import ELSE, THIS, LanguageModel
from heedful.models.language.prompts import PromptEncoder


def load_language_model(
    place: str | Path,
    *,
    revision: str | None = None,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    offline: bool = False,
) -> LanguageModel:
    """A folder or an id of the hub, as `load` reads classifiers: safetensors only, no code that comes with it.

    dtype: None computes in the numbers of the file; weights of 16 bits on a processor in float32.
    """
    from transformers import AutoModelForCausalLM

    folder = checkpoint_folder(place, revision, offline)
    chosen = dtype_of(dtype, folder, torch.device(device))
    with quiet():
        try:
            both: Any = AutoModelForCausalLM.from_pretrained(
                folder, use_safetensors=True, output_loading_info=True, dtype=chosen or "auto", **ONLY_HERE
            )
            module, told = both
        except DAMAGED as error:
            raise Mistake(f"{place} cannot be read as a language model: {one_line(error)}") from None
    if missing := sorted(told["missing_keys"]):
        raise Mistake(f"{place} is not a whole language model: its weights lack {missing[0]!r}.")
    module.to(device).eval()
    name = Path(place).name if Path(place).exists() else str(place)
    return wrap_language_model(module, read_tokenizer(folder, place), name=name)


def wrap_language_model(module: nn.Module, tokenizer: Any, *, name: str | None = None) -> LanguageModel:
    """One's own module whose logits are (texts, places, vocabulary)."""
    config = getattr(module, "config", None)
    title = name or getattr(config, "name_or_path", "") or type(module).__name__
    table = embedding_table(module)
    text = PromptEncoder(tokenizer, None if table is None else int(table.num_embeddings))
    limit = tokens_at_most(module, text)
    network = Generator(module, make_probe(text, True, table, limit), frame=text.frame, limit=limit)
    return LanguageModel(title, network, text, (ELSE, THIS), "generation")
