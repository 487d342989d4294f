"""Runs in ferret's own environment (bench_faithfulness.py): explains and evaluates the texts given as JSON.

Prints one line of JSON: CPU seconds, texts that went through the model, versions, methods and metrics.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.metadata import version
from typing import Any

import torch
from ferret import Benchmark  # type: ignore[import-not-found, unused-ignore]
from transformers import AutoModelForSequenceClassification, AutoTokenizer


def main() -> None:
    texts = json.loads(sys.stdin.read())
    torch.set_num_threads(1)
    model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1]).eval()
    tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
    seen = 0

    def count(module: Any, arguments: tuple[Any, ...], given: dict[str, Any]) -> None:
        nonlocal seen
        found = given.get("inputs_embeds")
        found = given.get("input_ids") if found is None else found
        seen += len(arguments[0] if found is None else found)

    model.register_forward_pre_hook(count, with_kwargs=True)
    bench = Benchmark(model, tokenizer)
    began = time.process_time()
    metrics: list[str] = []
    methods: list[str] = []
    for text in texts:
        with torch.no_grad():
            target = int(model(**tokenizer(text, return_tensors="pt")).logits.argmax())
        explanations = bench.explain(text, target=target, show_progress=False)
        evaluated = bench.evaluate_explanations(explanations, target=target, show_progress=False)
        methods = [one.explainer for one in explanations]
        metrics = [score.name for score in evaluated[0].evaluation_scores]
    print(
        json.dumps(
            {
                "seconds": time.process_time() - began,
                "texts": seen,
                "version": version("ferret-xai"),
                "transformers": version("transformers"),
                "methods": methods,
                "metrics": metrics,
            }
        )
    )


if __name__ == "__main__":
    main()
