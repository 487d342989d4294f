"""Hierarchical attention: words make sentences, sentences make the text (Yang et al. 2016; Serrano & Smith 2019).

    words of a sentence  -> encoder -> attention -> one vector for each sentence
    sentences of a text  -> encoder -> attention -> decode, as in the flat classifier

The weight of a word is that of its sentence times its own within it, so words' weights sum to 1 over the text, and
to the sentence's weight over a sentence. The same holds when attention is edited: new weights of words say both.
A sentence that is given no weight is still read by the sentences beside it, under its own words' weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.errors import Mistake
from heedful.models.attentive.attention import Attention
from heedful.models.attentive.classifier import NO_DROPOUT, AttentiveClassifier, AttentiveOutput, Dropout
from heedful.models.attentive.encoders import Encoder
from heedful.models.network import Edit
from heedful.records import Batch, Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalOutput(AttentiveOutput):
    """`h` are the states of the sentences, (batch, sentences, hidden); `alpha` the weights of the words in the text."""

    alpha_sentences: Tensor  # (batch, sentences)
    sentences: Sentences


class HierarchicalClassifier(AttentiveClassifier):
    """`encoder` and `attention` read words, `sentence_encoder` and `sentence_attention` what they made of them."""

    can: ClassVar[frozenset[str]] = frozenset({"predicts", "differentiable", "attends", "edits_attention"})
    levels: ClassVar[tuple[str, ...]] = ("sentence", "word")  # the first is meant where none is named

    def __init__(
        self,
        *,
        hidden: int,
        encoder: Callable[[int, int], Encoder],
        attention: Callable[[int, bool], Attention],
        has_query: bool = False,
        dropout: Dropout = NO_DROPOUT,
        **sizes: int,
    ) -> None:
        """`sizes`: n_words, dim and n_labels, as for every attentive classifier."""
        if has_query:
            raise Mistake("a hierarchical model reads one text, and this task has a question or hypothesis.")
        super().__init__(hidden=hidden, encoder=encoder, attention=attention, has_query=False, dropout=dropout, **sizes)
        self.dropout_sentences = nn.Dropout(dropout.sentences)
        self.sentence_encoder = encoder(hidden, hidden)
        self.sentence_attention = attention(hidden, False)

    def forward(
        self,
        batch: Batch,
        *,
        x: Tensor | None = None,
        x_query: Tensor | None = None,
        alpha: Tensor | None = None,
        edit: Edit | None = None,
    ) -> HierarchicalOutput:
        """`alpha` (batch, length): other weights of the words, for both levels; `edit` changes the model's own."""
        sentences = find_sentences(batch.passage)
        x = self.embed(batch.passage) if x is None else x
        states = [
            self.encode(words, group.present)
            for words, group in zip(gather_words(x, sentences), sentences.groups, strict=True)
        ]  # (s, words, hidden)
        weights = [
            self.attention(h, group.present, None) for h, group in zip(states, sentences.groups, strict=True)
        ]  # (s, words)
        own = scatter_words(weights, sentences)  # (batch, length): of each word in its sentence
        h = self.encode_sentences(states, weights, sentences)  # (batch, sentences, hidden)
        of_sentences = self.sentence_attention(h, sentences.mask, None)  # (batch, sentences)
        given = alpha
        alpha = own * sentences.spread(of_sentences) if alpha is None else alpha
        if edit is not None:
            given = edit(0, alpha[:, None, None])[:, 0, 0]  # one layer, one head, one place that attends
        if given is not None:
            alpha, of_sentences = given, sentences.sums(given)
            total = sentences.spread(of_sentences)  # (batch, length)
            within = torch.where(total > 0, given / torch.where(total > 0, total, 1.0), own)
            weights = [within.flatten()[group.at] * group.present for group in sentences.groups]
            h = self.encode_sentences(states, weights, sentences)
        logits = self.decode(h, of_sentences)
        return HierarchicalOutput(logits, self.link, x, h, alpha, alpha_sentences=of_sentences, sentences=sentences)

    def __call__(self, batch: Batch, **given: Any) -> HierarchicalOutput:
        """See `forward`."""
        output = super().__call__(batch, **given)
        assert isinstance(output, HierarchicalOutput)
        return output

    def encode_sentences(self, states: list[Tensor], weights: list[Tensor], sentences: Sentences) -> Tensor:
        """States of the sentences, from their words' states and weights: (batch, sentences, hidden)."""
        batch, most = sentences.mask.shape
        made = self.embedding.weight.new_zeros(batch * most, self.decoder.first.in_features)
        if states:
            vectors = torch.cat([(w.unsqueeze(1) @ h).squeeze(1) for w, h in zip(weights, states, strict=True)])
            order = torch.cat([group.sentence for group in sentences.groups])  # (all sentences,)
            made = made.index_copy(0, sentences.place[order], vectors)
        made = self.dropout_sentences(made.view(batch, most, -1))
        h: Tensor = self.sentence_encoder(made, sentences.mask)
        return h


def gather_words(x: Tensor, sentences: Sentences) -> list[Tensor]:
    """The rows of x (batch, length, dim) as grouped sentences, (s, words, dim) each. All groups are one gather: its
    gradient is then one sum into x, not one for each group."""
    shapes = [group.at.shape for group in sentences.groups]
    if not shapes:
        return []
    rows = x.flatten(0, 1).index_select(0, torch.cat([group.at.flatten() for group in sentences.groups]))
    parts = torch.split(rows, [shape.numel() for shape in shapes])
    return [part.view(*shape, -1) for part, shape in zip(parts, shapes, strict=True)]


def scatter_words(values: list[Tensor], sentences: Sentences) -> Tensor:
    """Values of the words of grouped sentences, back in their texts: (batch, length), 0 elsewhere."""
    shape = sentences.word.shape
    if not values:
        return torch.zeros(shape, device=sentences.word.device)
    at = torch.cat([group.at[group.present] for group in sentences.groups])  # (words,)
    found = torch.cat([v[group.present] for v, group in zip(values, sentences.groups, strict=True)])
    return found.new_zeros(shape.numel()).index_copy(0, at, found).view(shape)


# Which words make which sentence, for a batch of texts: what a hierarchical model reads.
#
# Words are taken out of their padded texts and put into padded sentences, those of like length together, so that a
# long sentence does not make all others long. A sentence without words (all deleted) is not there.


@dataclass(frozen=True, slots=True)
class Group:
    """Sentences of like length."""

    sentence: Tensor  # (sentences,) which of the batch's sentences these are
    at: Tensor  # (sentences, words) where each word is in the flattened batch; 0 for padding
    present: Tensor  # (sentences, words)


@dataclass(frozen=True, slots=True)
class Sentences:
    groups: list[Group]
    place: Tensor  # (all sentences,) where each goes in the flattened (batch, sentences)
    mask: Tensor  # (batch, sentences) True where there is one
    word: Tensor  # (batch, length) True for words of sentences
    number: Tensor  # (batch, length) the sentence of its text that a token belongs to, 0 where it has none

    def spread(self, values: Tensor) -> Tensor:
        """Values of sentences, at each of their words: (..., sentences) by text -> (..., length); 0 elsewhere."""
        return values.gather(-1, self.number) * self.word

    def sums(self, values: Tensor) -> Tensor:
        """Values of words, summed over their sentences: (batch, length) -> (batch, sentences)."""
        return values.new_zeros(self.mask.shape).scatter_add(1, self.number, values * self.word)


def numbers(tokens: Tokens) -> Tensor:
    """The sentence of each word, counted from 0 without gaps: (batch, length), -1 where there is no word."""
    if tokens.sentence_index is None:
        raise Mistake("these texts are not split into sentences: give their text encoder sentences=True.")
    index = tokens.sentence_index.masked_fill(~tokens.mask, -1)  # (batch, length)
    before = torch.nn.functional.pad(index.cummax(1).values[:, :-1], (1, 0), value=-1)  # of the word before
    number = (index > before).cumsum(1) - 1
    return number.masked_fill(index < 0, -1)


def find_sentences(tokens: Tokens) -> Sentences:
    number = numbers(tokens)  # (batch, length)
    word = number >= 0
    batch, length = number.shape
    n = number.amax(1) + 1 if length else number.new_zeros(batch)  # (batch,) sentences of each text
    most = max(1, int(n.max())) if batch else 1
    mask = torch.arange(most, device=n.device) < n.unsqueeze(1)  # (batch, most)
    first = n.cumsum(0) - n  # (batch,) its first sentence among all
    at = word.flatten().nonzero().squeeze(1)  # (words,) in the flattened batch
    sentence = (first.unsqueeze(1) + number).flatten()[at]  # (words,) rising
    counts = torch.bincount(sentence, minlength=int(n.sum()))  # (all sentences,) words of each
    within = torch.arange(len(at), device=at.device) - (counts.cumsum(0) - counts)[sentence]
    return Sentences(
        _groups(at, sentence, within, counts), mask.flatten().nonzero().squeeze(1), mask, word, number.clamp(min=0)
    )


def _groups(at: Tensor, sentence: Tensor, within: Tensor, counts: Tensor) -> list[Group]:
    """Lengths 1 to 8, 9 to 16, 17 to 32, ...: padding at most doubles what is read."""
    size = torch.ceil(torch.log2(counts.clamp(min=8).double())).long()  # (all sentences,) 3, 4, 5, ...
    groups = []
    for wanted in torch.unique(size).tolist():
        chosen = (size == wanted).nonzero().squeeze(1)  # (sentences,)
        row = torch.full_like(counts, -1)
        row[chosen] = torch.arange(len(chosen), device=chosen.device)
        mine = row[sentence] >= 0  # (words,)
        lengths = counts[chosen]
        places = at.new_zeros(len(chosen), int(lengths.max()))
        places[row[sentence[mine]], within[mine]] = at[mine]
        present = torch.arange(places.shape[1], device=at.device) < lengths.unsqueeze(1)
        groups.append(Group(chosen, places, present))
    return groups
