"""Interpreto, in an environment of its own: asked over standard input, one JSON object a line (bench_minilm.py).

{"batch_size": 4}                   explain all texts, word by word; answers {"done": true}
{"batch_size": 4, "scores": PATH}   explain all texts, token by token, and keep the scores
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from interpreto import Granularity, Saliency  # type: ignore[import-not-found, unused-ignore]
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def main(folder: str, texts_file: str, threads: int) -> None:
    torch.set_num_threads(threads)
    texts = json.loads(Path(texts_file).read_text())
    model: Any = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        kind = Granularity.ALL_TOKENS if "scores" in asked else Granularity.WORD
        explain = Saliency(model, tokenizer, batch_size=asked["batch_size"], granularity=kind)
        found = explain(texts)
        if "scores" in asked:
            kept = [{"scores": one.attributions[0].tolist(), "target": int(one.targets[0])} for one in found]
            Path(asked["scores"]).write_text(json.dumps(kept))
        print(json.dumps({"done": True}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
