"""Integrated Hessians (Janizek, Sturmfels & Lee 2020) as one integral.

Published, with x(t) = b + t (x - b), d = x - b, and f_ij the second derivative,

    Gamma_ij = d_i d_j int_0^1 int_0^1 a c f_ij(x(a c)) da dc                                   for i != j
    Gamma_ii = d_i int int f_i(x(a c)) da dc + d_i^2 int int a c f_ii(x(a c)) da dc

Both integrands depend on t = a c alone. For a and c uniform on (0, 1), P(a c <= t) = t + int_t^1 t / a da = t - t ln t,
so t has the density -ln t, and

    Gamma_ij = d_i d_j int_0^1 (-ln t) t f_ij(x(t)) dt
    Gamma_ii = d_i int_0^1 (-ln t) f_i(x(t)) dt + d_i^2 int_0^1 (-ln t) t f_ii(x(t)) dt.

A Gauss rule for the weight -ln t (log_rule.py) takes m points, where the published sum takes m x m.

Rows and columns sum to integrated gradients: with f_i along the path called h(t), sum_j d_j f_ij = h'(t), and
int (-ln t) (h + t h') dt = int (-ln t) (t h)' dt = [-t ln t h]_0^1 + int h dt = int h dt: sum_j Gamma_ij = IG_i.
Hence all together sum to f(x) - f(b): that is the axiom (completeness), checked on each call.

A feature is a word's embedding, so i and j are summed over its dimensions: for words i and j the number is
d_i' H(x(t)) d_j, one Hessian-vector product for each word, of all points and texts of a batch together. Words of
several pieces have one row, which its pieces share: sums over words, and every column, are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from heedful.errors import Mistake
from heedful.explainers.explainer import Passes, Scores, Size
from heedful.explainers.gradients.gradient import Parts, explained_parts
from heedful.explainers.gradients.integrated import Baseline, path_baselines
from heedful.explainers.gradients.path import PathGradient, cut_steps
from heedful.explainers.interactions.log_rule import MOST, log_rule
from heedful.explainers.interactions.smooth import TwiceDifferentiable
from heedful.explainers.options import Steps
from heedful.explainers.perturbation.occlusion import n_words
from heedful.models.link import Of
from heedful.models.network import Differentiable
from heedful.records import Batch

N_STEPS = 40
ROUNDING = 100  # times the last digit of the output: no step count brings a gap below it


class PathHessian(PathGradient):
    """Some texts on their way from baseline to input, and how the slope changes there."""

    def __init__(
        self,
        network: Differentiable,
        batch: Batch,
        target: Tensor,
        of: Of,
        baselines: tuple[Tensor | None, Tensor | None],
        softplus_beta: float,
    ) -> None:
        super().__init__(network, batch, target, of, baselines)
        self.softplus_beta = softplus_beta

    @contextmanager
    def _twice(self, a: Tensor) -> Iterator[tuple[Tensor, Callable[[Tensor], Tensor]]]:
        """d_i f_i (texts, steps, all), and how to get d_j . slope of what is made of it."""
        steps = len(a)
        # neither cuDNN nor fused attention has a second derivative
        with (
            torch.enable_grad(),
            torch.backends.cudnn.flags(enabled=False),
            sdpa_kernel(SDPBackend.MATH),
            TwiceDifferentiable(self.softplus_beta),
        ):
            points = [None if path is None else path.at(a).requires_grad_() for path in self.paths]
            moving = [point for point in points if point is not None]
            f = self._f(points, steps)
            first = torch.autograd.grad(f.sum(), moving, create_graph=True)  # texts do not mix: one sum serves them all

            def slope(of: Tensor) -> Tensor:
                found = torch.autograd.grad(of.sum(), moving, retain_graph=True, materialize_grads=True)
                return self._along(points, found, steps)

            yield self._along(points, first, steps), slope

    def on_the_whole(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """The sums of both over all words, (texts, steps): what completeness is made of, by one product."""
        with self._twice(a) as (along, slope):
            bend = slope(along).sum(-1) if along.requires_grad else torch.zeros_like(along.sum(-1))
            return along.detach().sum(-1), bend

    def curvature(self, a: Tensor) -> tuple[Tensor, Tensor]:
        """d_i f_i (texts, steps, all) and d_i f_ij d_j (texts, steps, all, all) at each a (steps,).

        `all` are the positions of passage and query, one after the other. One product for each word: the graph of the
        gradient is kept, and serves them all. Pieces of a word share its row.
        """
        with self._twice(a) as (along, slope):
            second = along.detach().new_zeros(*along.shape, along.shape[-1])
            for word in self._words() if along.requires_grad else ():  # a linear function has no second derivative
                share = word / word.sum(1, keepdim=True).clamp(min=1)  # (texts, all)
                second += torch.einsum("np,nkq->nkpq", share.to(second), slope(along * word.unsqueeze(1)))
            return along.detach(), second

    def _along(self, points: list[Tensor | None], slopes: tuple[Tensor, ...], steps: int) -> Tensor:
        """Slopes of what moves times the way: (texts, steps, all), 0 for a part that stays."""
        found, parts = iter(slopes), []
        for tokens, path in zip((self.batch.passage, self.batch.query), self.paths, strict=True):
            if tokens is not None:
                shape = (len(tokens.ids), steps, tokens.ids.shape[1])
                parts.append(self.like.new_zeros(shape) if path is None else path.along(next(found), steps))
        return torch.cat(parts, -1)

    @property
    def like(self) -> Tensor:
        return next(path.x for path in self.paths if path is not None)

    def _words(self) -> Iterator[Tensor]:
        """The first word that moves of every text, the second, and so on: its tokens (texts, all)."""
        parts = zip((self.batch.passage, self.batch.query), self.paths, strict=True)
        there = [(tokens, path) for tokens, path in parts if tokens is not None]
        for moving, path in there:
            if path is None:
                continue
            number = moving.mask.cumsum(1) - 1 if moving.word_index is None else moving.word_index
            number = number.masked_fill(~self._moves(moving), -1)  # (texts, length)
            for word in range(int(number.amax()) + 1):
                yield torch.cat(
                    [number == word if tokens is moving else torch.zeros_like(tokens.mask) for tokens, _ in there], 1
                )


def integrated_hessians(
    model: Differentiable,
    batch: Batch,
    target: Tensor,
    *,
    of: Of = "logit",
    parts: Parts = "both",
    baselines: Baseline | tuple[Baseline, Baseline] = "zero",
    n_steps: Steps = N_STEPS,
    softplus_beta: float = 10.0,
    internal_batch_size: int | None = None,
    tolerance: float | None = None,
    max_steps: Steps = 100,
) -> Scores:
    """Gamma of every two words, of passage and query together; each word's score is the sum of its column.

    The pair (i, j) holds Gamma_ij + Gamma_ji, the diagonal Gamma_ii, so that all add up to f(x) - f(b). `gap` is
    their sum less that change; where the model has ReLUs, it holds what softplus has changed, too.
    baselines, internal_batch_size, parts: as for integrated gradients. tolerance: twice the points for those texts
    whose gap is above tolerance * |f(x) - f(b)|, up to max_steps; the gap is tried before words are told apart.
    """
    asked = explained_parts(model, batch, parts, of)
    _check(n_steps, max_steps, softplus_beta, internal_batch_size, tolerance)
    bases = baselines if isinstance(baselines, tuple) else (baselines, baselines)
    like = torch.zeros((), device=model.device, dtype=model.dtype)
    lengths = [batch.passage.ids.shape[1]] + ([] if batch.query is None else [batch.query.ids.shape[1]])
    gamma = like.new_zeros(len(batch), sum(lengths), sum(lengths))
    change = like.new_zeros(len(batch))
    forward, backward = torch.zeros(2, len(batch), dtype=torch.long, device=like.device)
    explained = [batch.passage if part == "passage" else batch.query for part in asked]
    products = torch.stack([n_words(tokens) for tokens in explained if tokens is not None]).sum(0)  # (batch,)

    def ways(rows: Tensor, m: int) -> Iterator[tuple[Tensor, PathHessian, int]]:
        for some, room in cut_steps(model, batch, rows, m, internal_batch_size):
            texts = batch.rows(some)
            starts = path_baselines(model, batch, some, texts, asked, bases)
            yield some, PathHessian(model, texts, target[some], of, starts, softplus_beta), room

    every = torch.arange(len(batch), device=like.device)
    for some, way, _ in ways(every, 1):
        change[some] = way.change(like)
    forward += 2
    for rows, m in _points(every, n_steps, max_steps, change, tolerance, ways, (forward, backward)):
        t, weights = (torch.from_numpy(each).to(like) for each in log_rule(m))
        for some, way, room in ways(rows, m):
            found = like.new_zeros(())
            for step in torch.split(torch.arange(m, device=like.device), room):
                slope, bend = way.curvature(t[step])
                found = found + torch.einsum("nkij,k->nij", bend, weights[step] * t[step])
                found = found + torch.diag_embed(torch.einsum("nki,k->ni", slope, weights[step]))
            places = _places_in(way.batch, lengths, like.device)
            gamma[some.view(-1, 1, 1), places.view(1, -1, 1), places.view(1, 1, -1)] = found
            forward[some] += m
            backward[some] += m * (1 + products[some])
    gap = gamma.sum((1, 2)) - change
    words = gamma.sum(1)
    return Scores(
        passage=words[:, : lengths[0]],
        query=words[:, lengths[0] :] if "query" in asked else None,
        gap=gap,
        scale=change.abs(),
        forward_passes=forward,
        backward_passes=backward,
        pairs=upper(gamma if "query" in asked else gamma[:, : lengths[0], : lengths[0]]),
    )


def _points(
    every: Tensor,
    n_steps: int,
    max_steps: int,
    change: Tensor,
    tolerance: float | None,
    ways: Callable[[Tensor, int], Iterator[tuple[Tensor, PathHessian, int]]],
    counts: tuple[Tensor, Tensor],
) -> Iterator[tuple[Tensor, int]]:
    """Texts, and how many points they need: completeness alone takes one product a point, not one for each word."""
    rows, m = every, n_steps
    least = ROUNDING * torch.finfo(change.dtype).eps
    while tolerance is not None and 2 * m <= max_steps and len(rows):
        t, weights = (torch.from_numpy(each).to(change) for each in log_rule(m))
        gap = -change.clone()
        for some, way, room in ways(rows, m):
            for step in torch.split(torch.arange(m, device=t.device), room):
                slope, bend = way.on_the_whole(t[step])  # (texts, steps)
                gap[some] += slope @ weights[step] + bend @ (weights[step] * t[step])
            for count, each in zip(counts, (m, 2 * m), strict=True):
                count[some] += each
        far = gap[rows].abs() > (tolerance * change[rows].abs()).clamp(min=least)
        if not far.all():
            yield rows[~far], m
        rows, m = rows[far], 2 * m
    if len(rows):
        yield rows, m


def upper(pairs: Tensor) -> Tensor:
    """Each pair once, at (i, j) with i <= j: (batch, all, all)."""
    return pairs.triu() + pairs.tril(-1).transpose(1, 2)


def _places_in(texts: Batch, lengths: list[int], device: torch.device) -> Tensor:
    """Where the positions of some texts, cut to their longest, are among those of the batch: (their all,)."""
    places = [torch.arange(texts.passage.ids.shape[1], device=device)]
    if texts.query is not None:
        places.append(lengths[0] + torch.arange(texts.query.ids.shape[1], device=device))
    return torch.cat(places)


def _check(
    n_steps: int, max_steps: int, softplus_beta: float, internal_batch_size: int | None, tolerance: float | None
) -> None:
    for name, value in (("n_steps", n_steps), ("max_steps", max_steps)):
        if not 1 <= value <= MOST:
            raise Mistake(f"{name} must be from 1 to {MOST}, not {value}.")
    if not (math.isfinite(softplus_beta) and softplus_beta >= 0):
        raise Mistake(f"softplus_beta must be 0 (ReLU stays) or more, not {softplus_beta}.")
    if internal_batch_size is not None and internal_batch_size < 1:
        raise Mistake(f"internal_batch_size must be at least 1, not {internal_batch_size}.")
    if tolerance is not None and not tolerance > 0:
        raise Mistake(f"tolerance must be more than 0, not {tolerance}.")


def passes_of(size: Size) -> Passes:
    return Passes(N_STEPS + 2, N_STEPS * (1 + sum(size.words)))
