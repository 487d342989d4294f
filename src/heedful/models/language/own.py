"""Are the answers that are explained the model's own? Asked on every call: caches and padding have been wrong before.

The model reads the longest text of each family by itself, without padding, kept keys or embeddings given to it, and its
own output layer says what comes next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.models.language.readout import answer

if TYPE_CHECKING:
    from heedful.models.language.generator import Generator
    from heedful.models.model import Model
    from heedful.records import Batch

CLOSE, CLOSE_HALF = 1e-3, 5e-2  # of log-odds, relative where they are above 1


def check_own(model: Model, batch: Batch, answers: Tensor) -> None:
    """Refuse log-odds (n, 1) that are not those of the model's own next-token probabilities."""
    network = model.network
    from heedful.models.language.generator import Generator

    if not isinstance(network, Generator) or network.function is not None or batch.asked is None:
        return
    own = own_answers(network, batch.to(network.device))
    close = CLOSE_HALF if network.dtype in (torch.float16, torch.bfloat16) else CLOSE
    apart = (answers.double() - own.double()).abs() / own.double().abs().clamp(min=1)
    if bool((apart > close).any()) or not bool(torch.isfinite(own).all()):
        worst = int(apart.nan_to_num(nan=torch.inf).argmax())
        raise Mistake(
            f"{model.name} answers {float(own[worst, 0]):.4g} (log-odds) when it reads a prompt by itself, and "
            f"{float(answers[worst, 0]):.4g} in the way that would be explained: nothing is explained of a model that "
            "says two things."
        )


@torch.no_grad()
def own_answers(network: Generator, batch: Batch) -> Tensor:
    """Log-odds (n, 1) from the model's own logits, each text read alone."""
    from heedful.models.language.families import alike

    assert batch.asked is not None
    steps, families = batch.asked.steps, alike(batch)
    found: Tensor | None = None
    for number in range(len(families.longest)):
        rows = (families.of == number).nonzero().squeeze(1)
        read = network.own_logits(batch, int(families.longest[number]), rows, steps)
        answered = answer(read, batch.asked.rows(rows), None)
        found = answered.new_zeros(len(batch), 1) if found is None else found
        found[rows] = answered
    assert found is not None
    return found
