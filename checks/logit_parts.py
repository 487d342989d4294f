"""Where the logits of MiniLM on sst come from, by `lrp`: python checks/logit_parts.py

The parts of 200 test sentences' predicted logits, each as a share of their sum, which is the sum of the logits. The
model is HEEDFUL_MINILM (benchmarks/finetune_minilm.py makes one).
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

import heedful
from heedful.data.corpora.load import load
from heedful.explainers.lrp.decomposition import decompose

SENTENCES = 200
PARTS = ("words", "special", "positions", "biases")


def main() -> None:
    if "HEEDFUL_MINILM" not in os.environ:
        sys.exit("HEEDFUL_MINILM does not say where the checkpoint is: python benchmarks/finetune_minilm.py FOLDER")
    model = heedful.load(os.environ["HEEDFUL_MINILM"])
    network: Any = model.network
    test = load("sst")["test"]
    examples = [test[i * len(test) // SENTENCES] for i in range(SENTENCES)]
    batches = [batch for _, batch in model.encode(examples).batches(64, token_budget=2**11)]
    with torch.no_grad():
        targets = [network(batch).predicted for batch in batches]
    decomposed = [decompose(network, *given) for given in zip(batches, targets, strict=True)]
    f = torch.cat([part.f for part in decomposed])  # (texts,)
    parts = {name: torch.cat([getattr(part, name) for part in decomposed]) for name in PARTS}
    shares = ", ".join(f"{name} {float(part.sum() / f.sum()):.1%}" for name, part in parts.items())
    gap = float((f - torch.stack(list(parts.values())).sum(0)).abs().max())
    print(
        f"{len(f)} sentences, mean logit {float(f.mean()):.2f}: {shares}; the sum misses a logit by at most {gap:.0e}"
    )


if __name__ == "__main__":
    main()
