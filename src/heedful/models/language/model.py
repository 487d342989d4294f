"""What `heedful.load` returns of a language model: prompts become examples, one for each token that is asked about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from heedful.data.prompts import ELSE
from heedful.data.text.batching import NOTHING
from heedful.errors import Mistake, short
from heedful.models.language.generator import Generator
from heedful.models.language.prompts import Prompt, PromptEncoder
from heedful.models.model import Model, check_texts
from heedful.records import Example, NextToken, Saying

MOST_OF_A_WORD = 12  # tokens
Chat = Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class LanguageModel(Model):
    """A generated token is a label: each example asks whether one token comes next, and not others."""

    network: Generator
    text: PromptEncoder

    def examples(self, texts: Sequence[str], queries: Sequence[str] | None = None) -> tuple[Example, ...]:
        """Prompts as questions: why does it say the token that it finds best, and not its next best?"""
        from heedful.models.language.decisions import decision

        if queries is not None:
            raise Mistake(f"{self.name} is a language model, which reads one text: it has no use for a query.")
        check_texts(texts, "text")
        return tuple(
            decision(self, Example(f"prompt {i + 1}", self.text.split(text), saying=Saying()))
            for i, text in enumerate(texts)
        )

    def prompt(self, given: str | Chat) -> Prompt:
        if isinstance(given, str) and not given.strip():
            raise Mistake("the prompt is empty: give the text that the model goes on from.")
        made = self.text.prompt(given)
        if not len(made):
            raise Mistake(f"the prompt has no words: {short(made.text)}.")
        tokens, together = int(self.text.encode([made], "passage").lengths[0]), not self.apart
        if self.network.limit is not None and tokens + together > self.network.limit:
            more = ", what it says included" if together else ""
            raise Mistake(
                f"the prompt has {tokens:,} tokens, and {self.name} reads {self.network.limit:,} at once{more}: give a "
                "shorter one."
            )
        return made

    @property
    def apart(self) -> bool:
        """Whether it is an encoder-decoder, which does not read what it says beside the prompt."""
        return self.network.apart

    @torch.no_grad()
    def generate(
        self, prompt: Prompt, tokens: int, *, sample: bool = False, temperature: float = 1.0, seed: int = 0
    ) -> tuple[int, ...]:
        """The continuation, token by token: the most probable one each time, or drawn with a seed of its own."""
        generator = torch.Generator().manual_seed(seed)
        said: list[int] = []
        stop = self.stops
        while len(said) < tokens:
            logits = self.next_logits(prompt, said)
            if sample:
                p = (logits / temperature).softmax(-1)
                token = int(torch.multinomial(p, 1, generator=generator))
            else:
                token = int(logits.argmax())
            if token in stop and said:
                break
            said.append(token)
        return tuple(said)

    def next_word(self, prompt: Prompt) -> tuple[int, ...]:
        """The tokens of the next word that it would say."""
        said: tuple[int, ...] = ()
        for token in self._greedy(prompt):
            longer = (*said, token)
            if said and len(self.text.said(longer)) > max(1, len(self.text.said(said))):
                return said
            said = longer
            if len(said) >= MOST_OF_A_WORD or token in self.stops:
                break
        return said

    def _greedy(self, prompt: Prompt) -> Iterator[int]:
        said: list[int] = []
        while True:
            said.append(int(self.next_logits(prompt, said).argmax()))
            yield said[-1]

    def next_logits(self, prompt: Prompt, said: Sequence[int] = ()) -> torch.Tensor:
        """(vocabulary,) of the token that comes after the prompt and what has been said."""
        example = Example("prompt", prompt, query=self.text.said(said) if said else None, asked=NextToken((0,)))
        found: torch.Tensor = self.network.next(self.encode([example]).batch([0]))[0].float()
        if not torch.isfinite(found).all():
            raise Mistake(f"{self.name} gives logits that are not finite for this prompt: nothing can be explained.")
        return found

    @property
    def stops(self) -> frozenset[int]:
        """Tokens that end what is said."""
        return self.network.stops

    def tokens_of(self, prompt: Prompt, text: str) -> tuple[int, ...]:
        """The tokens of a continuation. A word goes on after a blank, where the prompt has none at its end."""
        if not text.strip():
            raise Mistake("the continuation is empty: give the words that the model is to say.")
        glued = not self.apart and prompt.text[-1:].isalnum() and text[:1].isalnum()
        return self.text.continuation(prompt, f" {text}" if glued else text)

    def steps(
        self,
        prompt: Prompt,
        say: Sequence[int],
        instead: Sequence[int] | None = None,
        name: str = "prompt 1",
        first: int = 0,
    ) -> list[Example]:
        """An example for each token of a continuation; with `instead`, one: where the two begin to differ."""
        if instead is not None:
            return [self._contrast(prompt, say, instead, name)]
        self._check_room(prompt, len(say))
        return [
            Example(
                f"{name}, token {i + 1}",
                prompt,
                query=self.text.said(say[:i]) if i else None,
                asked=NextToken((token,), None, (ELSE, self.name_of(token)), i),
            )
            for i, token in enumerate(say)
            if i >= first
        ]

    def phrase(self, prompt: Prompt, say: Sequence[int], name: str = "prompt 1", first: int = 0) -> Example:
        """One example for all tokens of a continuation from `first` on: are they said, one after the other?"""
        self._check_room(prompt, len(say))
        *before, last = say[first:]
        said = self.text.said(say[:-1]) if len(say) > 1 else None
        title = self.text.said(say[first:]).text
        asked = NextToken((last,), None, (ELSE, title if title.strip() else self.name_of(last)), 0, tuple(before))
        return Example(f"{name}, {len(say) - first} tokens", prompt, query=said, asked=asked)

    def _contrast(self, prompt: Prompt, say: Sequence[int], instead: Sequence[int], name: str) -> Example:
        self._check_room(prompt, max(len(say), len(instead)))
        same = next((i for i, (a, b) in enumerate(zip(say, instead, strict=False)) if a != b), None)
        if same is None:
            shorter, longer = sorted((tuple(say), tuple(instead)), key=len)
            text = self.text.said(longer).text.strip()
            if shorter == longer:
                raise Mistake(f"the two continuations are both {text!r}: give two that differ.")
            raise Mistake(
                f"{self.text.said(shorter).text.strip()!r} is how {text!r} begins, so no token tells them apart: give "
                "words of which neither begins with the other."
            )
        names = (self.name_of(instead[same]), self.name_of(say[same]))
        asked = NextToken((say[same],), (instead[same],), names, same)
        said = self.text.said(say[:same]) if same else None
        return Example(f"{name}, token {same + 1}", prompt, query=said, asked=asked)

    def _check_room(self, prompt: Prompt, tokens: int) -> None:
        if self.network.apart:
            read, limit = int(self.text.encode([NOTHING], "query").lengths[0]) + tokens - 1, self.network.said_limit
            if limit is not None and read > limit:
                raise Mistake(
                    f"the continuation has {tokens:,} tokens, and {self.name} says {limit:,} at most: give a shorter "
                    "one."
                )
            return
        read = int(self.text.encode([prompt], "passage").lengths[0]) + tokens - 1
        if self.network.limit is not None and read > self.network.limit:
            raise Mistake(
                f"prompt and continuation have {read + 1:,} tokens together, and {self.name} reads "
                f"{self.network.limit:,} at once: give a shorter continuation."
            )

    def name_of(self, token: int) -> str:
        """A token as a person reads it: with its blank, if it has one."""
        text = self.text.said([token]).text
        if text.strip():
            return text
        return text.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣") or self.text.names([token])[0]
