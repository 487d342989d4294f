"""An embedding model as a `Model` of pairs: a folder of sentence-transformers, or a module with its tokenizer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.data.text.batching import Texts
from heedful.errors import Mistake
from heedful.models.embedding.network import Pooling, Similarity, TextVectors
from heedful.models.huggingface.files import checkpoint_folder
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
from heedful.models.huggingface.text import PieceEncoder
from heedful.models.model import Model
from heedful.records import Part, Words

COSINE = ("cosine",)
KNOWN = {"Transformer", "Pooling", "Normalize"}  # parts of sentence-transformers; the last changes no cosine


class ApartEncoder(PieceEncoder):
    """Both texts stand alone, each with the special tokens that the tokenizer puts around one."""

    def encode(self, texts: Sequence[Words], part: Part) -> Texts:
        return super().encode(texts, "passage")


def load_embedding_model(
    place: str | Path,
    *,
    revision: str | None = None,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    offline: bool = False,
) -> Model:
    """A folder or an id of sentence-transformers: its transformer, pooled as its files say."""
    from transformers import AutoModel

    folder = checkpoint_folder(place, revision, offline)
    pooling, limit = read_modules(folder, place)
    chosen = dtype_of(dtype, folder, torch.device(device))
    with quiet():
        try:
            module, told = AutoModel.from_pretrained(
                folder, use_safetensors=True, output_loading_info=True, dtype=chosen or "auto", **ONLY_HERE
            )
        except DAMAGED as error:
            raise Mistake(f"{place} cannot be read as an embedding model: {one_line(error)}") from None
    if missing := [name for name in sorted(told["missing_keys"]) if not name.startswith("pooler.")]:
        raise Mistake(f"{place} is not a whole embedding model: its weights lack {missing[0]!r}.")
    module.to(device).eval()
    name = Path(place).name if Path(place).exists() else str(place)
    return wrap_embedding_model(module, read_tokenizer(folder, place), pooling=pooling, limit=limit, name=name)


def read_modules(folder: Path, place: str | Path) -> tuple[Pooling, int | None]:
    """How the states become a vector, and how many tokens are read, as the files of sentence-transformers say."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        kinds = {str(one["type"]).rpartition(".")[2]: str(one.get("path", "")) for one in modules}
        if strange := sorted(set(kinds) - KNOWN):
            raise Mistake(f"{place} puts a {strange[0]} on its vectors, which is not understood.")
        told = json.loads((folder / kinds["Pooling"] / "config.json").read_text(encoding="utf-8"))
        sizes = folder / "sentence_bert_config.json"
        limit = json.loads(sizes.read_text(encoding="utf-8")).get("max_seq_length") if sizes.is_file() else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Mistake(f"{place}: what sentence-transformers wrote beside the model cannot be read ({error}).") from None
    named = told.get("pooling_mode")
    modes = [named] if isinstance(named, str) else [k for k, v in told.items() if k.startswith("pooling_mode_") and v]
    poolings: dict[str, Pooling] = {"cls": "first", "mean": "mean", "lasttoken": "last"}
    short = [str(mode).removeprefix("pooling_mode_").replace("_tokens", "").replace("_token", "") for mode in modes]
    if len(short) != 1 or short[0] not in poolings:
        raise Mistake(f"{place} pools its states by {', '.join(short)}; heedful knows mean, cls and lasttoken.")
    return poolings[short[0]], limit if isinstance(limit, int) and limit > 0 else None


def wrap_embedding_model(
    module: nn.Module, tokenizer: Any, *, pooling: Pooling = "mean", limit: int | None = None, name: str | None = None
) -> Model:
    """One's own module whose output has states (last_hidden_state)."""
    title = name or getattr(getattr(module, "config", None), "name_or_path", "") or type(module).__name__
    check_finite(module, title)
    table = embedding_table(module)
    text = ApartEncoder(tokenizer, None if table is None else int(table.num_embeddings))
    read = tokens_at_most(module, text)
    read = read if limit is None else limit if read is None else min(limit, read)
    try:
        vectors = TextVectors(
            module,
            make_probe(text, False, table, read),
            pooling,
            frame=text.frame,
            limit=read,
            types=text.types if text.with_types else None,
        )
    except (*DAMAGED, IndexError, NotImplementedError) as error:
        if isinstance(error, Mistake):
            raise
        raise Mistake(
            f"{title} cannot be asked for vectors: {type(module).__name__} answers short texts with "
            f"{type(error).__name__} ({one_line(error).rstrip('.')})."
        ) from error
    return Model(title, Similarity(vectors), text, COSINE, "nli")
