"""What the model says when one word is changed, for every word of every text.

How much has to be computed again depends on the encoder: for a BiLSTM one direction on either side of the
word, for a CNN the window around it, for an average nothing. Any other model is asked about each changed
text (perturb.py). The answers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from heedful.data.vocabulary import UNK
from heedful.errors import Mistake
from heedful.explainers.edits import Edited, Edits, Operator
from heedful.explainers.one_word_bilstm import bilstm_contexts
from heedful.explainers.one_word_local import local_contexts
from heedful.explainers.perturb import Part, Progress, ask, embedded, evaluating, predict, select
from heedful.models.attention import Additive, Dot, General, Uniform
from heedful.models.classifier import AttentiveClassifier, Decoder, Output
from heedful.models.encoders import CNN, Average, BiLSTM
from heedful.records import Batch, Tokens

ROWS = 4096  # changed texts followed at once: enough to keep matrix products busy
MEMORY = 2**29  # bytes for what is kept of each of their positions


@dataclass(frozen=True, slots=True)
class OneWord:
    """Logits with each word changed; where there is no word, the original's."""

    original: Tensor  # (batch, outputs)
    changed: Tensor  # (batch, length, outputs)
    texts: int  # texts the model was asked about


def change_each_word(
    model: AttentiveClassifier,
    batch: Batch,
    operator: Operator,
    part: Part = "passage",
    *,
    token: int = UNK,
    tolerance: float = 0.0,
    internal_batch_size: int | None = None,
    progress: Progress | None = None,
    output: Output | None = None,
) -> OneWord:
    """Every word of `part` deleted, replaced by `token` or zeroed, one at a time.

    `output`: what the model says of the batch as it is, if that is known already.
    """
    if tolerance < 0:
        raise Mistake(f"tolerance must be 0 (exact) or more, not {tolerance}.")
    if internal_batch_size is not None and internal_batch_size < 1:
        raise Mistake(f"internal_batch_size must be at least 1, not {internal_batch_size}.")
    if not 0 <= token < model.embedding.num_embeddings:
        raise Mistake(f"token must be a word id from 0 to {model.embedding.num_embeddings - 1}, not {token}.")
    with evaluating(model), torch.no_grad():
        found = _asked(model, batch, operator, part, token, tolerance, internal_batch_size, progress, output)
        if operator != "delete":
            return found
        tokens = batch.query if part == "query" else batch.passage
        assert tokens is not None
        return replace(found, changed=_same_text(tokens, found.changed))


def _same_text(tokens: Tokens, changed: Tensor) -> Tensor:
    """Of equal words side by side ("very very") it is the same text whichever is deleted: bit for bit one answer.

    Rounding would otherwise order them, and rank correlations count an order where there is a tie.
    """
    again = torch.zeros_like(tokens.mask)  # (batch, length): the word before is the same
    again[:, 1:] = (tokens.ids[:, 1:] == tokens.ids[:, :-1]) & tokens.mask[:, 1:] & tokens.mask[:, :-1]
    place = torch.arange(again.shape[1], device=again.device).expand_as(again)
    first = place.masked_fill(again, 0).cummax(1).values  # (batch, length): where its row of equals begins
    return changed.gather(1, first.unsqueeze(-1).expand_as(changed))


def _asked(
    model: AttentiveClassifier,
    batch: Batch,
    operator: Operator,
    part: Part,
    token: int,
    tolerance: float,
    internal_batch_size: int | None,
    progress: Progress | None,
    output: Output | None,
) -> OneWord:
    """Each changed text's logits, in the way that costs least."""
    if part == "query":
        return _query(model, batch, operator, token, internal_batch_size, progress)
    if has_structure(model):
        return _passage(model, batch, operator, token, tolerance, internal_batch_size, progress, output)
    edits = Edits.each_word(batch.passage)
    logits = predict(
        model,
        batch,
        edits,
        operator,
        token=token,
        internal_batch_size=internal_batch_size,
        progress=progress,
    )
    return _gathered(batch.passage, _original(model, batch), logits)


def has_structure(model: AttentiveClassifier) -> bool:
    """Whether every part of the model is one of ours, whose insides are known."""
    return (
        type(model) is AttentiveClassifier
        and type(model.encoder) in (BiLSTM, CNN, Average)
        and type(model.attention) in (Additive, Dot, General, Uniform)
        and type(model.decoder) is Decoder
    )


def _passage(
    model: AttentiveClassifier,
    batch: Batch,
    operator: Operator,
    token: int,
    tolerance: float,
    internal_batch_size: int | None,
    progress: Progress | None,
    output: Output | None,
) -> OneWord:
    """Through the structure of the encoder, texts of like length together."""
    words = int(batch.passage.mask.sum())
    original: Tensor | None = None
    changed: Tensor | None = None
    done = 0
    for group, rows in _groups(model, batch, internal_batch_size):
        some = select(batch, group)
        out = model(some) if output is None else output.rows(group, some.passage.ids.shape[1])
        new = None
        if operator == "replace":
            new = model.embedding.weight[token].expand_as(out.x)
        elif operator == "zero":
            new = torch.zeros_like(out.x)
        given = (model, out.x, out.h, some.passage.present, some.passage.mask, out.query, new)
        if type(model.encoder) is BiLSTM:
            context = bilstm_contexts(*given, rows=rows, tolerance=tolerance)
        else:
            context = local_contexts(*given)  # (group, length, features)
        logits = model.decoder.readout(context, out.query, some.candidates)  # (group, length, outputs)
        if original is None or changed is None:
            original = out.logits.new_zeros(len(batch), out.logits.shape[-1])
            changed = original.new_zeros(*batch.passage.ids.shape, out.logits.shape[-1])
        original[group] = out.logits
        changed[group] = out.logits.unsqueeze(1)
        changed[group, : logits.shape[1]] = torch.where(
            some.passage.mask.unsqueeze(-1), logits, out.logits.unsqueeze(1)
        )
        done += int(some.passage.mask.sum())
        if progress is not None:
            progress(done, words)
    assert original is not None
    assert changed is not None
    return OneWord(original, changed, len(batch) + words)


def _groups(
    model: AttentiveClassifier, batch: Batch, internal_batch_size: int | None
) -> Iterator[tuple[Tensor, int]]:
    """Texts to be done together, longest first, and how many changed texts may be followed at once."""
    lengths = batch.passage.present.sum(1)  # (batch,)
    order = lengths.argsort(descending=True, stable=True)
    first = model.decoder.theta or model.decoder.Wp
    assert first is not None
    per_position = (6 + first.out_features) * first.weight.element_size()  # projection; phi, and its sums
    begin = 0
    while begin < len(order):
        longest = max(1, int(lengths[order[begin]]))
        rows = max(1, min(internal_batch_size or ROWS, MEMORY // (longest * per_position)))
        size = max(1, rows // longest)
        yield order[begin : begin + size], rows
        begin += size


def _query(
    model: AttentiveClassifier,
    batch: Batch,
    operator: Operator,
    token: int,
    internal_batch_size: int | None,
    progress: Progress | None,
) -> OneWord:
    """The passage's states stay as they are: only the query is read again."""
    if batch.query is None or not model.has_query:
        raise Mistake("this model reads no query, so there is no query to explain.")
    h = model.encode(model.embed(batch.passage), batch.passage.present)  # (batch, length, hidden)

    def answer(edited: Edited) -> Tensor:
        query = model.encode_query(embedded(model, edited), edited.tokens.present)  # (n, hidden)
        some = select(batch, edited.rows)
        states = h[edited.rows, : some.passage.ids.shape[1]]
        alpha = model.attend(states, some.passage.mask, query)
        return model.decode(states, alpha, query, some.candidates)

    edits = Edits.each_word(batch.query)
    logits = ask(
        model,
        batch,
        edits,
        operator,
        "query",
        answer,
        token=token,
        internal_batch_size=internal_batch_size,
        progress=progress,
    )
    return _gathered(batch.query, _original(model, batch), logits)


def _original(model: AttentiveClassifier, batch: Batch) -> Tensor:
    return model(batch).logits


def _gathered(tokens: Tokens, original: Tensor, logits: Tensor) -> OneWord:
    """From one row for each word to (batch, length, outputs)."""
    changed = original.unsqueeze(1).repeat(1, tokens.ids.shape[1], 1)
    changed[tokens.mask] = logits.to(original)
    return OneWord(original, changed, len(original) + len(logits))
