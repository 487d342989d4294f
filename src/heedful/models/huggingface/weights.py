"""Whether the weights of a checkpoint are those of its configuration: which files hold them, how many, and all used.

A library that leaves weights out answers as another model, so what is not read is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import Mistake, short

if TYPE_CHECKING:
    from torch import nn

WHOLE, INDEX = "model.safetensors", "model.safetensors.index.json"
MOST_HEADER = 100_000_000  # bytes, as the library has it
LAYERS = (  # how configurations call the number of layers
    *("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers"),
    *("num_decoder_layers", "depth", "num_hidden_groups"),
)
SIZES = 4  # times as many weights as the files have: a head that is to be drawn is smaller than that
SLACK = 50_000_000  # weights that a head may have beside a small body
EIGHT_BITS = ("I8", "U8", "I4", "U4", "F4", "F8_E4M3", "F8_E5M2", "F8_E8M0")
# Parts that pretraining had and a classifier does not use: without them it is the same classifier.
OTHER_HEADS = frozenset(
    (
        *("cls", "lm_head", "lm_loss", "mlm_head", "pred_layer", "predictions", "qa_outputs", "pooler"),
        *("vocab_transform", "vocab_projector", "vocab_layer_norm", "seq_relationship", "sop_classifier"),
        *("generator_predictions", "generator_lm_head", "discriminator_predictions", "mask_predictions"),
        *("lm_predictions", "multiple_choice_head"),
    )
)
BUFFERS = frozenset(("position_ids", "token_type_ids", "inv_freq", "masked_bias"))  # no weights: counted anew


def weight_files(folder: Path, config: Mapping[str, Any], name: str) -> list[Path]:
    """The files that hold the weights, all of them safetensors inside the folder, where its fingerprint sees them."""
    if (folder / "adapter_config.json").exists():
        raise Mistake(
            f"{name} has an adapter (adapter_config.json) beside its weights: merge it into the model (peft's "
            "merge_and_unload) and save that, or remove it."
        )
    first = config.get("transformers_weights")
    if first is None:
        first = WHOLE if (folder / WHOLE).is_file() or not (folder / INDEX).is_file() else INDEX
    if not isinstance(first, str) or not first.endswith((".safetensors", ".safetensors.index.json")):
        raise _elsewhere(name, "config.json", first)
    if not _inside(folder, first):
        if Path(first).name == first:
            raise Mistake(f"{name} has no weights: there is no {first} in it.")
        raise _elsewhere(name, "config.json", first)
    if first.endswith(".safetensors"):
        return [folder / first]
    try:
        told = json.loads((folder / first).read_text(encoding="utf-8"))
        parts = set(told["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Mistake(f"{name}: {first} is damaged: it does not say which file each weight is in.") from None
    for part in parts:
        if not isinstance(part, str) or not part.endswith(".safetensors") or Path(part).name != part:
            raise _elsewhere(name, first, part)
        if not (folder / part).is_file():
            raise Mistake(f"{name} is not whole: {first} names {part}, which is not there.")
    return [folder / part for part in sorted(parts)]


def _inside(folder: Path, name: str) -> bool:
    return Path(name).name == name and (folder / name).is_file()


def _elsewhere(name: str, where: str, given: object) -> Mistake:
    return Mistake(
        f"{name}: {where} says that weights are in {short(given)}; only files called *.safetensors in the same folder "
        "are read. Save the model again with save_pretrained."
    )


def header(path: Path) -> dict[str, Any]:
    """What stands in front of the numbers of a safetensors file; nothing of a damaged one, which loading names."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > min(MOST_HEADER, path.stat().st_size):
            return {}
        try:
            found = json.loads(file.read(size))
        except (ValueError, RecursionError):
            return {}
    if not isinstance(found, dict):
        return {}
    return {key: value for key, value in found.items() if key != "__metadata__" and isinstance(value, dict)}


def check_weights(files: Sequence[Path], config: Mapping[str, Any], name: str) -> None:
    """What the files say of themselves, before memory is taken: number of layers, and numbers of eight bits."""
    tensors = {key: value for path in files for key, value in header(path).items()}
    if not tensors:
        return  # damaged: loading says how
    for key in LAYERS:
        told = config.get(key)
        if isinstance(told, int) and told > len(tensors):
            raise Mistake(
                f"{name}: its config.json says {key}={told}, and its files hold {len(tensors)} weights, fewer than one "
                "for each layer: they do not belong together."
            )
    eight = [key for key, value in tensors.items() if value.get("dtype") in EIGHT_BITS]
    if eight:
        raise Mistake(
            f"{name}: the weights {eight[0]!r} are of 8 bits or fewer ({tensors[eight[0]]['dtype']}), which mean "
            "something only with their scales: save the model in float16 or float32 (dequantised)."
        )


def check_size(files: Sequence[Path], n_weights: int, name: str) -> None:
    """Whether a model of so many weights could be in these files."""
    held = 0
    for path in files:
        for tensor in header(path).values():
            size, shape = 1, tensor.get("shape")
            for length in shape if isinstance(shape, list) else ():
                size *= length if isinstance(length, int) else 1
            held += size
    if held and n_weights > SIZES * held + SLACK:
        raise Mistake(
            f"{name}: by its config.json the model has {n_weights:,} weights, and its files hold {held:,}: they do not "
            "belong together."
        )


def check_all_used(
    module: nn.Module, unused: Sequence[str], name: str, ignore: Sequence[str] = (), head: bool = True
) -> None:
    """Weights that the files have and the model does not use: it would answer as another model.

    `ignore`: names, or patterns with *, that the user knows to be harmless. head=False: only the body is kept, so what
    stood behind it does not matter.
    """
    prefix = f"{getattr(module, 'base_model_prefix', '')}."
    odd = [
        key
        for key in sorted(unused)
        if not OTHER_HEADS.intersection(parts := key.split("."))
        and parts[-1] not in BUFFERS
        and not any(fnmatchcase(key, pattern) for pattern in ignore)
        and (head or key.startswith(prefix))
    ]
    if odd:
        more = f" and {len(odd) - 1} more" if len(odd) > 1 else ""
        known = json.dumps({"ignore_weights": [odd[0] if len(odd) == 1 else _pattern(odd)]})
        raise Mistake(
            f"{name} has weights that a {type(module).__name__} of its config.json does not use: {odd[0]!r}{more}. It "
            "would answer as another model than was trained. If that is meant, say so: "
            f"heedful.load(..., ignore_weights=[...]), or 'hf:{name}?{known}'."
        )


def _pattern(names: Sequence[str]) -> str:
    """What these begin with, up to the last whole part."""
    first, last = min(names), max(names)
    same = 0
    while same < min(len(first), len(last)) and first[same] == last[same]:
        same += 1
    begins = first[: first.rfind(".", 0, same) + 1]
    return f"{begins}*"
