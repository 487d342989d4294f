"""LIME and SHAP through their own libraries, on top of our perturbation engine.

A feature is a position of the text, so the same word twice is two features. A missing feature is a word
deleted, or replaced by the unknown word (`operator`). Needs the extra `surrogate`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers.controls import text_rng
from heedful.explainers.edits import Edits
from heedful.explainers.explainer import Axiom, Explainer, Scores
from heedful.explainers.occlusion import Parts
from heedful.explainers.perturb import predict
from heedful.models.link import Of
from heedful.models.network import Network
from heedful.records import Batch, Part, Tokens

Missing = Literal["delete", "replace"]
Floats = NDArray[np.float64]
Function = Callable[[NDArray[np.bool_]], Floats]  # which words are there (n, words) -> f_c (n,)
# f_c of subsets, how many words, generator -> scores of the words, gap, scale
Fit = Callable[[Function, int, np.random.Generator], tuple[Floats, float, float]]

KERNEL_WIDTH = 25.0  # LIME's own for text: distances are 100 times the cosine distance


def lime(
    model: Network,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "probability",
    n_samples: int = 1000,
    operator: Missing = "delete",
    token: int | None = None,
    seed: int = 0,
    parts: Parts = "both",
    internal_batch_size: int | None = None,
) -> Scores:
    """The weights of a linear model of f_c over subsets of the words near the text (Ribeiro et al. 2016).

    Subsets are drawn as the library draws them for text: how many words go is uniform in 1..n, then which.
    gap = 1 - R^2 of the linear model, weighted by nearness; scale = 1.
    """
    library = _library("lime.lime_base", "LIME")
    if n_samples < 2:
        raise Mistake(f"n_samples must be at least 2, not {n_samples}.")

    def fit(f: Function, words: int, rng: np.random.Generator) -> tuple[Floats, float, float]:
        keep = np.ones((n_samples, words), dtype=np.bool_)  # the first is the text itself
        gone = rng.integers(1, words + 1, size=n_samples - 1)  # how many words go
        rank = rng.random((n_samples - 1, words)).argsort(1).argsort(1)
        keep[1:] = rank >= gone[:, None]
        distances = 100 * (1 - np.sqrt(keep.mean(1)))  # 100 times the cosine distance from the text
        base = library.LimeBase(_nearness, random_state=int(rng.integers(2**31)))
        _, weights, R2, _ = base.explain_instance_with_data(
            keep.astype(np.float64), f(keep)[:, None], distances, 0, words, feature_selection="none"
        )
        values = np.zeros(words)
        for position, weight in weights:
            values[position] = weight
        return values, 1 - float(R2), 1.0

    return _explain(model, batch, target, fit, of, operator, token, seed, parts, internal_batch_size)


def shap(
    model: Network,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "probability",
    n_permutations: int = 10,
    operator: Missing = "delete",
    token: int | None = None,
    seed: int = 0,
    parts: Parts = "both",
    internal_batch_size: int | None = None,
) -> Scores:
    """Shapley values of the words, from random orders read forwards and backwards (Lundberg & Lee 2017).

    The library's permutation explainer: 2 n + 1 subsets for each order. gap = sum_i s_i - (f_c(x) - f_c of no
    word), scale = |f_c(x) - f_c of no word|: completeness, which holds by construction.
    """
    library = _library("shap", "SHAP")
    if n_permutations < 1:
        raise Mistake(f"n_permutations must be at least 1, not {n_permutations}.")

    def fit(f: Function, words: int, rng: np.random.Generator) -> tuple[Floats, float, float]:
        def there(z: Floats) -> Floats:
            return f(z > 0.5)

        def masker(there: NDArray[np.bool_], z: Floats) -> tuple[Floats]:
            return (np.where(there, z, 0.0).reshape(1, -1),)

        evaluations = 2 * words + 1
        with _numpy_state_kept():  # the library seeds numpy's global generator
            explainer = library.PermutationExplainer(there, masker, seed=int(rng.integers(2**31)))
            explained = explainer(
                np.ones((1, words)),
                max_evals=n_permutations * evaluations,
                batch_size=evaluations,
                silent=True,
            )
        values = np.asarray(explained.values, dtype=np.float64).reshape(words)
        nothing, everything = f(np.array([[False] * words, [True] * words]))
        change = float(everything - nothing)
        return values, float(values.sum()) - change, abs(change)

    return _explain(model, batch, target, fit, of, operator, token, seed, parts, internal_batch_size)


def _explain(
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
    if parts not in ("passage", "query", "both"):
        raise one_of("part of a text", parts, ["passage", "query", "both"])
    asked = 0
    like = torch.zeros((), device=model.device, dtype=model.dtype)
    gaps, scales = np.zeros(len(batch)), np.zeros(len(batch))

    def of_part(part: Part, tokens: Tokens) -> Tensor:
        nonlocal asked
        scores = np.zeros(tuple(tokens.ids.shape))
        for row, mask in enumerate(tokens.mask.cpu().numpy()):

            def f(keep: NDArray[np.bool_], row: int = row, mask: NDArray[np.bool_] = mask) -> Floats:
                nonlocal asked
                asked += len(keep)
                whole = np.ones((len(keep), len(mask)), dtype=np.bool_)
                whole[:, mask] = keep
                edits = Edits.keeping(tokens, np.full(len(keep), row), whole)
                logits = predict(
                    model, batch, edits, operator, part, token=token, internal_batch_size=internal_batch_size
                )
                return model.link.score(logits, target[row].expand(len(keep)), of).double().cpu().numpy()

            if mask.any():
                scores[row, mask], gap, scale = fit(f, int(mask.sum()), text_rng(batch, row, seed))
                if part == "passage" or parts == "query":
                    gaps[row], scales[row] = gap, scale
        return torch.from_numpy(scores).to(like)

    passage = like.new_zeros(batch.passage.ids.shape)
    if parts != "query":
        passage = of_part("passage", batch.passage)
    query = None
    if parts != "passage" and batch.query is not None and model.has_query:
        query = of_part("query", batch.query)
    return Scores(
        passage=passage,
        query=query,
        gap=torch.from_numpy(gaps).to(like),
        scale=torch.from_numpy(scales).to(like),
        forward_passes=asked,
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


@contextmanager
def _numpy_state_kept() -> Iterator[None]:
    state = np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002


FIT = Axiom(
    "1 - R²",
    0.5,
    "LIME's linear model misses {missed} of what the model does around this text: do not trust it",
)
LIME = Explainer("lime", "saliency", True, "n_samples forward", lime, removal="word deleted", axiom=FIT)
EFFICIENCY = Axiom("completeness gap", 0.05, "SHAP missed {missed} of the change: this should not happen")
SHAP = Explainer(
    "shap",
    "saliency",
    True,
    "n_permutations (2 n + 1) forward",
    shap,
    removal="word deleted",
    axiom=EFFICIENCY,
)
