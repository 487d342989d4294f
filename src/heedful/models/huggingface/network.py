"""A sequence classifier of transformers (or any module like it) as a `Network`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from heedful.errors import Mistake
from heedful.models.huggingface.abilities import agree, check_repeats, find_abilities
from heedful.models.huggingface.attention_calls import Each, editing, keeping
from heedful.models.huggingface.forward import NO_TOKEN, Forward, Inputs, by_length, turned
from heedful.models.huggingface.probe import Probe
from heedful.models.link import Link
from heedful.models.network import AttendedOutput, Edit, Output, Reads, layer_number, require
from heedful.models.sequence import Long, Sequences, Side, SpecialTokens, sequences
from heedful.records import Batch, Tokens

TOKENS, TOKENS_ON_DEVICE = 2**10, 2**15
HIDDEN = 2  # the word that is shut out of attention to see whether that can be done


class HuggingFaceNetwork:
    """What the module says of a batch is what it says of the joined texts, each by itself (models/sequence.py).

    Without `edit` the module computes as it stands, in its own attention implementation, so its logits are its own to
    the last bit for a text alone, and to rounding in a batch. With `edit` they are those of "eager" to the last bit.
    """

    reader: type[Forward] = Forward

    def __init__(
        self,
        module: nn.Module,
        link: Link,
        n_labels: int,
        probe: Probe,  # texts of growing length: what the module can do is seen from its answers to them
        *,
        frame: SpecialTokens,
        limit: int | None = None,  # tokens that it reads at once
        types: tuple[int, int] | None = None,  # of passage and query; None: it takes none
        has_query: bool = False,
        long: Long = "windows",
    ) -> None:
        self.module: Any = module  # the user's own, with whatever it is and has
        self.link, self.n_labels, self.has_query = link, n_labels, has_query
        self.frame, self.limit, self.long = frame, limit, long
        self.types = types or (0, 0)
        self.forward = self.reader(module, NO_TOKEN, with_types=types is not None)
        self._strange = probe.strange

        def make(which: list[int], side: Side, embeddings: bool, hide: bool = False) -> Inputs:
            some = _rows(probe.batch, which, hide).to(self.device)
            return self._inputs(some, sequences(some, side=side), None, None, embeddings)

        self.abilities = find_abilities(self.forward, make)
        if self.abilities.padding and not self._keeps_apart(probe.batch):
            self.abilities = find_abilities(self.forward, make, sides=())
        if not self.abilities.padding:  # else it was seen to say the same alone and in company
            check_repeats(lambda: self._alone(probe.batch), type(self.module).__name__)
        self.n_layers, self.n_heads = self.abilities.n_layers, self.abilities.n_heads
        self._check_outputs(link, n_labels)

    def _check_outputs(self, link: Link, n_labels: int) -> None:
        if self.abilities.n_outputs != link.outputs(n_labels):
            raise Mistake(
                f"{self._name} has {self.abilities.n_outputs} logits, and {n_labels} labels "
                f"read by {link.name} need {link.outputs(n_labels)}."
            )

    @property
    def can(self) -> frozenset[str]:
        able = {"predicts"}
        if self.abilities.embeddings:
            able.add("differentiable")
        if self.abilities.attention:
            able.add("attends")
            if self.abilities.states:
                able.add("self_attends")
        if self.abilities.attention == "edited":
            able.add("edits_attention")
        if self.abilities.attention and self.abilities.hides and self.reads == "first":
            able.add("hides_words")  # what reads the state of the last word cannot do without that word
        return frozenset(able)

    @property
    def reads(self) -> Reads:
        """The token that the classifier reads: decoders, which look back only, read their last."""
        return "last" if self.abilities.padding == "left" or self.abilities.looks_back else "first"

    @property
    def device(self) -> torch.device:
        return self._parameter.device

    @property
    def dtype(self) -> torch.dtype:
        return self._parameter.dtype

    @property
    def _parameter(self) -> Tensor:
        found: Tensor = next(self.module.parameters())
        return found

    @property
    def n_words(self) -> int:
        return int(self.embedding.num_embeddings)

    @property
    def bytes_per_token(self) -> int:
        """Of the widest layer: states, queries, keys, values, what is between the two halves of a feed-forward."""
        config = getattr(self.module, "config", None)
        hidden = getattr(config, "hidden_size", None) or 768
        between = getattr(config, "intermediate_size", None) or 4 * hidden
        weights = 128 * max(1, self.n_heads)  # of attention, for a text of usual length
        return (6 * hidden + 2 * between + weights) * torch.finfo(self.dtype).bits // 8

    @property
    def embedding(self) -> nn.Embedding:
        found = self.module.get_input_embeddings()
        assert isinstance(found, nn.Embedding)
        return found

    def embed(self, tokens: Tokens) -> Tensor:
        """Word embeddings (batch, length, dim); positions and types are added inside the module."""
        found: Tensor = self.embedding(tokens.ids.to(self.device))
        return found.detach()

    def __call__(
        self, batch: Batch, *, x: Tensor | None = None, x_query: Tensor | None = None, edit: Edit | None = None
    ) -> Output:
        batch = batch.to(self.device)
        if x is not None or x_query is not None:
            require({"differentiable"}, self.can, "giving embeddings", self._name)
        if edit is not None:
            require({"edits_attention"}, self.can, "asking under other attention weights", self._name)
        found = self._sequences(batch)
        if edit is not None and found.row is not None:
            raise Mistake(self._no_attention)
        inputs = self._inputs(batch, found, x, x_query, self.abilities.embeddings)
        tracked = torch.is_grad_enabled() and inputs.x is not None and inputs.x.requires_grad
        if edit is not None:
            logits = self._answer(inputs, batch, None, self._editing(edit, found))
        elif tracked and self.abilities.padding:
            logits = self._answer(inputs, batch)
        else:
            tokens = None if self.abilities.padding is None else self.tokens_at_once
            groups = by_length(inputs, self._side, tokens)
            order = torch.cat([which for which, _ in groups]).argsort()
            answers = [self._answer(some, batch, which) for which, some in groups]
            logits = torch.cat(answers)[order]
        return Output(found.gather(logits, len(batch)), self.link)

    def _answer(self, inputs: Inputs, batch: Batch, which: Tensor | None = None, each: Each | None = None) -> Tensor:
        """What is asked of `inputs`, the sequences `which` of the batch (None: all): (n, outputs)."""
        return self.forward(inputs, self._side, each)

    def learn(self, batch: Batch, attention: bool = False) -> Output:
        """A step of training: gradients of the weights, dropout where the module is in that mode."""
        batch = batch.to(self.device)
        found = self._sequences(batch)
        inputs = self._inputs(batch, found, None, None, embeddings=False)
        if attention:
            require({"edits_attention"}, self.can, "training with an eye on attention", self._name)
            if found.row is not None:
                raise Mistake(self._no_attention)
            seen: list[Tensor] = []
            logits = self.forward(inputs, self._side, keeping(seen), learning=True)
            every = self._in_place(torch.stack(seen, dim=1), batch, found)
            return AttendedOutput(logits, self.link, every)
        whole = (torch.arange(len(inputs.present), device=self.device), inputs)
        groups = [whole] if self.abilities.padding else by_length(inputs, "right")
        order = torch.cat([which for which, _ in groups]).argsort()
        logits = torch.cat([self.forward(some, self._side, learning=True) for _, some in groups])[order]
        return Output(found.gather(logits, len(batch)), self.link)

    @torch.no_grad()
    def attentions(self, batch: Batch, layer: int | None = None) -> Tensor:
        """(batch, layers, heads, to, from), both over the places of passage and query side by side; 0 at padding."""
        require({"attends"}, self.can, "reading attention", self._name)
        wanted = range(self.n_layers) if layer is None else [layer_number(layer, self.n_layers)]
        found, inputs = self._whole(batch)
        if self.abilities.attention == "edited":
            seen: list[Tensor] = []

            def note(at: int, weights: Tensor) -> Tensor:
                if at in wanted:
                    seen.append(weights)
                return weights

            self.forward(inputs, self._side, editing(note))
            every = torch.stack(seen, dim=1)
        else:
            n, width = found.present.shape
            every = torch.zeros(n, len(wanted), self.n_heads, width, width, device=self.device, dtype=self.dtype)
            apart = (
                [(torch.arange(n, device=self.device), inputs)]
                if self.abilities.padding
                else by_length(inputs, "right")
            )
            for which, some in apart:
                layers = self.forward.attentions(some, self._side)
                told = torch.stack([layers[i] for i in wanted], dim=1)  # (n, wanted, heads, to, from)
                every[which, :, :, : told.shape[-2], : told.shape[-1]] = told
        return self._in_place(every, batch.to(self.device), found)

    @torch.no_grad()
    def states(self, batch: Batch, *, edit: Edit | None = None) -> Tensor:
        """What goes into the first layer, and what comes out of each: (batch, layers + 1, width, dim)."""
        require({"self_attends"}, self.can, "reading states", self._name)
        found, inputs = self._whole(batch)
        each = None if edit is None else self._editing(edit, found)
        if self.abilities.padding is None:
            raise Mistake(f"{self._name} cannot be padded, so its states cannot be read for several texts.")
        told = self.forward.output(inputs, self._side, each, output_hidden_states=True).hidden_states
        return turned(torch.stack(told, dim=1), self._shift(found), 1, -2)

    def _whole(self, batch: Batch) -> tuple[Sequences, Inputs]:
        """Texts that fit, as they are read: of one in windows there is no one attention."""
        batch = batch.to(self.device)
        found = self._sequences(batch)
        if found.row is not None:
            raise Mistake(self._no_attention)
        return found, self._inputs(batch, found, None, None, self.abilities.embeddings)

    @property
    def _side(self) -> Side:
        return self.abilities.padding or "right"

    @property
    def tokens_at_once(self) -> int:
        """Of one pass. On a processor more are no faster, and more padding is slower."""
        return TOKENS if self.device.type == "cpu" else TOKENS_ON_DEVICE

    @property
    def _name(self) -> str:
        return type(self.module).__name__

    @property
    def _no_attention(self) -> str:
        return (
            f"a text is longer than the {self.limit} tokens that this model reads at once, so "
            "there is no one attention over all of it: give a shorter text, or methods that need no attention (lrp)."
        )

    def _sequences(self, batch: Batch) -> Sequences:
        found = sequences(batch, self.limit, self.frame, self.long, self._side)
        if found.row is not None:
            how = (
                "only its beginning is read (long='truncate')"
                if self.long == "truncate"
                else "it is read in windows that overlap, and its logits are their mean, weighted by pieces"
            )
            warnings.warn(
                f"a text is longer than the {self.limit} tokens that {self._name} reads at once: {how}.", stacklevel=3
            )
        if self.frame == SpecialTokens(0, 0) and batch.query is None and not batch.passage.present.any(1).all():
            warnings.warn(
                f"a text without any word is asked about (its only word left out, or the base of SHAP): {self._name} "
                f"has no special tokens, so that token {batch.passage.reserved.filler} is read in its place.",
                stacklevel=3,
            )
        return found

    def _inputs(
        self, batch: Batch, found: Sequences, x: Tensor | None, x_query: Tensor | None, embeddings: bool
    ) -> Inputs:
        query = batch.query
        of_query = None if query is None else torch.full_like(query.ids, self.types[1])
        types = found.take(torch.full_like(batch.passage.ids, self.types[0]), of_query)  # (n, width)
        types = types.masked_fill(~found.present, 0)
        attended = None
        if batch.passage.hidden is not None:
            shown = None if query is None else torch.zeros_like(query.present)
            attended = found.present & ~found.take(batch.passage.hidden, shown)  # (n, width)
        if not embeddings:
            ids = found.take(batch.passage.ids, None if query is None else query.ids)
            return Inputs(
                found.present,
                types,
                ids=ids.masked_fill(~found.present, batch.passage.reserved.filler),
                attended=attended,
            )
        x = self.embed(batch.passage) if x is None else x
        if query is not None and x_query is None:
            x_query = self.embed(query)
        x = found.take(x, x_query)  # (n, width, dim)
        if not bool(found.present.all()):  # what stands at padding is not a token of the text: see _keeps_apart
            strange = self.embedding(torch.tensor(self._strange, device=self.device)).detach()  # (dim,)
            x = torch.where(found.present.unsqueeze(-1), x, strange.to(x.dtype))
        return Inputs(found.present, types, x=x, attended=attended)

    def _alone(self, sample: Batch) -> Tensor:
        """The logits of each text without company: (texts, outputs)."""
        return torch.cat([self(_rows(sample, [i])).logits for i in range(len(sample))])

    @torch.no_grad()
    def _keeps_apart(self, sample: Batch) -> bool:
        """Whether this network, asked as everybody asks it, says the same of a text alone and in company."""
        right = self._alone(sample)
        answers = [self(sample).logits]
        if self.abilities.embeddings:  # with gradients all texts go together, whatever their length
            with torch.enable_grad():
                query = sample.query
                x = self.embed(sample.to(self.device).passage).requires_grad_()
                x_query = None if query is None else self.embed(query.to(self.device))
                answers.append(self(sample, x=x, x_query=x_query).logits.detach())
        if self.abilities.attention == "edited":
            answers.append(self(sample, edit=lambda layer, weights: weights.clone()).logits)
        return all(agree(answer, right, right) for answer in answers)

    def _shift(self, found: Sequences) -> Tensor | None:
        """How far padding at the left has moved each text (batch,); None: not at all."""
        if self._side == "right" or bool(found.present.all()):
            return None
        return found.present.shape[1] - found.present.sum(1)

    def _in_place(self, every: Tensor, batch: Batch, found: Sequences) -> Tensor:
        """Weights as read (batch, layers, heads, to, from), each text from its first place on, 0 at padding."""
        shift = self._shift(found)
        every = turned(turned(every, shift, 1, -2), shift, 1, -1)
        there = sequences(batch).present  # (batch, width), padding at the right
        return every * (there[:, None, None, :, None] & there[:, None, None, None, :])

    def _editing(self, edit: Edit, found: Sequences) -> Each:
        """`edit` sees every text from its first place on, wherever its padding is."""
        shift = self._shift(found)
        if shift is None:
            return editing(edit)

        def moved(layer: int, weights: Tensor) -> Tensor:
            seen = turned(turned(weights, shift, 1, -2), shift, 1, -1)
            edited = edit(layer, seen)
            return weights if edited is seen else turned(turned(edited, shift, -1, -2), shift, -1, -1)

        return editing(moved)


def _rows(batch: Batch, which: list[int], hide: bool = False) -> Batch:
    """Some of the texts; `hide`: with their second word shut out of attention."""
    some = batch.rows(torch.tensor(which))
    if not hide:
        return some
    passage = some.passage
    hidden = passage.mask & (passage.mask.long().cumsum(1) == HIDDEN)  # (n, length)
    return replace(some, passage=replace(passage, hidden=hidden, mask=passage.mask & ~hidden))
