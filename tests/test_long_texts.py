"""Texts longer than a model reads: windows whose logits add up to one function of the text, or a clear no."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers")

import transformer_zoo as zoo
from heedful.errors import Mistake
from heedful.explainers.gradients.gradient import gradient_x_input
from heedful.explainers.gradients.integrated import integrated_gradients
from heedful.models.huggingface import wrap
from heedful.models.sequence import sequences, windows_of

LONG = " ".join(["a good film it is bad of all", "the waste of time"] * 12)  # 144 words, and the model reads 64
IN_WINDOWS = pytest.mark.filterwarnings("ignore:a text is longer")


@given(st.integers(1, 3000), st.integers(4, 200))
@settings(deadline=None, max_examples=60)
def test_every_piece_counts_the_same(pieces: int, room: int) -> None:
    windows = windows_of(pieces, room, "windows")
    weight = np.zeros(pieces)
    times = np.zeros(pieces)
    for start, size, _ in windows:
        times[start : start + size] += 1
    for start, size, share in windows:
        assert 0 <= start <= start + size <= pieces
        assert size <= room
        weight[start : start + size] += 1 / times[start : start + size]
        assert share == pytest.approx((1 / times[start : start + size]).sum() / pieces)
    np.testing.assert_allclose(weight, 1.0)
    assert sum(share for _, _, share in windows) == pytest.approx(1)
    assert len(windows) == 1 or all(a[0] + a[1] > b[0] for a, b in pairwise(windows))


@pytest.mark.parametrize("family", ["Bert", "Roberta", "GPT2"])
def test_the_logits_of_windows(family: str) -> None:
    """Against windows cut and read by hand; a text that fits is untouched by a long one beside it."""
    made = zoo.model(family)
    network = zoo.network(made)
    batch = zoo.batch(made, [LONG, "a good film"])
    with pytest.warns(UserWarning, match="64 tokens that .* reads at once: it is read in windows"):
        found = network(batch).logits
    n = int(batch.passage.present[0].sum())
    ids = batch.passage.ids[0, :n]
    before, after = network.frame.before, network.frame.after
    expected = torch.zeros(zoo.N_LABELS)
    for start, size, share in windows_of(n - before - after, 64 - before - after, "windows"):
        window = torch.cat([ids[:before], ids[before + start : before + start + size], ids[n - after :]])
        with torch.no_grad():
            expected += share * network.module(input_ids=window.unsqueeze(0)).logits[0]
    torch.testing.assert_close(found[0], expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(found[1], network(zoo.batch(made, ["a good film"])).logits[0], atol=1e-5, rtol=0)


@IN_WINDOWS
def test_explanations_of_windows_are_complete() -> None:
    made = zoo.model("Bert")
    network, batch = zoo.network(made), zoo.batch(made, [LONG])
    target = torch.tensor([1])
    found = integrated_gradients(network, batch, target, n_steps=20)
    assert found.gap is not None
    assert found.scale is not None
    assert abs(float(found.gap)) < 1e-3 * float(found.scale) + 1e-4
    scores = gradient_x_input(network, batch, target).passage
    assert (scores[batch.passage.mask] != 0).all()


@IN_WINDOWS
def test_a_query_is_whole_in_every_window() -> None:
    made = zoo.model("Bert", query=True)
    network, batch = zoo.network(made), zoo.batch(made, [LONG], ["is it good?"])
    assert batch.query is not None
    found = sequences(batch, network.limit, network.frame)
    joined = found.take(batch.passage.ids, batch.query.ids)
    query = batch.query.ids[0].tolist()
    assert len(joined) > 2
    for ids, there in zip(joined, found.present, strict=True):
        assert ids[there].tolist()[-len(query) :] == query
        assert ids[0] == 2
        assert ids[there][-len(query) - 1] == 3
    with pytest.raises(Mistake, match="leaves room for 0 pieces"):
        network(zoo.batch(made, ["good"], [LONG]))


def test_refused_or_cut_when_asked() -> None:
    tokenizer = zoo.tokenizer_of("Bert")
    strict = wrap(zoo.module("Bert"), tokenizer, long="refuse")
    with pytest.raises(Mistake, match="a text has 144 pieces, and the model reads 62 of it at once"):
        strict.predict([LONG])
    cut = wrap(zoo.module("Bert"), tokenizer, long="truncate")
    with pytest.warns(UserWarning, match="only its beginning is read"):
        found = cut.network(zoo.batch(cut, [LONG])).logits
    given = tokenizer(LONG, truncation=True, max_length=64, return_tensors="pt")
    with torch.no_grad():
        own = zoo.network(cut).module(**given).logits
    torch.testing.assert_close(found, own, atol=1e-6, rtol=0)
    with pytest.raises(Mistake, match="no choice of long 'cut'"):
        wrap(zoo.module("Bert"), tokenizer, long="cut")  # type: ignore[arg-type]


@IN_WINDOWS
def test_there_is_no_attention_over_windows() -> None:
    made = zoo.model("Bert")
    network, batch = zoo.network(made), zoo.batch(made, [LONG])
    with pytest.raises(Mistake, match="no one attention over all of it"):
        network.attentions(batch)
    with pytest.raises(Mistake, match="no one attention over all of it"):
        network(batch, edit=lambda layer, weights: weights)


@IN_WINDOWS
def test_five_thousand_words() -> None:
    made = zoo.model("Bert")
    text = " ".join(["good", "film", "bad", "waste", "time"] * 1000)
    p = made.predict([text])
    assert p.shape == (1, 3)
    assert p.sum() == pytest.approx(1)
    scores = gradient_x_input(zoo.network(made), zoo.batch(made, [text]), torch.tensor([0])).passage
    assert scores.shape == (1, 5002)
    assert (scores[0, 1:-1] != 0).all()


def test_positions_that_start_after_padding() -> None:
    """RoBERTa's table has rows for padding: 66 rows are 64 positions, and the 65th would be an error."""
    assert zoo.network(zoo.model("Roberta")).limit == 64
    assert zoo.network(zoo.model("Bert")).limit == 64
    assert zoo.network(zoo.model("XLNet")).limit is None
