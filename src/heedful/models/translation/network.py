"""A translator as four public steps for each word that is said.

    encode(x, present)          -> h      (batch, n, hidden)   states of the source, once for a text
    start(h, present)           -> state                       of the decoder, before anything is said
    advance(state, said, fed)   -> s, state                    what was just said has been read: s (batch, m, hidden)
    attend(s, h, mask)          -> alpha  (batch, m, n)        weights, sum 1 over the words of the source
    step(s, h, alpha)           -> o      (batch, m, hidden)   tanh(W [c; s]), c = sum_t alpha_t h_t

and the logits of the next token are U o + b. The order is Luong's (2015, section 3): the decoder reads the last word
and then attends, so a weight is an argument of `step`, and nothing before it depends on it but with input feeding.
Without input feeding all steps of a text are taken at once.

A token that comes next is a label, as in every model that generates: `network(batch)` answers `batch.asked`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.models.attentive.encoders import Encoder
from heedful.models.language.families import Families
from heedful.models.language.readout import OutputLayer, answer
from heedful.models.link import LOG_ODDS, Link
from heedful.models.network import Edit, Output, layer_number
from heedful.models.translation.attention import StepAttention
from heedful.records import Batch, Tokens

State = tuple[Tensor, Tensor]  # of an LSTM; of a GRU the second is not used
Impose = Callable[[Tensor, Tensor], Tensor]  # alpha (batch, m, n), mask (batch, n) -> other weights, of all steps


@dataclass(frozen=True, slots=True)
class ReadSource:
    """A batch of sources that has been read."""

    h: Tensor  # (batch, n, hidden)
    mask: Tensor  # (batch, n) bool: words
    state: State

    def rows(self, which: Tensor) -> ReadSource:
        return ReadSource(self.h[which], self.mask[which], (self.state[0][:, which], self.state[1][:, which]))


class Translator(nn.Module):
    """`impose` replaces the weights of every step: what would it say under uniform or permuted attention?"""

    can: ClassVar[frozenset[str]] = frozenset({"predicts", "differentiable", "attends", "edits_attention", "generates"})
    n_labels, has_query = 2, True
    link: Link = LOG_ODDS
    n_layers = n_heads = 1
    share = True  # one pass for rows that begin alike; False: each row is read (the general way)
    apart = True  # it reads what it has said in another place than the source
    limit: int | None = None
    said_limit: int | None = None

    def __init__(
        self,
        n_words: int,
        dim: int,
        hidden: int,
        encoder: Callable[[int, int], Encoder],
        attention: Callable[[int], StepAttention],
        decoder: str = "lstm",
        input_feeding: bool = False,
        dropout: float = 0.0,
        end: int = 3,
    ) -> None:
        super().__init__()
        self.input_feeding, self.end = input_feeding, end
        self.dropout = nn.Dropout(dropout)
        self.embedding = nn.Embedding(n_words, dim, padding_idx=0)
        self.encoder = encoder(dim, hidden)
        self.first = nn.Linear(hidden, 2 * hidden)  # the decoder's first state, of the source's summary
        cell = nn.LSTM if decoder == "lstm" else nn.GRU
        self.decoder: nn.LSTM | nn.GRU = cell(dim + hidden * input_feeding, hidden, batch_first=True)
        self.attention = attention(hidden)
        self.mix = nn.Linear(2 * hidden, hidden, bias=False)
        self.out = nn.Linear(hidden, n_words)
        self.impose: Impose | None = None

    @property
    def module(self) -> Translator:
        """What holds the weights: itself."""
        return self

    @property
    def stops(self) -> frozenset[int]:
        return frozenset([self.end])

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.weight.dtype

    @property
    def n_words(self) -> int:
        return self.embedding.num_embeddings

    @property
    def vocabulary(self) -> int:
        return self.n_words

    @property
    def bytes_per_token(self) -> int:
        """Embeddings twice, gates of encoder and decoder, states."""
        return self.embedding.weight.element_size() * (2 * self.embedding.embedding_dim + 16 * self.out.in_features)

    def embed(self, tokens: Tokens) -> Tensor:
        x: Tensor = self.embedding(tokens.ids)
        return x

    def encode(self, x: Tensor, present: Tensor) -> Tensor:
        h: Tensor = self.encoder(self.dropout(x), present)
        return h

    def start(self, h: Tensor, present: Tensor) -> State:
        first, cell = self.first(self.encoder.summary(h, present)).tanh().unsqueeze(0).chunk(2, dim=-1)
        return first.contiguous(), cell.contiguous()

    def advance(self, state: State, said: Tensor, fed: Tensor | None = None) -> tuple[Tensor, State]:
        """said (batch, m, dim) embeddings, fed (batch, m, hidden) with input feeding -> (batch, m, hidden), state."""
        x = said if fed is None else torch.cat([said, fed], dim=-1)
        if isinstance(self.decoder, nn.LSTM):
            s, state = self.decoder(x, state)
            return s, state
        s, hidden = self.decoder(x, state[0])
        return s, (hidden, state[1])

    def attend(self, s: Tensor, h: Tensor, mask: Tensor, first: int = 0) -> Tensor:
        alpha: Tensor = self.attention(s, h, mask, first)
        return alpha if self.impose is None else self.impose(alpha, mask)

    def step(self, s: Tensor, h: Tensor, alpha: Tensor) -> Tensor:
        o: Tensor = self.mix(torch.cat([alpha @ h, s], dim=-1)).tanh()
        return o

    def read(self, passage: Tokens, x: Tensor | None = None) -> ReadSource:
        """A source, whose embeddings may be given."""
        x = self.embed(passage) if x is None else x
        h = self.encode(x, passage.present)
        return ReadSource(h, passage.mask, self.start(h, passage.present))

    def steps(
        self, source: ReadSource, said: Tensor, edit: Callable[[Tensor], Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Teacher forcing: embeddings of what is said (batch, m, dim) -> o (batch, m, hidden), alpha (batch, m, n).

        `edit` changes the weights of all steps, (batch, m, n) -> the same; with input feeding later steps see that.
        """
        said = self.dropout(said)
        if not self.input_feeding:
            s, _ = self.advance(source.state, said)
            alpha = self.attend(s, source.h, source.mask)
            alpha = alpha if edit is None else edit(alpha)
            return self.step(s, source.h, alpha), alpha
        o, state = source.h.new_zeros(len(said), 1, self.out.in_features), source.state
        every, weights = [], []
        for i in range(said.shape[1]):
            s, state = self.advance(state, said[:, i : i + 1], o)
            alpha = self.attend(s, source.h, source.mask, i)
            o = self.step(s, source.h, alpha)
            every.append(o)
            weights.append(alpha)
        if edit is None:
            return torch.cat(every, 1), torch.cat(weights, 1)
        return self._edited_feeding(source, said, edit, torch.cat(weights, 1))

    def _edited_feeding(
        self, source: ReadSource, said: Tensor, edit: Callable[[Tensor], Tensor], own: Tensor
    ) -> tuple[Tensor, Tensor]:
        """With input feeding: under the edited weights of the model's own, step by step."""
        edited = edit(own)
        o, state, every = source.h.new_zeros(len(said), 1, self.out.in_features), source.state, []
        for i in range(said.shape[1]):
            s, state = self.advance(state, said[:, i : i + 1], o)
            o = self.step(s, source.h, edited[:, i : i + 1])
            every.append(o)
        return torch.cat(every, 1), edited

    def logits(self, o: Tensor) -> Tensor:
        found: Tensor = self.out(self.dropout(o))
        return found

    @property
    def readout(self) -> OutputLayer:
        return OutputLayer(self.out.weight, self.out.bias)

    def forward(
        self, batch: Batch, *, x: Tensor | None = None, x_query: Tensor | None = None, edit: Edit | None = None
    ) -> Output:
        """The answers to `batch.asked`: (batch, 1) log-odds. `edit` is of the weights of that step alone."""
        batch = batch.to(self.device)
        if batch.asked is None:
            raise ValueError("a batch of a translator says which token it is about")
        read, _ = self._asked(batch, x, x_query, edit)
        return Output(answer(self.dropout(read), batch.asked, self.readout), self.link)

    def _asked(
        self, batch: Batch, x: Tensor | None, x_query: Tensor | None, edit: Edit | None, n_steps: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """o (batch, steps, hidden) and alpha (batch, steps, n) where the tokens that are asked about are said."""
        said = said_of(batch)
        n_steps = n_steps or (1 if batch.asked is None else batch.asked.steps)
        places = (said.present.sum(1, keepdim=True) - n_steps + torch.arange(n_steps, device=said.ids.device)).clamp(
            min=0
        )
        given = x is not None or x_query is not None or edit is not None
        if self.share and not given and len(batch) > 1:
            families = Families.find(keys_of(batch.passage, said), said.ids.device)
            some = batch.rows(families.longest)
            o, alpha = self.steps(self.read(some.passage), self.embed(said_of(some)))
            rows = families.of.unsqueeze(1)
            wide = alpha.new_zeros(*alpha.shape[:2], batch.passage.ids.shape[1])
            wide[:, :, : alpha.shape[2]] = alpha
            return o[rows, places], wide[rows, places]
        changed = None if edit is None else at_places(edit, places[:, -1])
        o, alpha = self.steps(self.read(batch.passage, x), self.embed(said) if x_query is None else x_query, changed)
        rows = torch.arange(len(batch), device=said.ids.device).unsqueeze(1)
        return o[rows, places], alpha[rows, places]

    @torch.no_grad()
    def attentions(self, batch: Batch, layer: int | None = None) -> Tensor:
        """Of the step that is asked about, of a phrase the mean over its tokens: (batch, 1, 1, 1, n)."""
        layer_number(layer or 0, 1)
        batch = batch.to(self.device)
        _, alpha = self._asked(batch, None, None, None)
        there = torch.ones(len(batch), 1, dtype=alpha.dtype, device=alpha.device)
        if batch.asked is not None and batch.asked.phrase is not None:
            there = torch.cat([(batch.asked.phrase >= 0).to(alpha.dtype), there], 1)  # (batch, steps)
        mean = (alpha * there.unsqueeze(-1)).sum(1) / there.sum(1, keepdim=True)
        return mean[:, None, None, None]

    @torch.no_grad()
    def next(self, batch: Batch) -> Tensor:
        """Logits of the next token: (batch, vocabulary)."""
        o, _ = self._asked(batch.to(self.device), None, None, None, 1)
        return self.logits(o[:, 0])

    def __call__(self, batch: Batch, *args: Any, **given: Any) -> Output:
        """See `forward`."""
        output: Output = super().__call__(batch, *args, **given)
        return output


def said_of(batch: Batch) -> Tokens:
    if batch.query is None:
        raise ValueError("a batch of a translator has the token that its decoder begins with")
    return batch.query


def keys_of(passage: Tokens, said: Tokens) -> list[bytes]:
    """What is read of each row: the source whole, then what is said, token by token."""
    source = passage.ids.cpu().numpy().astype(">i8")
    words = passage.mask.cpu().numpy()
    after = said.ids.cpu().numpy().astype(">i8")
    sizes = zip(passage.present.sum(1).tolist(), said.present.sum(1).tolist(), strict=True)
    return [
        source[i, :n].tobytes() + words[i, :n].tobytes() + b"|" + after[i, :m].tobytes()
        for i, (n, m) in enumerate(sizes)
    ]


def at_places(edit: Edit, places: Tensor) -> Callable[[Tensor], Tensor]:
    """An edit of the weights of one step of each text: alpha (batch, m, n) -> the same with that step changed."""

    def changed(alpha: Tensor) -> Tensor:
        rows = torch.arange(len(alpha), device=alpha.device)
        other = edit(0, alpha[rows, places][:, None, None])[:, 0, 0]  # one layer, one head, one place that attends
        here = torch.zeros(alpha.shape[:2], dtype=torch.bool, device=alpha.device)
        here[rows, places] = True
        return torch.where(here.unsqueeze(-1), other.unsqueeze(1).to(alpha.dtype), alpha)

    return changed
