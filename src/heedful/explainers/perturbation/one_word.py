"""What the model says when one word is changed, for every word of every text.

Any model is asked about each changed text (perturb.py). How much really has to be computed again depends on the
encoder: for a BiLSTM one direction on either side of the word, for an LSTM what comes after it, for a CNN the window
around it, for an average nothing. These are registered in `CONTEXTS`, and their answers are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np
import torch
from torch import Tensor

from heedful.errors import Mistake
from heedful.explainers.perturbation.edits import Edited, Edits, Operator, edit, hiding
from heedful.explainers.perturbation.one_word_bilstm import bilstm_contexts, lstm_contexts
from heedful.explainers.perturbation.one_word_local import local_contexts
from heedful.explainers.perturbation.perturb import Progress, ask, check_token, embed_edited, evaluating, predict
from heedful.explainers.perturbation.reading import TextsRead
from heedful.models.attentive.attention import Additive, Attention, Dot, General, Uniform
from heedful.models.attentive.classifier import AttentiveClassifier, AttentiveOutput, Decoder
from heedful.models.attentive.encoders import CNN, LSTM, Average, BiLSTM, Encoder
from heedful.models.network import Network, Output
from heedful.records import Batch, Part, Tokens

ROWS = 4096  # changed texts followed at once: enough to keep matrix products busy
MEMORY = 2**29  # bytes for what is kept of each of their positions

# The projected context of each text with one word changed, through the structure of its encoder. Called with
# (model, reading, rows, tolerance): see `bilstm_contexts`.
CONTEXTS: Mapping[type[Encoder], Callable[[AttentiveClassifier, TextsRead, int, float], Tensor]] = {
    BiLSTM: bilstm_contexts,
    LSTM: lstm_contexts,
    CNN: local_contexts,
    Average: local_contexts,
}
ATTENTIONS: tuple[type[Attention], ...] = (Additive, Dot, General, Uniform)  # that look at one state at a time


@dataclass(frozen=True, slots=True)
class OneWord:
    """Logits with each word changed; where there is no word, the original's."""

    original: Tensor  # (batch, outputs)
    changed: Tensor  # (batch, length, outputs): a word's at all its pieces
    texts: int  # texts the model was asked about


@dataclass(frozen=True, slots=True)
class OneWordRequest:
    """How words are changed, how many changed texts are read at once, and who is told of it."""

    operator: Operator
    token: int | None
    internal_batch_size: int | None
    progress: Progress | None


def change_each_word(
    model: Network,
    batch: Batch,
    operator: Operator,
    part: Part = "passage",
    *,
    token: int | None = None,
    tolerance: float = 0.0,
    internal_batch_size: int | None = None,
    progress: Progress | None = None,
    output: Output | None = None,
    general: bool = False,
) -> OneWord:
    """Every word of `part` deleted, replaced by `token` or zeroed, one at a time.

    `output`: what the model says of the batch as it is, if that is known already. `general`: ask about each changed
    text even where the model's structure would save most of it.
    """
    if tolerance < 0:
        raise Mistake(f"tolerance must be 0 (exact) or more, not {tolerance}.")
    if internal_batch_size is not None and internal_batch_size < 1:
        raise Mistake(f"internal_batch_size must be at least 1, not {internal_batch_size}.")
    check_token(model, token)
    if part == "query" and (batch.query is None or not model.has_query):
        raise Mistake("this model reads no query, so there is no query to explain.")
    request = OneWordRequest(operator, token, internal_batch_size, progress)
    with evaluating(model), torch.no_grad():
        grouped = batch.passage.word_index is not None  # several tokens go at once
        if not general and has_structure(model) and not grouped:
            if part == "query":
                assert batch.query is not None
                return _unchanged(_query(model, batch, request), batch.query, request)
            found = _unchanged(_passage(model, batch, request, tolerance, output), batch.passage, request)
            return (
                replace(found, changed=_same_text(model, batch.passage, found.changed))
                if operator == "delete"
                else found
            )
        tokens = batch.passage if part == "passage" or batch.query is None else batch.query
        return _unchanged(_each_text(model, batch, part, request), tokens, request)


def _unchanged(found: OneWord, tokens: Tokens, request: OneWordRequest) -> OneWord:
    """A word that is replaced by itself changes nothing: bit for bit."""
    if request.operator != "replace":
        return found
    same = tokens.ids == hiding(tokens, request.token)  # (batch, length)
    if tokens.word_index is not None:  # a word of several pieces is the same if all of them are
        word = tokens.word_index.clamp(min=0)
        # a piece can be of several words, so words can be more than there are places
        other = word.new_zeros(len(word), int(word.max()) + 1)
        other.scatter_add_(1, word, (~same & tokens.mask).long())
        same = same & (other.gather(1, word) == 0)
    same = same.unsqueeze(-1)  # (batch, length, 1)
    return replace(found, changed=torch.where(same, found.original.unsqueeze(1), found.changed))


def _same_text(model: AttentiveClassifier, tokens: Tokens, changed: Tensor) -> Tensor:
    """Of equal words side by side ("very very") it is the same text whichever is deleted: bit for bit one answer.
    To an average, which knows no order, equal words are the same wherever they stand.

    Rounding would otherwise order them, and rank correlations count an order where there is a tie.
    """
    if isinstance(model.encoder, Average):
        ids = tokens.ids.masked_fill(~tokens.mask, -1)
        ordered, places = ids.sort(dim=1, stable=True)  # (batch, length): equal words side by side, the first one first
        begins = torch.ones_like(tokens.mask)
        begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
        place = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        start = place.masked_fill(~begins, 0).cummax(1).values  # where its row of equals begins, in that order
        first = torch.zeros_like(ids).scatter(1, places, places.gather(1, start))
        first = torch.where(tokens.mask, first, place)
        return changed.gather(1, first.unsqueeze(-1).expand_as(changed))
    again = torch.zeros_like(tokens.mask)  # (batch, length): the word before is the same
    again[:, 1:] = (tokens.ids[:, 1:] == tokens.ids[:, :-1]) & tokens.mask[:, 1:] & tokens.mask[:, :-1]
    place = torch.arange(again.shape[1], device=again.device).expand_as(again)
    first = place.masked_fill(again, 0).cummax(1).values  # (batch, length): where its row of equals begins
    return changed.gather(1, first.unsqueeze(-1).expand_as(changed))


def _each_text(model: Network, batch: Batch, part: Part, request: OneWordRequest) -> OneWord:
    """The general way: each changed text is read. Equal ones are asked once, so they have one answer."""
    tokens = batch.query if part == "query" else batch.passage
    assert tokens is not None
    edits = Edits.each_word(tokens)
    logits = predict(
        model,
        batch,
        edits,
        request.operator,
        part,
        token=request.token,
        internal_batch_size=request.internal_batch_size,
        progress=request.progress,
    )
    return _gathered(tokens, edits, model(batch).logits, logits)


def has_structure(model: Network) -> TypeGuard[AttentiveClassifier]:
    """Whether every part of the model is one whose insides are known here."""
    return (
        type(model) is AttentiveClassifier
        and type(model.encoder) in CONTEXTS
        and type(model.attention) in ATTENTIONS
        and type(model.decoder) is Decoder
    )


def _passage(
    model: AttentiveClassifier, batch: Batch, request: OneWordRequest, tolerance: float, output: Output | None
) -> OneWord:
    """Through the structure of the encoder, texts of like length together."""
    words = int(batch.passage.mask.sum())
    contexts = CONTEXTS[type(model.encoder)]
    original: Tensor | None = None
    changed: Tensor | None = None
    done = 0
    for group, rows in _groups(model, batch, request.internal_batch_size):
        some = batch.rows(group)
        out = output.rows(group, some.passage.ids.shape[1]) if isinstance(output, AttentiveOutput) else model(some)
        new = None
        if request.operator == "replace":
            new = model.embedding.weight[hiding(batch.passage, request.token)].expand_as(out.x)
        elif request.operator == "zero":
            new = torch.zeros_like(out.x)
        tokens = some.passage
        reading = TextsRead(out.x, out.h, tokens.present, tokens.mask, out.query, new)
        context = contexts(model, reading, rows, tolerance)  # (group, length, features)
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
        if request.progress is not None:
            request.progress(done, words)
    assert original is not None
    assert changed is not None
    return OneWord(original, changed, len(batch) + words)


def delete_two_words(model: AttentiveClassifier, text: Batch, internal_batch_size: int | None = None) -> Tensor:
    """Logits of one text whole, without each word of its passage, and without every two: (1 + n + n (n - 1) / 2,
    outputs), pairs in the order of `np.triu_indices(n, 1)`.

    The text is read without each word, and of these texts every later word is deleted through the structure of the
    encoder: no pair is read twice.
    """
    contexts = CONTEXTS[type(model.encoder)]
    n = int(text.passage.mask.sum())
    with evaluating(model), torch.no_grad():
        edits = Edits.each_word(text.passage)
        shorter = edit(text.passage, edits, np.arange(n), "delete").tokens  # (n, length - 1)
        every = replace(text.rows(torch.zeros(n, dtype=torch.long, device=shorter.ids.device)), passage=shorter)
        place = (shorter.mask.cumsum(1) - 1).masked_fill(~shorter.mask, -1)  # (n, length - 1) of the words that stay
        changing = place >= torch.arange(n, device=place.device).unsqueeze(1)
        one, two = [], []
        for group, rows in _groups(model, every, internal_batch_size):
            some = every.rows(group)
            out = model(some)
            tokens, later = some.passage, changing[group]
            reading = TextsRead(out.x, out.h, tokens.present, tokens.mask, out.query, None, later)
            logits = model.decoder.readout(contexts(model, reading, rows, 0.0), out.query, some.candidates)
            one.append(out.logits)
            two.append(logits[later])
        return torch.cat([model(text).logits, *one, *two])


def _groups(model: AttentiveClassifier, batch: Batch, internal_batch_size: int | None) -> Iterator[tuple[Tensor, int]]:
    """Texts to be done together, longest first, and how many changed texts may be followed at once."""
    lengths = batch.passage.present.sum(1)  # (batch,)
    order = lengths.argsort(descending=True, stable=True)
    first = model.decoder.first
    per_position = (6 + first.out_features) * first.weight.element_size()  # projection; phi, and its sums
    begin = 0
    while begin < len(order):
        longest = max(1, int(lengths[order[begin]]))
        rows = max(1, min(internal_batch_size or ROWS, MEMORY // (longest * per_position)))
        size = max(1, rows // longest)
        yield order[begin : begin + size], rows
        begin += size


def _query(model: AttentiveClassifier, batch: Batch, request: OneWordRequest) -> OneWord:
    """The passage's states stay as they are: only the query is read again."""
    assert batch.query is not None
    h = model.encode(model.embed(batch.passage), batch.passage.present)  # (batch, length, hidden)

    def answer(edited: Edited) -> Tensor:
        query = model.encode_query(embed_edited(model, edited), edited.tokens.present)  # (n, hidden)
        some = batch.rows(edited.rows)
        states = h[edited.rows, : some.passage.ids.shape[1]]
        alpha = model.attend(states, some.passage.mask, query)
        return model.decode(states, alpha, query, some.candidates)

    edits = Edits.each_word(batch.query)
    logits = ask(
        model,
        batch,
        edits,
        request.operator,
        "query",
        answer,
        token=request.token,
        internal_batch_size=request.internal_batch_size,
        progress=request.progress,
    )
    return _gathered(batch.query, edits, model(batch).logits, logits)


def _gathered(tokens: Tokens, edits: Edits, original: Tensor, logits: Tensor) -> OneWord:
    """From one row for each word to (batch, length, outputs)."""
    changed = original.unsqueeze(1).repeat(1, tokens.ids.shape[1], 1)
    pieces = torch.from_numpy(edits.begins).diff().to(logits.device)  # (words,) of each word
    changed[tokens.mask] = logits.to(original).repeat_interleave(pieces, 0)
    return OneWord(original, changed, len(original) + len(logits))
