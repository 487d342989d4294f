"""Models of transformers that answer at places: a folder, an id, a pipeline, or a module with its tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.data.prompts import LABELS
from heedful.errors import Mistake
from heedful.models.huggingface.files import checkpoint_folder, read_config
from heedful.models.huggingface.kinds import Answered, answered_at_places, architecture_of
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
from heedful.models.places.gaps import GapModel
from heedful.models.places.model import PlacesModel
from heedful.models.places.network import PlacesNetwork, SpansNetwork
from heedful.models.places.spans import SpanModel
from heedful.models.places.tagging import Tagger
from heedful.models.places.text import GapEncoder, SpanEncoder


def load_places_model(
    place: str | Path,
    *,
    revision: str | None = None,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    offline: bool = False,
    labels: Sequence[str] | None = None,
) -> PlacesModel:
    """A folder or an id of the hub, as `huggingface.load` reads classifiers. labels: names for those of a tagger."""
    from transformers import AutoModelForMaskedLM, AutoModelForQuestionAnswering, AutoModelForTokenClassification

    folder = checkpoint_folder(place, revision, offline)
    kind = answered_at_places(architecture_of(read_config(folder)))
    if kind is None:
        raise Mistake(f"{place} does not answer at places of a text: it is a {architecture_of(read_config(folder))}.")
    classes: dict[Answered, Any] = {
        "tags": AutoModelForTokenClassification,
        "span": AutoModelForQuestionAnswering,
        "gap": AutoModelForMaskedLM,
    }
    with quiet():
        try:
            module, told = classes[kind].from_pretrained(
                folder,
                use_safetensors=True,
                output_loading_info=True,
                dtype=dtype_of(dtype, folder, torch.device(device)) or "auto",
                **ONLY_HERE,
            )
        except DAMAGED as error:
            raise Mistake(
                f"{place} cannot be read as a {architecture_of(read_config(folder))}: {one_line(error)}"
            ) from None
    if missing := sorted(told["missing_keys"]):
        raise Mistake(
            f"{place} is not trained for what it is to answer: its weights lack {missing[0]!r}, which would be drawn "
            "at random."
        )
    module.to(device).eval()
    name = Path(place).name if Path(place).exists() else str(place)
    return wrap_places_model(module, read_tokenizer(folder, place), name=name, labels=labels)


def wrap_places_model(
    module: nn.Module,
    tokenizer: Any,
    *,
    name: str | None = None,
    labels: Sequence[str] | None = None,
    kind: Answered | None = None,
) -> PlacesModel:
    """One's own module; what it answers is seen from the name of its class, unless `kind` says so."""
    config = getattr(module, "config", None)
    title = name or getattr(config, "name_or_path", "") or type(module).__name__
    found = kind or answered_at_places(type(module).__name__)
    if found is None:
        raise Mistake(
            f"{title}: nobody knows what a {type(module).__name__} answers: give kind='tags', 'span' or 'gap'."
        )
    if labels is not None and found != "tags":
        raise Mistake(f"{title} has no labels of its own: leave labels out.")
    check_finite(module, title)
    table = embedding_table(module)
    words = None if table is None else int(table.num_embeddings)
    encoders: dict[Answered, type[PieceEncoder]] = {"tags": PieceEncoder, "span": SpanEncoder, "gap": GapEncoder}
    try:
        text = encoders[found](tokenizer, words)
        limit = tokens_at_most(module, text)
        network = (SpansNetwork if found == "span" else PlacesNetwork)(
            module,
            make_probe(text, found == "span", table, limit),
            frame=text.frame,
            limit=limit,
            types=text.types if text.with_types else None,
            has_query=found == "span",
        )
    except (*DAMAGED, IndexError, NotImplementedError) as error:
        if isinstance(error, Mistake):
            raise
        raise Mistake(
            f"{title} cannot be asked about places of a text: {type(module).__name__} answers short texts with "
            f"{type(error).__name__} ({one_line(error).rstrip('.')})."
        ) from error
    if found == "tags":
        return Tagger(title, network, text, LABELS, "places", tags=_tags(config, labels, network))
    if isinstance(text, GapEncoder):
        return GapModel(title, network, text, LABELS, "places")
    return SpanModel(title, network, text, LABELS, "places", none=text.frame.before > 0)


def _tags(config: Any, labels: Sequence[str] | None, network: PlacesNetwork) -> tuple[str, ...]:
    """What a tagger's labels are called."""
    n = network.abilities.n_outputs
    own = getattr(config, "id2label", None) or {}
    names = tuple(labels or (str(own.get(i, own.get(str(i), f"LABEL_{i}"))) for i in range(n)))
    if len(names) != n:
        raise Mistake(f"{len(names)} labels were given, and the model has {n} for each word.")
    if len(set(names)) < n:
        raise Mistake(f"two labels of the model have the same name: {', '.join(names)}.")
    return names
