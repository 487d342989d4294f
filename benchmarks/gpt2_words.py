"""GPT-2 of 6 layers with weights drawn at random, whose words are tokens: what the benchmark on steps asks about."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

VOCABULARY, LAYERS = 50257, 6  # those of DistilGPT-2
PROMPT, SAID = 54, 22  # words


def make(folder: Path) -> tuple[str, str]:
    """Save model and tokenizer; a prompt and what is said after it."""
    names = [_word(i) for i in range(VOCABULARY // 2 - 1)]
    words = {spelt: i for i, spelt in enumerate([f"Ġ{name}" for name in names] + names)}
    for special in ("<unk>", "<end>"):
        words[special] = len(words)
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<end>", eos_token="<end>", pad_token="<end>"
    ).save_pretrained(folder)
    torch.manual_seed(0)
    GPT2LMHeadModel(
        GPT2Config(vocab_size=VOCABULARY, n_layer=LAYERS, bos_token_id=words["<end>"], eos_token_id=words["<end>"])
    ).eval().save_pretrained(folder)
    drawn = torch.randperm(len(names), generator=torch.Generator().manual_seed(1))[: PROMPT + SAID].tolist()
    return " ".join(names[i] for i in drawn[:PROMPT]), " ".join(names[i] for i in drawn[PROMPT:])


def _word(number: int) -> str:
    """Letters alone: a tokenizer of GPT-2 parts them from digits."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[number // 676 % 26] + letters[number // 26 % 26] + letters[number % 26] + "o" * (number // 17576)
