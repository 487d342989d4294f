"""A small random classifier of every family of transformers, and the least that makes a network of it.

Skips where transformers is not installed. Nothing is downloaded: only configurations and chance.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor

from heedful.models.link import SOFTMAX, Link
from heedful.models.network import Edit, Output
from heedful.records import Batch, Tokens

LABELS = 3
_WIDE: dict[str, Any] = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}
_NARROW = _WIDE | {"embedding_size": 12}
_RELATIVE = _WIDE | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
_GROUPED = _WIDE | {"num_key_value_heads": 1}
_IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": _WIDE,
    "roberta": _WIDE,
    "xlm-roberta": _WIDE,
    "camembert": _WIDE,
    "distilbert": {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40, "max_position_embeddings": 64},
    "albert": _NARROW,
    "electra": _NARROW,
    "deberta": _RELATIVE,
    "deberta-v2": _RELATIVE,
    "mpnet": _WIDE,
    "modernbert": _WIDE,
    "gpt2": {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 64},
    "opt": {
        "hidden_size": 24,
        "word_embed_proj_dim": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "ffn_dim": 40,
        "max_position_embeddings": 64,
    },
    "gpt_neox": _WIDE,
    "phi": _WIDE,
    "llama": _GROUPED,
    "mistral": _GROUPED,
    "qwen2": _GROUPED,
    "gemma": _GROUPED | {"head_dim": 8},
}
DECODERS = (
    "gpt2",
    "opt",
    "gpt_neox",
    "phi",
    "llama",
    "mistral",
    "qwen2",
    "gemma",
)  # they read the last token


def module(family: str, seed: int = 0, **changed: Any) -> Any:
    """In float64, its parameters moved away from where they begin, biases and norms too."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    given = {"num_labels": LABELS, "vocab_size": 50, **_IDS, **FAMILIES[family], **changed}
    config = transformers.AutoConfig.for_model(family, **given)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        made = transformers.AutoModelForSequenceClassification.from_config(config).double().eval()
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(0.2 * torch.randn_like(parameter))
    return made


class EmbeddingsGiven:
    """A module that is given embeddings, as a differentiable network."""

    n_labels, has_query, bytes_per_token, n_words = LABELS, False, 1000, 50
    link: Link = SOFTMAX
    can = frozenset({"predicts", "differentiable"})
    device = torch.device("cpu")

    def __init__(self, module: Any) -> None:
        self.module = module
        self.dtype = next(module.parameters()).dtype

    def embed(self, tokens: Tokens) -> Tensor:
        x: Tensor = self.module.get_input_embeddings()(tokens.ids)
        return x

    def __call__(self, batch: Batch, *, x: Tensor | None = None, x_query: Tensor | None = None) -> Output:
        x = self.embed(batch.passage) if x is None else x
        found = self.module(inputs_embeds=x, attention_mask=batch.passage.present.long())
        return Output(found.logits, self.link)


class AttentionEdited(EmbeddingsGiven):
    """And whose attention goes through the attention interface of transformers; for texts without padding."""

    can = EmbeddingsGiven.can | {"attends", "self_attends", "edits_attention"}

    def __init__(self, module: Any, reads: str = "first") -> None:
        super().__init__(module)
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import eager_mask

        self.reads = reads
        self._edit: Edit | None = None
        self._seen: list[Tensor] = []
        AttentionInterface.register("edited_in_tests", self._attend)
        AttentionMaskInterface.register("edited_in_tests", eager_mask)
        module.set_attn_implementation("edited_in_tests")

    def _attend(self, part: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, **more: Any) -> Any:
        eager = sys.modules[type(part).__module__].eager_attention_forward
        weights = eager(part, query, key, value, mask, **more)[1]
        if self._edit is not None:
            weights = self._edit(len(self._seen), weights)
        self._seen.append(weights)
        value = value.repeat_interleave(weights.shape[1] // value.shape[1], dim=1)
        return (weights @ value).transpose(1, 2).contiguous(), weights

    def _run(self, batch: Batch, x: Tensor | None, edit: Edit | None) -> Any:
        self._seen, self._edit = [], edit
        x = self.embed(batch.passage) if x is None else x
        mask = batch.passage.present.long()
        return self.module(inputs_embeds=x, attention_mask=mask, output_hidden_states=True)

    def __call__(
        self,
        batch: Batch,
        *,
        x: Tensor | None = None,
        x_query: Tensor | None = None,
        edit: Edit | None = None,
    ) -> Output:
        return Output(self._run(batch, x, edit).logits, self.link)

    def attentions(self, batch: Batch) -> Tensor:
        self._run(batch, None, None)
        return torch.stack(self._seen, dim=1)

    def states(self, batch: Batch, *, edit: Edit | None = None) -> Tensor:
        return torch.stack(self._run(batch, None, edit).hidden_states, dim=1)
