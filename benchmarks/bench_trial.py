"""The first trial against the procedure of Jain & Wallace 2019, in one process, on SST's test split.

The rival is their procedure written plainly: batches of 32 texts of like length; leave-one-out by a forward
pass for every deleted position; tau by scipy, text by text; one decoder call, attention included, for each
permutation; Adam on k = 5 distributions by autograd, the context vector summed over products with the full
states, as they do (that loop is also timed with a matrix product instead). The adversarial comparisons use
the same texts, the same start and the same objective on both sides. For the whole split the rival is run on a
few of its batches, evenly spread over the lengths, and scaled.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TypeVar

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from heedful.config import ModelConfig
from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vocabulary import MARKERS, Vocabulary, WordEncoder
from heedful.engine.running.progress import ProgressBar
from heedful.engine.tasks.plan import ask
from heedful.engine.tasks.rows import ask_model
from heedful.experiments import Result, Summary, find, summary_with_verdict
from heedful.experiments.adversarial.adam import adam_adversaries, farthest_feasible, initial
from heedful.experiments.adversarial.exact import Adversary, exact_adversary
from heedful.experiments.adversarial.search import ceiling
from heedful.experiments.edited_attention.observe import observer
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.experiments.framework.experiment import Floats
from heedful.models import AttentiveClassifier, build
from heedful.models.model import Model
from heedful.records import Batch, Example, Tokens

T = TypeVar("T")
TEXTS, WORDS, BATCH, RIVAL_BATCHES = 1725, 20000, 32, 6
EPSILON, K, STEPS, RATE, PENALTY = 0.01, 5, 500, 0.01, 500.0
TOKEN_BUDGET = 2**12


def main() -> None:
    examples, text, source = sst()
    ids = text.encode([example.passage for example in examples], "passage")
    ends = np.split(ids.flat, ids.begins[1:])
    texts = [torch.from_numpy(one) for one in ends]
    model = build(ModelConfig(embedding_dim=300, hidden_dim=256), WORDS, n_labels=2, seed=0).eval()
    with torch.no_grad():  # a random model that is as sure of itself as a trained one
        model.decoder.get_parameter("theta.weight").mul_(40)
        model.attention.get_parameter("v.weight").mul_(20)
    cuts = [texts[i : i + BATCH] for i in range(0, len(texts), BATCH)]
    chosen = [cuts[int((i + 0.5) / RIVAL_BATCHES * len(cuts))] for i in range(RIVAL_BATCHES)]
    adversaries(model, batch_of(chosen[len(chosen) // 2]))
    whole = Model("bench", model, text, ("negative", "positive"))
    whole_split(whole, examples, [batch_of(cut) for cut in chosen], len(cuts), source)


def adversaries(model: AttentiveClassifier, batch: Batch) -> None:
    """Exact and Adam, ours and theirs, on one batch of 32."""
    seen = observer(model)(np.arange(len(batch)), batch)
    assert isinstance(seen, PooledStates)
    starts = [initial(int(n), K, np.random.default_rng([0, i])) for i, n in enumerate(seen.n_words)]
    timed(lambda: published_adam(model, batch, starts, steps=5))  # the first call of anything is slow
    _, with_product = timed(lambda: published_adam(model, batch, starts, product=True))
    published, theirs = timed(lambda: published_adam(model, batch, starts))
    dense, ours = timed(lambda: adam_adversaries(seen, starts, EPSILON, steps=STEPS, rate=RATE, penalty=PENALTY))
    found, fast = min((timed(lambda: exact(seen)) for _ in range(5)), key=lambda result: result[1])
    width = seen.alpha.shape[1]
    rival = farthest_feasible(seen, published[:, :, 1 : 1 + width].double(), EPSILON, ceiling(seen))
    own = farthest_feasible(seen, dense, EPSILON, ceiling(seen))
    words = f"{len(batch)} texts of {seen.n_words.min()} to {seen.n_words.max()} words"
    never_below = bool((found.jsd >= rival.jsd - 1e-6).all() and (found.jsd >= own.jsd - 1e-9).all())
    print(
        f"adversarial exact, {words}: {1000 * fast:.2f} ms, the published Adam loop {theirs:.2f} s: "
        f"{theirs / fast:.0f} times faster; never below it: {never_below} "
        f"(mean JSD {found.jsd.mean():.3f} against {rival.jsd.mean():.3f})"
    )
    print(
        f"our Adam, same start and objective: {ours:.2f} s, {theirs / ours:.1f} times faster than that loop, "
        f"{with_product / ours:.1f} times if the loop uses a matrix product; "
        f"epsilon-max JSD differs by at most {np.abs(own.jsd - rival.jsd).max():.0e}"
    )


def whole_split(whole: Model, examples: list[Example], chosen: list[Batch], batches: int, source: str) -> None:
    """All three experiments on every text, against the procedure on some of them."""
    model = whole.network
    assert isinstance(model, AttentiveClassifier)
    trial(whole, examples[:: max(1, len(examples) // BATCH)])  # the first call of anything is slow, at any length
    _, taken = timed(lambda: trial(whole, examples))
    theirs = dict.fromkeys(("correlation", "permutation", "adversarial"), 0.0)
    for i, batch in enumerate(chosen):
        lengths = batch.passage.mask.sum(1).tolist()
        starts = [initial(n, K, np.random.default_rng([i, row])) for row, n in enumerate(lengths)]
        theirs["correlation"] += timed(partial(published_correlation, model, batch))[1]
        theirs["permutation"] += timed(partial(published_permutation, model, batch))[1]
        theirs["adversarial"] += timed(partial(published_adam, model, batch, starts))[1]
    scaled = {name: spent * batches / len(chosen) for name, spent in theirs.items()}
    total, split = sum(scaled.values()), ", ".join(f"{name} {spent:.0f} s" for name, spent in scaled.items())
    print(
        f"the three experiments on {len(examples)} texts ({source}): {taken:.1f} s, the paper's procedure "
        f"{total:.0f} s ({split}; measured on {len(chosen)} of its {batches} batches and scaled): "
        f"{total / taken:.1f} times faster"
    )


def trial(model: Model, examples: list[Example]) -> dict[str, Summary]:
    """Rows and summaries of the three experiments, as `heedful run` makes them."""
    found = {}
    for name in ("correlation", "permutation", "adversarial"):
        asked = ask(name)
        places = np.arange(len(examples), dtype=np.int64)
        table = ask_model(model, dict(enumerate(examples)), places, asked, 0, ProgressBar(lambda text: None))
        given = Result(name, table, {}, asked.options, model.labels, model.task)
        found[name] = summary_with_verdict(find(name), given)
    return found


# --- the procedure of the paper


def published_adam(
    model: AttentiveClassifier, batch: Batch, starts: list[Floats], steps: int = STEPS, product: bool = False
) -> Tensor:
    """Algorithm 3's search on full states: (batch, k, length)."""
    with torch.no_grad():
        output = model(batch)
    h, alpha, y = output.h, output.alpha.unsqueeze(1), output.probabilities.unsqueeze(1)
    theta = model.decoder.theta
    assert theta is not None
    weight, bias = theta.weight.detach().T, theta.bias.detach()
    mask = batch.passage.mask.unsqueeze(1)  # (batch, 1, length)
    v = torch.zeros(len(batch), K, h.shape[1])
    for row, start in enumerate(starts):
        v[row, :, 1 : 1 + start.shape[1]] = torch.from_numpy(start)
    v.requires_grad_(True)
    optimiser = torch.optim.Adam([v], lr=RATE, amsgrad=True)
    for _ in range(steps):
        p = v.masked_fill(~mask, -torch.inf).softmax(-1)  # (batch, k, length)
        context = p @ h if product else (p.unsqueeze(-1) * h.unsqueeze(1)).sum(2)  # (batch, k, hidden)
        logit = context @ weight + bias  # (batch, k, 1)
        change = (torch.cat([(-logit).sigmoid(), logit.sigmoid()], dim=-1) - y).abs().sum(-1) / 2  # (batch, k)
        apart = divergence(p.unsqueeze(1), p.unsqueeze(2)).sum() / 2  # over i < j
        penalty = PENALTY / K * torch.relu(change - EPSILON).sum()
        loss = penalty - divergence(p, alpha).sum() - apart / (K * (K - 1))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return v.detach().masked_fill(~mask, -torch.inf).softmax(-1)


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """JSD over the last dimension."""
    middle = ((p + q) / 2).clamp(min=1e-20)
    ratios = p * (p.clamp(min=1e-20) / middle).log() + q * (q.clamp(min=1e-20) / middle).log()
    return ratios.sum(-1) / 2


def published_correlation(model: AttentiveClassifier, batch: Batch) -> list[list[float]]:
    """Algorithm 1: tau_g, tau_loo, and the tau of gradient and leave-one-out, for each text."""
    with torch.no_grad():
        output = model(batch)
    x = output.x.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(model(batch, x=x, alpha=output.alpha).probabilities[:, 1].sum(), x)
    gradient = (slope * output.x).sum(-1).abs()  # (batch, length)
    change = torch.zeros_like(output.alpha)
    passage = batch.passage
    length = passage.ids.shape[1]
    with torch.no_grad():
        for t in range(1, length - 1):
            kept = torch.arange(length) != t
            shorter = Tokens(passage.ids[:, kept], passage.present[:, kept], passage.mask[:, kept])
            p = model(Batch(shorter)).probabilities
            change[:, t] = (p - output.probabilities).abs().sum(-1) / 2
    taus = []
    for row, mask in enumerate(passage.mask):
        scores = [values[row, mask].numpy() for values in (output.alpha, gradient, change)]
        pairs = ((0, 1), (0, 2), (1, 2))
        taus.append([float(stats.kendalltau(scores[a], scores[b]).statistic) for a, b in pairs])
    return taus


def published_permutation(model: AttentiveClassifier, batch: Batch) -> Tensor:
    """Algorithm 2: the median change over 100 permutations, a decoder call for each."""
    rng = np.random.default_rng(0)
    with torch.no_grad():
        output = model(batch)
        changes = []
        for _ in range(100):
            permuted = output.alpha.clone()
            for row, mask in enumerate(batch.passage.mask):
                permuted[row, mask] = output.alpha[row, mask][torch.from_numpy(rng.permutation(int(mask.sum())))]
            model.attend(output.h, batch.passage.mask)  # part of their decoder call
            logit = model.decode(output.h, permuted)
            p = torch.cat([(-logit).sigmoid(), logit.sigmoid()], dim=-1)
            changes.append((p - output.probabilities).abs().sum(-1) / 2)
    return torch.stack(changes).median(0).values


# --- what both sides read


def exact(seen: PooledStates) -> Adversary:
    theta = seen.decoder.theta
    assert theta is not None
    s = seen.projected.squeeze(-1).numpy()
    return exact_adversary(seen.alpha.numpy(), s, theta.bias.item(), seen.real.numpy(), EPSILON)


def sst() -> tuple[list[Example], WordEncoder, str]:
    """Texts, shortest first, and what reads them: the real ones where HEEDFUL_DATA is set."""
    if "HEEDFUL_DATA" in os.environ:
        from heedful.data.corpora.load import load

        corpus = load("sst")
        vocabulary = Vocabulary.build([example.passage for example in corpus["train"]])
        examples = sorted(corpus["test"], key=lambda example: len(example.passage))
        return examples, WordEncoder(vocabulary), "SST, test split"
    rng = np.random.default_rng(0)
    lengths = np.sort(np.clip(np.exp(rng.normal(2.85, 0.5, TEXTS)), 6, 55).astype(int))
    vocabulary = Vocabulary((*MARKERS, *(f"w{i}" for i in range(WORDS - len(MARKERS)))))
    split = tokenizer("whitespace")
    made = [" ".join(f"w{i}" for i in rng.integers(0, WORDS - len(MARKERS), n)) for n in lengths]
    examples = [Example(f"made:{i}", split(text)) for i, text in enumerate(made)]
    return examples, WordEncoder(vocabulary, "whitespace"), "generated, of the lengths of SST"


def batch_of(texts: list[Tensor]) -> Batch:
    ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)  # (batch, length)
    place = torch.arange(ids.shape[1])
    n = torch.tensor([len(text) for text in texts]).unsqueeze(1)  # (batch, 1)
    return Batch(Tokens(ids, present=place < n, mask=(place > 0) & (place < n - 1)))


def timed(work: Callable[[], T]) -> tuple[T, float]:
    begin = perf_counter()
    result = work()
    return result, perf_counter() - begin


if __name__ == "__main__":
    main()
