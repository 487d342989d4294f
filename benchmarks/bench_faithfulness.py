"""Six methods with their evaluation on 200 sentences of sst, with MiniLM: against Captum plus a plain loop, and ferret.

The classifier is the folder HEEDFUL_MINILM, or else `minilm-sst` in the folder for temporary files, which is made where
it is not there (benchmarks/finetune_minilm.py; an hour on two cores). All sides give the same metrics under deletion:
comprehensiveness, sufficiency, deletion and insertion curves, flips, tau with leave-one-out, and five random orders.

- Captum plus a plain loop: attributions from Captum where it has them, then one call of the model for each edited text
  (and, to compare with, one call for all those of a method and text). It takes long, so it runs on every tenth of the
  texts, and so does ours, to its disadvantage: fewer go together. Scores and metrics must agree.
- ferret 0.4.2 in an environment of its own (made in `.venv-ferret` by pip): explain and evaluate with its six methods.
  Ours twice: with the six of the comparison above, and with ferret's own, of which LIME and SHAP take most of the time
  on both sides, in as many samples.

Times are CPU seconds of the process: other processes on the machine do not count.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from captum.attr import FeatureAblation, InputXGradient, IntegratedGradients
from scipy.stats import kendalltau

import heedful
from heedful.data.corpora.load import load
from heedful.records import Example
from minilm_sst import classifier

HERE = Path(__file__).parent
TEXTS, EVERY, FERRET_TEXTS, DRAWS = int(os.environ.get("HEEDFUL_BENCH_TEXTS", "200")), 10, 10, 5
BINS = (0.01, 0.05, 0.1, 0.2, 0.5)
METHODS = ("attention", "gradient_x_input", "integrated_gradients", "occlusion", "omission", "random")
METRICS = ("comprehensiveness", "sufficiency", "deletion", "insertion", "flip_fraction", "tau")
FERRET = ("ferret-xai==0.4.2", "pyarrow==21.0.0")  # the latter is the last that goes with numpy 1, which ferret pins
FERRET_METHODS = ("gradient", "gradient_x_input", "integrated_gradients", "lime", "shap", "random")


class Counter:
    """Counts the texts that go through a module."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.texts = 0
        self.handle = module.register_forward_pre_hook(self.count, with_kwargs=True)

    def count(self, module: Any, arguments: tuple[Any, ...], given: dict[str, Any]) -> None:
        found = given.get("inputs_embeds", given.get("input_ids"))
        self.texts += len(arguments[0] if found is None else found)


def main() -> None:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = classifier()[0]
    corpus = load("sst")["test"]
    examples = [corpus[i] for i in np.linspace(0, len(corpus) - 1, TEXTS).astype(int).tolist()]
    module = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True).eval()
    made: Any = heedful.wrap(module, AutoTokenizer.from_pretrained(folder, local_files_only=True))
    counter = Counter(module)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # CPU seconds are those of one core
    try:
        against_captum(module, made, examples, counter)
        against_ferret(made, examples, counter, folder)
    finally:
        torch.set_num_threads(threads)
        counter.handle.remove()


def timed(work: Callable[[], Any], counter: Counter) -> tuple[Any, float, int]:
    """The result, CPU seconds, and texts through the model."""
    before, began = counter.texts, time.process_time()
    found = work()
    return found, time.process_time() - began, counter.texts - before


# ---- Captum plus a plain loop ------------------------------------------------------------------------------------


def against_captum(module: Any, made: Any, examples: Sequence[Example], counter: Counter) -> None:
    some = examples[::EVERY]
    options: dict[str, Any] = {
        "operators": ["delete"],
        "methods": METHODS,
        "exact": 0,
        "beam": 0,
        "draws": DRAWS,
        "points": 200,
    }

    def ours(texts: Sequence[Example]) -> Any:
        return heedful.run("faithfulness", made, texts, **options).table.to_pandas()

    ours(some[:2])  # warm up
    rows, taken, texts = timed(lambda: ours(some), counter)
    _, taken_all, texts_all = timed(lambda: ours(examples), counter)
    print(
        f"faithfulness, six methods on {len(examples)} sentences: {taken_all:.1f} CPU s, {texts_all:,} texts "
        "through the model"
    )
    rivals = {}
    for name, batched in (("one edited text at a time", False), ("those of a method and text together", True)):
        found, slow, asked = timed(partial(plain_loop, module, made, some, batched), counter)
        rivals[batched] = slow / taken
        print(
            f"against Captum and a plain loop, {name}, on {len(some)} of them: {slow:.1f} CPU s, {asked:,} texts; "
            f"ours on the same {taken:.1f} CPU s, {texts:,} texts: {slow / taken:.1f} times faster"
        )
        check_same(rows, found)
    if rivals[False] < 3:
        sys.exit("faithfulness is less than 3 times faster than Captum and a plain loop")


def check_same(rows: Any, found: list[dict[str, dict[str, float]]]) -> None:
    """Equal but for texts in which rounding decides between equal scores."""
    apart: dict[str, list[float]] = {column: [] for column in METRICS}
    for (place, method), row in rows.set_index(["example", "method"]).iterrows():
        for column in METRICS:
            gap = abs(row[column] - found[place][method][column])
            apart[column].append(0.0 if np.isnan(gap) else gap)
    told = ", ".join(f"{column} {float(np.median(gaps)):.0e}" for column, gaps in apart.items())
    most = max(float(np.mean(np.array(gaps) > 1e-3)) for gaps in apart.values())
    print(f"  the same metrics: median difference {told}; more than .001 in at most {most:.1%} of a column's values")
    if most > 0.05:
        sys.exit("the plain loop finds other metrics")


def plain_loop(module: Any, made: Any, examples: Sequence[Example], batched: bool) -> list[dict[str, dict[str, float]]]:
    """As one would write it: text by text, method by method, each edited text anew."""
    return [one_text(module, made, example, batched, place) for place, example in enumerate(examples)]


def one_text(module: Any, made: Any, example: Example, batched: bool, place: int) -> dict[str, dict[str, float]]:
    tokens = made.encode([example]).batch([0]).passage
    ids, index = tokens.ids[0], tokens.word_index[0].numpy()
    word = np.where(index < 0, -1, np.unique(index, return_inverse=True)[1] - int((index < 0).any()))
    n = int(word.max()) + 1
    with torch.no_grad():
        p = module(input_ids=ids[None]).logits.softmax(-1)[0]
    target = int(p.argmax())

    def said(sets: list[list[int]]) -> np.ndarray:
        """Probabilities of the labels without these words."""
        kept = [ids[torch.from_numpy(~np.isin(word, gone))] for gone in sets]
        with torch.no_grad():
            if not batched:
                return np.concatenate([module(input_ids=one[None]).logits.softmax(-1).numpy() for one in kept])
            padded = torch.nn.utils.rnn.pad_sequence(kept, batch_first=True)
            there = torch.nn.utils.rnn.pad_sequence([torch.ones_like(one) for one in kept], batch_first=True)
            out: np.ndarray = module(input_ids=padded, attention_mask=there).logits.softmax(-1).numpy()
            return out

    seed = int(np.random.default_rng([made.seed, *b"faithfulness"]).integers(2**63))
    draws = np.argsort(np.random.default_rng([seed, place]).random((DRAWS, n)), axis=1)
    chance = [along(order.tolist(), said, float(p[target]), target) for order in draws]
    floor = {f"{name}_floor": float(np.mean([one[name] for one in chance])) for name in chance[0]}
    found = {}
    for method, scores in captum_scores(module, made, example, ids, word, n, target, said, p).items():
        line = along(np.argsort(-scores, kind="stable").tolist(), said, float(p[target]), target)
        alone = float(p[target]) - said([[i] for i in range(n)])[:, target]
        line["tau"] = float(kendalltau(scores, alone).statistic) if n > 1 else float("nan")
        found[method] = line | floor
    return found


def along(
    order: list[int], said: Callable[[list[list[int]]], np.ndarray], whole: float, target: int
) -> dict[str, float]:
    n = len(order)
    sizes = [max(1, int(np.ceil(share * n - 1e-9))) for share in BINS]
    comprehensive = said([order[:k] for k in sizes])[:, target]
    sufficient = said([order[k:] for k in sizes])[:, target]
    deletion = said([order[:k] for k in range(1, n + 1)])
    insertion = said([order[k:] for k in range(1, n + 1)])[:, target]
    nothing = deletion[-1, target]
    decided = said([[]])[0].argmax()
    flips = np.flatnonzero(deletion.argmax(1) != decided)
    return {
        "comprehensiveness": float((whole - comprehensive).mean()),
        "sufficiency": float((whole - sufficient).mean()),
        "deletion": float((whole - deletion[:, target]).mean()),
        "insertion": float((insertion - nothing).mean()),
        "flip_fraction": (int(flips[0]) + 1) / n if len(flips) else 1.0,
    }


def captum_scores(
    module: Any,
    made: Any,
    example: Example,
    ids: torch.Tensor,
    word: np.ndarray,
    n: int,
    target: int,
    said: Callable[[list[list[int]]], np.ndarray],
    p: torch.Tensor,
) -> dict[str, np.ndarray]:
    """Scores of the words: from Captum, and what it does not have by hand."""
    x = module.get_input_embeddings()(ids)[None].detach()
    there = torch.from_numpy(word >= 0)
    base = torch.where(there[:, None], torch.zeros_like(x[0]), x[0])[None]  # markers stay

    def logits(embedded: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = module(inputs_embeds=embedded).logits
        return out

    def by_word(values: torch.Tensor) -> np.ndarray:
        return np.bincount(word[word >= 0], values.detach().double().numpy()[word >= 0], minlength=n)

    groups = torch.from_numpy(np.where(word < 0, n, word))[None, :, None].expand_as(x)
    steps = IntegratedGradients(logits, multiply_by_inputs=True)
    ablation = FeatureAblation(logits).attribute(x, baselines=base, target=target, feature_mask=groups)
    with torch.no_grad():
        before = module.config._attn_implementation
        module.set_attn_implementation("eager")
        attention = module(inputs_embeds=x, output_attentions=True).attentions[-1][0].mean(0)[0]
        module.set_attn_implementation(before)
        whole = float(logits(x)[0, target])
        shorter = [ids[torch.from_numpy(word != i)][None] for i in range(n)]
        omitted = [whole - float(module(input_ids=one).logits[0, target]) for one in shorter]
    first = [int(np.flatnonzero(word == i)[0]) for i in range(n)]
    random = heedful.explain(made, [example], methods=["random"])[0].by_word().attributions[0].scores["passage"]
    return {
        "attention": by_word(attention),
        "gradient_x_input": by_word(InputXGradient(logits).attribute(x, target=target)[0].sum(-1)),
        "integrated_gradients": by_word(
            steps.attribute(x, baselines=base, target=target, n_steps=50, internal_batch_size=50)[0].sum(-1)
        ),
        "occlusion": ablation[0, first, 0].detach().double().numpy(),
        "omission": np.array(omitted),
        "random": np.asarray(random),
    }


# ---- ferret ------------------------------------------------------------------------------------------------------


def against_ferret(made: Any, examples: Sequence[Example], counter: Counter, folder: Path) -> None:
    some = examples[:: len(examples) // FERRET_TEXTS][:FERRET_TEXTS]
    python = ferret_environment()
    if python is None:
        return
    texts = json.dumps([example.passage.text for example in some])
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [python, HERE / "ferret_faithfulness.py", folder],
        input=texts,
        capture_output=True,
        text=True,
        check=False,
        env=environment | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
    )
    if done.returncode:
        print(f"ferret cannot be run: {done.stderr.strip().splitlines()[-1]}")
        return
    theirs = json.loads(done.stdout.splitlines()[-1])
    lengths = made.encode(some).lengths
    samples = int((lengths**2).mean())  # ferret's takes the square of the tokens, and no more
    lime = {"n_samples": samples, "max_samples": samples}
    shap = {"n_permutations": 6, "max_permutations": 6}
    print(
        f"ferret {theirs['version']} (transformers {theirs['transformers']}): {', '.join(theirs['methods'])}, with "
        f"{', '.join(theirs['metrics'])}, on {len(some)} sentences {theirs['seconds']:.1f} CPU s, "
        f"{theirs['texts']:,} texts through the model"
    )
    ratios = []
    for methods, given in ((METHODS, {}), (FERRET_METHODS, {"lime": lime, "shap": shap})):
        options: dict[str, Any] = {
            "operators": ["delete"],
            "methods": methods,
            "exact": 0,
            "beam": 0,
            "draws": 1,
            "options": given,
        }
        _, taken, asked = timed(partial(heedful.run, "faithfulness", made, some, **options), counter)
        ratios.append(theirs["seconds"] / taken)
        print(
            f"  ours, {', '.join(methods)}, with all metrics: {taken:.1f} CPU s, {asked:,} texts: "
            f"{ratios[-1]:.1f} times faster"
        )
    if ratios[0] < 5:
        sys.exit("faithfulness with six methods is less than 5 times faster than ferret with its own six")


def ferret_environment() -> Path | None:
    """The interpreter of ferret's own environment, which is made where it is not there; None: it cannot be."""
    folder = Path(os.environ.get("HEEDFUL_FERRET", HERE.parent / ".venv-ferret"))
    python = folder / "bin" / "python"
    if not python.is_file():
        print(f"making an environment for {FERRET[0]} in {folder}", flush=True)
        venv.create(folder, with_pip=True)
        torch_pin = next(
            line for line in (HERE.parent / "constraints.txt").read_text().split() if line.startswith("torch==")
        )
        done = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", torch_pin, *FERRET], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{FERRET[0]} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
            return None
    return python


if __name__ == "__main__":
    main()
