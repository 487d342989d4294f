"""Words or pieces of both languages in one vocabulary, made from a corpus by the `tokenizers` library.

Corpora of translations are tokenised already: words are what white space separates, and links between words count
them. Pieces (BPE) are learnt from both languages together, within words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from heedful.data.text.tokenise import Tokenizer, tokenizer
from heedful.errors import Mistake
from heedful.models.language.prompts import SourceEncoder

PAD, UNKNOWN, BEGIN, END = SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")
TOKENIZER_FILE = "tokenizer.json"


class TranslationText(SourceEncoder):
    """Sources end with </s>; what is said stands after <s>."""

    def __init__(self, given: Any) -> None:
        super().__init__(given, len(given), [given.bos_token_id])

    @cached_property
    def _words(self) -> Tokenizer:
        return tokenizer("whitespace")

    def ids(self, texts: list[str]) -> list[list[int]]:
        """The pieces of texts, without special tokens."""
        return [ids for ids, _ in self._pieces(texts)]

    def spell(self, ids: Iterable[int]) -> str:
        """What these tokens say, without special tokens."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text.strip()

    @property
    def end(self) -> int:
        found: int = self._tokenizer.eos_token_id
        return found


def learn_text(texts: Iterable[str], pieces: int | None, min_count: int) -> TranslationText:
    """The vocabulary of some texts: all words that occur so often, or so many pieces."""
    need_tokenizers()
    from tokenizers import Tokenizer as Trained
    from tokenizers import decoders, models, pre_tokenizers, trainers

    made: Any
    if pieces is None:
        made = Trained(models.WordLevel(unk_token=UNKNOWN))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer: Any = trainers.WordLevelTrainer(
            min_frequency=min_count, special_tokens=list(SPECIAL), vocab_size=10**9, show_progress=False
        )
    else:
        made = Trained(models.BPE(unk_token=UNKNOWN))
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer = trainers.BpeTrainer(
            vocab_size=pieces, min_frequency=2, special_tokens=list(SPECIAL), show_progress=False
        )
    made.train_from_iterator(texts, trainer)
    return TranslationText(_fast(made))


def _fast(made: Any) -> Any:
    """As transformers' own kind of tokenizer, which every text encoder here takes."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    made.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, made.token_to_id(END))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token=PAD, unk_token=UNKNOWN, bos_token=BEGIN, eos_token=END
    )


def save_text(text: TranslationText, path: Path) -> None:
    path.write_text(text._tokenizer.backend_tokenizer.to_str(), encoding="utf-8")


def load_text(path: Path) -> TranslationText:
    need_tokenizers()
    from tokenizers import Tokenizer as Trained

    try:
        content = path.read_text(encoding="utf-8")
        json.loads(content)
        return TranslationText(_fast(Trained.from_str(content)))
    except (OSError, ValueError) as error:
        raise Mistake(f"{path} is damaged ({error}): train again.") from None


def need_tokenizers() -> None:
    try:
        import tokenizers
        import transformers  # noqa: F401

        del tokenizers
    except ImportError:
        raise Mistake(
            "translators need the packages tokenizers and transformers: pip install 'heedful[translation]'."
        ) from None
