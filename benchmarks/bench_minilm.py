"""Explanations of a real classifier (MiniLM fine-tuned on sst) against Interpreto and Captum, the same scores first.

Interpreto runs in a virtual environment of its own, made on first use, and is asked over a pipe; all take turns. Captum
is asked as its tutorial does (one text at a time) and in its best setting of several. What the matrix products alone
take stands beside what as many passes take.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from captum.attr import FeatureAblation, LayerIntegratedGradients
from torch import Tensor

import heedful
from heedful.errors import Mistake
from heedful.explainers.gradients.gradient import gradient_x_input
from heedful.explainers.gradients.integrated import integrated_gradients
from heedful.explainers.lrp.decomposition import decompose
from heedful.explainers.perturbation.occlusion import omission
from heedful.models.model import Model
from heedful.models.network import token_budget
from heedful.records import Batch, Example, Tokens
from minilm_sst import CACHE, classifier, sentences
from timing import seconds

INTERPRETO = "interpreto==0.5.2"
INTERPRETO_BATCHES = (1, 4, 16)  # 4 is its default
STEPS = 50  # Captum's default
TUTORIAL_STEPS = 500  # of "Interpreting text models: IMDB sentiment analysis", where [PAD] is the baseline, too
TOLERANCE = 1e-5
IG_SENTENCES, TUTORIAL_SENTENCES = 40, 10
CAPTUM_IG = ((4, 50), (8, 100), (8, 400))  # texts a call, internal_batch_size
CAPTUM_ABLATION = ((1, 16), (1, 64), (8, 8))  # texts a call, perturbations_per_eval


def main() -> None:
    try:
        folder, model = classifier()
        examples = sentences()
    except Mistake as error:
        print(f"not run: {error}")
        return
    batches = make_batches(model, examples)
    compare_relevance(model, batches)
    compare_interpreto(folder, model, examples)
    compare_integrated_gradients(model, examples)
    compare_omission(model, examples, batches)


def make_batches(model: Model, examples: Sequence[Example]) -> list[Batch]:
    """As `heedful.explain` makes them: of like length, to a budget of tokens."""
    budget = token_budget(model.network, 2**13)
    return [batch for _, batch in model.encode(examples).batches(64, token_budget=budget)]


def predicted(model: Model, batch: Batch) -> Tensor:
    with torch.no_grad():
        return model.network(batch).predicted


def module_of(model: Model) -> Any:
    return model.network.module  # type: ignore[attr-defined]


# LRP ----------------------------------------------------------------------------------------------------------------


def compare_relevance(model: Model, batches: Sequence[Batch]) -> None:
    network: Any = model.network
    targets = [predicted(model, batch) for batch in batches]
    parts = [decompose(network, *given) for given in zip(batches, targets, strict=True)]
    missed = max(float(part.missing.max()) for part in parts)
    plain, frozen = seconds(
        lambda: [gradient_x_input(network, *given) for given in zip(batches, targets, strict=True)],
        lambda: [decompose(network, *given) for given in zip(batches, targets, strict=True)],
        repeats=3,
    )
    n = sum(map(len, batches))
    print(
        f"lrp, {n} sentences: {frozen / plain:.2f} times one plain gradient (bar: at most 1.5); "
        f"{missed:.0e} of a logit is in none of its parts",
        flush=True,
    )


# Interpreto ---------------------------------------------------------------------------------------------------------


class Interpreto:
    """A process of the environment that holds Interpreto."""

    def __init__(self, folder: Path, texts: Sequence[str], scratch: Path) -> None:
        (scratch / "texts.json").write_text(json.dumps(list(texts)))
        worker = Path(__file__).parent / "interpreto_worker.py"
        given = [environment(), worker, folder, scratch / "texts.json", torch.get_num_threads()]
        self.process = subprocess.Popen(list(map(str, given)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    def __call__(self, **asked: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        self._answer()

    def _answer(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):  # it may talk
                return
        raise Mistake("Interpreto ended before it answered.")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def environment() -> Path:
    """The Python of the environment, made now where it is not there: about 1 GB, with our torch and transformers."""
    folder = CACHE / INTERPRETO.replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / "made").exists():
        print(f"making an environment for {INTERPRETO} in {folder}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        constraints = Path(__file__).parent.parent / "constraints.txt"
        install = [python, "-m", "pip", "install", "--quiet", "-c", constraints, INTERPRETO]
        if subprocess.run(list(map(str, install))).returncode != 0:
            raise Mistake(f"{INTERPRETO} cannot be installed here.")
        (folder / "made").touch()
    return python


def compare_interpreto(folder: Path, model: Model, examples: Sequence[Example]) -> None:
    texts = [example.passage.text for example in examples]
    with tempfile.TemporaryDirectory(prefix="heedful-") as scratch:
        try:
            rival = Interpreto(folder, texts, Path(scratch))
        except Mistake as error:
            print(f"gradient x input against Interpreto: not run: {error}")
            return
        try:
            kept = Path(scratch) / "scores.json"
            rival(batch_size=4, scores=str(kept))
            apart = check_interpreto(model, examples, json.loads(kept.read_text()))

            def ours() -> None:
                heedful.explain(model, texts, ["gradient_x_input"]).by_word()

            own, *others = seconds(
                ours, *(lambda size=size: rival(batch_size=size) for size in INTERPRETO_BATCHES), repeats=3
            )
        finally:
            rival.close()
    told = ", ".join(f"{s} texts a batch {t:.1f} s" for s, t in zip(INTERPRETO_BATCHES, others, strict=True))
    print(f"Interpreto: {told}")
    print(
        f"gradient x input, {len(texts)} sentences, texts to words: {own:.1f} s, {min(others) / own:.1f} times faster "
        f"than Interpreto at its best, {others[1] / own:.1f} times than by its default (bar 2); "
        f"scores at most {apart:.0e} apart",
        flush=True,
    )


def check_interpreto(model: Model, examples: Sequence[Example], theirs: Sequence[Any]) -> float:
    """Theirs is mean_d |x_d df/dx_d| of each token, ours sum_d x_d df/dx_d: both from one gradient, taken here."""
    network: Any = model.network
    apart = 0.0
    encoded = model.encode(examples)
    for i, told in enumerate(theirs):
        batch = encoded.batch([i])
        target = torch.tensor([told["target"]])
        x = network.embed(batch.passage).requires_grad_()
        (slope,) = torch.autograd.grad(network(batch, x=x).score(target).sum(), x)
        product = (slope * x).detach()[0]  # (length, dim)
        torch.testing.assert_close(product.abs().mean(-1), torch.tensor(told["scores"]), atol=1e-5, rtol=1e-4)
        ours = gradient_x_input(network, batch, target).passage[0]
        apart = max(apart, float((product.sum(-1) * batch.passage.mask[0] - ours).abs().max()))
    assert apart < 1e-5
    return apart


# Integrated gradients -----------------------------------------------------------------------------------------------


class CaptumIG:
    """From [PAD] embeddings, special tokens kept, by Gauss-Legendre: the same line as ours."""

    def __init__(self, model: Model, examples: Sequence[Example]) -> None:
        module = module_of(model)
        table = module.get_input_embeddings()
        self.method = LayerIntegratedGradients(lambda ids, present: module(ids, attention_mask=present).logits, table)
        self.model, self.encoded, self.n = model, model.encode(examples), len(examples)

    def __call__(self, texts: int, internal_batch_size: int | None, steps: int = STEPS) -> tuple[list[Tensor], Tensor]:
        """Scores of each text, and what they miss of its change."""
        order = self.encoded.lengths.argsort(kind="stable")
        scores: list[Tensor] = [torch.empty(0)] * self.n
        gaps = torch.zeros(self.n)
        for start in range(0, self.n, texts):
            rows = order[start : start + texts]
            batch = self.encoded.batch(rows)
            some = batch.passage
            pad = some.reserved.filler
            found, delta = self.method.attribute(
                some.ids,
                baselines=torch.where(some.mask, pad, some.ids),
                additional_forward_args=(some.present.long(),),
                target=predicted(self.model, batch),
                n_steps=steps,
                internal_batch_size=internal_batch_size,
                return_convergence_delta=True,
            )
            for row, score, n in zip(rows.tolist(), found.sum(-1), some.present.sum(1).tolist(), strict=True):
                scores[row] = score[:n].detach()
            gaps[rows] = delta.float().abs()
        return scores, gaps


def ours_ig(model: Model, examples: Sequence[Example], **options: Any) -> tuple[list[Tensor], Tensor, Tensor, int]:
    """Scores of each text, gaps, changes, and backward passes."""
    network: Any = model.network
    encoded = model.encode(examples)
    scores: list[Tensor] = [torch.empty(0)] * len(examples)
    gaps, changes, passes = torch.zeros(len(examples)), torch.zeros(len(examples)), 0
    for indices, batch in encoded.batches(64, token_budget=token_budget(network, 2**13)):
        found = integrated_gradients(network, batch, predicted(model, batch), baselines="pad", **options)
        assert found.gap is not None
        assert found.scale is not None
        for i, score, n in zip(indices.tolist(), found.passage, batch.passage.present.sum(1).tolist(), strict=True):
            scores[i] = score[:n]
        gaps[indices], changes[indices] = found.gap.abs(), found.scale
        passes += int(torch.as_tensor(found.backward_passes).sum())
    return scores, gaps, changes, passes


def compare_integrated_gradients(model: Model, examples: Sequence[Example]) -> None:
    """As Captum's tutorial on text classification does it, and with Captum's default of steps."""
    some = examples[:: len(examples) // TUTORIAL_SENTENCES]
    captum = CaptumIG(model, some)
    asked: dict[str, Any] = {"n_steps": 25, "method": "fejer", "tolerance": TOLERANCE}
    (theirs, their_gaps), (own, own_gaps, _, passes) = (captum(1, None, TUTORIAL_STEPS), ours_ig(model, some, **asked))
    apart = max(float((a - b).abs().max()) for a, b in zip(theirs, own, strict=True))
    assert apart < 1e-5, apart
    few = ours_ig(model, some, n_steps=STEPS)[0]
    rough = max(float((a - b).abs().max()) for a, b in zip(theirs, few, strict=True))
    taken, one, *batched = seconds(
        lambda: ours_ig(model, some, **asked),
        lambda: captum(1, None, TUTORIAL_STEPS),
        *(lambda sizes=sizes: captum(*sizes, steps=TUTORIAL_STEPS) for sizes in CAPTUM_IG),  # type: ignore[misc]
        repeats=1,
    )
    print(
        f"integrated gradients, {len(some)} sentences, as in Captum's tutorial ({TUTORIAL_STEPS} steps, one text at a "
        f"time): {one:.1f} s; ours until no score is off by more than {TOLERANCE:g} of the change: "
        f"{passes / len(some):.0f} steps a text, {taken:.1f} s, {one / taken:.1f} times faster (bar 4), "
        f"{min(one, *batched) / taken:.1f} times than its best of {len(batched)} ways of batching (bar 1.2); scores at "
        f"most {apart:.0e} apart, largest gap {own_gaps.max():.0e} against {their_gaps.max():.0e}; "
        f"with {STEPS} steps they would be {rough:.0e} apart",
        flush=True,
    )
    some = examples[:: len(examples) // IG_SENTENCES]
    captum, tokens = CaptumIG(model, some), STEPS * int(model.encode(some).lengths.sum())
    theirs, own = captum(1, None)[0], ours_ig(model, some, n_steps=STEPS)[0]
    apart = max(float((a - b).abs().max()) for a, b in zip(theirs, own, strict=True))
    assert apart < 1e-4, apart
    taken, one, floor, *batched = seconds(
        lambda: ours_ig(model, some, n_steps=STEPS),
        lambda: captum(1, None),
        lambda: products(model, tokens, backward=True),
        *(lambda sizes=sizes: captum(*sizes) for sizes in CAPTUM_IG),
        repeats=2,
    )
    for (texts, size), other in zip(CAPTUM_IG, batched, strict=True):
        print(f"Captum, {texts} texts a call, internal_batch_size {size}: {other:.1f} s")
    print(
        f"integrated gradients, {len(some)} sentences, {STEPS} steps on both sides, scores at most {apart:.0e} apart: "
        f"{taken:.1f} s; {one / taken:.2f} times faster than Captum one text at a time ({one:.1f} s), "
        f"{min(one, *batched) / taken:.2f} times than its best; the matrix products of these passes alone take "
        f"{floor:.1f} s, so nobody could be more than {one / floor:.1f} times faster with as many steps",
        flush=True,
    )


def products(model: Model, tokens: int, backward: bool) -> None:
    """The matrix products of the encoder's linear maps for so many tokens, and nothing else: what no order of the work
    can save."""
    at_once = token_budget(model.network, 2**13)
    weights = [one.weight for one in module_of(model).base_model.encoder.modules() if isinstance(one, torch.nn.Linear)]
    with torch.no_grad():
        given = {width: torch.randn(at_once, width) for weight in weights for width in weight.shape}
        for _ in range(round(tokens / at_once)):
            for weight in weights:
                given[weight.shape[1]] @ weight.T
                if backward:
                    given[weight.shape[0]] @ weight


# Omission -----------------------------------------------------------------------------------------------------------


class CaptumAblation:
    """Deleting a word by FeatureAblation: hidden from attention, and what comes after it moves up."""

    def __init__(self, model: Model, examples: Sequence[Example]) -> None:
        self.model, self.encoded, self.n = model, model.encode(examples), len(examples)
        module = module_of(model)

        def forward(keep: Tensor, ids: Tensor) -> Tensor:
            present = keep.long()
            positions = (present.cumsum(1) - 1).clamp(min=0)
            logits: Tensor = module(ids, attention_mask=present, position_ids=positions).logits
            return logits

        self.method = FeatureAblation(forward)

    def __call__(self, texts: int, perturbations_per_eval: int) -> list[Tensor]:
        order = self.encoded.lengths.argsort(kind="stable")
        scores: list[Tensor] = [torch.empty(0)] * self.n
        for start in range(0, self.n, texts):
            rows = order[start : start + texts]
            batch = self.encoded.batch(rows)
            some = batch.passage
            found = self.method.attribute(
                some.present.float(),
                baselines=0,
                additional_forward_args=(some.ids,),
                target=predicted(self.model, batch),
                feature_mask=features(some),
                perturbations_per_eval=perturbations_per_eval,
            )
            for row, score, mask in zip(rows.tolist(), found, some.mask, strict=True):
                scores[row] = score[mask]
        return scores


def features(tokens: Tokens) -> Tensor:
    """The word of each token; what is not a word is one feature more, whose effect nobody asks for."""
    assert tokens.word_index is not None
    last = int(tokens.word_index.max()) + 1
    return torch.where(tokens.mask, tokens.word_index, last)


def left_over(batch: Batch) -> int:
    """Tokens of all texts with one word less."""
    tokens, words = batch.passage, features(batch.passage)
    n = tokens.present.sum(1)  # (batch,)
    kept = [torch.unique(row[mask]) for row, mask in zip(words, tokens.mask, strict=True)]
    return sum(int(n[i]) * len(own) - int(tokens.mask[i].sum()) for i, own in enumerate(kept))


def compare_omission(model: Model, examples: Sequence[Example], batches: Sequence[Batch]) -> None:
    network: Any = model.network
    encoded = model.encode(examples)

    def ours() -> list[Tensor]:
        scores: list[Tensor] = [torch.empty(0)] * len(examples)
        for indices, batch in encoded.batches(64, token_budget=token_budget(network, 2**13)):
            found = omission(network, batch, predicted(model, batch)).passage
            index = batch.passage.word_index
            assert index is not None
            for i, score, mask, words in zip(indices.tolist(), found, batch.passage.mask, index, strict=True):
                pieces = torch.bincount(words[mask], minlength=1)[words[mask]]
                scores[i] = score[mask] * pieces  # the effect of a word, which its pieces share
        return scores

    captum = CaptumAblation(model, examples)
    found = captum(*CAPTUM_ABLATION[0])
    apart = max(float((a - b).abs().max()) for a, b in zip(ours(), found, strict=True))
    assert apart < 1e-4, apart
    ways: list[Callable[[], object]] = [ours]
    ways.append(lambda: products(model, sum(map(left_over, batches)), backward=False))
    ways += [lambda sizes=sizes: captum(*sizes) for sizes in CAPTUM_ABLATION]  # type: ignore[misc]
    own, floor, *others = seconds(*ways, repeats=2)
    for (texts, size), taken in zip(CAPTUM_ABLATION, others, strict=True):
        print(f"Captum, {texts} texts a call, perturbations_per_eval {size}: {taken:.1f} s")
    print(
        f"omission, {len(examples)} sentences: {own:.1f} s, {min(others) / own:.2f} times faster than Captum's "
        f"FeatureAblation at its best (bar 1.5); scores at most {apart:.0e} apart; the matrix products alone take "
        f"{floor:.1f} s, so nobody could be more than {min(others) / floor:.2f} times faster",
        flush=True,
    )


if __name__ == "__main__":
    main()
