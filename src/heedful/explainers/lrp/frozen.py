"""A network whose gates are held constant is linear: f = sum_i x_i . df/dx_i + its constants, exactly.

Held constant are attention weights (softmax), the scale of norms, and the ratio act(z) / z of activations. What is
left is linear in the embeddings and in everything that is added on the way (biases, positions), and its value is the
network's own. In a gated layer, a product of two signals, each takes half (Arras et al. 2019; Achtibat et al. 2024).
It is the epsilon rule of LRP with epsilon 0 (Bach et al. 2015; Ali et al. 2022 for norms and attention) as a gradient.

`Frozen` is a TorchFunctionMode: it sees the torch functions that a network calls, so it needs no line for any
architecture, and it changes gradients only: every function returns the value it would have returned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import RLock, get_ident
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

ACTIVATIONS = "transformers.activations"
TURN = RLock()  # a module's forward is changed by one at a time
LrpRule = Literal["frozen", "attnlrp"]  # attention weights are constants, or signals (attnlrp.py)
POSITIONS, BIASES = "positions and types", "biases"  # the constants, by where they come from


class Frozen(TorchFunctionMode):
    """While it is entered, functions of `inputs` are linear in them. `constants`: what else f is made of.

    `constants` is filled by the backward pass that follows: for each text, df/dz . c summed over every c that was
    added to a z that depends on the inputs. What a lookup in a table of embeddings gave (positions, types of tokens)
    is told from the rest.
    """

    def __init__(self, inputs: Sequence[Tensor], rule: LrpRule = "frozen") -> None:
        super().__init__()
        self.rules = RULES_OF[rule]()
        self.thread = get_ident()
        self.inputs, self.n = {id(x) for x in inputs}, len(inputs[0])
        self.constants = {kind: inputs[0].new_zeros(self.n) for kind in (POSITIONS, BIASES)}
        # constants that come from a table; the tensors are kept, so that ids stay theirs
        self._looked_up: dict[int, Tensor] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        args, kwargs = self._constant(args), {name: self._constant(v) for name, v in (kwargs or {}).items()}
        rule = self.rules.get(func.__name__)
        if rule is not None and any(depends(given) for given in (*tensors(args), *kwargs.values())):
            return rule(self, func, args, kwargs)
        out = func(*args, **kwargs)
        if isinstance(out, Tensor) and not out.requires_grad and self._is_position(func, args):
            self._looked_up[id(out)] = out
        return out

    def add(self, out: Tensor, constant: Any) -> None:
        """Write down that `constant`, a number or a tensor that broadcasts to `out`, was added to make `out`."""
        kind = POSITIONS if id(constant) in self._looked_up else BIASES

        def write(slope: Tensor) -> None:
            if isinstance(constant, Tensor) and constant.dim() == 1:
                amount = slope @ constant.to(slope)  # without a copy of the slope
            else:
                amount = slope * constant
            # where a network reads a text as several rows, or some texts apart, this is wrong by text: see `decompose`
            by_text = amount.reshape(self.n, -1).sum(1) if amount.numel() % self.n == 0 else torch.nan
            self.constants[kind] = self.constants[kind] + by_text

        if out.requires_grad:
            out.register_hook(write)  # type: ignore[no-untyped-call]

    def _is_position(self, func: Any, args: tuple[Any, ...]) -> bool:
        return func.__name__ == "embedding" or any(id(given) in self._looked_up for given in args)

    def _constant(self, given: Any) -> Any:
        """Parameters are constants: a product with a function of one is not a gated layer."""
        if isinstance(given, Tensor):
            parameter = given.requires_grad and given.is_leaf and id(given) not in self.inputs
            return given.detach() if parameter else given
        return type(given)(map(self._constant, given)) if type(given) in (list, tuple) else given


@contextmanager
def frozen(network: Any, inputs: Sequence[Tensor], rule: LrpRule = "frozen") -> Iterator[Frozen]:
    """The network, or its `.module`, with frozen gates; as it was afterwards, also after an error.

    Activations of transformers that are written out as products get a frozen forward of their own meanwhile.
    """
    with TURN, Frozen(inputs, rule) as mode, _activations(network, mode):
        yield mode


@contextmanager
def _activations(network: Any, mode: Frozen) -> Iterator[None]:
    """By their classes, because some heads make their activation anew in every pass (BigBird, ConvBERT)."""
    module = network if isinstance(network, nn.Module) else getattr(network, "module", None)
    parts = module.modules() if isinstance(module, nn.Module) else ()
    known = vars(sys.modules[ACTIVATIONS]).values() if ACTIVATIONS in sys.modules else ()
    kinds = [kind for kind in known if isinstance(kind, type) and issubclass(kind, nn.Module)]
    own = [part for part in parts if type(part).__module__ == ACTIVATIONS and "forward" in vars(part)]
    there = [kind for kind in dict.fromkeys(kinds) if kind.__module__ == ACTIVATIONS and "forward" in vars(kind)]
    changed: list[tuple[Any, Any]] = [(thing, vars(thing)["forward"]) for thing in (*own, *there)]
    try:
        for thing, forward in changed:
            thing.forward = _of_one(mode.thread, forward) if thing in own else _of_kind(mode.thread, forward)
        yield
    finally:
        for thing, forward in changed:
            thing.forward = forward


def depends(given: Any) -> bool:
    return isinstance(given, Tensor) and given.requires_grad


def tensors(args: Sequence[Any]) -> Iterator[Tensor]:
    for given in args:
        if isinstance(given, Tensor):
            yield given
        elif type(given) in (list, tuple):
            yield from tensors(given)


# Gradients that differ from those of the value. Each returns the value as it is.


class _Scaled(torch.autograd.Function):
    """act(z), with the gradient of ratio * z; where z is 0, so is ratio * z."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, act: Callable[[Tensor], Tensor]) -> Tensor:
        value = act(z)
        ctx.save_for_backward(torch.where(z == 0, 0.0, value / z))
        return value.clone() if value is z else value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0] * ctx.saved_tensors[0], None


class _Share(torch.autograd.Function):
    """z, with a share of its gradient."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, share: float) -> Tensor:
        ctx.share = share
        return z.view_as(z)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0] * ctx.share, None


class _LayerNorm(torch.autograd.Function):
    """w (x - mean(x)) / sd + b, at this sd."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        out, _, one_over_sd = torch.native_layer_norm(x, shape, weight, bias, eps)
        ctx.save_for_backward(weight, one_over_sd)
        ctx.dims = tuple(range(-len(shape), 0))
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        weight, one_over_sd = ctx.saved_tensors
        slope = grads[0] if weight is None else grads[0] * weight
        slope = (slope - slope.mean(ctx.dims, keepdim=True)) * one_over_sd.to(slope)
        return slope, None, None, None, None


def scaled(z: Tensor, act: Callable[[Tensor], Tensor]) -> Tensor:
    """act(z) = ratio * z, the ratio a constant."""
    value: Tensor = _Scaled.apply(z, act)  # type: ignore[no-untyped-call]
    return value


def _of_one(thread: int, forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """An activation's forward; other threads find it as it was."""

    def frozen_forward(z: Tensor) -> Tensor:
        return scaled(z, forward) if get_ident() == thread and z.requires_grad else forward(z)

    return frozen_forward


def _of_kind(thread: int, forward: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """The same, as a method."""

    def frozen_forward(self: Any, z: Tensor) -> Tensor:
        return _of_one(thread, partial(forward, self))(z)

    return frozen_forward


# Rules: (mode, function, args, kwargs) -> value. At least one of the arguments depends on the inputs.


def constant(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A gate, a norm, a denominator: no gradient."""
    plain = {name: given.detach() if depends(given) else given for name, given in kwargs.items()}
    return func(*(given.detach() if depends(given) else given for given in args), **plain)


def ratio(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """act(z) = (act(z) / z) z, for every function that multiplies each element by something."""
    z, kwargs = args[0], {name: given for name, given in kwargs.items() if name != "inplace"}
    if not depends(z) or any(depends(given) for given in args[1:]):
        return constant(mode, func, args, kwargs)
    in_place = func.__name__.endswith("_")  # relu_ writes on its argument
    value = scaled(z, lambda z: func(z.clone() if in_place else z, *args[1:], **kwargs))
    return _back_into(func, args, value)


def product(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of k signals: each takes 1 / k of what the product is worth."""
    k = sum(depends(given) for given in tensors(args))
    if k < 2:
        return func(*args, **kwargs)

    def share(given: Any) -> Any:
        if depends(given):
            return _Share.apply(given, 1 / k)  # type: ignore[no-untyped-call]
        return type(given)(map(share, given)) if type(given) in (list, tuple) else given

    if func.__name__ == "mul_":
        return _back_into(func, args, torch.mul(share(args[0].clone()), share(args[1])))
    return func(*map(share, args), **kwargs)


def quotient(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The denominator is a scale."""
    above, below = args[:2] if not func.__name__.startswith("__r") else args[1::-1]
    if not depends(below):
        return func(*args, **kwargs)
    return _back_into(func, args, torch.div(above, below.detach(), **kwargs))


def total(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """a + alpha b, a - alpha b, and their reversals: what does not depend on the inputs is a constant."""
    a, b = args[0], args[1] if len(args) > 1 else kwargs["other"]
    if depends(a) and depends(b):
        return func(*args, **kwargs)
    name, alpha = func.__name__.strip("_"), kwargs.get("alpha", 1)
    signs = {"rsub": (-alpha, 1), "add": (1, alpha), "radd": (1, alpha)}.get(name, (1, -alpha))
    added, sign = (b, signs[1]) if depends(a) else (a, signs[0])
    if sign != 1:
        added = added * sign
    elif added is a and func.__name__ == "add_":
        added = a.clone()  # it will be written on
    out = func(*args, **kwargs)
    mode.add(out, added)
    return out


def linear(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """linear, convolutions: z = W x + b."""
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    out = func(*args, **kwargs)
    if bias is not None:  # (features,), at dimension 1 after a convolution
        mode.add(out, bias if func.__name__ == "linear" else bias.view(-1, *(1,) * (out.dim() - 2)))
    return out


def addmm(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """beta b + alpha x W."""
    out = product(mode, func, args, kwargs) if depends(args[2]) else func(*args, **kwargs)
    if not depends(args[0]):
        mode.add(out, args[0] * kwargs["beta"] if "beta" in kwargs else args[0])
    return out


def layer_norm(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def of(x: Tensor, shape: Sequence[int], weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
        out = _LayerNorm.apply(x, shape, weight, bias, eps)  # type: ignore[no-untyped-call]
        if bias is not None:
            mode.add(out, bias)
        return out

    names = {"normalized_shape": "shape"}
    return of(*args[:5], **{names.get(name, name): given for name, given in kwargs.items()})


def attention(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """scaled_dot_product_attention(q, k, v, bias): all but v make the weights."""
    named = dict(zip(("query", "key", "value", "attn_mask", "dropout_p", "is_causal"), args, strict=False)) | kwargs
    return func(**{n: g.detach() if depends(g) and n != "value" else g for n, g in named.items()})


def log_sum_exp(mode: Frozen, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """log sum_v exp z_v = sum_v p_v z_v + the entropy of p, at p = softmax(z) held constant: its gradient is p, too."""

    def of(z: Tensor, dim: int, keepdim: bool = False) -> Tensor:
        p = z.detach().softmax(dim)
        linear = (p * z.masked_fill(p == 0, 0.0)).sum(dim, keepdim=True)  # also where z is -inf
        entropy = torch.logsumexp(z.detach(), dim, keepdim=True) - linear.detach()
        out = linear + entropy
        mode.add(out, entropy)
        return out if keepdim else out.squeeze(dim)

    return of(*args, **kwargs)


def _back_into(func: Any, args: tuple[Any, ...], value: Tensor) -> Tensor:
    """A function whose name ends in one underscore writes on its first argument."""
    in_place = func.__name__.endswith("_") and not func.__name__.endswith("__")
    return args[0].copy_(value) if in_place else value


Rule = Callable[[Frozen, Any, tuple[Any, ...], dict[str, Any]], Any]
_CONSTANT = """softmax _softmax log_softmax softmin sigmoid sigmoid_ hardsigmoid erf exp log rsqrt sqrt reciprocal
    std var norm linalg_vector_norm vector_norm cos sin softplus logsigmoid __rpow__ sparsemax entmax15"""
_RATIO = """gelu relu relu_ relu6 silu tanh tanh_ pow pow_ square leaky_relu elu selu celu mish hardswish hardtanh
    softsign tanhshrink prelu clamp clamp_min clamp_max abs normalize rms_norm"""
_PRODUCT = "mul mul_ multiply __rmul__ matmul bmm mm einsum dot mv"
_QUOTIENT = "div div_ divide true_divide __rdiv__ __rtruediv__"
_TOTAL = "add add_ sub sub_ subtract rsub __rsub__ __radd__"
_LINEAR = "linear conv1d conv2d"
RULES: dict[str, Rule] = {
    **dict.fromkeys(_CONSTANT.split(), constant),
    **dict.fromkeys(_RATIO.split(), ratio),
    **dict.fromkeys(_PRODUCT.split(), product),
    **dict.fromkeys(_QUOTIENT.split(), quotient),
    **dict.fromkeys(_TOTAL.split(), total),
    **dict.fromkeys(_LINEAR.split(), linear),
    "addmm": addmm,
    "logsumexp": log_sum_exp,
    "layer_norm": layer_norm,
    "scaled_dot_product_attention": attention,
}
"""By the name of the torch function; what has no rule is taken to be linear, and a sum that misses f says so."""


def _attnlrp() -> dict[str, Rule]:
    from heedful.explainers.lrp.attnlrp import RULES as OWN

    return {**RULES, **OWN}


RULES_OF: dict[LrpRule, Callable[[], dict[str, Rule]]] = {"frozen": lambda: RULES, "attnlrp": _attnlrp}
