"""Whether a checkpoint's files are those of its configuration: what is not read, elsewhere or too much is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file

import heedful
import transformer_zoo as zoo
from heedful.errors import Mistake
from heedful.models.huggingface import fingerprint

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "bert"
    zoo.module("Bert").save_pretrained(folder)
    zoo.tokenizer_of("Bert").save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def configure(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def rewrite(folder: Path, more: dict[str, torch.Tensor]) -> None:
    save_file(load_file(folder / WEIGHTS) | more, folder / WEIGHTS, metadata={"format": "pt"})


def split(folder: Path, second: str) -> None:
    """The weights in two files, of which the index says that the second is `second`."""
    weights = load_file(folder / WEIGHTS)
    names = sorted(weights)
    parts = {"first.safetensors": names[:5], second: names[5:]}
    (folder / WEIGHTS).unlink()
    for place, some in parts.items():
        path = folder / place
        path.parent.mkdir(exist_ok=True)
        save_file({name: weights[name] for name in some}, path, metadata={"format": "pt"})
    told = {name: place for place, some in parts.items() for name in some}
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": told}))


def test_layers_that_the_configuration_leaves_out_are_refused(folder: Path) -> None:
    """Of two layers one was read, and the model answered as another one."""
    configure(folder, num_hidden_layers=1)
    with pytest.raises(
        Mistake, match=r"does not use: 'bert\.encoder\.layer\.1\.\S+' and 15 more.*ignore_weights"
    ) as said:
        heedful.load(folder)
    typed = str(said.value).split("or '")[1].removesuffix("'.")
    assert heedful.load(typed).predict(["good"]).shape == (1, 3)  # as it is told to be typed
    assert heedful.load(folder, ignore_weights=["bert.encoder.layer.1.*"]).network is not None
    with pytest.raises(Mistake, match=r"'bert\.encoder\.layer\.1"):
        heedful.load(folder, ignore_weights=["bert.encoder.layer.7.*"])
    with pytest.raises(Mistake, match="should be a list of names"):
        heedful.load(folder, ignore_weights="bert.*")


def test_heads_of_pretraining_are_not_missed(folder: Path) -> None:
    before = heedful.load(folder).predict(["a good film"])
    rewrite(folder, {"cls.predictions.bias": torch.zeros(5), "bert.embeddings.position_ids": torch.arange(5)})
    np.testing.assert_array_equal(heedful.load(folder).predict(["a good film"]), before)


def test_weights_of_eight_bits_need_their_scales(folder: Path) -> None:
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    rows = load_file(folder / WEIGHTS)[name]
    scale = rows.abs().amax() / 127
    rewrite(folder, {name: (rows / scale).round().to(torch.int8), f"{name}_scale": scale.reshape(1)})
    with pytest.raises(Mistake, match=rf"{name}' are of 8 bits or fewer \(I8\).*dequantised"):
        heedful.load(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_hidden_layers": 1_000_000}, "says num_hidden_layers=1000000, and its files hold 41 weights"),
        (
            {"vocab_size": 10**12},
            r"the model has 16,000,000,\S+ weights, and its files hold [\d,]+: they do not belong",
        ),
        ({"intermediate_size": 10**11}, "they do not belong together"),
        ({"num_attention_heads": 0}, "cannot be read as a sequence classifier"),
        ({"num_attention_heads": 10**9}, "cannot be read as a sequence classifier"),
        ({"num_hidden_layers": -1}, "does not use: 'bert.encoder.layer.0"),
        ({"transformers_weights": "../other.bin"}, r"config.json says that weights are in '../other.bin'; only"),
        (
            {"transformers_weights": "../other.safetensors"},
            "config.json says that weights are in '../other.safetensors'",
        ),
    ],
)
def test_what_cannot_be_in_the_files_is_seen_before_memory_is_taken(
    change: dict[str, Any], said: str, folder: Path
) -> None:
    configure(folder, **change)
    with pytest.raises(Mistake, match=said):
        heedful.load(folder)


def test_parts_inside_the_folder_are_read_and_fingerprinted(saved: Path, folder: Path) -> None:
    split(folder, "second.safetensors")
    np.testing.assert_array_equal(heedful.load(folder).predict(["good"]), heedful.load(saved).predict(["good"]))
    before = fingerprint(folder)
    weights = load_file(folder / "second.safetensors")
    save_file({name: part + 1 for name, part in weights.items()}, folder / "second.safetensors", {"format": "pt"})
    assert fingerprint(folder) != before


@pytest.mark.parametrize("second", ["sub/b.safetensors", "../b.safetensors", "weights.bin", "/tmp/b.safetensors", 3])
def test_parts_elsewhere_are_refused(second: Any, folder: Path) -> None:
    """Nothing of them was in the fingerprint, and weights.bin is a pickle whatever is in it."""
    split(folder, "second.safetensors")
    told = (folder / INDEX).read_text().replace('"second.safetensors"', json.dumps(second))
    (folder / INDEX).write_text(told)
    with pytest.raises(Mistake, match=r"index\.json says that weights are in .*only files called \*\.safetensors"):
        heedful.load(folder)


def test_parts_that_are_not_there(folder: Path) -> None:
    split(folder, "second.safetensors")
    (folder / "second.safetensors").unlink()
    with pytest.raises(Mistake, match=r"names second\.safetensors, which is not there"):
        heedful.load(folder)
    (folder / INDEX).write_text('{"weight_map": [1]}')
    with pytest.raises(Mistake, match="is damaged: it does not say which file"):
        heedful.load(folder)


def test_an_adapter_beside_the_weights(folder: Path) -> None:
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "elsewhere"}')
    with pytest.raises(Mistake, match=r"has an adapter .* beside its weights: merge it"):
        heedful.load(folder)
