"""The same word vectors in more dimensions, or longer or shorter: is it what vectors are that a study depends on?

    python checks/turned_vectors.py $HEEDFUL_DATA/glove6b_100d FOLDER --dim 300 --length 0.4
    heedful study jain-wallace --vectors FOLDER --dataset sst --encoder cnn --attention additive

Vectors are turned at random into a space of more dimensions, where all angles between them are as they were, and
multiplied by one factor. Networks whose first weights depend on the number of dimensions see them otherwise: a CNN's
and an average's first outputs scale with what one dimension holds, not with a vector's length.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="a folder with vocab.txt and vectors.npz")
    parser.add_argument("folder", type=Path, help="where the turned ones go")
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--length", type=float, default=1.0, help="how long they are, where they were 1")
    given = parser.parse_args()
    vectors = np.load(given.source / "vectors.npz")["vectors"].astype(np.float32)
    if given.dim < vectors.shape[1]:
        parser.error(f"--dim must be at least the {vectors.shape[1]} that they have")
    square = np.random.default_rng(0).normal(size=(given.dim, vectors.shape[1]))
    turn = np.linalg.qr(square)[0].astype(np.float32)  # (dim, before): orthonormal columns
    turned = given.length * vectors @ turn.T
    given.folder.mkdir(parents=True, exist_ok=True)
    np.savez(given.folder / "vectors.npz", vectors=turned.astype(np.float16))
    shutil.copy(given.source / "vocab.txt", given.folder / "vocab.txt")
    lengths = [np.linalg.norm(each, axis=1).mean() for each in (vectors, turned)]
    print(
        f"{given.folder}: {turned.shape[0]:,} vectors of {given.dim} dimensions, one dimension's standard deviation "
        f"{turned.std():.2f} (was {vectors.std():.2f}), mean length {lengths[1]:.2f} (was {lengths[0]:.2f})"
    )


if __name__ == "__main__":
    main()
