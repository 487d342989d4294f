"""LIME and SHAP through their own libraries, on top of our perturbation engine.

A feature is a position of the text, so the same word twice is two features. A missing feature is a word
deleted, or replaced by the unknown word (`operator`). Needs the extra `surrogate`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers.controls import text_rng
from heedful.explainers.explainer import Passes, Scores, Size
from heedful.explainers.gradients.gradient import Parts, explained_parts
from heedful.explainers.options import Samples
from heedful.explainers.perturbation.edits import Edits
from heedful.explainers.perturbation.perturb import predict
from heedful.explainers.sources.subsets import all_subsets, values_of
from heedful.models.link import Of
from heedful.models.network import Network
from heedful.records import Batch, Part, Tokens

Missing = Literal["delete", "replace"]
Floats = NDArray[np.float64]
Function = Callable[[NDArray[np.bool_]], Floats]  # which words are there (n, words) -> f_c (n,)


class Fitted(NamedTuple):
    """The scores of a text's words, and how well they are known: see `Scores`."""

    values: Floats
    gap: float
    scale: float
    spread: float


Fit = Callable[[Function, int, np.random.Generator], Fitted]  # f_c of subsets, how many words, generator

N_SAMPLES, N_PERMUTATIONS = 1000, 10  # of LIME and SHAP, where nothing else is said
MORE = 4  # times as much as asked for is sampled at most, where the scores are not known well enough
KERNEL_WIDTH = 25.0  # LIME's own for text: distances are 100 times the cosine distance


def lime(
    model: Network,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    n_samples: Samples = N_SAMPLES,
    tolerance: float = 0.1,
    max_samples: Samples | None = None,
    operator: Missing = "delete",
    token: int | None = None,
    seed: int = 0,
    parts: Parts = "both",
    internal_batch_size: int | None = None,
) -> Scores:
    """The weights of a linear model of f_c over subsets of the words near the text (Ribeiro et al. 2016).

    Subsets are drawn as the library draws them for text: how many words go is uniform in 1..n, then which. Two
    independent halves first, and more of them until what they say alone differs by less than `tolerance`, or
    `max_samples` subsets are read (None: four times n_samples); the scores are those of all subsets together.
    gap = 1 - R^2 of the linear model, weighted by nearness; scale = 1. spread: the standard error over the halves.
    """
    library = _library("lime.lime_base", "LIME")
    if n_samples < 2:
        raise Mistake(f"n_samples must be at least 2, not {n_samples}.")
    budget = _budget("samples", n_samples, max_samples, tolerance)
    half = max(2, -(-n_samples // 2))

    def linear(keep: NDArray[np.bool_], f_c: Floats, rng: np.random.Generator) -> tuple[Floats, float]:
        """The weights of the words, and 1 - R^2."""
        distances = 100 * (1 - np.sqrt(keep.mean(1)))  # 100 times the cosine distance from the text
        base = library.LimeBase(_nearness, random_state=int(rng.integers(2**31)))
        _, weights, R2, _ = base.explain_instance_with_data(
            keep.astype(np.float64), f_c[:, None], distances, 0, keep.shape[1], feature_selection="none"
        )
        values = np.zeros(keep.shape[1])
        for position, weight in weights:
            values[position] = weight
        return values, 1 - float(R2)

    def fit(f: Function, words: int, rng: np.random.Generator) -> Fitted:
        keeps, answers, alone = [], [], []
        while True:
            keep = np.ones((half, words), dtype=np.bool_)  # the first is the text itself
            gone = rng.integers(1, words + 1, size=half - 1)  # how many words go
            keep[1:] = rng.random((half - 1, words)).argsort(1).argsort(1) >= gone[:, None]
            keeps.append(keep)
            answers.append(f(keep))
            alone.append(linear(keep, answers[-1], rng)[0])
            if len(alone) > 1:
                error, scale = _standard_error(alone)
                if error <= tolerance * scale or (len(alone) + 1) * half > budget:
                    values, gap = linear(np.concatenate(keeps), np.concatenate(answers), rng)
                    return Fitted(values, gap, 1.0, error / scale if scale else 0.0)

    return explain_subsets(model, batch, target, fit, of, operator, token, seed, parts, internal_batch_size)


def shap(
    model: Network,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    n_permutations: int = N_PERMUTATIONS,
    tolerance: float = 0.1,
    max_permutations: int | None = None,
    operator: Missing = "delete",
    token: int | None = None,
    seed: int = 0,
    parts: Parts = "both",
    internal_batch_size: int | None = None,
) -> Scores:
    """Shapley values of the words: the mean gain of a word over all orders (Lundberg & Lee 2017).

    Exact where all subsets of the words cost no more than the orders asked for. Otherwise from random orders read
    forwards and backwards, the library's permutation explainer, 2 n + 1 subsets for each: two independent halves
    first, and more of them until their spread is below `tolerance` or `max_permutations` orders are read (None: four
    times n_permutations).
    gap: the standard error of the word that is known least well; scale: the largest |value|. (That the values sum
    to f_c(x) - f_c of no word is true by construction, so it tells nothing.)
    """
    library = _library("shap", "SHAP")
    if n_permutations < 1:
        raise Mistake(f"n_permutations must be at least 1, not {n_permutations}.")
    budget = _budget("permutations", n_permutations, max_permutations, tolerance)
    half = -(-n_permutations // 2)

    def fit(f: Function, words: int, rng: np.random.Generator) -> Fitted:
        if _all_subsets(words, n_permutations):
            values = values_of(f(all_subsets(words)), "shapley")
            return Fitted(values, 0.0, float(np.abs(values).max()), 0.0)
        rounds = [_from_orders(library, f, words, half, rng) for _ in range(2)]
        while True:
            error, scale = _standard_error(rounds)
            if error <= tolerance * scale or (len(rounds) + 1) * half > budget:
                return Fitted(np.mean(rounds, axis=0), error, scale, error / scale if scale else 0.0)
            rounds.append(_from_orders(library, f, words, half, rng))

    return explain_subsets(model, batch, target, fit, of, operator, token, seed, parts, internal_batch_size)


def _budget(what: str, least: int, most: int | None, tolerance: float) -> int:
    """How much may be sampled until scores are known within the tolerance."""
    if most is not None and most < least:
        raise Mistake(f"max_{what} must be at least n_{what} ({least}), not {most}.")
    if not 0 < tolerance < 1:
        raise Mistake(f"tolerance is a share of the largest value, between 0 and 1, not {tolerance}.")
    return MORE * least if most is None else most


def _standard_error(rounds: Sequence[Floats]) -> tuple[float, float]:
    """Of the mean of independent rounds: that of the word that is known least well, and the largest |value|."""
    error = np.std(rounds, axis=0, ddof=1) / np.sqrt(len(rounds))
    return float(error.max()), float(np.abs(np.mean(rounds, axis=0)).max())


def _all_subsets(words: int, n_permutations: int) -> bool:
    """Whether all subsets of the words cost no more than so many orders of them."""
    return bool(2**words <= n_permutations * (2 * words + 1))


def _from_orders(library: Any, f: Function, words: int, orders: int, rng: np.random.Generator) -> Floats:
    """The library's estimate from so many random orders."""

    def masker(there: NDArray[np.bool_], z: Floats) -> tuple[Floats]:
        return (np.where(there, z, 0.0).reshape(1, -1),)

    evaluations = 2 * words + 1
    with _numpy_state_kept():  # the library seeds numpy's global generator
        explainer = library.PermutationExplainer(lambda z: f(z > 0.5), masker, seed=int(rng.integers(2**31)))
        explained = explainer(np.ones((1, words)), max_evals=orders * evaluations, batch_size=evaluations, silent=True)
    return np.asarray(explained.values, dtype=np.float64).reshape(words)


def explain_subsets(
    model: Network,
    batch: Batch,
    target: Tensor,
    fit: Fit,
    of: Of,
    operator: Missing,
    token: int | None,
    seed: int,
    parts: Parts,
    internal_batch_size: int | None,
) -> Scores:
    """Each text by itself: passage and query are explained apart, the other one as it is."""
    if operator not in ("delete", "replace"):
        raise one_of("operator", operator, ["delete", "replace"])
    asked = explained_parts(model, batch, parts, of)
    like = torch.zeros((), device=model.device, dtype=model.dtype)
    gaps, scales, spreads = np.zeros((3, len(batch)))
    passes = np.zeros(len(batch), dtype=np.int64)

    def of_part(part: Part, tokens: Tokens) -> Tensor:
        """A feature is a word; where it has several pieces, they share its score."""
        scores = np.zeros(tuple(tokens.ids.shape))
        masks = tokens.mask.cpu().numpy()
        indices = None if tokens.word_index is None else tokens.word_index.cpu().numpy()
        for row, mask in enumerate(masks):
            if not mask.any():
                continue
            word = np.arange(mask.sum()) if indices is None else np.unique(indices[row][mask], return_inverse=True)[1]
            n = int(word.max()) + 1

            def f(keep: NDArray[np.bool_], row: int = row, mask: Any = mask, word: Any = word) -> Floats:
                passes[row] += len(keep)
                whole = np.ones((len(keep), len(mask)), dtype=np.bool_)
                whole[:, mask] = keep[:, word]
                edits = Edits.keeping(tokens, np.full(len(keep), row), whole)
                logits = predict(
                    model, batch, edits, operator, part, token=token, internal_batch_size=internal_batch_size
                )
                return model.link.score(logits, target[row].expand(len(keep)), of).double().cpu().numpy()

            found = fit(f, n, text_rng(batch, row, seed))
            scores[row, mask] = (found.values / np.bincount(word))[word]
            spreads[row] = max(spreads[row], found.spread)
            if part == "passage" or "passage" not in asked:
                gaps[row], scales[row] = found.gap, found.scale
        return torch.from_numpy(scores).to(like)

    passage = like.new_zeros(batch.passage.ids.shape)
    if "passage" in asked:
        passage = of_part("passage", batch.passage)
    query = of_part("query", batch.query) if "query" in asked and batch.query is not None else None
    return Scores(
        passage=passage,
        query=query,
        gap=torch.from_numpy(gaps).to(like),
        scale=torch.from_numpy(scales).to(like),
        forward_passes=torch.from_numpy(passes),
        spread=torch.from_numpy(spreads),
    )


def _nearness(distances: Floats) -> Floats:
    """LIME's kernel for text: sqrt(exp(-d^2 / width^2))."""
    near: Floats = np.sqrt(np.exp(-(distances**2) / KERNEL_WIDTH**2))
    return near


def _library(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise Mistake(
            f"{name} needs the package {module.partition('.')[0]!r}: pip install 'heedful[surrogate]'."
        ) from None


_ONE_GENERATOR = Lock()  # numpy's, of the process: of several threads one uses it at a time


@contextmanager
def _numpy_state_kept() -> Iterator[None]:
    with _ONE_GENERATOR:
        state = np.random.get_state()  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002


def lime_passes(size: Size) -> Passes:
    return Passes(len(size.words) * N_SAMPLES, times=MORE)


def shap_passes(size: Size) -> Passes:
    exact = all(_all_subsets(words, N_PERMUTATIONS) for words in size.words)
    each = (2**words if _all_subsets(words, N_PERMUTATIONS) else _orders(words) for words in size.words)
    return Passes(sum(each), times=1 if exact else MORE)


def _orders(words: int) -> int:
    return N_PERMUTATIONS * (2 * words + 1)
