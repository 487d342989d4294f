"""The one perturbation engine: what does the model say about edited texts?

Occlusion, omission, LIME, SHAP, comprehensiveness, sufficiency and erasure all ask this, often about the
same texts. Equal edited texts are asked once; the rest are sorted by length and streamed in batches that
fit a memory budget, so that the 3,000 deletions of a 3,000-word text never exist at once. When memory runs
out all the same, batches are halved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn

from heedful.errors import Mistake
from heedful.explainers.perturbation.edits import Edited, Edits, Ints, Operator, edit
from heedful.models.language.families import Families, alike, find, key, keys_of, shares
from heedful.models.network import Differentiable, Network, require
from heedful.records import Batch, Part, Tokens

if TYPE_CHECKING:
    from heedful.models.language.generator import Generator

Progress = Callable[[int, int], None]  # edited texts done, and in all
# Of each edit the number of its text: equal texts, which are asked once, have one.
Asked = Callable[[Ints], None]

MEMORY = 256 * 2**20  # bytes that a batch may take, by estimate
LARGEST = 2**16  # texts in a batch, however short
OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "not enough memory")  # torch, on any device


def predict(
    model: Network,
    batch: Batch,
    edits: Edits,
    operator: Operator = "delete",
    part: Part = "passage",
    *,
    token: int | None = None,
    internal_batch_size: int | None = None,
    memory: int = MEMORY,
    progress: Progress | None = None,
    asked: Asked | None = None,
) -> Tensor:
    """The logits (n, outputs) of the edited texts, in the order of `edits`.

    operator: changed words are deleted, replaced by `token`, have an embedding of zeros, or keep their place and are
    shut out of attention ("pad").
    internal_batch_size: at most so many texts at once; fewer where `memory` (bytes, estimated) asks for it.
    """

    def answer(edited: Edited) -> Tensor:
        texts = _with_part(batch.rows(edited.rows), part, edited.tokens)
        if operator == "pad":
            require({"hides_words"}, model.can, "shutting words out of attention")
        if edited.zero is None:
            return model(texts).logits
        require({"differentiable"}, model.can, "setting embeddings to zero")
        if shares(model):
            return zeroed_together(cast("Generator", model), texts, edited, part)
        x = embed_edited(cast(Differentiable, model), edited)  # (n, length, dim)
        return (model(texts, x=x) if part == "passage" else model(texts, x_query=x)).logits

    return ask(
        model,
        batch,
        edits,
        operator,
        part,
        answer,
        token=token,
        internal_batch_size=internal_batch_size,
        memory=memory,
        progress=progress,
        asked=asked,
    )


def ask(
    model: Network,
    batch: Batch,
    edits: Edits,
    operator: Operator,
    part: Part,
    answer: Callable[[Edited], Tensor],
    *,
    token: int | None = None,
    internal_batch_size: int | None = None,
    memory: int = MEMORY,
    progress: Progress | None = None,
    asked: Asked | None = None,
) -> Tensor:
    """answer(edited texts) -> (their number, outputs), for all edits: `predict` with its own answers."""
    tokens = batch.passage if part == "passage" else batch.query
    if tokens is None:
        raise Mistake("these texts have no query, so there is no query to edit.")
    if internal_batch_size is not None and internal_batch_size < 1:
        raise Mistake(f"internal_batch_size must be at least 1, not {internal_batch_size}.")
    check_token(model, token)
    if len(edits) == 0:
        return torch.zeros(0, model.link.outputs(model.n_labels), device=model.device, dtype=model.dtype)
    first, place, lengths, keys = _different(
        batch, tokens, edits, operator, part, token, getattr(model, "share", False)
    )
    if asked is not None:
        asked(place)
    if keys is None:
        order = np.argsort(lengths, kind="stable")
        family = np.arange(len(order))
    else:  # texts that are beginnings of others are read with them
        order, family, lengths = _in_families(keys, batch, edits.rows[first], lengths)
    first, lengths, place = first[order], lengths[order], np.argsort(order)[place]
    bytes_needed = lengths * model.bytes_per_token
    answers: list[Tensor] = []
    done, most = 0, internal_batch_size or LARGEST
    with evaluating(model), torch.no_grad():
        while done < len(first):
            upcoming = np.maximum.accumulate(bytes_needed[done : done + most])
            texts = family[done : done + most] - family[done] + 1
            fits = texts * upcoming <= memory  # as many, all as long as the longest
            size = max(1, int(fits.sum()))
            try:
                answers.append(answer(edit(tokens, edits, first[done : done + size], operator, token)))
            except (MemoryError, RuntimeError) as error:
                if size == 1 or not is_out_of_memory(error):
                    raise
                most = size // 2
                continue
            done += size
            if progress is not None:
                progress(done, len(first))
    return torch.cat(answers)[torch.from_numpy(place).to(answers[0].device)]


def check_token(model: Network, token: int | None) -> None:
    """The id of the word that stands in for those that are gone must be one of the model's."""
    n_words = getattr(model, "n_words", None)
    if token is not None and n_words is not None and not 0 <= token < n_words:
        raise Mistake(f"token must be a word id from 0 to {n_words - 1}, not {token}.")


def embed_edited(model: Differentiable, edited: Edited) -> Tensor:
    """The embeddings (n, length, dim) of edited texts."""
    x = model.embed(edited.tokens)
    return x if edited.zero is None else x.masked_fill(edited.zero.unsqueeze(-1), 0.0)


def _with_part(batch: Batch, part: Part, tokens: Tokens) -> Batch:
    return replace(batch, passage=tokens) if part == "passage" else replace(batch, query=tokens)


@contextmanager
def evaluating(model: Network) -> Iterator[None]:
    """Without dropout inside; every module is in its own mode again afterwards."""
    if not isinstance(model, nn.Module):
        yield
        return
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _different(
    batch: Batch, tokens: Tokens, edits: Edits, operator: Operator, part: Part, token: int | None, families: bool
) -> tuple[Ints, Ints, Ints, list[bytes] | None]:
    """The first edit of each different edited text, for each edit which of those it is, the lengths, and with
    `families` what is read (models/language/families.py).

    Texts are compared by a 128-bit digest of all that the model reads: ids, mask, the other part, candidates.
    """
    other = batch.query if part == "passage" else batch.passage
    beside = [b"" if other is None else _content(other, row) for row in range(len(batch))]
    if batch.candidates is not None:
        beside = [
            c + b"|" + allowed.tobytes() for c, allowed in zip(beside, batch.candidates.cpu().numpy(), strict=True)
        ]
    if batch.asked is not None:  # equal texts, and other questions
        asked = [ids for ids in (batch.asked.this, batch.asked.that, batch.asked.phrase) if ids is not None]
        about = torch.cat(asked, 1).cpu().numpy()
        beside = [c + b"|" + ids.tobytes() for c, ids in zip(beside, about, strict=True)]
    longer = 0 if other is None else other.present.sum(1).cpu().numpy()[edits.rows]
    seen: dict[bytes, int] = {}
    first: list[int] = []
    keys: list[bytes] | None = [] if families else None
    others = [np.zeros(0, np.int64)] * len(batch)
    if keys is not None and other is not None:
        codes = _code(other).cpu().numpy()
        others = [row[:n] for row, n in zip(codes, other.present.sum(1).tolist(), strict=True)]
    place, lengths = np.empty(len(edits), np.int64), np.empty(len(edits), np.int64)
    chunk = max(1, 2**22 // tokens.ids.shape[1])  # edits at once: some MiB of ids
    for begin in range(0, len(edits), chunk):
        which = np.arange(begin, min(begin + chunk, len(edits)))
        edited = edit(tokens, edits, which, operator, token)
        code = _code(edited.tokens)  # (n, length)
        if edited.zero is not None:
            code = code + edited.zero
        lengths[which] = edited.tokens.present.sum(1).cpu().numpy()
        at = code[:, :0] if edited.tokens.places is None else edited.tokens.places  # what is asked about moves, too
        for e, text, asked_at in zip(which.tolist(), code.cpu().numpy(), at.cpu().numpy(), strict=True):
            content = text[: lengths[e]].tobytes() + b"|" + asked_at[: lengths[e]].tobytes() + beside[edits.rows[e]]
            place[e] = seen.setdefault(hashlib.blake2b(content, digest_size=16).digest(), len(first))
            if place[e] == len(first):
                first.append(e)
                if keys is not None:
                    parts = (text[: lengths[e]], others[edits.rows[e]])
                    keys.append(key(*(parts if part == "passage" else parts[::-1])))
    firsts = np.array(first, dtype=np.int64)
    return firsts, place, np.maximum(lengths + longer, 1)[firsts], keys


def _in_families(keys: list[bytes], batch: Batch, rows: Ints, lengths: Ints) -> tuple[Ints, Ints, Ints]:
    """An order of edited texts in which families stand together, those of one prompt one after the other; the number
    of each one's family along it; and for each text the length of the longest of its family."""
    longest, of = find(keys)
    prompt = alike(batch).of.cpu().numpy()[rows[longest]]  # (families,)
    sizes = lengths[longest]
    number = np.argsort(np.lexsort((sizes, prompt)))  # (families,) the place of each
    order = np.lexsort((lengths, number[of]))
    return order, number[of][order], sizes[of]


def zeroed_together(model: Generator, texts: Batch, edited: Edited, part: Part) -> Tensor:
    """The answers about texts with embeddings of zeros: of each family only its longest is embedded and read."""
    assert edited.zero is not None
    zeroed = 2 * _code(edited.tokens) + edited.zero
    beside = texts.query if part == "passage" else texts.passage
    other = None if beside is None else 2 * _code(beside)
    keys = keys_of(texts, zeroed, other) if part == "passage" or other is None else keys_of(texts, other, zeroed)
    families = Families.find(keys, zeroed.device)
    some = edited.tokens.rows(families.longest)
    width = some.ids.shape[1]
    x = embed_edited(model, Edited(edited.rows[families.longest], some, edited.zero[families.longest, :width]))
    given = (x, None) if part == "passage" else (None, x)
    return model.together(texts, families, *given).logits


def _content(tokens: Tokens, row: int) -> bytes:
    """All that a model reads of a text."""
    return _code(tokens)[row][tokens.present[row]].cpu().numpy().tobytes()


def _code(tokens: Tokens) -> Tensor:
    """What a model reads at each position as one even number: word, whether it is one, and its sentence."""
    code = 4 * tokens.ids + 2 * tokens.mask  # (n, length)
    return code if tokens.sentence_index is None else code + (tokens.sentence_index + 1) * 2**34


def is_out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or any(sign in str(error).lower() for sign in OUT_OF_MEMORY)
