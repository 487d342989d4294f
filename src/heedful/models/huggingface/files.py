"""Where the files of a checkpoint are: a folder, or an id on the hub, which is asked only for what is not here yet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.data.corpora import locate
from heedful.data.corpora.labels import check_names
from heedful.errors import Mistake, one_of, short
from heedful.models.huggingface.weights import header
from heedful.models.link import IDENTITY, LOG_ODDS, SIGMOIDS, SOFTMAX, Link

DTYPES = ("auto", "float32", "float64", "float16", "bfloat16")
HALVES = ("float16", "bfloat16")
NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}  # as safetensors calls them
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
        pickled = sorted(p.name for pattern in ("*.bin", "*.pt", "*.pth", "*.h5") for p in folder.glob(pattern))
        if pickled:
            raise Mistake(
                f"{name} has only pickled weights ({pickled[0]}), which can run any code when they are read: save the "
                "model again with save_pretrained, which writes model.safetensors."
            )
        raise Mistake(f"{name} has no weights: there is no model.safetensors in it.")


def read_config(folder: Path) -> dict[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except RecursionError:
        raise Mistake(f"{folder / 'config.json'} is damaged: it is nested too deeply.") from None
    except (OSError, ValueError) as error:
        raise Mistake(f"{folder / 'config.json'} cannot be read: {error}.") from None
    if not isinstance(config, dict):
        raise Mistake(f"{folder / 'config.json'} is damaged: it is not a JSON object.")
    return config


def own_dtype(folder: Path) -> str | None:
    """The numbers of its weights, as the library would load them: what the configuration says, else the files."""
    config = read_config(folder)
    said = config.get("dtype", config.get("torch_dtype"))
    if isinstance(said, str) and said.removeprefix("torch.") in DTYPES[1:]:
        return said.removeprefix("torch.")
    for path in sorted(folder.glob("*.safetensors")):
        for tensor in header(path).values():
            kind = tensor.get("dtype")
            if kind in NAMES:
                return NAMES[kind]
    return None


def _from_hub(name: str, revision: str | None, offline: bool) -> Path:
    """What is here already, else what the hub has."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    def fetch(local: bool) -> Path:
        return Path(snapshot_download(name, revision=revision, allow_patterns=list(WANTED), local_files_only=local))

    try:
        folder = fetch(local=True)
        if (folder / "config.json").is_file() and any(folder.glob("*.safetensors")):
            return folder
    except HFValidationError:
        raise Mistake(f"there is no folder {name}, and it is not an id of a model on the hub either.") from None
    except (LocalEntryNotFoundError, OSError):
        pass
    if offline or not locate.fetches():
        why = "offline" if offline else "this command fetches nothing"
        raise Mistake(f"{name} is not on this machine, and the hub was not to be asked ({why}).")
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


# How a classifier's logits are read, and what its labels are called: from its configuration and what the user says.


PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")  # the library's own names


def read_labels(
    config: Any, labels: Sequence[str] | None = None, problem_type: str | None = None
) -> tuple[Link, tuple[str, ...]]:
    """The link and one name for each label.

    One logit is a number that is predicted (regression), as the library has it, unless the problem is of labels, or two
    labels are given for it: then it is the log-odds of the second.
    """
    problem = problem_type or getattr(config, "problem_type", None)
    if problem is not None and problem not in PROBLEMS:
        raise one_of("problem type", problem, list(PROBLEMS))
    if labels is not None:
        check_names(labels)
    own = _own_labels(config, None if labels is None else len(labels))
    given = None if labels is None else tuple(labels)
    if given is not None and len(set(given)) < len(given):
        raise Mistake(f"two labels have the same name: {', '.join(given)}.")
    if len(own) == 1:
        if given is not None and len(given) == 2 and problem != "regression":
            return LOG_ODDS, given
        if problem in PROBLEMS[:2]:
            name = _named(given, own)[0]
            return LOG_ODDS, (f"not {name}", name)
        return IDENTITY, _named(given, own)
    if problem == "multi_label_classification":
        return SIGMOIDS, _named(given, own)
    return (IDENTITY if problem == "regression" else SOFTMAX), _named(given, own)


def _own_labels(config: Any, n_given: int | None) -> tuple[str, ...]:
    names = getattr(config, "id2label", None)
    if not names:
        if n_given is None:
            raise Mistake("the model does not say what its labels are: give labels=[...].")
        return tuple(f"LABEL_{i}" for i in range(n_given))
    try:
        numbered = {int(i): str(name) for i, name in names.items()}
    except (AttributeError, TypeError, ValueError):
        raise Mistake(f"the model's labels are not numbered: its id2label is {short(names)}.") from None
    if sorted(numbered) != list(range(len(numbered))):
        raise Mistake(f"the model's labels are numbered {sorted(numbered)}, not from 0 on: its id2label is damaged.")
    own = tuple(numbered[i] for i in range(len(numbered)))
    if n_given is not None:
        return own
    if len(set(own)) < len(own):
        raise Mistake(f"two of the model's labels have the same name ({', '.join(own)}): give labels=[...].")
    told = getattr(config, "label2id", None)
    numbers: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    for i, name in enumerate(own):
        if numbers.get(name, i) not in (i, str(i)):
            raise Mistake(
                f"the model calls its label {i} {name!r} (id2label), and gives {name!r} the number {numbers[name]} "
                "(label2id): give labels=[...] in the order of its logits."
            )
    return own


def _named(given: tuple[str, ...] | None, own: tuple[str, ...]) -> tuple[str, ...]:
    if given is None:
        return own
    if len(given) != len(own):
        raise Mistake(
            f"{len(given)} labels were given ({', '.join(given)}), and the model has {len(own)} ({', '.join(own)})."
        )
    return given
