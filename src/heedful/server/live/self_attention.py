"""What every head of a model does with a text, and what the model says when heads are changed.

For models in whose layers every token attends (`self_attends`). Like inference.py, torch is needed only once asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from heedful.errors import Mistake
from heedful.experiments.attention.head_changes import Changes, ask_with_changes
from heedful.records import Example, Part
from heedful.server.answer import run_address, with_query
from heedful.server.live.inference import Floats, LoadedModel
from heedful.server.question import TooLong, check

if TYPE_CHECKING:
    from heedful.models.network import SelfAttends
    from heedful.records import Batch

MOST_PIECES = 64  # that are drawn: layers x heads x pieces x pieces numbers go to the browser
LONGEST_LINKED = 3000  # characters of a text that an address can hold
MOST_READ = 50_000  # tokens that are read to measure all heads on one text


@dataclass(frozen=True, slots=True)
class Piece:
    """A token: what is seen of it, and the word it belongs to (None: a special token)."""

    text: str
    word: int | None
    part: Part = "passage"


@dataclass(frozen=True, slots=True)
class Window:
    """What a model reads at once of a text: here, of words `first` to before `last`."""

    number: int
    of: int
    first: int
    last: int


@dataclass(frozen=True, slots=True, eq=False)
class Heads:
    """One text under all heads; of a long one, the pieces from `begin` on."""

    pieces: tuple[Piece, ...]  # that are shown
    begin: int
    n_pieces: int  # in all
    weights: NDArray[np.float32]  # (layers, heads, shown to, shown from)
    reads: int  # the place among the shown that the classifier reads
    before: Floats  # (labels,) probabilities as the model is
    after: Floats  # (labels,) with the changed heads
    distance: float  # between the two


def heads_of(model: LoadedModel, run: str, source: dict[str, Any]) -> dict[str, Any] | None:
    """Where the view of heads of a text is to be had, for the pages that hold it; None: this model has none."""
    from heedful.models.attentive.encoder_heads import self_attending

    if self_attending(model.model.network) is None:
        return None
    given = {name: value for name, value in source.items() if value is not None}
    short = all(len(str(value)) <= LONGEST_LINKED for value in given.values())
    address = run_address(run, "attention")
    return {"post": address, "source": given, "href": address + with_query(given) if short else None}


def find_windows(model: LoadedModel, example: Example) -> list[Window]:
    """The parts of a text that the model reads at once, in whole words: one, unless it is too long."""
    from heedful.models.sequence import sequences

    network: Any = model.model.network
    batch = model.model.encode([example]).batch([0])
    found = sequences(batch, getattr(network, "limit", None), getattr(network, "frame", None))
    words = batch.passage.word_index
    if found.row is None or words is None:
        return [Window(0, 1, 0, len(example.passage))]
    none = None if batch.query is None else batch.query.ids.new_full(batch.query.ids.shape, -1)
    at = found.take(words, none).masked_fill(~found.present, -1)  # (windows, width)
    pieces = np.bincount(words[0][words[0] >= 0].numpy(), minlength=len(example.passage))
    spans = []
    for row in at.numpy():
        inside = np.bincount(row[row >= 0], minlength=len(pieces))
        whole = np.flatnonzero((inside == pieces) & (pieces > 0))
        if len(whole):
            spans.append((int(whole[0]), int(whole[-1]) + 1))
    return [Window(i, len(spans), *span) for i, span in enumerate(spans)]


def cut_to(model: LoadedModel, example: Example, window: Window) -> Example:
    """The words of a window as a text of its own, with the blank before them (of a word, to some)."""
    if window.of == 1:
        return example
    offsets = example.passage.offsets
    start = int(offsets[window.first - 1][1]) if window.first else 0
    end = int(offsets[window.last - 1][1])
    return replace(example, passage=model.model.text.split(example.passage.text[start:end]), evidence=None)


def look_into_heads(model: LoadedModel, example: Example, changes: Changes) -> Heads:
    """What all heads do; with `changes`, what the model says and all heads do then."""
    return model.remember(
        ("every head", example, frozenset(changes.items())), lambda: _look_into(model, example, changes)
    )


def _look_into(model: LoadedModel, example: Example, changes: Changes) -> Heads:
    network = _network(model)
    batch = model.model.encode([example]).batch([0])
    asked = ask_with_changes(network, batch, changes)
    pieces = _pieces(model, example, batch)[: asked.weights.shape[-1]]
    n, last = len(pieces), getattr(network, "reads", "first") == "last"
    begin = max(0, n - MOST_PIECES) if last else 0  # the place that the classifier reads is among the shown
    shown = slice(begin, begin + MOST_PIECES)
    return Heads(
        pieces=tuple(pieces[shown]),
        begin=begin,
        n_pieces=n,
        weights=asked.weights[..., shown, shown],
        reads=len(pieces[shown]) - 1 if last else 0,
        before=asked.before,
        after=asked.after,
        distance=asked.distance,
    )


def _network(model: LoadedModel) -> SelfAttends:
    from heedful.models.attentive.encoder_heads import self_attending
    from heedful.models.network import require

    found: Any = self_attending(model.model.network)
    if found is None:
        require({"self_attends"}, model.model.network.can, "the view of heads", model.model.name)
    network: SelfAttends = found
    return network


def can_be_changed(model: LoadedModel) -> bool:
    return "edits_attention" in _network(model).can


def _pieces(model: LoadedModel, example: Example, batch: Batch) -> list[Piece]:
    """All tokens in the order in which the model reads them: those of the passage, then of the query."""
    found = []
    for part, tokens, words in (("passage", batch.passage, example.passage), ("query", batch.query, example.query)):
        if tokens is None or words is None:
            continue
        real, present = tokens.mask[0].tolist(), tokens.present[0].tolist()
        names = model.model.text.names(tokens.ids[0][tokens.present[0]].tolist())
        surfaces = iter(range(len(real)))
        told = model.model.text.pieces(words, part)  # type: ignore[arg-type]
        index = None if tokens.word_index is None else tokens.word_index[0].tolist()
        before = None
        for i, name in zip((i for i, there in enumerate(present) if there), names, strict=True):
            if not real[i]:
                found.append(Piece(name, None, part))  # type: ignore[arg-type]
                continue
            k = next(surfaces)
            word = k if index is None else index[i]
            text = told.surface(k) or name
            found.append(Piece(f"-{text}" if word == before else text, word, part))  # type: ignore[arg-type]
            before = word
    return found


def cost_of_measuring(heads: Heads) -> tuple[int, int]:
    """(forward passes, tokens that are read): each head is made uniform and shut off."""
    layers, each = heads.weights.shape[:2]
    passes = 2 * layers * each
    return passes, passes * heads.n_pieces


def measure_heads(model: LoadedModel, example: Example, heads: Heads) -> list[dict[str, Any]]:
    """The rows of the experiment `heads` for one text, kept with the model."""
    passes, tokens = cost_of_measuring(heads)
    if tokens > MOST_READ:
        raise TooLong(
            f"measuring all heads reads this text {passes:,} times, {tokens:,} tokens in all, and at most "
            f"{MOST_READ:,} are read while others wait: give a shorter text, or use `heedful run heads`."
        )
    return model.remember(("measured", example), lambda: _measure(model, example))


def _measure(model: LoadedModel, example: Example) -> list[dict[str, Any]]:
    from heedful.experiments.attention.heads import HeadsConfig, run

    batch = model.model.encode([example]).batch([0])
    chunks = run(_network(model), [(np.zeros(1, np.int64), batch)], HeadsConfig(), np.random.default_rng(0))
    rows = []
    for chunk in chunks:
        check()
        names = ("layer", "head", "operation", "tvd", "logit", "flipped")
        rows += [
            dict(zip(names, row, strict=True))
            for row in zip(*(np.asarray(chunk[name]).tolist() for name in names), strict=True)
        ]
    return rows


def read_changes(given: Sequence[str], operation: str, layers: int, heads: int) -> Changes:
    """`2.5` is a head, `2` all heads of a layer: what stands in an address."""
    found: dict[tuple[int, int], Any] = {}
    for said in given:
        layer, _, head = said.partition(".")
        numbers = [part for part in (layer, head) if part]
        if not layer or not all(part.isascii() and part.isdecimal() and len(part) < 6 for part in numbers):
            raise Mistake(f"{operation}={said[:40]} is not a head: 2.5 is head 5 of layer 2, 2 is all of layer 2.")
        which = range(heads) if not head else [int(head)]
        if int(layer) >= layers or any(one >= heads for one in which):
            raise Mistake(
                f"{operation}={said[:40]}: this model has layers 0 to {layers - 1} of heads 0 to {heads - 1}."
            )
        found |= {(int(layer), one): operation for one in which}
    return found
