"""Where a task computes: on the CPU, or on the GPU that Ray has given it."""

from __future__ import annotations

import socket

import torch

from heedful.engine.workspace import Workspace
from heedful.errors import Mistake


def find_device(workspace: Workspace) -> torch.device:
    """Ray shows a task only the GPU that is its own, so there is nothing to choose."""
    if workspace.gpus == 0:
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise Mistake(
            f"--gpus: Ray gave this task a GPU of {socket.gethostname()}, and torch cannot use it there. "
            "Install a build of torch for its GPU on that node, or leave --gpus out."
        )
    return torch.device("cuda")
