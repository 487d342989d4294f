"""Small random transformers classifiers of every family, with tokenizers made on the spot: nothing is downloaded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from heedful.models.huggingface import HuggingFaceNetwork, wrap
from heedful.models.model import Model
from heedful.records import Batch

TEXTS = [
    "a good film, it isn't bad at all .",
    "the waste of time was not worth a dollar",
    "what is the best of all good things? one two three four five",
    "don't panic: naïve café 😀 שלום עולם 你好世界",
]
SOME = ["a good film", "it isn't bad at all, the best of time", "waste"]
QUERIES = ["bad", "good time it is", "what is a film?"]
N_IDS, POSITIONS, N_LABELS = 300, 64, 3

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
GROUPED = {**SIZES, "num_key_value_heads": 2, "pad_token_id": None}
AFTER_PAD = {**SIZES, "pad_token_id": 1, "max_position_embeddings": POSITIONS + 2}  # positions start after padding
RELATIVE = {**SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "type_vocab_size": 0}
SMALL = {**SIZES, "embedding_size": 8}
OF_DECODER = {"pad_token_id": None, "bos_token_id": 2, "eos_token_id": 2}

# family -> tokenizer, and what its configuration needs beyond the vocabulary and the number of labels
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "Bert": ("wordpiece", SIZES),
    "DistilBert": ("wordpiece", {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24}),
    "Roberta": ("roberta", AFTER_PAD),
    "Albert": ("wordpiece", SMALL),
    "Electra": ("wordpiece", SMALL),
    "XLMRoberta": ("roberta", AFTER_PAD),
    "Camembert": ("roberta", AFTER_PAD),
    "MPNet": ("roberta", AFTER_PAD),
    "Deberta": ("wordpiece", RELATIVE),
    "DebertaV2": ("wordpiece", {**RELATIVE, "position_biased_input": False}),
    "ModernBert": ("wordpiece", {**SIZES, "pad_token_id": 0, "local_attention": 8}),
    "GPT2": ("bytes", {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": POSITIONS, **OF_DECODER}),
    "Llama": ("sentencepiece", GROUPED),
    "Qwen2": ("sentencepiece", GROUPED),
}
OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Mistral": ("sentencepiece", GROUPED),
    "GPTNeoX": ("bytes", {**SIZES, "pad_token_id": None}),
    "OPT": (
        "bytes",
        {"hidden_size": 16, "word_embed_proj_dim": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
        | {"ffn_dim": 24, **OF_DECODER},
    ),
    "Phi": ("bytes", {**SIZES, **OF_DECODER}),
    "Gemma": ("sentencepiece", {**GROUPED, "head_dim": 4}),
    "XLNet": ("wordpiece", {"d_model": 16, "n_layer": 2, "n_head": 4, "d_inner": 24}),
    "ConvBert": ("wordpiece", SMALL),
}
NOT_EVERYWHERE: dict[str, tuple[str, dict[str, Any]]] = {  # of tests that name them
    "BigBird": ("wordpiece", {**SIZES, "attention_type": "original_full", "block_size": 2, "num_random_blocks": 1})
}
EVERY = {**FAMILIES, **OTHERS, **NOT_EVERYWHERE}
UNEDITED = {"MPNet", "Deberta", "DebertaV2", "XLNet", "ConvBert"}  # their attention can only be read


def wordpiece() -> PreTrainedTokenizerFast:
    """As BERT's: lower case, no accents, [CLS] a [SEP] b [SEP].

    Words of more than five letters are two pieces. Nothing is trained: WordPieceTrainer breaks ties by chance, so that
    every process would have another vocabulary.
    """
    normalizer, pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    words = [word for text in TEXTS for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))]
    letters = [piece for letter in "".join(words) for piece in (letter, f"##{letter}")]
    short = [word for word in words if len(word) <= 5]
    long = [piece for word in words if len(word) > 5 for piece in (word[:3], f"##{word[3:]}")]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *dict.fromkeys([*letters, *short, *long])]
    made = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizer, pre_tokenizer
    made.add_special_tokens(special)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return fast(made, ["input_ids", "token_type_ids", "attention_mask"], names)


def roberta() -> PreTrainedTokenizerFast:
    """Byte-level, <s> a </s></s> b </s>, offsets without the blank before a word."""
    made = bytes_of(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}
    return fast(made, ["input_ids", "attention_mask"], names)


def byte_level() -> PreTrainedTokenizerFast:
    """As GPT-2's: no special token around a text, none for padding, mask or unknown; a blank belongs to its word."""
    made = bytes_of(["<|endoftext|>"])
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return fast(made, ["input_ids", "attention_mask"], {})


def sentencepiece() -> PreTrainedTokenizerFast:
    """As Llama's: <s> before a text, bytes for characters that it does not know."""
    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256))]
    made.train_from_iterator(TEXTS * 3, trainers.BpeTrainer(vocab_size=N_IDS + 50, special_tokens=special))
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return fast(made, ["input_ids", "attention_mask"], {"unk": "<unk>", "bos": "<s>", "eos": "</s>"})


def bytes_of(special: list[str]) -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        TEXTS * 3, trainers.BpeTrainer(vocab_size=N_IDS, special_tokens=special, initial_alphabet=alphabet)
    )
    return made


def fast(made: Tokenizer, inputs: list[str], names: dict[str, str]) -> PreTrainedTokenizerFast:
    tokens = {f"{name}_token": token for name, token in names.items()}
    kind: Any = PreTrainedTokenizerFast
    result: PreTrainedTokenizerFast = kind(tokenizer_object=made, model_input_names=inputs, **tokens)
    return result


TOKENIZERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "wordpiece": wordpiece,
    "roberta": roberta,
    "bytes": byte_level,
    "sentencepiece": sentencepiece,
}


@cache
def tokenizer(name: str) -> PreTrainedTokenizerFast:
    return TOKENIZERS[name]()


def tokenizer_of(family: str) -> PreTrainedTokenizerFast:
    return tokenizer(EVERY[family][0])


def module(family: str, seed: int = 0, **options: Any) -> Any:
    """Freshly initialised, and then stirred, so that no bias is 0 and answers differ."""
    needs = EVERY[family][1]
    given = {"vocab_size": N_IDS + 60, "num_labels": N_LABELS, "max_position_embeddings": POSITIONS, **needs}
    if family in ("GPT2", "XLNet"):
        del given["max_position_embeddings"]
    config = getattr(transformers, f"{family}Config")(**{**given, **options})
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = getattr(transformers, f"{family}ForSequenceClassification")(config)
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return made.eval()


@cache
def model(family: str = "Bert", query: bool = False) -> Model:
    return wrap(module(family), tokenizer_of(family), query=query)


def network(made: Model) -> HuggingFaceNetwork:
    assert isinstance(made.network, HuggingFaceNetwork)
    return made.network


def batch(made: Model, texts: list[str] = SOME, queries: list[str] | None = None) -> Batch:
    if queries is None and made.network.has_query:
        queries = QUERIES[: len(texts)]
    return made.encode(made.examples(texts, queries)).batch(range(len(texts)))


@torch.no_grad()
def own_logits(made: nn.Module, tokens: Any, *texts: str) -> Tensor:
    """What anybody would write: tokenizer, module, one text at a time. (1, labels)."""
    takes = inspect.signature(made.forward).parameters
    given = {name: value for name, value in tokens(*texts, return_tensors="pt").items() if name in takes}
    logits: Tensor = made(**given).logits
    return logits
