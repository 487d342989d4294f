"""The published search for adversarial attention: Adam on k distributions at once.

Jain & Wallace 2019, equations 1 and 2 with footnote 7: maximise

    sum_i JSD[a_i, a^] + 1/(k(k-1)) sum_{i<j} JSD[a_i, a_j] - lambda/k sum_i max(0, TVD[y(a_i), y^] - epsilon)

over a_i = softmax(v_i), i = 1..k, by 500 steps of Adam (amsgrad, rate .01), v = log uniform + 3 N(0, 1).
(The paper prints a plus before lambda, which would reward a change of the output; the authors' code leaves
out the division by k, which here is `penalty = 2500`.)

Every text has its own v and Adam works on each number alone, so all texts of a batch are searched together,
none feels the others, and states enter only by their projection on the decoder. Of the JSDs the gradient is
written out: d JSD[p, q] / dp = ln(2p / (p + q)) / 2, and a constant in it vanishes in the softmax. Of the
k - 1 logarithms ln(p_i + p_j) of the diversity term only that of their product is taken.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.experiments.adversarial.exact import Adversary, Floats
from heedful.experiments.edited_attention.observe import Observed, tvd
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.measure.distance import jsd

_CELLS = 1 << 16  # weights (texts x k x words) searched together: they stay in the cache
_NOWHERE = -1e30  # the log weight of padding: finite, so that 0 times it is 0


def initial(words: int, k: int, rng: np.random.Generator) -> Floats:
    """Log weights of k distributions over the words of one text: log uniform + 3 N(0, 1), (k, words)."""
    noise: Floats = rng.standard_normal((k, words))
    return 3 * noise - float(np.log(max(words, 1)))


def adam_adversaries(
    seen: PooledStates, starts: list[Floats], epsilon: float, *, steps: int, rate: float, penalty: float
) -> Tensor:
    """The k distributions that the search ends with for each text: (B, k, T). `starts` are of `initial`."""
    k, words = len(starts[0]), seen.alpha.shape[1]
    at_once = max(1, _CELLS // (k * max(words, 1)))
    found = np.zeros((len(starts), k, words))
    for begin in range(0, len(starts), at_once):
        rows = slice(begin, begin + at_once)
        part = seen[rows].shortened()
        v = np.full((len(part.examples), k, part.alpha.shape[1]), _NOWHERE)
        for row, start in zip(v, starts[rows], strict=True):
            row[:, : start.shape[1]] = start
        found[rows, :, : v.shape[2]] = _search(part, v, epsilon, steps, rate, penalty)
    return torch.from_numpy(found)


def _search(seen: PooledStates, v: Floats, epsilon: float, steps: int, rate: float, penalty: float) -> Floats:
    """Adam from the log weights v (B, k, T), which it changes. In numpy: small steps, little to share out."""
    states = seen.projected.numpy()  # (B, T, features)
    states_t = np.ascontiguousarray(states.transpose(0, 2, 1))
    y = seen.y.unsqueeze(1)  # (B, 1, labels)
    padding = (~seen.real).unsqueeze(1).double().numpy()  # (B, 1, T) keeps logarithms finite without a word
    alpha = seen.alpha.unsqueeze(1).numpy() + padding
    k = v.shape[1]
    mean, square, largest = np.zeros((3, *v.shape))  # of Adam with amsgrad
    for step in range(1, steps + 1):
        p, ln_p = _softmax(v)
        gradient = 0.5 * (ln_p - np.log(p + alpha))  # of JSD[p_i, a^]
        if k > 1:
            product = p + p[:, :1] + padding
            for j in range(1, k):
                product *= p + p[:, j : j + 1] + padding  # prod_j (p_i + p_j), which is 2 p_i for j = i
            gradient += 0.5 / (k - 1) * ln_p - 0.5 / (k * (k - 1)) * np.log(product)
        change = _change_gradient(seen, p @ states, y, epsilon)  # (B, k, features)
        gradient -= penalty / k * (change @ states_t)
        gradient -= (p * gradient).sum(-1, keepdims=True)
        gradient *= p  # through the softmax
        mean += 0.1 * (gradient - mean)
        square += 0.001 * (gradient * gradient - square)
        np.maximum(largest, square, out=largest)
        slowed = np.sqrt(largest / (1 - 0.999**step)) + 1e-8
        v += rate / (1 - 0.9**step) * mean / slowed
    return _softmax(v)[0]


def _softmax(v: Floats) -> tuple[Floats, Floats]:
    """softmax over the last dimension, and its logarithm."""
    shifted = v - v.max(-1, keepdims=True)
    e = np.exp(shifted)
    total = e.sum(-1, keepdims=True)
    return e / total, shifted - np.log(total)


def _change_gradient(seen: PooledStates, contexts: Floats, y: Tensor, epsilon: float) -> Floats:
    """d max(0, TVD - epsilon) / d contexts: (B, k, features)."""
    if seen.theta is None:
        asked = torch.from_numpy(contexts).requires_grad_(True)
        with torch.enable_grad():
            excess = F.relu(tvd(seen.readout(asked), y) - epsilon).sum()
        (slope,) = torch.autograd.grad(excess, asked)
        return np.asarray(slope.numpy())
    with torch.no_grad():
        difference = seen.readout(torch.from_numpy(contexts)).numpy() - y.numpy()  # (B, k, labels)
    p = difference + y.numpy()
    beyond = 0.5 * np.abs(difference).sum(-1, keepdims=True) > epsilon
    slope_p = 0.5 * np.sign(difference) * beyond  # d TVD / dp
    slope_z: Floats = p * (slope_p - (p * slope_p).sum(-1, keepdims=True))  # through the softmax
    return slope_z[..., -contexts.shape[-1] :]  # with two labels the one logit is that of label 1


def farthest_feasible(seen: Observed, alphas: Tensor, epsilon: float, bound: Floats) -> Adversary:
    """epsilon-max JSD (Algorithm 3): of the distributions (B, n, T) the farthest with TVD <= epsilon.

    Of equally far ones, as are all on words without weight, the one that changes the output least. Where none is
    feasible the answer is the model's own attention, at JSD 0.
    """
    with torch.no_grad():
        own = seen.alpha.unsqueeze(1)  # (B, 1, T)
        alphas = torch.cat([own, alphas], dim=1)
        change = seen.distance(seen.decode(alphas), seen.y.unsqueeze(1)).numpy()  # (B, 1 + n)
    change[:, 0] = 0.0  # the model's own
    tried = alphas.numpy()
    distance = jsd(tried, np.broadcast_to(own.numpy(), tried.shape))  # (B, 1 + n)
    of_words = ~(tried.astype(np.bool_) & ~seen.real.unsqueeze(1).numpy()).any(2)  # nothing on padding
    feasible = (change <= epsilon) & of_words
    reached = np.where(feasible, distance, -1.0)
    farthest = reached >= reached.max(1, keepdims=True) - 1e-12
    best = np.where(farthest, change, np.inf).argmin(1)
    rows = np.arange(len(best))
    any_feasible = np.asarray(feasible[:, 1:].any(1))
    return Adversary(tried[rows, best], distance[rows, best], change[rows, best], bound, any_feasible)
