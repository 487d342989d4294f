"""Faithfulness: orders and their limits by brute force, ways of removing words, and every kind of model and text."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import heedful
import zoo
from heedful.errors import Mistake
from heedful.experiments import Result, find, to_table
from heedful.experiments.faithfulness.orders import (
    LOW_IS_GOOD,
    METRICS,
    Curves,
    Text,
    all_sets,
    best_chain,
    expected_first_flip,
    levels_of,
    limits_of,
    metrics_of,
    normalised,
    prefixes,
)
from heedful.experiments.faithfulness.pages import told
from heedful.experiments.faithfulness.removals import Removals, flipped, words_of
from heedful.experiments.faithfulness.summary import summarise
from heedful.explainers.perturbation.edits import Edits
from heedful.explainers.perturbation.perturb import predict
from heedful.figures.figure import method_name
from heedful.measure.columns import Bools, Floats, Ints, column, rows_of
from heedful.models.link import IDENTITY, LOG_ODDS, SIGMOIDS, SOFTMAX
from heedful.models.network import Network
from heedful.records import Batch

BINS = (0.01, 0.05, 0.1, 0.2, 0.5)
UNKNOWN = 1  # what a word of our own models is replaced by


def code_of(sets: Bools) -> Ints:
    return np.asarray(sets @ (1 << np.arange(sets.shape[-1])), dtype=np.int64)


def curves_of(orders: Ints, sizes: Ints, f: Floats, flips: Bools) -> Curves:
    """Along orders, from what is said without each of all sets."""
    removed = prefixes(orders, sizes)
    return Curves(f[code_of(removed)], f[code_of(~removed)], flips[code_of(removed)])


@settings(deadline=None, max_examples=40)
@given(n=st.integers(1, 5), points=st.integers(2, 6), seed=st.integers(0, 2**32 - 1))
def test_the_limits_of_a_short_text_are_those_of_all_its_orders(n: int, points: int, seed: int) -> None:
    """Best: by trying all orders. Floor: their mean, so normalised it is 0; the best order is 1."""
    rng = np.random.default_rng(seed)
    sets, f, flips = all_sets(n), rng.normal(size=2**n), rng.random(2**n) < 0.3
    flips[0] = False
    text = Text(levels_of(n, BINS, max(points, n)), float(f[0]), float(f[-1]), decides=True)
    every = np.array(list(permutations(range(n))))
    values = metrics_of(text, curves_of(every, text.levels.sizes, f, flips))
    some = curves_of(every[:3], text.levels.sizes, f, flips)
    shuffled = rng.permutation(2**n)  # the order of asking does not matter
    limits = limits_of(text, sets[shuffled], f[shuffled], flips[shuffled], some)
    assert limits.exact
    for name in METRICS:
        best = values[name].min() if name in LOW_IS_GOOD else values[name].max()
        assert limits.best[name] == pytest.approx(best)
        assert limits.floor[name] == pytest.approx(values[name].mean())
        assert limits.error[name] == 0
        reached = np.array([normalised(text, name, value, limits) for value in values[name].tolist()])
        if not np.isnan(reached).any():
            assert reached.mean() == pytest.approx(0, abs=1e-9)
            assert reached.max() == pytest.approx(1)
        else:
            assert np.ptp(values[name]) < 1e-5
    for name in ("deletion", "insertion"):
        assert limits.lowest[name] == pytest.approx(values[name].min())


@settings(deadline=None, max_examples=40)
@given(n=st.integers(2, 6), known=st.integers(1, 40), seed=st.integers(0, 2**32 - 1))
def test_the_best_chain_is_the_best_of_the_orders_whose_sets_are_known(n: int, known: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    levels = levels_of(n, (0.3, 0.5, 1.0), n)
    which = np.unique(np.concatenate([rng.integers(0, 2**n, known), [2**n - 1]]))
    sets, values = all_sets(n)[which], rng.normal(size=len(which))
    value_of = dict(zip(which.tolist(), values.tolist(), strict=True))
    for weights in (levels.bins, levels.grid):
        best = -math.inf
        for order in permutations(range(n)):
            needed = code_of(prefixes(np.array([order]), levels.sizes[weights > 0])[0]).tolist()
            if all(code in value_of for code in needed):
                best = max(best, float(np.dot([value_of[code] for code in needed], weights[weights > 0])))
        assert best_chain(sets, values, levels.sizes, weights) == pytest.approx(best)


def test_the_law_of_the_first_flip_is_the_mean_over_all_orders() -> None:
    rng = np.random.default_rng(0)
    for n in range(1, 6):
        flips = rng.random(2**n) < 0.3
        flips[0] = False
        firsts = []
        for order in permutations(range(n)):
            codes = code_of(prefixes(np.array([order]), np.arange(1, n + 1))[0])
            firsts.append((int(flips[codes].argmax()) + 1) / n if flips[codes].any() else 1.0)
        assert expected_first_flip(all_sets(n), flips) == pytest.approx(np.mean(firsts))


def test_bins_are_rounded_up_and_hold_a_word() -> None:
    levels = levels_of(20, BINS, 20)
    assert levels.sizes.tolist() == list(range(1, 21))
    assert levels.bins.nonzero()[0].tolist() == [0, 1, 3, 9]  # 1, 1, 2, 4 and 10 words
    assert levels.bins[[0, 1, 3, 9]] == pytest.approx([0.4, 0.2, 0.2, 0.2])
    long = levels_of(101, BINS, 20)
    grid = long.sizes[long.grid > 0]
    assert set(grid.tolist()) - {101} == {101 - size for size in grid.tolist()} - {0}
    assert long.bins.sum() == pytest.approx(1)
    assert long.grid.sum() == pytest.approx(1)


# ---- ways of removing words --------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "transformer"])
def test_words_are_really_removed(encoder: Any) -> None:
    """Deleted: the shorter text, read alone. Hidden: the same states without their weight."""
    model, batch = zoo.network(encoder), zoo.batch([6])
    passage = batch.passage
    gone = np.array([[False, True, False, False, True, False]])
    target = torch.zeros(1, dtype=torch.long)
    said = {}
    for operator in ("delete", "mask", "pad", "zero"):
        removals = Removals(model, batch, words_of(passage), model(batch).logits, target, operator)
        removals.ask([gone])
        said[operator] = removals.said(0, gone).f[0]
    stay = torch.tensor([0, 1, 3, 4, 6, 7])
    with torch.no_grad():
        shorter = Batch(type(passage)(passage.ids[:, stay], passage.present[:, stay], passage.mask[:, stay]))
        assert said["delete"] == pytest.approx(float(model(shorter).probabilities[0, 0]), abs=1e-12)
        out = model(batch)
        alpha = out.alpha.clone()
        alpha[0, [2, 5]] = 0
        padded = model.link.probabilities(model.decode(out.h, alpha / alpha.sum()))
        assert said["pad"] == pytest.approx(float(padded[0, 0]), abs=1e-12)
        ids = passage.ids.clone()
        ids[0, [2, 5]] = UNKNOWN
        unknown = Batch(type(passage)(ids, passage.present, passage.mask))
        assert said["mask"] == pytest.approx(float(model(unknown).probabilities[0, 0]), abs=1e-12)
        x = model.embed(passage)
        x[0, [2, 5]] = 0
        assert said["zero"] == pytest.approx(float(model(batch, x=x).probabilities[0, 0]), abs=1e-12)
    ways = {round(value, 9) for value in said.values()}
    assert len(ways) == (3 if encoder == "average" else 4)  # without context, hidden is deleted


@pytest.mark.parametrize("family", ["Bert", "DistilBert", "Roberta", "ModernBert", "DebertaV2"])
def test_hidden_words_are_those_of_the_attention_mask(family: str) -> None:
    pytest.importorskip("transformers")
    import transformer_zoo

    made = transformer_zoo.model(family)
    network, batch = transformer_zoo.network(made), transformer_zoo.batch(made)
    passage = batch.passage
    hidden = passage.mask & (torch.arange(passage.ids.shape[1]) % 3 == 1)
    assert "hides_words" in network.can
    ours = network(replace(batch, passage=replace(passage, hidden=hidden, mask=passage.mask & ~hidden))).logits
    for row, ids in enumerate(passage.ids):
        n = int(passage.present[row].sum())
        shown = (~hidden[row, :n]).long()[None]
        with torch.no_grad():
            own = network.module(input_ids=ids[None, :n], attention_mask=shown).logits[0]
        torch.testing.assert_close(ours[row], own, atol=1e-5, rtol=0)


def test_what_cannot_hide_words_says_so() -> None:
    """A decoder reads the state of its last word, and an unknown function reads strings."""
    pytest.importorskip("transformers")
    import transformer_zoo

    for made in (transformer_zoo.model("GPT2"), heedful.wrap(score, labels=["neg", "pos"])):
        assert "hides_words" not in made.network.can
        batch = made.encode(made.examples(["a good film"])).batch([0])
        with pytest.raises(Mistake, match="hides_words"):
            predict(made.network, batch, Edits.each_word(batch.passage), "pad")


class Counting:
    """A network that keeps how many texts it was given at each call."""

    def __init__(self, network: Any) -> None:
        self.network, self.calls = network, list[int]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def __call__(self, batch: Batch, **given: Any) -> Any:
        self.calls.append(len(batch))
        return self.network(batch, **given)


def test_each_edited_text_is_asked_once() -> None:
    model: Any = Counting(zoo.network())
    batch = zoo.batch([4, 3])
    whole, target = model(batch).logits, torch.zeros(2, dtype=torch.long)
    removals = Removals(model, batch, words_of(batch.passage), whole, target, "mask")
    model.calls.clear()
    removals.ask([all_sets(4), all_sets(3)])
    removals.ask([all_sets(4)[:7], all_sets(3)])
    assert sum(model.calls) == 16 + 8
    model.calls.clear()
    table = rows("binary", [4], {"operators": ["delete"], "methods": ["attention", "random"]}, model)
    summary = summarise(table)["forward_passes"]
    assert summary["run"] + 1 == sum(model.calls)  # and once the text as it is
    assert summary["run"] <= 16  # all sets of the text, whatever the methods
    assert summary["saved"] == summary["wanted"] - summary["run"] > 0


def test_equal_texts_are_counted_once() -> None:
    """Of "very very good" it is the same text whichever "very" is deleted."""
    model: Any = Counting(zoo.network())
    batch = zoo.batch([3])
    batch.passage.ids[0, 2] = batch.passage.ids[0, 1]
    whole, target = model(batch).logits, torch.zeros(1, dtype=torch.long)
    for operator, texts in (("delete", 6), ("mask", 8)):
        model.calls.clear()
        removals = Removals(model, batch, words_of(batch.passage), whole, target, operator)
        removals.ask([all_sets(3)])
        assert removals.known[0].forwards == sum(model.calls) == texts


def test_soft_versions_ask_nothing_twice() -> None:
    model: Any = Counting(zoo.network())
    asked = {"operators": ["soft"], "methods": ["attention", "random"], "soft_draws": 3}
    table = rows("binary", [4, 3], asked, model)
    drawn = summarise(table)["forward_passes"]["run"]
    assert drawn == 2 * (2 * 4 * 3 + 1)  # texts, methods, numbers of a method, draws; and the text of zeros
    assert sum(model.calls) == drawn + 2  # and once the texts as they are


def test_what_a_flip_is_depends_on_what_is_predicted() -> None:
    before, after = torch.tensor([[2.0, 1.0, -1.0]]), torch.tensor([[1.0, 2.0, -1.0]])
    first, second = torch.tensor([0]), torch.tensor([1])
    assert flipped(SOFTMAX, before, after, first).tolist() == [True]
    assert flipped(SIGMOIDS, before, after, first).tolist() == [False]  # still above one half
    assert flipped(SIGMOIDS, before, -after, second).tolist() == [True]
    assert flipped(LOG_ODDS, torch.tensor([[0.5]]), torch.tensor([[-0.5]]), first).tolist() == [True]
    assert flipped(IDENTITY, torch.tensor([[0.5]]), torch.tensor([[-0.5]]), first).tolist() == [False]


# ---- every kind of model and text --------------------------------------------------------------------------------


def rows(
    task: Any, lengths: list[int], options: dict[str, Any], model: Network | None = None, seed: int = 0
) -> pa.Table:
    experiment, batch = find("faithfulness"), zoo.batch(lengths, task)
    config = experiment.config.parse(options, "the test")
    model = zoo.network(task=task) if model is None else model
    return to_table(experiment.run(model, [(np.arange(len(lengths)), batch)], config, np.random.default_rng(seed)))


def score(texts: list[str]) -> np.ndarray:
    good = np.array([[text.split().count("good") - text.split().count("bad")] for text in texts], dtype=float)
    p = 1 / (1 + np.exp(-2 * good))
    return np.asarray(np.concatenate([1 - p, p], axis=1))


TEXTS = ["a good film", "good", "what a bad bad film it was and so good at its end", "nothing to see", "bad bad"]


def test_a_black_box_is_asked_with_what_it_can() -> None:
    found = heedful.run("faithfulness", heedful.wrap(score, labels=["neg", "pos"]), TEXTS)
    table, summary = found.table, found.summary
    assert set(table["method"].to_pylist()) == {"omission", "random"}
    assert set(table["operator"].to_pylist()) == {"delete", "mask"}
    assert summary["left_out"] == [
        "attention: needs a model whose attention weights can be read",
        "gradient_x_input: needs a model whose word embeddings can be read and given",
        "integrated_gradients: needs a model whose word embeddings can be read and given",
        "lrp: needs a model whose word embeddings can be read and given",
        "pad: needs a model that can shut single words out of its attention",
        "zero: needs a model whose word embeddings can be read and given",
        "soft: needs a model whose word embeddings can be read and given",
    ]
    assert summary["methods"]["omission"]["delete"]["comprehensiveness"]["normalised"]["mean"] > 0.9
    still = rows_of(table, "method_operator", "omission/delete").to_pylist()[3]  # its output never changes
    assert still["comprehensiveness"] == still["deletion"] == 0
    assert still["comprehensiveness_normalised"] is None
    assert still["flip_fraction"] == 1
    assert np.isnan(column(table, "max_attention")).all()
    verdict = find("faithfulness").verdict(Result("faithfulness", table, summary))
    assert verdict is not None
    assert verdict.grade == "unclear"  # it has no attention to be graded
    assert "leave-one-out" in verdict.sentence
    with pytest.raises(
        Mistake, match=r"none of the methods .*: attention: needs a model whose attention weights can be read"
    ):
        heedful.run("faithfulness", heedful.wrap(score, labels=["neg", "pos"]), TEXTS, methods=["attention"])


def test_a_control_is_not_among_the_methods_of_the_sentence() -> None:
    """ "random order cannot be told from a random order or is worse" said nothing of a method."""
    table = rows("binary", [4, 5, 6, 3], {"methods": ["omission", "random", "uniform"]})
    summary = summarise(table)
    operator = summary["reached"]["operator"]
    assert {"omission", "random", "uniform"} == set(summary["methods"])
    for better in (False, True):
        for name in ("random", "uniform"):
            summary["methods"][name][operator]["comprehensiveness"]["against_random"]["better"] = better
        said = told(summary, operator)
        methods = said.split("The control ")[0]
        assert method_name("uniform") not in methods
        assert method_name("random") not in methods.replace("better than a random order", "").replace(
            "told from a random order", ""
        )
        assert ("The control random order, which knows nothing, came out better" in said) == better
    assert not any("random" in flag.split(" is better than random")[0] for flag in summary["operators"]["flags"])


def test_one_word_and_no_word() -> None:
    table = rows("binary", [1, 3], {"operators": ["delete", "soft"]})
    alone = [row for row in table.to_pylist() if row["n_words"] == 1 and row["operator"] == "delete"]
    for row in alone:
        assert row["comprehensiveness"] == pytest.approx(row["comprehensiveness_floor"])
        assert row["comprehensiveness_normalised"] is None
        assert row["tau"] is None
    empty = zoo.batch([2, 3])
    mask = empty.passage.mask.clone()
    mask[0] = False
    batch = Batch(type(empty.passage)(empty.passage.ids, empty.passage.present, mask))
    experiment = find("faithfulness")
    found = to_table(
        experiment.run(zoo.network(), [(np.arange(2), batch)], experiment.config(), np.random.default_rng(0))
    )
    for row in found.to_pylist()[:30]:
        assert row["n_words"] == 0
        assert row["comprehensiveness"] is row["soft_nc"] is None
        assert row["deletion_curve"] == []
    json.dumps(summarise(found), allow_nan=False)


def test_numbers_and_several_labels() -> None:
    def number(texts: list[str]) -> np.ndarray:
        return np.array([[10.0 * text.split().count("good") - 3.0 * text.split().count("bad")] for text in texts])

    made = heedful.wrap(number, labels=["stars"], problem_type="regression")
    found = heedful.run("faithfulness", made, TEXTS, operators=["delete"])
    assert found.summary["scale"] == "predicted number"
    first = rows_of(found.table, "method_operator", "omission/delete").to_pylist()[0]
    assert first["comprehensiveness"] == pytest.approx(10)  # in the unit of the number
    assert first["flip_fraction"] is None

    def both(texts: list[str]) -> np.ndarray:
        return np.array([[0.9 if "good" in text else 0.2, 0.8 if "film" in text else 0.1] for text in texts])

    made = heedful.wrap(both, labels=["warm", "film"], problem_type="multi_label_classification")
    found = heedful.run("faithfulness", made, TEXTS[:1], operators=["delete"], target=1)
    (first, *_) = rows_of(found.table, "method_operator", "omission/delete").to_pylist()
    assert first["target"] == 1
    assert first["comprehensiveness"] == pytest.approx(0.7)
    assert first["flip_fraction"] == pytest.approx(1 / 3)
    with pytest.raises(Mistake, match="the labels of this model are 0 to 1"):
        heedful.run("faithfulness", made, TEXTS[:1], target=2)


def test_of_a_pair_the_passage_is_edited() -> None:
    seen: list[tuple[str, str]] = []

    def predict(pairs: list[tuple[str, str]]) -> np.ndarray:
        seen.extend(pairs)
        return score([passage for passage, _ in pairs])

    made = heedful.wrap(predict, labels=["no", "yes"], query=True)
    found = heedful.run("faithfulness", made, TEXTS[:2], queries=["is it good ?", "is it so ?"], operators=["delete"])
    assert {query for _, query in seen} == {"is it good ?", "is it so ?"}
    assert ("", "is it good ?") in seen
    assert len(found) == 4


def test_long_texts_are_read_in_windows_and_attention_says_nothing_of_them() -> None:
    pytest.importorskip("transformers")
    import transformer_zoo

    made = transformer_zoo.model("Bert")
    long = " ".join(["one two three good"] * 25)
    with pytest.warns(UserWarning, match="windows"):
        found = heedful.run(
            "faithfulness",
            made,
            ["a good film", long],
            methods=["attention", "gradient_x_input", "random"],
            operators=["delete", "pad"],
            beam=1,
            draws=2,
        )
    by = {(row["example"], row["method_operator"]): row for row in found.table.to_pylist()}
    assert by[1, "attention/delete"]["comprehensiveness"] is None
    assert by[0, "attention/delete"]["comprehensiveness"] is not None
    for operator in ("delete", "pad"):
        row = by[1, f"gradient_x_input/{operator}"]
        assert row["comprehensiveness_best"] >= row["comprehensiveness"]
        assert 0 <= row["naopc_deletion"] <= 1
        assert row["n_words"] == 100
    assert found.summary["methods"]["attention"]["delete"]["comprehensiveness"]["undefined"] == 1


def test_the_search_finds_at_least_what_every_method_finds() -> None:
    table = rows("several", [9, 12, 25, 40], {"exact": 0, "beam": 2, "draws": 3, "points": 10})
    for name in METRICS:
        sign = -1 if name in LOW_IS_GOOD else 1
        values, best = sign * column(table, name), sign * column(table, f"{name}_best")
        known = ~np.isnan(values) & ~np.isnan(best)
        assert known.any()
        assert (best[known] >= values[known] - 1e-12).all()
    exact = rows("several", [9], {"exact": 12, "operators": ["delete"], "draws": 3})
    found = rows("several", [9], {"exact": 0, "operators": ["delete"], "draws": 3, "beam": 3})
    for name in METRICS:
        sign = -1 if name in LOW_IS_GOOD else 1
        assert sign * found[f"{name}_best"][0].as_py() <= sign * exact[f"{name}_best"][0].as_py() + 1e-12
    assert exact["exact"].to_pylist() == [True] * 6


def test_the_control_is_the_mean_of_its_draws_and_nothing_else_changes() -> None:
    """Its first order is the one it has alone; with many it comes near the floor."""
    options = {"methods": ["omission", "random"], "operators": ["delete"], "exact": 0, "beam": 0, "draws": 40}
    alone, several = (rows("several", [12, 15], options | {"control_draws": draws}).to_pylist() for draws in (1, 40))
    for one, other in zip(alone, several, strict=True):
        if one["method"] == "omission":
            assert one["comprehensiveness"] == pytest.approx(other["comprehensiveness"], abs=1e-6)
        else:
            off = [abs(row["comprehensiveness"] - row["comprehensiveness_floor"]) for row in (one, other)]
            error = np.hypot(other["comprehensiveness_floor_error"], other["comprehensiveness_floor_error"])
            assert off[1] <= 4 * error
            assert other["wanted"] > 10 * one["wanted"]


def test_the_control_is_no_better_than_random_and_chance_is_0() -> None:
    """Over seeds of the control, the mean of what it reaches is that of chance."""
    reached = []
    for seed in range(60):
        options = {"methods": ["random"], "operators": ["mask"], "options": {"random": {"seed": seed}}}
        reached.append(column(rows("binary", [4, 5, 6], options), "comprehensiveness_normalised"))
    values = np.array(reached)
    assert abs(values.mean()) < 3 * values.mean(1).std(ddof=1) / math.sqrt(len(values))


def test_options_are_checked() -> None:
    for options, message in (
        ({"operators": ["burn"]}, "there is no operator 'burn'"),
        ({"bins": [0.0]}, "above 0"),
        ({"methods": ["lrp", "lrp"]}, "given once"),
        ({"options": {"lrp": {}}, "methods": ["omission"]}, "none of the methods"),
        ({"options": {"omission": {"steps": 3}}}, "does not take the option 'steps'"),
        ({"methods": ["lpr"]}, "lrp"),
    ):
        with pytest.raises(Mistake, match=message):
            rows("binary", [3], options)


# ---- what is said of the rows ------------------------------------------------------------------------------------


def table_of(effects: dict[str, dict[str, float]], n: int = 60) -> pa.Table:
    """Rows whose comprehensiveness lies so far above the floor, by method and operator."""
    rng = np.random.default_rng(0)
    base = rows("binary", [3] * n, {"operators": ["delete"], "methods": ["random"]})
    parts = []
    for method, by in effects.items():
        for operator, effect in by.items():
            table = base
            changed = {
                "method": pa.array([method] * n),
                "operator": pa.array([operator] * n),
                "method_operator": pa.array([f"{method}/{operator}"] * n),
                "comprehensiveness_floor": pa.array(np.zeros(n)),
                "comprehensiveness": pa.array(effect + rng.normal(0, 0.1, n)),
            }
            for name, values in changed.items():
                table = table.set_column(table.schema.get_field_index(name), name, values)
            parts.append(table)
    return pa.concat_tables(parts)


def test_a_conclusion_that_changes_with_the_operator_is_flagged() -> None:
    found = summarise(
        table_of(
            {
                "lrp": {"delete": 0.3, "zero": 0.0},
                "mask": {"delete": 0.1, "zero": 0.2},
                "random": {"delete": 0.0, "zero": 0.0},
            }
        )
    )["operators"]
    assert found["flags"] == [
        "lrp is better than random under delete, and not under zero",
        "which of lrp and mask is better changes: lrp under delete, mask under zero",
    ]
    assert found["order"]["delete"] == ["lrp", "mask", "random"]
    assert not found["same_order"]
    assert found["better_than_random"]["random"] == {"delete": False, "zero": False}
    calm = summarise(table_of({"lrp": {"delete": 0.3, "zero": 0.3}, "random": {"delete": 0.0, "zero": 0.0}}))
    assert calm["operators"]["flags"] == []
    assert calm["pairs"]["delete"]["lrp/random"]["better"] == "lrp"
