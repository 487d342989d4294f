"""Integrated gradients (Sundararajan et al. 2017; Bastings & Filippova 2020, equation 4).

    IG_i = (x_i - b_i) . integral_0^1 df_c/dx_i (b + a (x - b)) da        sum_i IG_i = f_c(x) - f_c(b)

The integral is a weighted sum over m points. The second equation (completeness) tells how good the sum is:
`gap` is its left side minus its right side, `scale` the size of its right side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heedful.errors import Mistake, one_of
from heedful.explainers.explainer import Passes, Scores, Size
from heedful.explainers.gradients.gradient import Parts, explained_parts
from heedful.explainers.gradients.path import cut_steps, gradients_of
from heedful.explainers.options import Steps
from heedful.models.link import Of
from heedful.models.network import Differentiable
from heedful.records import Batch, Tokens

Method = Literal["riemann_right", "riemann_middle", "gausslegendre", "fejer"]
Baseline = Literal["zero", "unk", "mask", "pad"] | float | Tensor
N_STEPS = 50
ROUNDING = 100  # times the last digit of the output: no step count brings a gap below it
NESTED = ("fejer",)
METHODS = ("riemann_right", "riemann_middle", "gausslegendre", "fejer")


def integrated_gradients(
    model: Differentiable,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    parts: Parts = "both",
    baselines: Baseline | tuple[Baseline, Baseline] = "zero",
    n_steps: Steps = N_STEPS,
    method: Method = "gausslegendre",
    internal_batch_size: int | None = None,
    tolerance: float | None = None,
    max_steps: Steps = 1600,
) -> Scores:
    """Equation 4, for passage and query together, so that completeness covers both.

    baselines: "zero", "unk", "mask" or "pad" (every word that token), a number, or a tensor (dim,) or like x; a pair
        gives passage and query their own. Markers keep their embedding in the baseline (see path.py).
    method: "riemann_right" is equation 4 to the letter; "gausslegendre" needs far fewer steps. "fejer" needs
        about as few, and none of its points is lost when steps are doubled: the one to take with `tolerance`.
    internal_batch_size: texts (times steps) in one forward pass; None: as many as are fastest.
    tolerance: double the steps of each text until neither |gap| nor the error of any score, as estimated from what
        doubling them has changed (`_error`), is above tolerance * scale, or `max_steps` are reached.
    parts: what is not asked for stays at its input, and completeness is about the part that moves.
    """
    asked = explained_parts(model, batch, parts, of)
    _check(n_steps, method, internal_batch_size, tolerance, max_steps)
    bases = baselines if isinstance(baselines, tuple) else (baselines, baselines)
    like = torch.zeros((), device=model.device, dtype=model.dtype)
    passage = like.new_zeros(batch.passage.ids.shape)  # (batch, length)
    query = like.new_zeros(batch.query.ids.shape) if batch.query is not None else None
    change, gap = like.new_zeros(2, len(batch))  # (batch,) f(x) - f(b), and what the scores miss of it
    rows = torch.arange(len(batch), device=like.device)
    forward, backward = torch.zeros(2, len(batch), dtype=torch.long, device=like.device)  # (batch,) passes
    slopes: list[Tensor | None] = [None, None]  # of passage and query: (batch, steps, length) . (x - b)
    # (batch,) what the last doubling changed of the score that it changed most
    moved = like.new_full((len(batch),), torch.inf)
    first, least = True, ROUNDING * torch.finfo(like.dtype).eps
    while len(rows) > 0:
        a, weights = nodes(n_steps, method, like)
        # every second point of a nested rule is one of the rule before
        new = slice(None, None, 2) if method in NESTED and slopes[0] is not None else slice(None)
        slopes = [_spread(part, before, len(a), new) for part, before in zip((passage, query), slopes, strict=True)]
        for some, room in cut_steps(model, batch, rows, len(a[new]), internal_batch_size):
            texts = batch.rows(some)
            starts = path_baselines(model, batch, some, texts, asked, bases)
            gradients = gradients_of(model)(model, texts, target[some], of, starts)
            if first:
                change[some] = gradients.change(like)
            for kept, found in zip(slopes, gradients.by_step(a[new], room), strict=True):
                if kept is not None and found is not None:
                    kept[some, new, : found.shape[2]] = found
        gap[rows] = -change[rows]
        now = like.new_zeros(len(rows))
        for part, kept in zip((passage, query), slopes, strict=True):
            if part is not None and kept is not None:
                found = torch.einsum("nkl,k->nl", kept[rows], weights)
                now = torch.maximum(now, (found - part[rows]).abs().amax(1))
                part[rows] = found
                gap[rows] += found.sum(1)
        forward[rows] += len(a[new]) + (2 if first else 0)
        backward[rows] += len(a[new])
        error = torch.full_like(now, torch.inf) if first else _error(now, moved[rows])
        if not first:
            moved[rows] = now
        first = False
        n_steps = 2 * n_steps + 1 if method in NESTED else min(2 * n_steps, max(max_steps, n_steps + 1))
        if tolerance is None or n_steps > max_steps:
            break
        rows = rows[torch.maximum(gap[rows].abs(), error) > (tolerance * change[rows].abs()).clamp(min=least)]
    return Scores(
        passage=passage,
        query=query if "query" in asked else None,
        gap=gap,
        scale=change.abs(),
        forward_passes=forward,
        backward_passes=backward,
    )


def _error(now: Tensor, before: Tensor) -> Tensor:
    """What may be left of a text's worst error after doubling its steps has changed a score by `now`, and the time
    before by `before` (inf: there was none), (texts,) each: errors go on to fall as fast as they did.

    The gap alone would not do: it is the sum of the errors, which can cancel.
    """
    falls = (now / before.clamp(min=torch.finfo(now.dtype).tiny)).clamp(max=1)
    return torch.where(before.isfinite(), now * falls, now)


def _spread(part: Tensor | None, before: Tensor | None, steps: int, new: slice) -> Tensor | None:
    """Room for the slopes of so many steps, (batch, steps, length), with those of the rule before in it."""
    if part is None:
        return None
    found = part.new_zeros(len(part), steps, part.shape[1])
    if before is not None and new.step == 2:
        found[:, 1::2] = before
    return found


def nodes(n_steps: int, method: Method, like: Tensor) -> tuple[Tensor, Tensor]:
    """Points a_k in (0, 1] and their weights, which sum to 1: (steps,) each, of the type of `like`."""
    if method in ("gausslegendre", "fejer"):
        rule = np.polynomial.legendre.leggauss if method == "gausslegendre" else fejer
        points, weights = rule(n_steps)  # on (-1, 1)
        points, weights = (1 + points) / 2, weights / 2
    else:
        points = (np.arange(n_steps) + (1.0 if method == "riemann_right" else 0.5)) / n_steps
        weights = np.full(n_steps, 1 / n_steps)
    return torch.from_numpy(points).to(like), torch.from_numpy(weights).to(like)


def fejer(n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points and weights on (-1, 1): Fejér's second rule, at cos(k pi / (n + 1)), with points moved towards the middle.

    f along a path through a network changes fast anywhere, not at the ends, where these points crowd. A map g moves
    them, and weights are times g' (Hale & Trefethen 2008, the arcsine cut at degree 9); it saves about a third of them.
    """
    theta = np.pi * np.arange(1, n + 1) / (n + 1)  # (n,)
    odd = np.arange(1, n + 1, 2)  # of the sine series of a constant
    x = np.cos(theta)
    weights = 4 / (n + 1) * np.sin(theta) * (np.sin(np.outer(theta, odd)) / odd).sum(1)
    series = np.array([1, 1 / 6, 3 / 40, 5 / 112, 35 / 1152])  # of the arcsine: x, x^3, ..., x^9
    power = 2 * np.arange(5) + 1
    moved = (x[:, None] ** power) @ series / series.sum()
    weights = weights * ((x[:, None] ** (power - 1)) @ (series * power))
    return moved, weights * 2 / weights.sum()


@torch.no_grad()
def path_baselines(
    model: Differentiable,
    batch: Batch,
    rows: Tensor,
    some: Batch,
    asked: tuple[Parts, ...],
    bases: tuple[Baseline, Baseline],
) -> tuple[Tensor | None, Tensor | None]:
    """b of passage and query for the texts `rows` of the batch; None for a part that stays at its input."""
    passage = _baseline(model, batch.passage, rows, some.passage, bases[0]) if "passage" in asked else None
    if "query" not in asked or batch.query is None or some.query is None:
        return passage, None
    return passage, _baseline(model, batch.query, rows, some.query, bases[1])


def _baseline(model: Differentiable, whole: Tokens, rows: Tensor, tokens: Tokens, given: Baseline) -> Tensor:
    """b, like x (texts, length, dim), for the texts `rows` of the whole batch."""
    x = model.embed(tokens)  # (texts, length, dim)
    like_x = (*whole.ids.shape, x.shape[2])  # (batch, length, dim)
    if isinstance(given, str):
        ids = {"unk": tokens.reserved.unknown, "mask": tokens.reserved.mask, "pad": tokens.reserved.pad}
        if given == "zero":
            return x.new_zeros(()).expand_as(x)
        if given not in ids:
            raise one_of("baseline", given, ["zero", *ids])
        if (token := ids[given]) is None:
            raise Mistake(f"baselines={given!r}: this model has no such token; give zero, or a vector.")
        return model.embed(replace(tokens, ids=torch.full_like(tokens.ids, token)))
    b = torch.as_tensor(given, dtype=x.dtype, device=x.device)
    if tuple(b.shape) == like_x:
        return b[rows, : tokens.ids.shape[1]]
    if tuple(b.shape) not in ((), like_x[2:]):
        raise Mistake(f"baselines has the shape {tuple(b.shape)}; it must be {like_x[2:]} or {like_x}.")
    return b.expand_as(x)


def _check(n_steps: int, method: str, internal_batch_size: int | None, tolerance: float | None, max_steps: int) -> None:
    if method not in METHODS:
        raise one_of("method", method, list(METHODS))
    if n_steps < 1:
        raise Mistake(f"n_steps must be at least 1, not {n_steps}.")
    if internal_batch_size is not None and internal_batch_size < 1:
        raise Mistake(f"internal_batch_size must be at least 1, not {internal_batch_size}.")
    if tolerance is not None and not 0 < tolerance < 1:
        raise Mistake(f"tolerance is a share of the change of the output, between 0 and 1, not {tolerance}.")
    if tolerance is not None and max_steps < n_steps:
        raise Mistake(f"max_steps must be at least n_steps ({n_steps}), not {max_steps}.")


def passes_of(size: Size) -> Passes:
    """The text and its baseline, and every step between them."""
    return Passes(N_STEPS + 2, N_STEPS)
