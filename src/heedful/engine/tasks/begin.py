"""What training begins with: a fresh network of ours with its words, or a checkpoint with its tokenizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.config import ModelConfig, RunConfig
from heedful.data.corpora import locate
from heedful.data.text import vectors as word2vec
from heedful.data.text.batching import TextEncoder
from heedful.data.text.vectors import load_vectors
from heedful.data.text.vocabulary import MARKERS, Vocabulary, WordEncoder
from heedful.engine.sources.models import ModelSource
from heedful.errors import Mistake
from heedful.models import build_network
from heedful.models.attentive.classifier import AttentiveClassifier
from heedful.models.network import Trainable
from heedful.models.rationale.classifier import RationaleClassifier
from heedful.records import Corpus, Words
from heedful.registry import ENCODERS, RATIONALES


@dataclass(frozen=True, slots=True)
class Beginning:
    """A network before its first step, how it reads text, and what config.json tells of it."""

    network: Trainable
    text: TextEncoder
    words: tuple[str, ...]  # in the order of their ids: words, or pieces
    about: Mapping[str, Any]  # for people: description, architecture, attention
    embedding_dim: int
    vectors: Mapping[str, Any] | None = None
    pretrained: Mapping[str, bytes] = field(default_factory=dict)  # files that came with a checkpoint
    says: tuple[str, ...] = ()  # what the user should know before training


def begin(config: RunConfig, corpus: Corpus, source: ModelSource | None, data_dirs: Sequence[Path]) -> Beginning:
    """`source` is the checkpoint of `config.start`."""
    if config.start is None:
        return begin_fresh(config, corpus, data_dirs)
    assert source is not None
    return begin_with_checkpoint(config, corpus, source)


def begin_fresh(config: RunConfig, corpus: Corpus, data_dirs: Sequence[Path]) -> Beginning:
    """One of our classifiers, with word vectors where they were asked for."""
    words = [text for e in corpus["train"] for text in (e.passage, e.query) if text] + [*corpus.only_words]
    vocabulary = Vocabulary.build(words, config.data.min_df or 1)
    if len(vocabulary) == len(MARKERS):
        raise Mistake(
            f"min_df={config.data.min_df}: no word occurs in that many training texts, so none would be known."
        )
    text = WordEncoder.of(vocabulary, corpus.tokenizer, config.model)
    network, vectors = fresh_network(config, corpus, text, words, data_dirs)
    return Beginning(
        network,
        text,
        vocabulary.words,
        {"description": describe_model(config.model)}
        | ({} if config.model.attention_name == config.model.attention else {"attention": config.model.attention_name}),
        network.embedding.embedding_dim,
        vectors,
        says=() if vectors is None else (coverage(vectors, len(vocabulary)),),
    )


def fresh_network(
    config: RunConfig, corpus: Corpus, text: WordEncoder, words: Sequence[Words], data_dirs: Sequence[Path]
) -> tuple[AttentiveClassifier | RationaleClassifier, dict[str, Any] | None]:
    vectors, vocabulary = None, text.vocabulary
    model_config: ModelConfig = config.model
    if config.vectors == word2vec.NAME:
        vectors = word2vec.train_word2vec(words, vocabulary, model_config.embedding_dim, config.seed)
    elif config.vectors is not None:
        rng = np.random.default_rng([config.seed, 0])
        training, folders = config.training, locate.data_dirs(data_dirs)
        counts = Counter(chain.from_iterable(text.forms for text in words))
        vectors = load_vectors(
            config.vectors,
            vocabulary,
            folders,
            rng=rng,
            missing=training.missing_vectors,
            counts=counts,
            cover=training.cover,
        )
        model_config = model_config.with_vectors(vectors.matrix.shape[1])
    has_query = corpus.task != "classification"
    network = build_network(model_config, text.n_ids, len(corpus.labels), has_query, config.seed)
    if vectors is None:
        return network, None
    with torch.no_grad():
        matrix = torch.from_numpy(vectors.matrix)  # (words, dim)
        network.embedding.weight.copy_(matrix.repeat(text.n_ids // len(matrix), 1))
    found = {"dim": vectors.matrix.shape[1], "types": vectors.types, "tokens": vectors.tokens}
    return network, {"vectors": config.vectors, **found}


def coverage(vectors: Mapping[str, Any], n_words: int) -> str:
    """How many words of the training texts the vectors know."""
    return (
        f"word vectors {vectors['vectors']}: {vectors['types']:.1%} of {n_words:,} words have one, "
        f"{vectors['tokens']:.1%} of the running words"
    )


def describe_model(config: ModelConfig) -> str:
    """In words: "a bidirectional LSTM with additive attention"."""
    encoder = getattr(ENCODERS.find(config.encoder), "title", "") or f"a model with the encoder {config.encoder!r}"
    if config.imposed is not None:
        return f"{encoder} on which the attention of {describe_model(config.imposed)} is imposed"
    if config.rationale is not None:
        gates = getattr(RATIONALES.find(config.rationale), "title", "") or f"the selection {config.rationale!r}"
        return f"{encoder} that reads only the {config.rate:.0%} of the words that it selects, by {gates}"
    levels = " over words and sentences" if config.hierarchical else ""
    if config.concatenate:
        encoder = f"{encoder}, its states joined by embeddings,"
    return f"{encoder} with {config.attention} attention{levels}"


def begin_with_checkpoint(config: RunConfig, corpus: Corpus, source: ModelSource) -> Beginning:
    """A copy of it in memory, with a head for the labels of the corpus: its own where it knows them by name."""
    from heedful.engine.sources.huggingface import CheckpointSource
    from heedful.models.huggingface.fine_tuning import begin as begin_fine_tuning
    from heedful.models.huggingface.fine_tuning import description_files

    assert isinstance(source, CheckpointSource)
    if corpus.task == "qa":
        raise Mistake(
            f"{corpus.name} asks questions with many possible answers, which checkpoints cannot be trained for."
        )
    query = corpus.task != "classification"
    own: dict[str, Any] = {name: source.options[name] for name in ("long", "problem_type") if name in source.options}
    own |= {"ignore": source.options.get("ignore_weights", ())}
    begun = begin_fine_tuning(
        source.folder, corpus.labels, config.seed, own_labels=source.options.get("labels"), query=query, **own
    )
    drawn = f"drawn at random, because {source.name} does not have them: {', '.join(begun.drawn)}"
    return Beginning(
        begun.network,
        begun.text,
        begun.text.vocabulary,
        {
            "description": f"{source.name} ({source.architecture}), fine-tuned",
            "architecture": type(begun.network.module).__name__,
            "attention": source.attention,
            "long": begun.network.long,
            "drawn": list(begun.drawn),
        },
        begun.network.embedding.embedding_dim,
        pretrained=description_files(begun),
        says=(drawn,) if begun.drawn else (),
    )
