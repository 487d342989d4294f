"""Where the files of a checkpoint are: a folder, or an id on the hub, which is asked only for what is not here yet."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from heedful.data import locate
from heedful.errors import Mistake

WANTED = ("*.json", "*.safetensors", "*.txt", "*.model")  # no pickled weights, no code


def checkpoint_folder(place: str | Path, revision: str | None = None, offline: bool = False) -> Path:
    """A folder with config.json and weights as safetensors."""
    folder = Path(place)
    if not locate.exists(folder):
        folder = _from_hub(str(place), revision, offline)
    elif revision is not None:
        raise Mistake(f"revision={revision!r} is for models of the hub; {folder} is a folder.")
    check_folder(folder, str(place))
    return folder


def check_folder(folder: Path, name: str) -> None:
    if not folder.is_dir():
        raise Mistake(f"{name} is a file; a model is a folder with config.json and model.safetensors.")
    if not (folder / "config.json").is_file():
        raise Mistake(f"{name} is not a folder of a transformers model: it has no config.json.")
    if not any(folder.glob("*.safetensors")):
        pickled = sorted(
            p.name for pattern in ("*.bin", "*.pt", "*.pth", "*.h5") for p in folder.glob(pattern)
        )
        if pickled:
            raise Mistake(
                f"{name} has only pickled weights ({pickled[0]}), which can run any code when they are read: save the "
                "model again with save_pretrained, which writes model.safetensors."
            )
        raise Mistake(f"{name} has no weights: there is no model.safetensors in it.")


def read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Mistake(f"{folder / 'config.json'} cannot be read: {error}.") from None
    if not isinstance(config, dict):
        raise Mistake(f"{folder / 'config.json'} is damaged: it is no JSON object.")
    return config


def _from_hub(name: str, revision: str | None, offline: bool) -> Path:
    """What is here already, else what the hub has."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    def fetch(local: bool) -> Path:
        return Path(
            snapshot_download(name, revision=revision, allow_patterns=list(WANTED), local_files_only=local)
        )

    try:
        folder = fetch(local=True)
        if (folder / "config.json").is_file() and any(folder.glob("*.safetensors")):
            return folder
    except HFValidationError:
        raise Mistake(f"there is no folder {name}, and it is no id of a model on the hub either.") from None
    except (LocalEntryNotFoundError, OSError):
        pass
    if offline:
        raise Mistake(f"{name} is not on this machine, and the hub was not to be asked (offline).")
    try:
        return fetch(local=False)
    except Exception as error:
        raise Mistake(_why(name, revision, error)) from None


def _why(name: str, revision: str | None, error: Exception) -> str:
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError

    if isinstance(error, GatedRepoError):
        return f"{name} is given only to those who have agreed to its terms: log in to the hub first."
    if isinstance(error, RepositoryNotFoundError):
        return f"there is no folder {name}, and no model of that id on the hub."
    if isinstance(error, RevisionNotFoundError):
        return f"{name} has no revision {revision!r}."
    return f"there is no folder {name}, no copy of a model of that id on this machine, and the hub cannot be reached."


def fingerprint(folder: Path) -> str:
    """Of everything that decides the answers: weights, configuration, tokenizer. The same files, the same 64 digits."""
    digest = hashlib.sha256()
    names = {p for pattern in WANTED for p in folder.glob(pattern)}
    for path in sorted(names):
        if not path.name.startswith(("training_", "trainer_")):
            with path.open("rb") as file:
                digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
