"""What a decoder says of a text is the same alone and in company, whatever its tokenizer puts around a text."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("transformers")

import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import transformer_zoo as zoo
from heedful.models.huggingface import HuggingFaceNetwork, wrap
from heedful.models.huggingface.probe import make_probe
from heedful.models.huggingface.text import PieceEncoder
from heedful.models.model import Model
from heedful.records import Batch

WORDS = [
    "a",
    "good",
    "bad",
    "film",
    "it",
    "is",
    "not",
    "the",
    "best",
    "of",
    "time",
    "waste",
    "was",
    "worth",
    "dollar",
    "and",
    "what",
]
TEXTS = ["good film it", "a bad waste of time it was not", "the best", "film film film it is worth a dollar"]
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
}
GROUPED = {**SIZES, "num_key_value_heads": 2}
GEMMA = {**GROUPED, "head_dim": 4}
GPT = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 64}
DECODERS: dict[str, dict[str, Any]] = {
    "Qwen2": GROUPED,
    "Qwen3": GEMMA,
    "Llama": GROUPED,
    "Mistral": GROUPED,
    "Gemma": GEMMA,
    "Gemma2": GEMMA,
    "Gemma3Text": GEMMA,
    "Phi": SIZES,
    "Phi3": GROUPED,
    "GPTNeoX": SIZES,
    "Bloom": {"hidden_size": 16, "n_layer": 2, "n_head": 4},
    "Falcon": {**SIZES, "ffn_hidden_size": 24},
    "GPTJ": {**GPT, "rotary_dim": 4},
    "GPT2": GPT,
    "OPT": {**SIZES, "word_embed_proj_dim": 16, "ffn_dim": 24},
    "StableLm": GROUPED,
    "Starcoder2": GROUPED,
    "Olmo2": GROUPED,
    "SmolLM3": GROUPED,
    "Glm": GEMMA,
    "Nemotron": GEMMA,
}
# what a tokenizer puts around a text, and whether it has a token for padding
TOKENIZERS = {
    "pad": ("$A", "<pad>"),
    "bos": ("<s> $A", None),
    "eos": ("$A </s>", "<pad>"),
    "both": ("<s> $A </s>", "<pad>"),
    "eos is pad": ("$A </s>", "</s>"),
}
SPECIAL = {"<unk>": 0, "<s>": 1, "</s>": 2, "<pad>": 3}
each_decoder = pytest.mark.parametrize("family", list(DECODERS))
each_tokenizer = pytest.mark.parametrize("around", ["plain", "strange", *TOKENIZERS])


def tokenizer_of(around: str) -> PreTrainedTokenizerFast:
    """Words are tokens. "plain" has no special token; to "strange" every word is unknown, and no token is special."""
    if around in ("plain", "strange"):
        words = WORDS if around == "plain" else [f"nobody{i}" for i in range(12)]
        made = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*words, "?"])}, unk_token="?"))
        made.pre_tokenizer = pre_tokenizers.Whitespace()
        return zoo.fast(made, ["input_ids", "attention_mask"], {})
    template, pad = TOKENIZERS[around]
    made = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*SPECIAL, *WORDS])}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.add_special_tokens(list(SPECIAL))
    made.post_processor = processors.TemplateProcessing(
        single=template, pair=f"{template} {template.replace('A', 'B')}", special_tokens=[*SPECIAL.items()]
    )
    names = {"unk": "<unk>", "bos": "<s>", "eos": "</s>"} | ({"pad": pad} if pad else {})
    return zoo.fast(made, ["input_ids", "attention_mask"], names)


def module_of(family: str, **options: Any) -> Any:
    """Freshly initialised, and then stirred, so that answers differ."""
    given = {"vocab_size": 40, "num_labels": 3, "bos_token_id": 1, "eos_token_id": 2, **DECODERS[family]}
    config = getattr(transformers, f"{family}Config")(**{**given, "pad_token_id": None, **options})
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = getattr(transformers, f"{family}ForSequenceClassification")(config)
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return made.eval()


@cache
def model(family: str, around: str) -> Model:
    tokens = tokenizer_of(around)
    return wrap(module_of(family, pad_token_id=tokens.pad_token_id), tokens)


def network_of(made: Model) -> HuggingFaceNetwork:
    assert isinstance(made.network, HuggingFaceNetwork)
    return made.network


def batch_of(made: Model, texts: list[str] = TEXTS) -> Batch:
    return made.encode(made.examples(texts)).batch(range(len(texts)))


def alone(made: Model) -> list[Batch]:
    return [batch_of(made, [text]) for text in TEXTS]


@torch.no_grad()
def own(made: Model, **asked: Any) -> list[Any]:
    """What the module says of the ids of each text alone, with nothing of ours around it."""
    module: Any = network_of(made).module
    return [module(input_ids=b.passage.ids, attention_mask=b.passage.present.long(), **asked) for b in alone(made)]


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@each_tokenizer
@each_decoder
def test_alone_as_in_company(family: str, around: str) -> None:
    made = model(family, around)
    network, together = network_of(made), batch_of(made)
    logits = torch.cat([output.logits for output in own(made)])
    close(network(together).logits, logits)
    close(torch.cat([network(batch).logits for batch in alone(made)]), logits)
    with torch.no_grad():
        close(network.learn(together).logits, logits)
    if "edits_attention" in network.can:
        close(network(together, edit=lambda layer, weights: weights.clone()).logits, logits)
    # given ids it does not read an end that is padding, given embeddings it does: not the same model
    assert ("differentiable" in network.can) == (around != "eos is pad")
    if around == "eos is pad":
        return
    x = network.embed(together.passage).requires_grad_()
    output = network(together, x=x)  # all texts in one pass
    close(output.logits.detach(), logits)
    (gradient,) = torch.autograd.grad(output.logits[:, 0].sum(), x)
    for row, batch in enumerate(alone(made)):
        x = network.embed(batch.passage).requires_grad_()
        (its_own,) = torch.autograd.grad(network(batch, x=x).logits[0, 0], x)
        size = float(its_own.abs().max().clamp(min=1.0))  # gradients are as large as 10: 1e-5 of that is rounding
        close(gradient[row, : its_own.shape[1]] / size, its_own[0] / size)
    assert (gradient[~together.passage.present] == 0).all()


@each_tokenizer
@each_decoder
def test_attention_is_the_modules_own(family: str, around: str) -> None:
    made = model(family, around)
    network, together = network_of(made), batch_of(made)
    if family == "Falcon":  # asked for its weights, it computes another model
        assert "attends" not in network.can
        return
    assert "attends" in network.can
    assert network.reads == "last"
    weights = network.attentions(together)  # (texts, layers, heads, to, from)
    module: Any = network.module
    before = module.config._attn_implementation
    module.set_attn_implementation("eager")
    try:
        told = own(made, output_attentions=True)
    finally:
        module.set_attn_implementation(before)
    for row, output in enumerate(told):
        n = int(together.passage.present[row].sum())
        close(weights[row, :, :, :n, :n], torch.cat(output.attentions))
        read = weights[row, :, :, n - 1]  # (layers, heads, from): of the token that the classifier reads
        assert (read[:, :, 1:n] > 0).any()
        assert (weights[row, :, :, n:] == 0).all()


@each_tokenizer
@each_decoder
def test_a_decoder_cannot_do_without_the_word_that_it_reads(family: str, around: str) -> None:
    """Shut out of attention, the last word would still be read, so hiding words is not claimed."""
    assert "hides_words" not in model(family, around).network.can


@pytest.mark.parametrize("family", [*zoo.FAMILIES, *zoo.OTHERS])
def test_hidden_words_are_the_attention_masks_own(family: str) -> None:
    """Claimed only where a text in company is what the module itself says of it alone with that mask."""
    made = zoo.model(family)
    network, together = network_of(made), zoo.batch(made)
    encoder = zoo.FAMILIES.get(family, zoo.OTHERS.get(family, ("", {})))[0] in ("wordpiece", "roberta")
    assert ("hides_words" in network.can) == (encoder and family not in ("XLNet", "ConvBert"))
    if "hides_words" not in network.can:
        return
    passage = together.passage
    hidden = passage.mask & (torch.arange(passage.ids.shape[1]) == 1)
    logits = network(replace(together, passage=replace(passage, hidden=hidden))).logits
    for row, ids in enumerate(passage.ids):
        n = int(passage.present[row].sum())
        with torch.no_grad():
            said = network.module(input_ids=ids[None, :n], attention_mask=(~hidden[row, :n]).long()[None])
        close(logits[row], said.logits[0])


def test_a_bias_hides_nothing() -> None:
    """Answers that are all about the same are not all the same."""

    class Biased(torch.nn.Module):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner, self.config = inner, inner.config

        def get_input_embeddings(self) -> Any:
            return self.inner.get_input_embeddings()

        def forward(self, input_ids: Any = None, attention_mask: Any = None, inputs_embeds: Any = None) -> Tensor:
            given = {"input_ids": input_ids, "inputs_embeds": inputs_embeds}
            logits: Tensor = self.inner(attention_mask=attention_mask, **given).logits
            return 0.01 * logits + torch.tensor([10.0, 0.0, -10.0])

    made = wrap(Biased(module_of("Llama")), tokenizer_of("plain"))
    network = network_of(made)
    x = network.embed(batch_of(made).passage).requires_grad_()
    together = network(batch_of(made), x=x).logits
    close(together.detach(), torch.cat([network(batch).logits for batch in alone(made)]))


@pytest.mark.parametrize("around", ["plain", "pad"])
def test_a_word_with_the_number_that_padding_would_have(around: str) -> None:
    """Classifiers that are given ids look for the last that is not padding; where there is none, none is."""
    tokens = tokenizer_of(around)
    made = wrap(module_of("Llama", pad_token_id=tokens.pad_token_id), tokens)
    network = network_of(made)
    texts = ["good film it a", "a a a bad waste of a", "a"]  # to "plain", "a" is number 0
    together = batch_of(made, texts)
    with torch.no_grad():
        for row, text in enumerate(texts):
            ids = batch_of(made, [text]).passage.ids
            said = network.module(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
            close(network.learn(together).logits[row], said)
            close(network(together).logits[row], said)


def test_neither_side_leaves_the_answer_alone() -> None:
    """Texts of one length go together then."""

    class Counts(torch.nn.Module):
        """It reads the mean state of all places, padding too."""

        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(40, 3)

        def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
            mean: Tensor = self.table(input_ids).mean(1)
            return mean

    torch.manual_seed(0)
    made = wrap(Counts(), tokenizer_of("plain"), labels=["a", "b", "c"])
    network = network_of(made)
    assert network.abilities.padding is None
    together = network(batch_of(made)).logits
    close(together, torch.cat([network(batch).logits for batch in alone(made)]))


@each_tokenizer
def test_falcon_is_read_where_it_tells_its_own_weights(around: str) -> None:
    tokens = tokenizer_of(around)
    made = wrap(module_of("Falcon", pad_token_id=tokens.pad_token_id, attn_implementation="eager"), tokens)
    network, together = network_of(made), batch_of(made)
    assert "attends" in network.can
    weights = network.attentions(together)
    assert torch.equal(weights, weights.tril())
    for row, output in enumerate(own(made, output_attentions=True)):
        n = int(together.passage.present[row].sum())
        close(weights[row, :, :, :n, :n], torch.cat(output.attentions))


def test_raw_scores_are_not_attention() -> None:
    """SqueezeBERT tells scores before the softmax, under the name of attention."""
    settings: Any = transformers.SqueezeBertConfig
    config = settings(
        **{**SIZES, "embedding_size": 16, "vocab_size": zoo.N_IDS, "num_labels": 3},
        q_groups=2,
        k_groups=2,
        v_groups=2,
        post_attention_groups=1,
        intermediate_groups=2,
        output_groups=2,
    )
    kind: Any = transformers.SqueezeBertForSequenceClassification
    made = wrap(kind(config).eval(), zoo.tokenizer("wordpiece"))
    assert "attends" not in made.network.can
    assert "differentiable" in made.network.can


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("family", ["Qwen2", "Llama", "GPTNeoX", "Bloom", "Falcon"])
def test_other_precisions(family: str, dtype: torch.dtype) -> None:
    made = wrap(module_of(family).to(dtype), tokenizer_of("plain"))
    network = network_of(made)
    x = network.embed(batch_of(made).passage).requires_grad_()
    ours = network(batch_of(made), x=x).logits.detach()
    theirs = torch.cat([output.logits for output in own(made)])
    torch.testing.assert_close(ours, theirs, atol=1e-6 if dtype == torch.float64 else 0.05, rtol=0)


@pytest.mark.parametrize("query", [False, True])
@pytest.mark.parametrize("limit", [None, 9, 64])
@pytest.mark.parametrize("around", ["plain", "strange", *TOKENIZERS])
def test_the_texts_that_a_model_is_tried_with(around: str, limit: int | None, query: bool) -> None:
    tokens = tokenizer_of(around)
    torch.manual_seed(0)
    table = torch.nn.Embedding(40, 16)
    text = PieceEncoder(tokens, 40, query)
    probe = make_probe(text, query, table, limit)
    lengths = probe.batch.passage.present.sum(1)
    if probe.batch.query is not None:
        lengths = lengths + probe.batch.query.present.sum(1)
    assert limit is None or (lengths <= limit).all()
    assert lengths[0] < lengths[2]
    for ids, mask in zip(probe.batch.passage.ids, probe.batch.passage.mask, strict=True):
        pieces = ids[mask].tolist()
        assert len(set(pieces)) == len(pieces)
        assert probe.strange not in pieces
        assert not {*tokens.all_special_ids, text.reserved.filler} & {*pieces, probe.strange}
