"""A GPU to test with where there is none: tensors that say they are on a device, and compute on the CPU.

The device is called `meta`, because torch must know it, and knows `cuda` only where there is one.

Like the real one it refuses to mix its tensors with the CPU's, and to give them to numpy: what forgets to move
a tensor fails here as it would there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

GPU = torch.device("meta")


class Elsewhere(Tensor):
    """Holds `here`, a tensor of the CPU."""

    here: Tensor

    @staticmethod
    def __new__(cls, here: Tensor) -> Elsewhere:
        made: Elsewhere = Tensor._make_wrapper_subclass(
            cls, here.size(), strides=here.stride(), storage_offset=here.storage_offset(), dtype=here.dtype, device=GPU
        )
        made.here = here
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return compute(func, args, kwargs or {})

    @property
    def is_meta(self) -> bool:  # type: ignore[override]
        return False

    def tolist(self) -> Any:
        return self.here.tolist()


class Factories(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """`torch.zeros(3, device=GPU)` has no tensor to go by."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


def compute(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    device = kwargs.get("device")
    tensors = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    there = [isinstance(x, Elsewhere) for x in tensors]
    moves = func is torch.ops.aten._to_copy.default or func is torch.ops.aten.copy_.default
    if any(there) and not moves:
        for tensor, is_there in zip(tensors, there, strict=True):
            if not is_there and tensor.dim() > 0:
                raise RuntimeError(f"{func}: tensors on the GPU and on the CPU, {tuple(tensor.shape)}")
    moved = torch.device(device) == GPU if device is not None else any(there[:1] if moves else there)
    if device is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    plain = tree_map(lambda x: x.here if isinstance(x, Elsewhere) else x, (args, kwargs))
    found = func(*plain[0], **plain[1])
    changed = [x for x in tensors if isinstance(x, Elsewhere)]

    def back(x: Any) -> Any:
        if not isinstance(x, Tensor) or not moved:
            return x
        same = [y for y in changed if y.here is x]  # in place: the tensor it was given
        return same[0] if same else Elsewhere(x)

    return tree_map(back, found)


@contextmanager
def a_gpu() -> Iterator[torch.device]:
    """Inside, torch believes that there is one; LSTM and GRU are spelt out, as cuDNN's kernels are not here."""
    with (
        patch("torch.optim.optimizer._get_fused_kernels_supported_devices", lambda: [GPU.type]),
        patch.object(nn.LSTM, "forward", lstm),
        patch.object(nn.GRU, "forward", gru),
        patch.object(nn.Module, "to", to),
        Factories(),  # type: ignore[no-untyped-call]
    ):
        yield GPU


def to(self: nn.Module, device: torch.device) -> nn.Module:
    """torch puts the new values into the old parameters, which cannot become others."""
    for module in self.modules():
        for name, parameter in module.named_parameters(recurse=False):
            module.register_parameter(name, nn.Parameter(parameter.detach().to(device)))
    return self


def lstm(self: nn.LSTM, x: Tensor) -> tuple[Tensor, None]:
    """One layer, one direction, batch first."""
    W_ih, W_hh, b_ih, b_hh = self.all_weights[0]
    h = c = x.new_zeros(len(x), self.hidden_size)
    states = []
    for x_t in x.unbind(1):
        i, f, g, o = (x_t @ W_ih.T + b_ih + h @ W_hh.T + b_hh).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return torch.stack(states, 1), None


def gru(self: nn.GRU, x: Tensor) -> tuple[Tensor, None]:
    """One layer, one direction, batch first."""
    W_ih, W_hh, b_ih, b_hh = self.all_weights[0]
    h = x.new_zeros(len(x), self.hidden_size)
    states = []
    for x_t in x.unbind(1):
        (r_x, z_x, n_x), (r_h, z_h, n_h) = (x_t @ W_ih.T + b_ih).chunk(3, 1), (h @ W_hh.T + b_hh).chunk(3, 1)
        r, z = (r_x + r_h).sigmoid(), (z_x + z_h).sigmoid()
        h = (1 - z) * (n_x + r * n_h).tanh() + z * h
        states.append(h)
    return torch.stack(states, 1), None
