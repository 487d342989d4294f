"""Inseq or Interpreto, in an environment of its own: asked over standard input, one JSON object a line.

{"method": "gradient", "steps": 20, "size": 4}    explain; answers {"seconds": CPU seconds, "scores": said x read}

Both are asked for log-odds, log p / (1 - p), of each token of the continuation.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def log_odds(log_p: torch.Tensor) -> torch.Tensor:
    return log_p - torch.log(-torch.expm1(log_p))


class Inseq:
    """Methods by its own names; a step is asked about after the other."""

    names: ClassVar = {"gradient": "input_x_gradient", "integrated": "integrated_gradients", "removal": "occlusion"}

    def __init__(self, folder: str, prompt: str, said: str) -> None:
        import inseq  # type: ignore[import-not-found, unused-ignore]

        def step(args: Any) -> torch.Tensor:
            logits = args.attribution_model.output2logits(args.forward_output)
            return log_odds(logits.log_softmax(-1).gather(-1, args.target_ids.reshape(-1, 1)).squeeze(-1))

        inseq.register_step_function(fn=step, identifier="log_odds")
        self.inseq, self.folder, self.prompt, self.said = inseq, folder, prompt, said
        self.models: dict[str, Any] = {}

    def __call__(self, method: str, steps: int, size: int) -> list[list[float]]:
        name = self.names[method]
        if name not in self.models:
            self.models[name] = self.inseq.load_model(self.folder, name, device="cpu")
        given: dict[str, Any] = {"n_steps": steps, "internal_batch_size": size} if method == "integrated" else {}
        if method == "removal":
            given = {"perturbations_per_eval": size}
        out = self.models[name].attribute(
            self.prompt, f"{self.prompt} {self.said}", attributed_fn="log_odds", show_progress=False, **given
        )
        told = out[0].target_attributions  # (tokens read, steps, dim), or without dim
        told = told.sum(-1) if told.dim() == 3 else told
        return [[float(score) for score in row] for row in told.T.nan_to_num()]


class Interpreto:
    """All steps from passes of its own batching."""

    def __init__(self, folder: str, prompt: str, said: str) -> None:
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
        self.tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self.prompt, self.said = prompt, said

    def __call__(self, method: str, steps: int, size: int) -> list[list[float]]:
        import interpreto  # type: ignore[import-not-found, unused-ignore]

        given: dict[str, Any] = {
            "batch_size": size,
            "granularity": interpreto.Granularity.ALL_TOKENS,
            "inference_mode": lambda logits: log_odds(logits.log_softmax(-1)),
        }
        if method == "gradient":
            explainer = interpreto.Saliency(self.model, self.tokenizer, input_x_gradient=True, **given)
        elif method == "integrated":
            explainer = interpreto.IntegratedGradients(self.model, self.tokenizer, n_perturbations=steps, **given)
        else:
            explainer = interpreto.Occlusion(self.model, self.tokenizer, **given)
        told = explainer(self.prompt, f" {self.said}")[0].attributions
        return [[float(score) for score in row] for row in told.nan_to_num()]


def main(tool: str, folder: str, text_file: str, threads: int) -> None:
    torch.set_num_threads(threads)
    texts = json.loads(Path(text_file).read_text())
    answers, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr  # what it prints itself is no answer
    tools: dict[str, Any] = {"inseq": Inseq, "interpreto": Interpreto}
    ask = tools[tool](folder, texts["prompt"], texts["said"])
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.process_time()
        try:
            scores = ask(asked["method"], asked["steps"], asked["size"])
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:  # a rival's own failure
            print(f"{tool}, {asked}: {error}", file=sys.stderr)
            print("null", file=answers, flush=True)
            continue
        taken = time.process_time() - began
        print(json.dumps({"seconds": taken, "scores": scores}), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
