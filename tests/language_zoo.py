"""Tiny language models of many families, drawn at random, with tokenizers that do and do not begin a text."""

from __future__ import annotations

import copy
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
SEQ = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "decoder_start_token_id": 1,
}
T5 = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_heads": 4, "pad_token_id": 1}
ENCODER_DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "T5": ("T5ForConditionalGeneration", {**T5, "decoder_start_token_id": 1}),
    "T5gated": ("T5ForConditionalGeneration", {**T5, "feed_forward_proj": "gated-gelu", "decoder_start_token_id": 1}),
    "BART": ("BartForConditionalGeneration", {**SEQ, "forced_bos_token_id": 0}),
    "Marian": ("MarianMTModel", SEQ),
    "mBART": ("MBartForConditionalGeneration", {**SEQ, "forced_bos_token_id": 2, "scale_embedding": True}),
    "Pegasus": ("PegasusForConditionalGeneration", SEQ),
    "NLLB": (
        "M2M100ForConditionalGeneration",
        {**SEQ, "scale_embedding": True, "pad_token_id": 0, "forced_bos_token_id": 3},
    ),
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
    name, sizes = (FAMILIES | ENCODER_DECODERS)[family]
    kind = getattr(transformers, name)
    common = {"vocab_size": len(tokenizer(True)), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": None}
    sizes = dict(sizes)
    forced = sizes.pop("forced_bos_token_id", None)
    config = kind.config_class(**{**common, **sizes})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        made = kind(config)
        for parameter in made.parameters():  # fresh weights say nearly the same of everything
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.25)
    made.generation_config.forced_bos_token_id = forced
    return made.eval()


@cache
def model(family: str, begins: bool = True) -> LanguageModel:
    if family in ENCODER_DECODERS:
        return wrap_language_model(module(family), ends(), name=family)
    return wrap_language_model(module(family), tokenizer(begins), name=family)


@cache
def ends() -> PreTrainedTokenizerFast:
    """The same pieces, with a language code before a source and an end after it."""
    found = copy.deepcopy(tokenizer(True))
    made = found.backend_tokenizer
    made.post_processor = processors.TemplateProcessing(
        single="<user> $A </s>", special_tokens=[("<user>", 2), ("</s>", 1)]
    )
    return found
