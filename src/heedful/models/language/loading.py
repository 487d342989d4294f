"""A model of transformers that generates as a `LanguageModel`: a folder, an id, or a module with its tokenizer.

It is causal, or an encoder-decoder, as its own configuration says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.data.prompts import LABELS
from heedful.errors import Mistake
from heedful.models.huggingface.files import checkpoint_folder, read_config
from heedful.models.huggingface.loading import (
    DAMAGED,
    ONLY_HERE,
    check_finite,
    dtype_of,
    embedding_table,
    one_line,
    quiet,
    read_tokenizer,
    tokens_at_most,
)
from heedful.models.huggingface.probe import make_probe
from heedful.models.huggingface.weights import check_all_used, check_weights, weight_files
from heedful.models.language.encoder_decoder import EncoderDecoder
from heedful.models.language.generator import Generator
from heedful.models.language.model import LanguageModel
from heedful.models.language.prompts import PromptEncoder, SourceEncoder


def load_language_model(
    place: str | Path,
    *,
    revision: str | None = None,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    offline: bool = False,
    language: str | None = None,
) -> LanguageModel:
    """A folder or an id of the hub, as `load` reads classifiers: safetensors only, no code that comes with it.

    dtype: None computes in the numbers of the file; weights of 16 bits on a processor in float32. language: of a
    translator into several, the code of the one that it is to say (fra_Latn).
    """
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    folder = checkpoint_folder(place, revision, offline)
    config = read_config(folder)
    refuse_quantised(config, str(place))
    check_weights(weight_files(folder, config, str(place)), config, str(place))
    kind: Any = AutoModelForSeq2SeqLM if config.get("is_encoder_decoder") else AutoModelForCausalLM
    chosen = dtype_of(dtype, folder, torch.device(device))
    with quiet():
        try:
            module, told = kind.from_pretrained(
                folder, use_safetensors=True, output_loading_info=True, dtype=chosen or "auto", **ONLY_HERE
            )
        except DAMAGED as error:
            raise Mistake(f"{place} cannot be read as a language model: {one_line(error)}") from None
    if missing := sorted(told["missing_keys"]):
        raise Mistake(f"{place} is not a whole language model: its weights lack {missing[0]!r}.")
    check_all_used(module, told["unexpected_keys"], str(place))
    module.to(device).eval()
    name = Path(place).name if Path(place).exists() else str(place)
    return wrap_language_model(module, read_tokenizer(folder, place), name=name, language=language)


def wrap_language_model(
    module: nn.Module, tokenizer: Any, *, name: str | None = None, language: str | None = None
) -> LanguageModel:
    """One's own module whose logits are (texts, places, vocabulary)."""
    config = getattr(module, "config", None)
    title = name or getattr(config, "name_or_path", "") or type(module).__name__
    if next(module.parameters(), None) is None:
        raise Mistake(f"{title} has no weights: wrap a function of prompts instead.")
    check_finite(module, title)
    if getattr(module, "is_quantized", False):
        refuse_quantised({"quantization_config": {}}, title)
    table = embedding_table(module)
    words = None if table is None else int(table.num_embeddings)
    try:
        if getattr(config, "is_encoder_decoder", False):
            source = SourceEncoder(tokenizer, words, begins_with(module, tokenizer, title, language))
            limit = tokens_at_most(module, source)
            both = EncoderDecoder(module, make_probe(source, True, table, limit), limit=limit, said_limit=limit)
            return LanguageModel(title, both, source, LABELS, "generation")
        if language is not None:
            raise Mistake(f"{title} is not an encoder-decoder, so no language is chosen: leave language out.")
        text = PromptEncoder(tokenizer, words)
        limit = tokens_at_most(module, text)
        network = Generator(module, make_probe(text, True, table, limit), frame=text.frame, limit=limit)
    except (*DAMAGED, IndexError, NotImplementedError) as error:
        if isinstance(error, Mistake):
            raise
        raise Mistake(
            f"{title} cannot be asked as a language model: {type(module).__name__} answers short texts with "
            f"{type(error).__name__} ({one_line(error).rstrip('.')})."
        ) from error
    return LanguageModel(title, network, text, LABELS, "generation")


@torch.no_grad()
def module_generates(module: nn.Module) -> bool:
    """Whether a module says which token comes next: as its class tells, or its answer to a short text.

    A module that nobody knows says it by logits (texts, places, vocabulary) as wide as its table of embeddings.
    """
    if hasattr(module, "can_generate"):
        return bool(module.can_generate())  # type: ignore[operator]
    table = embedding_table(module)
    if table is None:
        return False
    try:
        ids = torch.zeros(1, 3, dtype=torch.long, device=table.weight.device)
        found = module(input_ids=ids, attention_mask=torch.ones_like(ids))
    except (*DAMAGED, IndexError, NotImplementedError):
        return False
    logits = getattr(found, "logits", found[0] if isinstance(found, tuple) and found else found)
    return isinstance(logits, torch.Tensor) and logits.dim() == 3 and logits.shape[2] >= table.num_embeddings


def begins_with(module: nn.Module, tokenizer: Any, title: str, language: str | None) -> list[int]:
    """What a decoder begins with: its start token, and a language code that it is made to say first."""
    sources = (getattr(module, "generation_config", None), getattr(module, "config", None))

    def told(*names: str) -> int | None:
        found = (getattr(source, name, None) for name in names for source in sources)
        return next((one for one in found if isinstance(one, int)), None)

    start, forced = told("decoder_start_token_id", "bos_token_id", "pad_token_id"), told("forced_bos_token_id")
    if start is None:
        raise Mistake(f"{title} does not say which token its decoder begins with (decoder_start_token_id).")
    if language is None:
        return [start] if forced is None else [start, forced]
    code = tokenizer.convert_tokens_to_ids(language)
    if code is None or code == tokenizer.unk_token_id:
        ordinary = {tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token}
        known = sorted(set(tokenizer.all_special_tokens) - ordinary)
        of = f": they are {', '.join(known[:8])}{', ...' if len(known) > 8 else ''}." if known else "."
        raise Mistake(f"language={language!r} is not a language code of {title}{of}")
    # of mBART-25 the start token is a language code itself; of NLLB and M2M-100 the code stands after it
    ids = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.unk_token_id)
    return [code] if forced is None and start not in ids else [start, code]


def refuse_quantised(config: Mapping[str, Any], name: str) -> None:
    """Weights of a few bits have no gradients here, and need libraries of their own."""
    found = config.get("quantization_config")
    if found is None:
        return
    how = found.get("quant_method") if isinstance(found, dict) else None
    raise Mistake(
        f"{name} has quantised weights{f' ({how})' if how else ''}, through which nothing can be explained exactly: "
        "give the model that they were made of, or one that was dequantised (model.dequantize(), then save_pretrained)."
    )
