"""What a translator says: greedy and beam search over whole texts.

The score of what is said is sum_t log p(y_t | y_<t, x); with a beam it is divided by (the number of tokens)^a, so that
short texts have no advantage (a = 1: the mean). Greedy search is a beam of 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.models.translation.network import ReadSource, State, Translator
from heedful.records import Tokens

MOST = 100  # tokens that are said, unless told otherwise


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation."""

    ids: tuple[int, ...]  # without the end
    score: float  # sum of log p, the end included
    ended: bool  # False: it was cut off at the most tokens that it may say


@torch.no_grad()
def translate(
    network: Translator, passage: Tokens, begin: int, beam: int = 1, most: int = MOST, length: float = 1.0
) -> list[Translation]:
    """The best of a beam for each source."""
    if beam < 1 or most < 1:
        raise Mistake(f"beam {beam} and at most {most} tokens: both must be at least 1.")
    source = network.read(passage)
    if beam == 1:
        return _greedy(network, source, begin, most)
    return [
        _beam(network, source.rows(torch.tensor([i], device=passage.ids.device)), begin, beam, most, length)
        for i in range(len(passage.ids))
    ]


def _next(
    network: Translator, source: ReadSource, state: State, ids: Tensor, fed: Tensor | None, number: int
) -> tuple[Tensor, State, Tensor | None]:
    """One step: log p (batch, vocabulary) after `ids` (batch,)."""
    s, state = network.advance(state, network.embedding(ids).unsqueeze(1), fed)
    o = network.step(s, source.h, network.attend(s, source.h, source.mask, number))
    return network.logits(o)[:, 0].log_softmax(-1), state, o if network.input_feeding else None


def _fed(network: Translator, source: ReadSource) -> Tensor | None:
    return source.h.new_zeros(len(source.h), 1, network.out.in_features) if network.input_feeding else None


def _greedy(network: Translator, source: ReadSource, begin: int, most: int) -> list[Translation]:
    """All sources together."""
    n = len(source.h)
    ids, state, fed = torch.full((n,), begin, device=network.device), source.state, _fed(network, source)
    said: list[list[int]] = [[] for _ in range(n)]
    score, going = torch.zeros(n, dtype=torch.float64), torch.ones(n, dtype=torch.bool)
    for number in range(most + 1):
        log_p, state, fed = _next(network, source, state, ids, fed, number)
        if number == most:  # only the end could still come
            break
        value, ids = log_p.max(-1)
        score += torch.where(going, value.double().cpu(), 0.0)
        going &= (ids != network.end).cpu()
        if not going.any():
            break
        for row in going.nonzero().squeeze(1).tolist():
            said[row].append(int(ids[row]))
    return [Translation(tuple(one), float(score[i]), not bool(going[i])) for i, one in enumerate(said)]


def _beam(network: Translator, source: ReadSource, begin: int, beam: int, most: int, length: float) -> Translation:
    """One source."""
    state, fed = source.state, _fed(network, source)
    alive: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    ids = torch.tensor([begin], device=network.device)
    done: list[Translation] = []

    def merit(one: Translation) -> float:
        return one.score / float((len(one.ids) + one.ended) ** length)

    for number in range(most + 1):
        many = source.rows(torch.zeros(len(alive), dtype=torch.long, device=network.device))
        log_p, state, fed = _next(network, many, state, ids, fed, number)
        scores = log_p.double().cpu() + torch.tensor([score for _, score in alive], dtype=torch.float64).unsqueeze(1)
        done += [Translation(said, float(scores[i, network.end]), True) for i, (said, _) in enumerate(alive)]
        if number == most:
            break
        scores[:, network.end] = -torch.inf
        best = scores.flatten().topk(min(beam, int(torch.isfinite(scores).sum())))
        of, token = best.indices // scores.shape[1], best.indices % scores.shape[1]
        alive = [
            ((*alive[i][0], t), v) for i, t, v in zip(of.tolist(), token.tolist(), best.values.tolist(), strict=True)
        ]
        of, ids = of.to(network.device), token.to(network.device)
        state, fed = (state[0][:, of], state[1][:, of]), None if fed is None else fed[of]
        finished = sorted(done, key=merit, reverse=True)[:beam]
        # no longer text can be better: its score only falls, and is divided by so many tokens at most
        if len(finished) == beam and max(v for _, v in alive) / (most + 1) ** length < merit(finished[0]):
            break
    return max(done, key=merit)
