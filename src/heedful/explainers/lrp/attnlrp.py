"""The rules of AttnLRP for attention (Achtibat et al. 2024): its weights are signals, and take relevance, too.

    weights s = softmax(x):   R_i = x_i (R'_i - s_i sum_j R'_j), the plain gradient of the softmax times x
    product of weights and values, of queries and keys:  each takes half

A softmax is not linear: to first order it is J x + (s - J x), and the second term is counted as a constant (a bias), so
that words, special tokens, positions and biases still sum to the logit. Everything else is as in frozen.py.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from heedful.explainers.lrp import frozen
from heedful.explainers.lrp.frozen import Frozen


class _Softmax(torch.autograd.Function):
    """softmax, and its own gradient: what is -inf takes nothing."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        s = x.softmax(dim)
        ctx.save_for_backward(s)
        ctx.dim = dim
        return s

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (s,) = ctx.saved_tensors
        return s * (grads[0] - (s * grads[0]).sum(ctx.dim, keepdim=True)), None


def softmax(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """torch.softmax(x, dim, dtype), and functional.softmax(x, dim, _stacklevel, dtype)."""
    x, dim = args[0], kwargs.get("dim", args[1] if len(args) > 1 else None)
    dtype = kwargs.get("dtype") or next((given for given in args[2:] if isinstance(given, torch.dtype)), None)
    return _weigh(mode, x if dtype is None else x.to(dtype), -1 if dim is None else dim)


def _weigh(mode: Frozen, x: Tensor, dim: int) -> Tensor:
    s: Tensor = _Softmax.apply(x, dim)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        shown = x.detach().masked_fill(s == 0, 0.0)
        linear = s * (shown - (s * shown).sum(dim, keepdim=True))
    mode.add(s, s.detach() - linear)
    return s


def attention(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """scaled_dot_product_attention, written out."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    given = dict(zip(names, args, strict=False)) | kwargs
    query, key, value, mask = given["query"], given["key"], given["value"], given.get("attn_mask")
    if given.get("enable_gqa"):
        key, value = (one.repeat_interleave(query.shape[-3] // one.shape[-3], dim=-3) for one in (key, value))
    scale = given.get("scale") or 1 / math.sqrt(query.shape[-1])
    scores = _product(mode, query * scale, key.transpose(-2, -1))
    if given.get("is_causal"):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -torch.inf)
    elif mask is not None:
        out = scores + mask
        mode.add(out, mask.clamp(min=torch.finfo(mask.dtype).min / 2))
        scores = out
    return _product(mode, _weigh(mode, scores, -1), value)


def _product(mode: Frozen, a: Tensor, b: Tensor) -> Tensor:
    found: Tensor = frozen.product(mode, torch.matmul, (a, b), {})
    return found


RULES: dict[str, frozen.Rule] = {
    **dict.fromkeys(("softmax", "_softmax"), softmax),
    "scaled_dot_product_attention": attention,
}
