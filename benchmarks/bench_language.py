"""All steps of a continuation: 6 layers of GPT-2, a prompt of 54 words, 22 that are said, against Captum, Inseq and
Interpreto. CPU seconds, because rivals run in environments of their own: each is asked once, after a warm-up of ours.

Gradient x input is held against Inseq's scores first. Integrated gradients take 20 steps everywhere; removal replaces
each word of the prompt.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer

import heedful
from gpt2_words import make
from heedful.errors import Mistake
from heedful.explainers.gradients.gradient import gradient_x_input
from heedful.explainers.gradients.integrated import integrated_gradients
from heedful.explainers.perturbation.occlusion import mask
from heedful.models.language.model import LanguageModel
from heedful.records import Batch

RIVALS = {"inseq": "inseq==0.7.1", "interpreto": "interpreto==0.5.2"}
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "heedful"
STEPS = 20  # of integrated gradients
BARS = {"gradient": {"inseq": 0.45, "interpreto": 1.0}, "integrated": {"": 0.9}, "removal": {"": 0.65}}
SIZES = {"gradient": (4, 16), "integrated": (4, 20), "removal": (4, 16)}  # of a rival's batches
Way = Callable[[], Any]


def main(methods: Sequence[str] = ("gradient", "integrated", "removal")) -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="heedful-") as scratch:
        folder = Path(scratch) / "model"
        prompt, said = make(folder)
        (Path(scratch) / "texts.json").write_text(json.dumps({"prompt": prompt, "said": said}))
        model = heedful.load(folder)
        assert isinstance(model, LanguageModel)
        read = model.prompt(prompt)
        examples = model.steps(read, model.tokens_of(read, said))
        batch, target = model.encode(examples).batch(range(len(examples))), torch.ones(len(examples), dtype=torch.long)
        rivals = [rival for name in RIVALS if (rival := started(name, folder, Path(scratch))) is not None]
        ours: dict[str, Way] = {
            "gradient": lambda: gradient_x_input(model.network, batch, target),
            "integrated": lambda: integrated_gradients(model.network, batch, target, n_steps=STEPS),
            "removal": lambda: mask(model.network, batch, target, token=7, parts="passage"),
        }
        captum = captum_ways(model, folder, prompt, model.tokens_of(read, said))
        missed = []
        try:
            for method in methods:
                missed += compare(method, ours[method], rivals, captum, batch)
        finally:
            for rival in rivals:
                rival.close()
    if missed:
        raise SystemExit(f"missed: {'; '.join(missed)}")


def compare(method: str, way: Way, rivals: Sequence[Rival], captum: dict[str, Way], batch: Batch) -> list[str]:
    if method != "integrated":
        way()
    scores, own = cpu(way)
    theirs: dict[str, float] = {}
    for rival in rivals:
        for size in SIZES[method]:
            answer = rival.ask(method=method, steps=STEPS, size=size)
            if answer is None:
                print(f"{rival.name}, {method}: it failed here")
                break
            theirs[rival.name] = min(theirs.get(rival.name, float("inf")), answer["seconds"])
            if (method, rival.name) == ("gradient", "inseq"):
                of_prompt = torch.tensor(answer["scores"])[:, : scores.passage.shape[1]]  # (steps, prompt)
                print(f"gradient x input: at most {(of_prompt - scores.passage).abs().max():.0e} from Inseq's scores")
    if method in captum:
        _, theirs["captum"] = cpu(captum[method])
    told = ", ".join(f"{name} {seconds:.1f} s ({own / seconds:.2f})" for name, seconds in theirs.items())
    print(f"{method}, {len(batch)} steps: {own:.1f} CPU s; {told or 'no rival here'}", flush=True)
    missed = []
    for name, bar in BARS[method].items():
        others = [theirs[name]] if name in theirs else [] if name else list(theirs.values())
        if others and own / min(others) > bar:
            missed.append(f"{method} takes {own / min(others):.2f} of {name or 'the best rival'} (bar {bar})")
    return missed


def cpu(way: Way) -> tuple[Any, float]:
    began = time.process_time()
    found = way()
    return found, time.process_time() - began


def captum_ways(model: LanguageModel, folder: Path, prompt: str, said: Sequence[int]) -> dict[str, Way]:
    """Its attribution of language models. With its own cache its log probabilities are wrong here, so without."""
    from captum.attr import (
        FeatureAblation,
        LayerIntegratedGradients,
        LLMAttribution,
        LLMGradientAttribution,
        TextTokenInput,
    )

    module: Any = model.network.module
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    given = TextTokenInput(prompt, tokenizer)
    target = torch.tensor(list(said))
    gradients = LLMGradientAttribution(LayerIntegratedGradients(module, module.get_input_embeddings()), tokenizer)
    ablation = LLMAttribution(FeatureAblation(module), tokenizer)
    return {
        "integrated": lambda: gradients.attribute(given, target=target, n_steps=STEPS),
        "removal": lambda: ablation.attribute(given, target=target, use_cached_outputs=False),
    }


class Rival:
    """A process of the environment that holds it."""

    def __init__(self, name: str, python: Path, folder: Path, scratch: Path) -> None:
        self.name = name
        worker = Path(__file__).parent / "language_worker.py"
        given = [python, worker, name, folder, scratch / "texts.json", 1]
        clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        self.process = subprocess.Popen(
            list(map(str, given)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=clean | {"OMP_NUM_THREADS": "1"},
        )
        self._answer()

    def ask(self, **asked: Any) -> dict[str, Any] | None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        return self._answer()

    def _answer(self) -> dict[str, Any] | None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found: dict[str, Any] | None = json.loads(line) if line else None
        return found

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def started(name: str, folder: Path, scratch: Path) -> Rival | None:
    try:
        return Rival(name, environment(name), folder, scratch)
    except Mistake as mistake:
        print(f"not run: {mistake}")
        return None


def environment(name: str) -> Path:
    """The Python of the environment, made now where it is not there; HEEDFUL_RIVALS names a folder that has them."""
    folder = Path(os.environ.get("HEEDFUL_RIVALS", CACHE)) / name
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"making an environment for {RIVALS[name]} in {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        if subprocess.run([str(python), "-m", "pip", "install", "--quiet", RIVALS[name]]).returncode != 0:
            raise Mistake(f"{RIVALS[name]} cannot be installed here.")
    return python


if __name__ == "__main__":
    main(sys.argv[1:] or ("gradient", "integrated", "removal"))
