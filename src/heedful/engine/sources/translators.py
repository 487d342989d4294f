"""Folders of our own translators as a family of models.

translator.json     how it was trained (TranslationRun), its scores, what its epochs brought, and the checksums of
                    the other files
model.safetensors   the weights of the best epoch
tokenizer.json      words or pieces of both languages
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.data.corpora import locate
from heedful.data.prompts import LABELS
from heedful.engine.sources.models import ModelSource
from heedful.errors import Mistake
from heedful.files import whole_folder, write_json
from heedful.store.arrays import read_arrays, write_arrays
from heedful.store.checks import Damaged, HashFile, check_file, read_object, sha256

if TYPE_CHECKING:
    import torch

    from heedful.engine.sources.models import ModelFamily
    from heedful.models.model import Model
    from heedful.models.translation.network import Translator
    from heedful.models.translation.text import TranslationText

ABOUT, WEIGHTS, TEXT = "translator.json", "model.safetensors", "tokenizer.json"


class TranslatorSource(ModelSource):
    """A translator that `heedful train --task translation` made."""

    labels, task = LABELS, "generation"

    def __init__(self, folder: Path, hash_file: HashFile = sha256) -> None:
        self.folder, self.name, self.place = folder, folder.absolute().name, str(folder.absolute())
        try:
            self.about: Mapping[str, Any] = read_object(folder / ABOUT)
            self.sums = {name: str(self.about["sums"][name]) for name in (WEIGHTS, TEXT)}
            for name, digest in self.sums.items():
                check_file(folder / name, digest, hash_file)
            model = self.about["config"]["model"]
        except (Damaged, OSError) as damage:
            raise Mistake(f"{damage}: train again.") from None
        except (KeyError, TypeError):
            raise Mistake(f"{folder / ABOUT} is damaged: train again.") from None
        self.architecture, self.attention = f"{model['encoder']}-{model['decoder']}", str(model["attention"])
        self.seed = int(self.about["config"]["seed"])
        self.description = (
            f"a translator with the encoder {model['encoder']!r}, {self.attention} attention and "
            f"{'an LSTM' if model['decoder'] == 'lstm' else 'a GRU'} that says the words"
        )

    @cached_property
    def fingerprint(self) -> str | None:
        """Of weights, sizes and words."""
        told = f"{self.sums[WEIGHTS]} {self.sums[TEXT]} {sorted(self.about['config']['model'].items())}"
        return hashlib.sha256(told.encode()).hexdigest()

    def load(self, device: torch.device) -> Model:
        import torch

        from heedful.models.translation.config import TranslationRun
        from heedful.models.translation.model import as_model, build_translator
        from heedful.models.translation.text import load_text

        text = load_text(self.folder / TEXT)
        config = TranslationRun.parse(self.about["config"], str(self.folder / ABOUT))
        network = build_translator(config.model, text)
        weights = read_arrays(self.folder / WEIGHTS)[0]
        network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        network.to(device).eval()
        return as_model(self.name, network, text, config.seed)


class Translators:
    """The family of our own translators."""

    title = "a folder of a translator"

    def claims(self, what: str | Path) -> bool:
        return locate.is_file(Path(what) / ABOUT)

    def source(self, what: str | Path, **options: Any) -> ModelSource:
        hash_file = options.pop("hash_file", sha256)
        if given := [name for name, value in options.items() if value is not None]:
            raise Mistake(f"{what} is a translator of ours, which takes no option {given[0]!r}.")
        return TranslatorSource(Path(what), hash_file)


TRANSLATORS: ModelFamily = Translators()


def save_translator(folder: Path, network: Translator, text: TranslationText, about: Mapping[str, Any]) -> None:
    """A folder that is whole from the moment it is there."""
    from heedful.models.translation.text import save_text

    with whole_folder(folder) as temporary:
        write_arrays(temporary / WEIGHTS, {n: t.detach().cpu().numpy() for n, t in network.state_dict().items()}, {})
        save_text(text, temporary / TEXT)
        sums = {name: sha256(temporary / name) for name in (WEIGHTS, TEXT)}
        write_json(temporary / ABOUT, {**about, "sums": sums})
