"""An encoder-decoder of transformers as a `Network`: it reads a source, and says a text token by token.

The passage is the source, the second part is what has been said so far, after the tokens that the model begins with
(a start token, a language code), which are special tokens. So a language code moves no target, and what has been said
is never read beside the source: the encoder reads the one, the decoder the other.

Its attention is of three kinds: `encoder` (source to source), `decoder` (what was said to what was said) and `cross`
(what was said to the source). Each is a block of one square, over the places of source and continuation side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.errors import Mistake, one_of
from heedful.models.huggingface.abilities import agree
from heedful.models.huggingface.attention_calls import Attended, AttentionCall, Each
from heedful.models.huggingface.forward import NO_TOKEN, Inputs, by_length
from heedful.models.huggingface.probe import Probe
from heedful.models.language.generator import Generator, content
from heedful.models.language.places import PlacesForward
from heedful.models.link import LOG_ODDS
from heedful.models.network import Edit, layer_number, require
from heedful.models.sequence import Side, SpecialTokens, sequences
from heedful.records import Batch, Tokens

Kind = Literal["cross", "decoder", "encoder"]
KINDS: tuple[Kind, ...] = ("cross", "decoder", "encoder")
SPLIT = -1  # between source and continuation, in what is compared


@dataclass(frozen=True, slots=True, eq=False)
class SourceInputs(Inputs):
    """n sources, each with what is said after it."""

    said: Inputs | None = None

    def rows(self, which: Tensor, width: int, side: Side) -> SourceInputs:
        some = Inputs(self.present, self.types, self.x, self.ids).rows(which, width, side)
        said = self.said
        if said is not None:
            said = said.rows(which, max(1, int(said.present[which].sum(1).max())), side)
        return SourceInputs(some.present, some.types, some.x, some.ids, said=said)


class DecoderForward(PlacesForward):
    """Places are those of the decoder."""

    def output(self, inputs: Inputs, side: Side, each: Each | None = None, learning: bool = False, **more: Any) -> Any:
        assert isinstance(inputs, SourceInputs)
        assert inputs.said is not None
        said = {"decoder_attention_mask": inputs.said.present.long()}
        if inputs.said.x is not None:
            said["decoder_inputs_embeds"] = inputs.said.x
        elif inputs.said.ids is not None:
            said["decoder_input_ids"] = inputs.said.ids
        return super().output(inputs, side, each, learning, **said, **more)


class EncoderDecoder(Generator):
    """`network(batch)` answers `batch.asked`, like a causal model."""

    reader = DecoderForward
    kinds = KINDS
    apart = True

    def __init__(  # no super(): what a module can do is seen from other questions
        self, module: nn.Module, probe: Probe, *, limit: int | None = None, said_limit: int | None = None
    ) -> None:
        self.module: Any = module
        self.link, self.n_labels, self.has_query = LOG_ODDS, 2, True
        self.frame, self.limit, self.said_limit, self.long = SpecialTokens(0, 0), limit, said_limit, "refuse"
        self.types = (0, 0)
        self.forward = DecoderForward(module, NO_TOKEN, with_types=False)
        self._strange = probe.strange
        sample = probe.batch.to(self.device)
        self._vocabulary = int(self.next(sample).shape[1])
        self._check_company(sample)
        self._embeds = self._takes_embeddings(sample)
        self._layers = self._find_attention(sample)
        self.n_layers = self._layers.get("cross", (0, 0))[0]
        self.n_heads = self._layers.get("cross", (0, 0))[1]
        self.readout = self._linear_readout(sample)

    @property
    def can(self) -> frozenset[str]:
        able = {"predicts", "generates"}
        return frozenset(
            able | ({"differentiable"} if self._embeds else set()) | ({"attends"} if self._layers else set())
        )

    @property
    def vocabulary(self) -> int:
        return self._vocabulary

    @property
    def reads(self) -> Literal["first", "last"]:
        return "last"

    @property
    def _side(self) -> Side:
        return "right"

    @torch.no_grad()
    def attentions(self, batch: Batch, layer: int | None = None, kind: Kind = "cross") -> Tensor:
        """One kind of attention: (batch, layers, heads, to, from), over source and continuation side by side.

        Of `encoder` a token that is said looks at the source as its tokens do on average.
        """
        require({"attends"}, self.can, "reading attention", self._name)
        if kind not in KINDS:
            raise one_of("kind of attention", kind, list(KINDS))
        batch = batch.to(self.device)
        n_layers, n_heads = self._layers[kind]
        wanted = range(n_layers) if layer is None else [layer_number(layer, n_layers)]
        seen = self._weights(batch)[kind]
        some = torch.stack([seen[i] for i in wanted], 1)  # (batch, layers, heads, to, from) of its own places
        source, said = self._source(batch)
        width = sequences(batch).present.shape[1]
        every = some.new_zeros(len(batch), len(wanted), n_heads, width, width)
        for row, (n, m) in enumerate(zip(source.present.sum(1).tolist(), said.present.sum(1).tolist(), strict=True)):
            if kind == "cross":
                every[row, :, :, n : n + m, :n] = some[row, :, :, :m, :n]
            elif kind == "decoder":
                every[row, :, :, n : n + m, n : n + m] = some[row, :, :, :m, :m]
            else:
                every[row, :, :, :n, :n] = some[row, :, :, :n, :n]
                every[row, :, :, n : n + m, :n] = some[row, :, :, :n, :n].mean(2, keepdim=True)
        return every

    def _weights(self, batch: Batch) -> dict[Kind, list[Tensor]]:
        """Of all layers (n, heads, to, from), as they are called: those of the encoder, then for each layer of the
        decoder its own and those to the source."""
        seen: list[tuple[bool, Tensor]] = []
        encoder = {id(part) for part in self.module.get_encoder().modules()}

        def note(call: AttentionCall) -> Attended:
            seen.append((id(call.module) in encoder, call.own[1]))
            return call.own

        self.forward.output(self._both(batch, None, None, embeddings=False), "right", note)
        of_decoder = [weights for inside, weights in seen if not inside]
        return {
            "encoder": [weights for inside, weights in seen if inside],
            "decoder": of_decoder[0::2],
            "cross": of_decoder[1::2],
        }

    @torch.no_grad()
    def _find_attention(self, sample: Batch) -> dict[str, tuple[int, int]]:
        """Layers and heads of each kind; empty where the attention cannot be read."""
        try:
            found = self._weights(sample)
        except (AttributeError, KeyError, TypeError, ValueError, NotImplementedError):
            return {}
        source, said = self._source(sample)
        sizes = {
            "encoder": (source.ids.shape[1], source.ids.shape[1]),
            "decoder": (said.ids.shape[1], said.ids.shape[1]),
            "cross": (said.ids.shape[1], source.ids.shape[1]),
        }
        for kind, weights in found.items():
            if not weights or any(tuple(one.shape[-2:]) != sizes[kind] for one in weights):
                return {}
            sums = torch.stack(weights).sum(-1)  # (layers, n, heads, to)
            there = (source if kind == "encoder" else said).present  # (n, to)
            if bool(((sums - 1).abs() > 1e-2).transpose(2, 3)[:, there].any()):
                return {}
        return {kind: (len(weights), weights[0].shape[1]) for kind, weights in found.items()}

    @torch.no_grad()
    def _takes_embeddings(self, sample: Batch) -> bool:
        """Whether embeddings of source and continuation, from one table, say what their ids say."""
        if not {"inputs_embeds", "decoder_inputs_embeds"} <= self.forward.takes:
            return False
        own = self.next(sample)
        try:
            assert sample.query is not None
            x, x_query = self.embed(sample.passage), self.embed(sample.query)
            given = self._at(sample, x, x_query, None, _every(sample), self._places(sample, 1), states=False)[:, 0]
        except (AssertionError, NotImplementedError, TypeError, ValueError, RuntimeError):
            return False
        return agree(given, own, own)

    def _check_company(self, sample: Batch) -> None:
        """A text says the same alone and in company."""
        alone = torch.cat([self.next(sample.rows(_every(sample)[i : i + 1])) for i in range(len(sample))])
        if not torch.isfinite(alone).all():
            raise Mistake(f"{self._name} gives logits that are not finite: nothing can be explained.")
        if not agree(self.next(sample), alone, alone):
            raise Mistake(
                f"{self._name} says another thing of a text when others stand beside it: it cannot be padded."
            )

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
        source, said = self._source(batch)
        self._check_lengths(source, said)
        inputs = self._both(batch, x, x_query, embeddings=x is not None or x_query is not None)
        states = states and self.readout is not None
        tracked = torch.is_grad_enabled() and any(one is not None and one.requires_grad for one in (x, x_query))
        if tracked or len(by_length(inputs, "right", self.tokens_at_once)) == 1:
            return self.forward.at(inputs, "right", rows, places, states=states)
        return self._in_groups(inputs, rows, places, None, states)

    def _in_groups(self, inputs: Inputs, rows: Tensor, places: Tensor, each: Each | None, states: bool) -> Tensor:
        parts, order = [], []
        for which, some in by_length(inputs, "right", self.tokens_at_once):
            member = (rows.unsqueeze(1) == which).nonzero()  # (members, 2) of this group
            parts.append(self.forward.at(some, "right", member[:, 1], places[member[:, 0]], states=states))
            order.append(member[:, 0])
        return torch.cat(parts)[torch.cat(order).argsort()]

    def _check_lengths(self, source: Tokens, said: Tokens) -> None:
        for tokens, limit, what in ((source, self.limit, "the text"), (said, self.said_limit, "what is said")):
            longest = int(tokens.present.sum(1).max())
            if limit is not None and longest > limit:
                raise Mistake(
                    f"{what} has {longest:,} tokens, and {self._name} reads {limit:,} of it: give a shorter one."
                )

    def _both(self, batch: Batch, x: Tensor | None, x_query: Tensor | None, embeddings: bool) -> SourceInputs:
        source, said = self._source(batch)
        of_source, of_said = (self._one(tokens, given, embeddings) for tokens, given in ((source, x), (said, x_query)))
        return SourceInputs(of_source.present, of_source.types, of_source.x, of_source.ids, said=of_said)

    def _one(self, tokens: Tokens, x: Tensor | None, embeddings: bool) -> Inputs:
        present = tokens.present.clone()
        present[:, 0] |= ~present.any(1)  # of a text without a token one of padding is read
        if embeddings:
            x = self.embed(tokens) if x is None else x
            return Inputs(present, torch.zeros_like(tokens.ids), x=x)
        return Inputs(present, torch.zeros_like(tokens.ids), ids=tokens.ids)

    def _source(self, batch: Batch) -> tuple[Tokens, Tokens]:
        if batch.query is None:
            raise ValueError("a batch of an encoder-decoder has the tokens that its decoder begins with")
        return batch.passage, batch.query

    def _codes(self, batch: Batch, x: Tensor | None, x_query: Tensor | None) -> list[NDArray[np.int64]]:
        parts: Sequence[tuple[Tokens, Tensor | None]] = tuple(zip(self._source(batch), (x, x_query), strict=True))
        found = [
            (tokens.present, (tokens.ids if given is None else content(given)).cpu().numpy()) for tokens, given in parts
        ]
        (there, source), (there_said, said) = found
        sizes = zip(there.sum(1).tolist(), there_said.sum(1).tolist(), strict=True)
        return [np.concatenate([source[i, :n], [SPLIT], said[i, :m]]) for i, (n, m) in enumerate(sizes)]

    def _places(self, batch: Batch, steps: int) -> Tensor:
        _, said = self._source(batch)
        length = said.present.sum(1)
        return (length.unsqueeze(1) - steps + torch.arange(steps, device=length.device)).clamp(min=0)


def _every(batch: Batch) -> Tensor:
    return torch.arange(len(batch), device=batch.passage.ids.device)
