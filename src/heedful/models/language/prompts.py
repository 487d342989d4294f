"""Prompts and continuations as a model that generates reads them: pieces with their place in what a person wrote.

A prompt is a text, or a chat whose template puts roles and special tokens around what was written. Only what was
written is words: the template's tokens have a share of their own, like special tokens. What has been said so far is
the second part of an example, with the ids that the model said: tokenising its text again could give others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.text.batching import Texts
from heedful.data.text.units import Units
from heedful.errors import Mistake, short
from heedful.models.huggingface.text import PieceEncoder, word_of
from heedful.models.sequence import SpecialTokens
from heedful.records import Part, Words

ROLES = ("system", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True, eq=False)
class Prompt(Words):
    """A prompt: `written` are the spans of it that somebody wrote; None: all of it."""

    written: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SaidWords(Words):
    """What has been said so far: `ids` are its tokens, `spans` (tokens, 2) their places in the text."""

    ids: tuple[int, ...] = ()
    spans: NDArray[np.int32] | None = None


class PromptEncoder(PieceEncoder):
    """Passages are prompts, the second part is what has been said. Nothing stands after either."""

    def __init__(self, given: Any, n_words: int | None = None) -> None:
        super().__init__(given, n_words, has_query=False)
        self._around = self._frame_of()
        self.frame = SpecialTokens(*map(len, self._around["passage"]))

    def _frame_of(self) -> dict[Part, tuple[list[int], list[int]]]:
        """The special tokens around a prompt, and around what has been said."""
        before, _ = self._around["passage"]
        return {"passage": (before, []), "query": ([], [])}

    def _check_sample(self) -> None:
        """A template of the tokenizer may end a text, as no prompt that goes on does."""

    @property
    def chats(self) -> bool:
        """Whether there is a template for chats."""
        return getattr(self._tokenizer, "chat_template", None) is not None

    def prompt(self, given: str | Sequence[Mapping[str, str]]) -> Prompt:
        """A text, or a chat: messages of `role` and `content`, to which the model's own template is put."""
        if isinstance(given, str):
            words = self.split(given)
            return Prompt(words.text, words.forms, words.offsets)
        text, written = self._chat(given)
        forms: list[str] = []
        offsets: list[tuple[int, int]] = []
        for begin, end in written:
            part = self.split(text[begin:end])
            forms += part.forms
            offsets += [(begin + int(a), begin + int(b)) for a, b in part.offsets]
        return Prompt(text, tuple(forms), np.array(offsets, np.int32).reshape(-1, 2), tuple(written))

    def _chat(self, messages: Sequence[Mapping[str, str]]) -> tuple[str, list[tuple[int, int]]]:
        """The template's text, and where in it each message's content stands."""
        if not self.chats:
            raise Mistake("this model has no chat template: give the prompt as a text.")
        for i, message in enumerate(messages):
            if not isinstance(message, Mapping) or not {"role", "content"} <= set(message):
                raise Mistake(f"message {i + 1} is {short(message)}: give a role and a content for each.")
            if message["role"] not in ROLES or not isinstance(message["content"], str):
                raise Mistake(f"message {i + 1} has the role {short(message['role'])}: roles are {', '.join(ROLES)}.")
        if not any(message["role"] == "user" for message in messages):
            raise Mistake("the chat has no message of the role 'user': there is nothing to answer.")
        try:
            text: str = self._tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        except Exception as error:  # templates are programs of their own
            raise Mistake(f"the model's chat template refuses these messages: {error}.") from None
        written, at = [], 0
        for message in messages:
            content = message["content"].strip()
            begin = text.find(content, at)
            if begin < 0:
                raise Mistake(f"the model's chat template changes a message: {short(content)} is not in its text.")
            at = begin + len(content)
            if content:
                written.append((begin, at))
        return text, written

    def continuation(self, prompt: Words, text: str) -> tuple[int, ...]:
        """The tokens of a text that goes on after a prompt, as the tokenizer makes them of both together."""
        begun, both = (self._pieces([given])[0][0] for given in (prompt.text, prompt.text + text))
        ids = both[len(begun) :] if both[: len(begun)] == begun else self._pieces([text])[0][0]
        if not ids:
            raise Mistake(f"the tokenizer makes nothing of the continuation {short(text)}: it has no tokens.")
        return tuple(ids)

    def said(self, ids: Sequence[int]) -> SaidWords:
        """What these tokens say, each with its place in the text."""
        text, spans = "", []
        for n in range(1, len(ids) + 1):
            longer = self._tokenizer.decode(
                list(ids[:n]), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
            if longer.endswith("\ufffd") and n < len(ids):  # part of a character: the next token completes it
                longer = text
            spans.append((len(text), max(len(text), len(longer))))
            text = longer if len(longer) >= len(text) else text
        words = self.split(text)
        return SaidWords(text, words.forms, words.offsets, tuple(ids), np.array(spans, np.int32).reshape(-1, 2))

    def encode(self, texts: Sequence[Words], part: Part) -> Texts:
        """Ids of prompts, or of what has been said. Prompts hold the special tokens of their template as they are."""
        ids: list[NDArray[np.int64]] = []
        index: list[NDArray[np.int64]] = []
        for words in texts:
            pieces, word = self._tokens(words)
            before, after = self._around[part]
            prompt = words.words if isinstance(words, Units) else words
            if isinstance(prompt, Prompt) and prompt.written is not None:
                before, after = [], []  # the template has written them
            ids.append(np.array([*before, *pieces, *after], dtype=np.int64))
            index.append(np.concatenate([np.full(len(before), -1), word, np.full(len(after), -1)]).astype(np.int64))
        flat = np.concatenate(ids) if ids else np.zeros(0, np.int64)
        self._check_ids(flat)
        words_of = np.concatenate(index) if index else np.zeros(0, np.int64)
        lengths = np.array([len(each) for each in ids], dtype=np.int64)
        return Texts(flat, lengths, np.cumsum(lengths) - lengths, words_of >= 0, words_of, self.reserved)

    def pieces(self, words: Words, part: Part) -> Words:
        ids, word = self._tokens(words)
        at = np.flatnonzero(word >= 0)
        spans = self._spans(words)[at]
        text = words.text
        visible = [
            (a + len(text[a:b]) - len(text[a:b].lstrip()), b - len(text[a:b]) + len(text[a:b].rstrip()))
            for a, b in spans.tolist()
        ]
        return Words(text, tuple(self.names([ids[i] for i in at])), np.array(visible, np.int32).reshape(-1, 2))

    def _spans(self, words: Words) -> NDArray[np.int32]:
        if isinstance(words, SaidWords) and words.spans is not None:
            return words.spans
        return self._pieces([words.text])[0][1]

    @cached_property
    def _special(self) -> list[int]:
        """Ids of special tokens. A word that is not known is a word, unless its id is another special token's, too."""
        own = self._tokenizer
        others = {own.bos_token_id, own.eos_token_id, own.pad_token_id, own.sep_token_id, own.cls_token_id}
        return [i for i in own.all_special_ids if i != own.unk_token_id or i in others]

    def _tokens(self, words: Words) -> tuple[list[int], NDArray[np.int64]]:
        """The tokens of a text, and the word of each: -1 for special tokens and for what the template wrote."""
        if isinstance(words, SaidWords) and words.spans is not None:
            ids, spans = list(words.ids), words.spans
        else:
            ids, spans = self._pieces([words.text])[0]
        word = word_of(words, spans)
        special = np.isin(np.array(ids, dtype=np.int64), self._special)
        return ids, np.where(special, -1, word).astype(np.int64)


class SourceEncoder(PromptEncoder):
    """Of an encoder-decoder: passages are sources, with all the special tokens that the tokenizer puts around a text.

    What is said stands after the tokens that the decoder `begins` with, and is tokenised by itself.
    """

    def __init__(self, given: Any, n_words: int | None, begins: Sequence[int]) -> None:
        self.begins = list(begins)
        super().__init__(given, n_words)

    def _frame_of(self) -> dict[Part, tuple[list[int], list[int]]]:
        return {"passage": self._around["passage"], "query": (self.begins, [])}

    def continuation(self, prompt: Words, text: str) -> tuple[int, ...]:
        """The tokens of a text by itself: special tokens and language codes around it are not said."""
        ids = self._pieces([text.strip()])[0][0]
        if not ids:
            raise Mistake(f"the tokenizer makes nothing of the continuation {short(text)}: it has no tokens.")
        return tuple(ids)
