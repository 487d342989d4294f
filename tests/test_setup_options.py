"""What the code of Jain & Wallace does and our defaults do not: embeddings of the query's own, its largest features."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from heedful import api
from heedful.config import ModelConfig, RunConfig, stored_settings
from heedful.data.text.batching import encode
from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vocabulary import Vocabulary, WordEncoder
from heedful.engine.tasks.commands import train_words
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS
from heedful.models import build
from heedful.models.model import Model
from heedful.records import Batch, Example

SPLIT = tokenizer("whitespace")
TEXTS = (("john went home", "where is john"), ("mary took the ball home", "where is the ball"))
VOCABULARY = Vocabulary.build([SPLIT(text) for pair in TEXTS for text in pair])


def made(**settings: Any) -> tuple[Model, Batch]:
    config = ModelConfig(embedding_dim=6, hidden_dim=8, **settings)
    text = WordEncoder.of(VOCABULARY, "whitespace", config)
    network = build(config, text.n_ids, 3, has_query=True).double().eval()
    examples = [Example(f"{i}", SPLIT(passage), i, SPLIT(query)) for i, (passage, query) in enumerate(TEXTS)]
    return Model("made", network, text, ("a", "b", "c"), "qa"), encode(examples, text, 3).batch(np.arange(2))


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average"])
def test_the_query_has_embeddings_of_its_own(encoder: str) -> None:
    shared, batch = made(encoder=encoder)
    model, separate = made(encoder=encoder, as_published={"separate_embeddings": True})
    n, network = len(VOCABULARY), model.network
    assert batch.query is not None
    assert separate.query is not None
    assert torch.equal(separate.passage.ids, batch.passage.ids)
    assert torch.equal(separate.query.ids, batch.query.ids + n)
    with torch.no_grad():
        network.load_state_dict(  # type: ignore[attr-defined]
            {**shared.network.state_dict(), "embedding.weight": shared.network.embedding.weight.repeat(2, 1)}  # type: ignore[attr-defined]
        )
        torch.testing.assert_close(network(separate).logits, shared.network(batch).logits)
        network.embedding.weight[n:] = torch.randn_like(network.embedding.weight[n:])  # type: ignore[attr-defined]
        assert not torch.allclose(network(separate).logits, shared.network(batch).logits)
    assert model.text.names([4, n + 4]) == [VOCABULARY.words[4]] * 2


@pytest.mark.parametrize(
    "settings",
    [
        {"as_published": {"separate_embeddings": True}},
        {"encoder": "cnn", "as_published": {"query_pooling": "max_of_words"}},
    ],
)
@pytest.mark.parametrize("name", ["gradient_x_input", "integrated_gradients", "lrp", "occlusion", "omission", "mask"])
def test_scores_of_passage_and_query_alone_are_those_in_the_batch(name: str, settings: dict[str, Any]) -> None:
    model, batch = made(**settings)
    target = torch.tensor([0, 1])
    together = EXPLAINERS.find(name).run(model.network, batch, target, parts="both")
    for i in range(2):
        one = batch.rows(torch.tensor([i]))
        alone = EXPLAINERS.find(name).run(model.network, one, target[i : i + 1], parts="both")
        width = one.passage.ids.shape[1]
        torch.testing.assert_close(alone.passage[0], together.passage[i, :width], atol=1e-8, rtol=1e-6)


def test_a_feature_of_the_query_is_the_largest_over_its_words() -> None:
    model, batch = made(encoder="cnn", as_published={"query_pooling": "max_of_words"})
    network, query = model.network, batch.query
    assert query is not None
    with torch.no_grad():
        x = network.embed(query)  # type: ignore[attr-defined]
        states = network.query_encoder(x, query.present)  # type: ignore[attr-defined]
        Q = network.encode_query(x, query.present)  # type: ignore[attr-defined]
    for i in range(2):
        words = states[i, 1 : int(query.present[i].sum()) - 1]  # no marker
        torch.testing.assert_close(Q[i], words.max(0).values)


def test_settings_of_the_published_code_have_a_section_of_their_own_in_each_part() -> None:
    given = {"epochs": 3, "as_published": {"keep_from": 2, "separate_embeddings": True, "min_words": 7}}
    config = api.configure("planted-word", settings=given)
    assert config.training.as_published.keep_from == 2
    assert config.model.as_published.separate_embeddings
    assert config.data.as_published.min_words == 7
    assert api.configure("planted-word", settings={"as_published": {}}) == api.configure("planted-word")
    assert "as_published" not in api.configure("planted-word").model_dump_json()
    typed = train_words(config)
    (published,) = (word.removeprefix("as_published=") for word in typed if word.startswith("as_published="))
    assert json.loads(published) == given["as_published"]
    for wrong, says in (({"keepfrom": 2}, "keep_from"), (2, "settings by name")):
        with pytest.raises(Mistake, match=says):
            api.configure("planted-word", settings={"as_published": wrong})
    with pytest.raises(Mistake, match="there is no") as refused:
        api.configure("planted-word", settings={"keep_from": 2})
    assert "as_published" not in str(refused.value)


def test_settings_of_kept_runs_are_read_by_the_names_of_today() -> None:
    """docs/results/*.parquet, whose runs cannot be made again, say them without a section."""
    flat = {
        "dataset": "cnn",
        "data": {"vocabulary": "all", "min_df": 2},
        "model": {"encoder": "cnn", "query_pooling": "max_of_words"},
        "training": {"reduction": "mean", "batches": "sorted", "epochs": 8},
    }
    config = RunConfig.parse(stored_settings(flat), "a file")
    assert (config.data.as_published.vocabulary, config.data.min_df) == ("all", 2)
    assert config.model.as_published.query_pooling == "max_of_words"
    assert (config.training.as_published.reduction, config.training.as_published.batches) == ("mean", "sorted")
    assert RunConfig.parse(stored_settings(config.model_dump(mode="json")), "a file") == config
