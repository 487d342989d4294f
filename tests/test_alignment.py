"""Links between words: the error rate by hand, and the experiment against loops over its words."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from heedful.data.translation.pairs import decisions_of, diagonal
from heedful.data.translation.planted import generated_pairs
from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, to_table
from heedful.experiments.ground_truth.alignment import THRESHOLDS, summarise
from heedful.experiments.ground_truth.links import alignment, count_links, error_rate, with_chosen_threshold
from heedful.models.language.decisions import decision
from heedful.models.translation.config import TranslatorConfig
from heedful.models.translation.model import TranslationModel, as_model, build_translator
from heedful.models.translation.text import learn_text
from heedful.records import Example, Saying


def test_error_rate_by_hand() -> None:
    """Three words said, four of the source. S = {0-0, 1-1, 2-1}, P = S + {3-2}; A = {0-0, 2-1, 3-2, 1-2}.

    |A & S| = 2, |A & P| = 3: precision 3/4, recall 2/3, AER = 1 - (2 + 3) / (4 + 3) = 2/7.
    """
    links = np.zeros((3, 3, 4), dtype=bool)  # A, S, P; words said; words of the source
    for which, pairs in enumerate(([(0, 0), (2, 1), (3, 2), (1, 2)], [(0, 0), (1, 1), (2, 1)], [(3, 2)])):
        for i, j in pairs:
            links[which, j, i] = True
    counts = count_links(*links)
    np.testing.assert_array_equal(counts.sum(0), [4, 2, 3, 3])
    found = alignment(counts.sum(0, keepdims=True))
    assert found.precision == pytest.approx(3 / 4)
    assert found.recall == pytest.approx(2 / 3)
    assert found.f1 == pytest.approx(2 * (3 / 4) * (2 / 3) / (3 / 4 + 2 / 3))
    assert found.aer == pytest.approx(2 / 7)
    assert math.isnan(found.low)  # one sentence has no interval
    with_sure_only = alignment(count_links(links[0], links[1], links[1]).sum(0, keepdims=True))
    assert with_sure_only.aer == pytest.approx(1 - 2 * 2 / (4 + 3))  # then it is 1 - F1
    assert with_sure_only.aer == pytest.approx(1 - with_sure_only.f1)


def test_a_threshold_is_chosen_on_other_sentences() -> None:
    """Sentences 0 and 2 are best at the first, 1 and 3 at the second: each half gets what is best for the other."""
    good, bad = [1.0, 1, 1, 1], [1.0, 0, 0, 1]
    counts = np.array([[good, bad], [bad, good], [good, bad], [bad, good]])
    np.testing.assert_array_equal(with_chosen_threshold(counts), [bad, bad, bad, bad])
    assert error_rate(with_chosen_threshold(counts).sum(0)) == 1
    assert math.isnan(float(error_rate(np.zeros(4))))


def test_the_diagonal() -> None:
    assert [diagonal(j, 4, 4) for j in range(4)] == [0, 1, 2, 3]
    assert [diagonal(j, 2, 4) for j in range(4)] == [0, 0, 1, 1]
    assert [diagonal(j, 6, 2) for j in range(2)] == [1, 4]


PAIRS = [*itertools.islice(generated_pairs("planted-translation", 0), 12)]


def made() -> tuple[TranslationModel, list[Example]]:
    """A translator that has learnt nothing, and each word of some pairs."""
    text = learn_text([text for pair in PAIRS for text in (pair.source, pair.target)], None, 1)
    network = build_translator(TranslatorConfig(embedding_dim=8, hidden_dim=8, dropout=0.0), text).double().eval()
    model = as_model("small", network, text)
    examples = []
    for raw in decisions_of(PAIRS, "test"):
        words = text.split(raw.text)
        spans = {tuple(span): i for i, span in enumerate(words.offsets.tolist())}
        marks = tuple((name, tuple(spans[span] for span in marked)) for name, marked in raw.marks)
        assert raw.evidence is not None
        given = Example(
            raw.id, words, evidence=tuple(spans[span] for span in raw.evidence), saying=raw.saying, marks=marks
        )
        examples.append(decision(model, given))
    return model, examples


def test_rows_by_loops() -> None:
    """Attention, read off the network one word at a time; the controls; summary numbers from the links themselves."""
    model, examples = made()
    alignment_of = EXPERIMENTS["alignment"]
    config = alignment_of.config.parse({"methods": ["attention", "gradient"]}, "alignment")
    whole = [(np.arange(len(examples)), model.encode(examples).batch(range(len(examples))))]
    table = to_table(alignment_of.run(model.network, whole, config, np.random.default_rng(0)))
    rows = [row for row in table.to_pylist() if row["method"] == "attention"]
    number, summed = 0, dict.fromkeys(("a", "s", "with_s"), 0)
    for pair in PAIRS:
        assert pair.sure is not None
        for j in range(len(pair.target.split())):
            alpha = model.network.attentions(model.encode([examples[number]]).batch([0]))[0, 0, 0, 0]
            best, true = int(alpha.argmax()), {i for i, k in pair.sure if k == j}
            row = rows[number]
            assert row["sure"] == len(true)
            assert row["links"] == 1
            assert row["sure_links"] == row["possible_links"] == (best in true)
            assert row["hit"] == (float(best in true) if true else None)
            for t in THRESHOLDS:
                linked = {i for i in range(len(pair.source.split())) if float(alpha[i]) >= t}
                assert row[f"links_{round(t * 100)}"] == len(linked)
                assert row[f"sure_links_{round(t * 100)}"] == len(linked & true)
            summed = {"a": summed["a"] + 1, "s": summed["s"] + len(true), "with_s": summed["with_s"] + (best in true)}
            number += 1
    assert number == len(rows)
    summary = summarise(table)
    found = summary["alignment"]["attention"]["best"]
    assert summary["sentences"] == len(PAIRS)
    assert found["aer"] == pytest.approx(1 - 2 * summed["with_s"] / (summed["a"] + summed["s"]))
    assert found["low"] <= found["aer"] <= found["high"]
    assert {"random", "diagonal"} <= set(summary["alignment"])
    assert "gradient/attention" in summary["paired"]


def test_attention_that_is_right_has_no_error() -> None:
    """Copies, and weights that are put on the word itself: AER 0, and the diagonal is as good."""
    text = learn_text(["a b c"], None, 1)
    model = as_model("copies", build_translator(TranslatorConfig(embedding_dim=4, hidden_dim=4), text).eval(), text)
    model.network.impose = lambda alpha, mask: torch.eye(alpha.shape[2])[: alpha.shape[1]].expand_as(alpha)
    examples = []
    for j, word in enumerate("abc"):
        saying, words = Saying(word, after=" ".join("abc"[:j])), text.split("a b c")
        given = Example(str(j), words, evidence=(j,), saying=saying, marks=(("possible", (j,)), ("diagonal", (j,))))
        examples.append(decision(model, given))
    config = EXPERIMENTS["alignment"].config.parse({"methods": ["attention"]}, "alignment")
    batches = [(np.arange(3), model.encode(examples).batch(range(3)))]
    found = summarise(to_table(EXPERIMENTS["alignment"].run(model.network, batches, config, np.random.default_rng(0))))
    for name in ("attention", "diagonal"):
        for how in ("best", "threshold"):
            assert found["alignment"][name][how]["aer"] == 0
    plain = decision(model, Example("0", words, saying=Saying("a", after="")))
    nothing = [(np.arange(1), model.encode([plain]).batch([0]))]
    with pytest.raises(Mistake, match="evidence"):
        list(EXPERIMENTS["alignment"].run(model.network, nothing, config, np.random.default_rng(0)))
