"""A model of transformers that generates as a `Network`: which token comes next is a question with two answers.

    z = log sum exp over `this` of z_v  -  log sum exp over `that` of z_v        P(this) = sigmoid(z)

With one token in each, z is the difference of their logits (the contrast of Yin & Neubig 2022); where `that` is every
other token, z = log p / (1 - p) of the model's own next-token distribution; of a phrase p is that of all its tokens in
a row (readout.py). In a causal model passage and what has been said so far stand side by side in one sequence, so
everything that is known of such sequences (padding, embeddings, attention) holds.

What is said later changes nothing of what was read before. So questions whose texts are each the beginning of the next
share one pass (`Families`), with gradients and without.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.errors import Mistake
from heedful.models.huggingface.attention_calls import Each
from heedful.models.huggingface.forward import Inputs, by_length
from heedful.models.huggingface.network import HuggingFaceNetwork
from heedful.models.huggingface.probe import Probe
from heedful.models.language.families import Families
from heedful.models.language.kept import Trunk, keeps, read_after
from heedful.models.language.places import PlacesForward
from heedful.models.language.readout import OutputLayer, answer
from heedful.models.link import IDENTITY, LOG_ODDS, Link
from heedful.models.network import Edit, Output, require
from heedful.models.sequence import SpecialTokens, sequences
from heedful.records import Batch, Tokens

Function = Callable[[Tensor], Tensor]  # of the user's: logits (n, vocabulary) -> a number each, (n,)


class Generator(HuggingFaceNetwork):
    """`network(batch)` answers `batch.asked`; `next(batch)` has the logits of every token."""

    reader = PlacesForward
    forward: PlacesForward
    function: Function | None = None  # of the logits of the next token, in place of a question about a token
    readout: OutputLayer | None = None  # None: not linear, so logits are asked for
    apart = False  # whether it reads what it has said in another place than the prompt: an encoder-decoder
    said_limit: int | None = None  # tokens that it says at most, where that is another limit
    share = True  # one pass for rows that begin alike; False: each row is read (the general way)
    keeps = False  # keys and values of what several rows begin with are kept

    def __init__(self, module: nn.Module, probe: Probe, *, frame: SpecialTokens, limit: int | None = None) -> None:
        super().__init__(module, LOG_ODDS, 2, probe, frame=frame, limit=limit, has_query=True, long="refuse")
        sample = probe.batch.to(self.device)
        self.readout = self._linear_readout(sample)
        self.keeps = self._keeps_keys(sample)

    def _check_outputs(self, link: Link, n_labels: int) -> None:
        """One logit for each token of the vocabulary, of which a question makes one."""

    @property
    def can(self) -> frozenset[str]:
        return super().can | {"generates"}

    @property
    def vocabulary(self) -> int:
        return self.abilities.n_outputs

    @property
    def stops(self) -> frozenset[int]:
        """Tokens that end what is said."""
        config = getattr(self.module, "generation_config", None) or self.module.config
        ids = getattr(config, "eos_token_id", None)
        return frozenset() if ids is None else frozenset(ids if isinstance(ids, list | tuple) else [ids])

    def explaining(self, function: Function) -> Generator:
        """The same model, asked for a number of the user's: function(logits (n, vocabulary)) -> (n,)."""
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.function, other.link, other.n_labels = function, IDENTITY, 1
        return other

    @torch.no_grad()
    def next(self, batch: Batch) -> Tensor:
        """Logits of the next token, as the model gives them: (batch, vocabulary)."""
        return self._read(batch.to(self.device), None, None, None, 1, states=False)[:, 0]

    def __call__(
        self, batch: Batch, *, x: Tensor | None = None, x_query: Tensor | None = None, edit: Edit | None = None
    ) -> Output:
        batch = batch.to(self.device)
        if x is not None or x_query is not None:
            require({"differentiable"}, self.can, "giving embeddings", self._name)
        if edit is not None:
            require({"edits_attention"}, self.can, "asking under other attention weights", self._name)
        asked = 1 if batch.asked is None else batch.asked.steps
        tracked = torch.is_grad_enabled() and any(one is not None and one.requires_grad for one in (x, x_query))
        if self.share and not tracked and edit is None and len(batch) > 1 and batch.asked is not None:
            families = self.families(batch, x, x_query)
            of_longest = [None if one is None else one[families.longest] for one in (x, x_query)]
            return self.together(batch, families, of_longest[0], of_longest[1])
        return self._output(self._read(batch, x, x_query, edit, asked), batch)

    def together(
        self, batch: Batch, families: Families, x: Tensor | None, x_query: Tensor | None, edit: Edit | None = None
    ) -> Output:
        """The answers to all questions of a batch, from one pass over the longest text of each family.

        x, x_query: embeddings of those texts alone, (families, ...).
        """
        some = batch.rows(families.longest)
        steps = 1 if batch.asked is None else batch.asked.steps
        places = self._places(batch, steps)  # (n, steps)
        read = self._at(some, cut(x, some.passage), cut(x_query, some.query), edit, families.of, places)
        return self._output(read, batch)

    def own_logits(self, batch: Batch, longest: int, rows: Tensor, steps: int) -> Tensor:
        """Of the module's own output layer, where `rows` are asked, (rows, steps, vocabulary): one text read alone."""
        one = batch.rows(torch.tensor([longest], device=rows.device))
        places = self._places(batch.rows(rows), steps)
        return self._at(one, None, None, None, torch.zeros_like(rows), places, states=False)

    def families(self, batch: Batch, x: Tensor | None = None, x_query: Tensor | None = None) -> Families:
        """Found by the ids, or where embeddings are given by these."""
        codes = self._codes(batch, x, x_query)
        keys = [codes_of_row.astype(">i8").tobytes() for codes_of_row in codes]
        return Families.find(keys, batch.passage.ids.device)

    def _codes(self, batch: Batch, x: Tensor | None, x_query: Tensor | None) -> list[NDArray[np.int64]]:
        """What is read of each row, a number for each token."""
        found = sequences(batch)
        query = batch.query
        of_passage = batch.passage.ids if x is None else content(x)
        of_query = None if query is None else (query.ids if x_query is None else content(x_query))
        if x is None and x_query is not None:
            of_passage = content(self.embed(batch.passage))
        if of_query is not None and x is not None and x_query is None and query is not None:
            of_query = content(self.embed(query))
        if batch.passage.hidden is not None:
            of_passage = of_passage * 2 + batch.passage.hidden
            of_query = None if of_query is None else of_query * 2
        codes = found.take(of_passage, of_query).cpu().numpy()  # (n, width)
        return [row[:n] for row, n in zip(codes, found.present.sum(1).tolist(), strict=True)]

    def _places(self, batch: Batch, steps: int) -> Tensor:
        """Where the last `steps` tokens are said, counted in the sequence of each row: (n, steps)."""
        length = batch.passage.present.sum(1)
        if batch.query is not None:
            length = length + batch.query.present.sum(1)
        return (length.unsqueeze(1) - steps + torch.arange(steps, device=length.device)).clamp(min=0)

    def _read(
        self,
        batch: Batch,
        x: Tensor | None,
        x_query: Tensor | None,
        edit: Edit | None,
        steps: int,
        *,
        states: bool = True,
    ) -> Tensor:
        """Each row by itself: (n, steps, dim or vocabulary)."""
        every = torch.arange(len(batch), device=batch.passage.ids.device)
        return self._at(batch, x, x_query, edit, every, self._places(batch, steps), states=states)

    def _at(
        self,
        batch: Batch,
        x: Tensor | None,
        x_query: Tensor | None,
        edit: Edit | None,
        rows: Tensor,
        places: Tensor,
        *,
        states: bool = True,
    ) -> Tensor:
        """What is read at places (m, steps) of `rows` (m,): states where there is a readout, else logits."""
        found = self._sequences(batch)
        given = x is not None or x_query is not None
        inputs = self._inputs(batch, found, x, x_query, given)
        each = None if edit is None else self._editing(edit, found)
        states = states and self.readout is not None
        tracked = torch.is_grad_enabled() and inputs.x is not None and inputs.x.requires_grad
        if self.abilities.padding is not None and (tracked or edit is not None):
            return self.forward.at(inputs, self._side, rows, places, each, states=states)
        if self.keeps and each is None and batch.passage.hidden is None and len(batch) > 1:
            most = rows.new_full((len(batch),), torch.iinfo(torch.long).max)
            most = most.scatter_reduce(0, rows, places.amin(1), "amin")
            trunk = Trunk.find(self._codes(batch, x, x_query), most.cpu().numpy())
            if trunk is not None:
                return read_after(self.forward, inputs, trunk, rows, places, self.tokens_at_once, states)
        return self._in_groups(inputs, rows, places, each, states)

    def _in_groups(self, inputs: Inputs, rows: Tensor, places: Tensor, each: Each | None, states: bool) -> Tensor:
        """Texts of like length together, or of one length where a module cannot be padded."""
        tokens = None if self.abilities.padding is None else self.tokens_at_once
        parts, order = [], []
        for which, some in by_length(inputs, self._side, tokens):
            member = (rows.unsqueeze(1) == which).nonzero()  # (members, 2) of this group
            parts.append(self.forward.at(some, self._side, member[:, 1], places[member[:, 0]], each, states=states))
            order.append(member[:, 0])
        return torch.cat(parts)[torch.cat(order).argsort()]

    def _output(self, read: Tensor, batch: Batch) -> Output:
        if self.function is not None:
            return Output(self._of_function(self._logits(read[:, -1])), self.link)
        if batch.asked is None:
            return Output(self._logits(read[:, -1]), self.link)
        return Output(answer(read, batch.asked, self.readout), self.link)

    def _logits(self, read: Tensor) -> Tensor:
        return read if self.readout is None else self.readout.logits(read)

    def _of_function(self, logits: Tensor) -> Tensor:
        assert self.function is not None
        found = self.function(logits)
        if not isinstance(found, Tensor) or found.shape != logits.shape[:1]:
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise Mistake(
                f"the function gave {shape} for logits {tuple(logits.shape)}: it must give one number for each row, "
                f"a tensor ({len(logits)},)."
            )
        return found.unsqueeze(1)

    @torch.no_grad()
    def _keeps_keys(self, sample: Batch) -> bool:
        if self._side != "right" or self.abilities.padding is None:
            return False
        inputs = self._inputs(sample, self._sequences(sample), None, None, False)
        return keeps(self.forward, inputs, self.next(sample))

    @torch.no_grad()
    def _linear_readout(self, sample: Batch) -> OutputLayer | None:
        if self.forward.head is None:
            return None
        logits = self._read(sample, None, None, None, 1, states=False)[:, 0]
        self.readout = OutputLayer(torch.zeros(0))  # anything: states are wanted
        states = self._read(sample, None, None, None, 1)[:, 0]
        return OutputLayer.of(self.forward.head, states, logits)


def cut(x: Tensor | None, tokens: Tokens | None) -> Tensor | None:
    """Embeddings as wide as the tokens are after needless padding has gone."""
    return x if x is None or tokens is None else x[:, : tokens.ids.shape[1]]


def content(x: Tensor) -> Tensor:
    """A number for each embedding, the same for the same bits: (n, length, dim) -> (n, length) long."""
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    bits = x.detach().contiguous().view(whole).long()
    odd = torch.arange(bits.shape[-1], device=x.device, dtype=torch.int64) * 0x9E3779B97F4A7C1 + 0x7F4A7C15
    found: Tensor = (bits * (odd | 1)).sum(-1)
    return found
