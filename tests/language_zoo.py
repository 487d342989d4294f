"""Tiny language models of many families, drawn at random, with tokenizers that do and do not begin a text."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from heedful.models.language.loading import wrap_language_model
from heedful.models.language.model import LanguageModel

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
}
GROUPED = {**SIZES, "num_key_value_heads": 2}
GEMMA = {**GROUPED, "head_dim": 4}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "GPT2": ("GPT2LMHeadModel", {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "Llama": ("LlamaForCausalLM", GROUPED),
    "Qwen2": ("Qwen2ForCausalLM", GROUPED),
    "Gemma": ("GemmaForCausalLM", GEMMA),
    "Mistral": ("MistralForCausalLM", GROUPED),
    "OPT": ("OPTForCausalLM", {**SIZES, "word_embed_proj_dim": 16, "ffn_dim": 24}),
    "GPTNeoX": ("GPTNeoXForCausalLM", SIZES),
}
TEXT = [
    "the keys to the cabinet are on the table",
    "the cabinet of the teachers is open and it was a good day",
    "a film that nobody likes, and the best of all days: what a waste of time!",
    "the key to the tables was here, the teacher is not on the best day",
]


@cache
def tokenizer(begins: bool) -> PreTrainedTokenizerFast:
    """Byte-level BPE; `begins`: a token stands before every text."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<user>", "<model>"]
    made.train_from_iterator(
        TEXT * 3,
        trainers.BpeTrainer(
            vocab_size=340, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        ),
    )
    if begins:
        made.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    found = PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", additional_special_tokens=["<user>", "<model>"]
    )
    found.chat_template = (
        "{% for m in messages %}<{{ 'user' if m.role != 'assistant' else 'model' }}>{{ m.content }}\n{% endfor %}"
        "{% if add_generation_prompt %}<model>{% endif %}"
    )
    return found


@cache
def module(family: str) -> Any:
    name, sizes = FAMILIES[family]
    kind = getattr(transformers, name)
    config = kind.config_class(
        vocab_size=len(tokenizer(True)), bos_token_id=0, eos_token_id=1, pad_token_id=None, **sizes
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        made = kind(config)
        for parameter in made.parameters():  # fresh weights say nearly the same of everything
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.25)
    return made.eval()


@cache
def model(family: str, begins: bool = True) -> LanguageModel:
    return wrap_language_model(module(family), tokenizer(begins), name=family)
