"""Where the logits of MiniLM on sst come from, by `lrp`: python benchmarks/logit_parts.py

The parts of 200 test sentences' predicted logits, each as a share of their sum, which is the sum of the logits.
"""

from __future__ import annotations

from typing import Any

import torch

from bench_minilm import make_batches, predicted
from heedful.explainers.lrp.decomposition import decompose
from minilm_sst import classifier, sentences

PARTS = ("words", "special", "positions", "biases")


def main() -> None:
    _, model = classifier()
    network: Any = model.network
    found = [decompose(network, batch, predicted(model, batch)) for batch in make_batches(model, sentences())]
    f = torch.cat([part.f for part in found])  # (texts,)
    parts = {name: torch.cat([getattr(part, name) for part in found]) for name in PARTS}
    shares = ", ".join(f"{name} {float(part.sum() / f.sum()):.1%}" for name, part in parts.items())
    gap = float((f - torch.stack(list(parts.values())).sum(0)).abs().max())
    print(
        f"{len(f)} sentences, mean logit {float(f.mean()):.2f}: {shares}; the sum misses a logit by at most {gap:.0e}"
    )


if __name__ == "__main__":
    main()
