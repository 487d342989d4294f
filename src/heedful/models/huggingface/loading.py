"""A transformers classifier as a `Model`: from a folder or an id, a pipeline, or a module with its tokenizer."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import nn

from heedful.errors import Mistake, one_of, short
from heedful.models.huggingface.files import DTYPES, HALVES, checkpoint_folder, own_dtype, read_config, read_labels
from heedful.models.huggingface.kinds import architecture_of, say_what_it_is, say_what_works
from heedful.models.huggingface.network import HuggingFaceNetwork
from heedful.models.huggingface.probe import make_probe
from heedful.models.huggingface.text import PieceEncoder
from heedful.models.huggingface.weights import check_all_used, check_size, check_weights, weight_files
from heedful.models.model import Model
from heedful.models.sequence import Long

ONLY_HERE: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
READ_BY = {  # what a pipeline applies to its logits, as the library's problem types
    "sigmoid": "multi_label_classification",
    "softmax": "single_label_classification",
    "none": "regression",
}
GENERATING = ("text-generation", "text2text-generation", "translation", "summarization")  # tasks of pipelines
AT_PLACES = ("token-classification", "question-answering", "fill-mask")
DAMAGED = (  # what the libraries that read a folder raise when its files are not what they should be
    ValueError,
    OSError,
    RuntimeError,
    KeyError,
    TypeError,
    AttributeError,
    ImportError,
    ArithmeticError,  # no heads, no width
    AssertionError,
    SafetensorError,
    StrictDataclassError,
)


def load(
    place: str | Path,
    *,
    labels: Sequence[str] | None = None,
    query: bool = False,
    long: Long = "windows",
    problem_type: str | None = None,
    revision: str | None = None,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    offline: bool = False,
    ignore_weights: Sequence[str] = (),
) -> Model:
    """A folder or an id of the hub. Safetensors only; code that comes with a model is never run.

    labels: names in place of the model's own. query: it was trained on pairs of texts. long: what is done about a text
    longer than it reads. problem_type: as in transformers, where its configuration does not say. dtype: None and "auto"
    keep that of the file, but for 16 bits on a CPU, which are computed in float32. offline: never ask the hub.
    ignore_weights: names, or patterns with *, of weights that the files have and the model does not use.
    """
    folder = checkpoint_folder(place, revision, offline)
    config = read_config(folder)
    if (what := say_what_it_is(config, str(place), folder=folder)) is not None:
        raise Mistake(what)
    numbers = dtype_of(dtype, folder, torch.device(device))
    module, missing = read_module(folder, numbers, place=place, ignore=ignore_weights)
    tokenizer = read_tokenizer(folder, place)
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        kind = f" (a {architecture_of(config)})" if architecture_of(config) else ""
        raise Mistake(
            f"{place}{kind} is not a trained classifier: its weights lack {missing[0]!r}{more}, which would be drawn "
            f"at random. {say_what_works(config, str(place))}"
        )
    module.to(device).eval()
    name = Path(place).name if Path(place).exists() else str(place)
    return wrap(module, tokenizer, labels=labels, query=query, long=long, problem_type=problem_type, name=name)


def read_module(
    folder: Path,
    dtype: torch.dtype | None = None,
    seed: int = 0,
    place: str | Path | None = None,
    ignore: Sequence[str] = (),
    head: bool = True,
    **config: Any,
) -> tuple[Any, list[str]]:
    """The classifier of a folder, and the names of weights that its files lack: those are drawn from `seed`.

    `config`: settings in place of the folder's own; where they change a size, that weight is drawn, too. `ignore`:
    weights of the files that may stay unused; head=False: those of another output, too.
    """
    from transformers import AutoConfig, AutoModelForSequenceClassification

    place = place or folder
    told_config = read_config(folder)
    if "auto_map" in told_config and not _known_to_library(folder):
        raise Mistake(f"{place} needs code that comes with it, and such code is never run.")
    files = weight_files(folder, told_config, str(place))
    check_weights(files, told_config, str(place))
    with quiet(), torch.random.fork_rng(devices=[]):  # fresh weights are drawn, and then replaced by the files'
        torch.manual_seed(seed)
        try:
            settings = AutoConfig.from_pretrained(folder, **ONLY_HERE, **config)
            with torch.device("meta"):  # shapes without numbers
                shapes = AutoModelForSequenceClassification.from_config(settings)
            check_size(files, sum(weights.numel() for weights in shapes.parameters()), str(place))
            module, told = AutoModelForSequenceClassification.from_pretrained(
                folder,
                config=settings,
                use_safetensors=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                dtype=dtype or "auto",
                **ONLY_HERE,
            )
        except DAMAGED as error:
            raise Mistake(f"{place} cannot be read as a sequence classifier: {one_line(error)}") from None
    other_size = sorted(told.get("mismatched_keys", ()))  # (name, size in the files, size by the configuration)
    if other_size and not config:
        name, saved, said = other_size[0]
        raise Mistake(
            f"the weights {name!r} of {place} are {tuple(saved)}, and by its config.json they should be {tuple(said)}: "
            "the files do not belong together, or the configuration lists other labels than were trained."
        )
    if not told["missing_keys"] or not head:
        check_all_used(module, told["unexpected_keys"], str(place), ignore, head)
    return module, sorted({*told["missing_keys"], *(name for name, *_ in other_size)})


def read_tokenizer(folder: Path, place: str | Path | None = None) -> Any:
    from transformers import AutoTokenizer

    place = place or folder
    with quiet():
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, **ONLY_HERE)
        except DAMAGED as error:
            raise Mistake(f"{place} has no tokenizer that can be read: {one_line(error)}") from None
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):
        raise Mistake(f"{place} has no tokenizer: save it beside the model (tokenizer.save_pretrained).")
    return tokenizer


def load_pipeline(pipeline: Any, **options: Any) -> Model:
    """A `transformers` pipeline for text classification: its own model and tokenizer."""
    if getattr(pipeline, "model", None) is None or getattr(pipeline, "tokenizer", None) is None:
        raise Mistake(f"{type(pipeline).__name__} has no model and tokenizer: give a text-classification pipeline.")
    task = getattr(pipeline, "task", "text-classification")
    if task in GENERATING:
        from heedful.models.language.loading import wrap_language_model

        return wrap_language_model(pipeline.model, pipeline.tokenizer, **options)
    if task in AT_PLACES:
        from heedful.models.places.loading import wrap_places_model

        return wrap_places_model(pipeline.model, pipeline.tokenizer, **options)
    if task != "text-classification":
        able = ", ".join(("text-classification", *GENERATING[:1], *AT_PLACES))
        raise Mistake(f"this is a pipeline for {task}, which heedful does not explain. It explains: {able}.")
    if unknown := sorted(set(options) - {"labels", "query", "long", "problem_type", "name"}):
        raise Mistake(f"{unknown[0]!r} is not an option of a pipeline, whose model is in memory as it is.")
    applied = getattr(pipeline, "_postprocess_params", {}).get("function_to_apply")
    if applied is not None:
        options = {"problem_type": READ_BY[applied.value], **options}
    return wrap(pipeline.model, pipeline.tokenizer, **options)


def wrap(
    module: nn.Module,
    tokenizer: Any,
    *,
    labels: Sequence[str] | None = None,
    query: bool = False,
    long: Long = "windows",
    problem_type: str | None = None,
    name: str | None = None,
) -> Model:
    """One's own module: `module(input_ids or inputs_embeds, attention_mask)` gives logits (texts, labels)."""
    if not isinstance(query, bool):
        raise Mistake(f"query={short(query)}: it should be true or false.")
    if next(module.parameters(), None) is None:
        raise Mistake(f"{type(module).__name__} has no weights: wrap a function of texts instead.")
    if long not in ("windows", "truncate", "refuse"):
        raise one_of("choice of long", long, ["windows", "truncate", "refuse"])
    config = getattr(module, "config", None)
    title = name or getattr(config, "name_or_path", "") or type(module).__name__
    if (what := say_what_it_is({"architectures": [type(module).__name__]}, title, wrapped=True)) is not None:
        raise Mistake(what)
    check_finite(module, title)
    link, names = read_labels(config, labels, problem_type)
    table = embedding_table(module)
    text = PieceEncoder(tokenizer, None if table is None else int(table.num_embeddings), query)
    limit = tokens_at_most(module, text)
    try:
        network = HuggingFaceNetwork(
            module,
            link,
            len(names),
            make_probe(text, query, table, limit),
            frame=text.frame,
            limit=limit,
            types=text.types if text.with_types else None,
            has_query=query,
            long=long,
        )
    except (*DAMAGED, IndexError, NotImplementedError) as error:
        raise Mistake(
            f"{title} cannot be asked as a classifier of texts: {type(module).__name__} answers short texts with "
            f"{type(error).__name__} ({one_line(error).rstrip('.')})."
        ) from error
    return Model(title, network, text, names, "nli" if query else "classification")


def check_finite(module: nn.Module, title: str) -> None:
    """Refuse weights that are not numbers."""
    for name, parameter in module.named_parameters():
        if not torch.isfinite(parameter).all():
            raise Mistake(f"{title}: the weights {name!r} hold numbers that are not finite.")


def embedding_table(module: nn.Module) -> nn.Embedding | None:
    if not hasattr(module, "get_input_embeddings"):
        return None
    found = module.get_input_embeddings()  # type: ignore[operator]
    return found if isinstance(found, nn.Embedding) else None


def tokens_at_most(module: nn.Module, text: PieceEncoder) -> int | None:
    """Tokens read at once: what the tokenizer says, and what there are positions for.

    A table of positions with a row for padding starts to count after it, so it has fewer than its rows.
    """
    config = getattr(module, "config", None)
    positions = getattr(config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions < 1:
        return text.limit
    words = module.get_input_embeddings() if hasattr(module, "get_input_embeddings") else None  # type: ignore[operator]
    tables = [part for part in module.modules() if isinstance(part, nn.Embedding) and part is not words]
    for table in tables:
        if table.num_embeddings == positions and table.padding_idx is not None:
            return _least(positions - table.padding_idx - 1, text.limit)
    return _least(positions, text.limit)


def _least(positions: int, told: int | None) -> int:
    return positions if told is None else min(positions, told)


def dtype_of(given: str | torch.dtype | None, folder: Path, device: torch.device) -> torch.dtype | None:
    """None: as the files have it."""
    if isinstance(given, torch.dtype):
        return given
    if given is not None and given not in DTYPES:
        raise one_of("dtype", given, list(DTYPES))
    if given in (None, "auto"):
        return torch.float32 if device.type == "cpu" and own_dtype(folder) in HALVES else None
    named: torch.dtype = getattr(torch, str(given))
    return named


def _known_to_library(folder: Path) -> bool:
    from transformers import CONFIG_MAPPING

    return read_config(folder).get("model_type") in CONFIG_MAPPING


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's bars and reports: what matters is said as a `Mistake`."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def one_line(error: Exception) -> str:
    """The first line of what a library says, and the next where the first only announces it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[: 2 if lines[0].endswith(":") else 1])
