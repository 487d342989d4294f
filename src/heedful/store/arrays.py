"""Weights as numpy arrays in safetensors files that carry a checksum of their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.files import whole_file
from heedful.store.checks import Damaged

Arrays = Mapping[str, NDArray[Any]]


def write_arrays(path: Path, arrays: Arrays, metadata: Mapping[str, str]) -> None:
    """Not `save_file`: it writes to a file of its own, which a kill would leave and only its owner may read."""
    from safetensors.numpy import save

    plain = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
    with whole_file(path) as temporary:
        temporary.write_bytes(save(plain, {**metadata, "sha256": _digest(plain, metadata)}))


def read_arrays(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Arrays and metadata; raises `Damaged`, which names the file, unless it is what was written."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            metadata = dict(file.metadata() or {})
    except (SafetensorError, ValueError, OSError) as error:
        raise Damaged(f"{path} is damaged ({error})") from None
    if metadata.pop("sha256", None) != _digest(arrays, metadata):
        raise Damaged(f"{path} is damaged: its checksum is not that of what was written")
    return arrays, metadata


def _digest(arrays: Arrays, metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256(repr(sorted(metadata.items())).encode())
    for key in sorted(arrays):
        array = arrays[key]
        digest.update(f"{key}{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
