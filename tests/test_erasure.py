"""Erased attention weights: against plain loops over the definitions of Serrano & Smith 2019."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy import stats

import zoo
from adversaries import strong
from heedful.errors import Mistake
from heedful.experiments import find, to_table
from heedful.experiments.edited_attention.observe import EditedAttention, Observed, View, observer
from heedful.experiments.edited_attention.pooled import PooledStates
from heedful.experiments.erasure.erase import decision, flipped
from heedful.experiments.erasure.importance_sets import ImportanceSetsConfig
from heedful.experiments.erasure.smallest_set import attention_gradient, exact_smallest, falling, smallest_sets
from heedful.experiments.framework.experiment import generators
from heedful.measure.paired import mcnemar, rank_biserial
from heedful.measure.statistics import proportion
from heedful.models import AttentiveClassifier
from heedful.models.link import SIGMOIDS
from heedful.records import Batch
from toy_transformer import ToyTransformer

LENGTHS = [7, 1, 12, 2, 9]
each_task = pytest.mark.parametrize("task", zoo.TASK_NAMES)


def wavering(task: zoo.TaskName = "binary") -> AttentiveClassifier:
    """A random model whose words say different things: their states are large, and the query says little."""
    model = strong(task)
    with torch.no_grad():
        model.embedding.weight.mul_(5)
        for name, parameter in model.decoder.named_parameters():
            parameter.mul_(0.0 if name.endswith("bias") else 0.2 if name.startswith("Wq") else 1.0)
    return model


def output_without(model: AttentiveClassifier, text: Batch, gone: set[int]) -> np.ndarray | None:
    """What the model says of one text without some of its words' weights; None where no weight is left."""
    with torch.no_grad():
        alpha = model(text).alpha.clone()  # (1, length), the first is a marker
        for i in gone:
            alpha[0, 1 + i] = 0.0
        if alpha.sum() <= 0:
            return None
        p: np.ndarray = model(text, alpha=alpha / alpha.sum()).probabilities[0].numpy()
    return p


def js(p: np.ndarray, q: np.ndarray) -> float:
    m = (p + q) / 2
    return float(sum(stats.entropy(one, m) for one in (p, q)) / 2)


@pytest.mark.parametrize("drawn", ["other", "not_first"])
@each_task
def test_rows_of_a_plain_loop(task: zoo.TaskName, drawn: str) -> None:
    model, batch = wavering(task), zoo.batch(LENGTHS, task)
    experiment, examples = find("erasure"), np.array([3, 1, 7, 0, 2])
    config = experiment.config.parse({"drawn": drawn}, "test")
    rows = to_table(experiment.run(model, [(examples, batch)], config, np.random.default_rng(4))).to_pylist()
    generator_of = generators(np.random.default_rng(4))
    by_example = {row["example"]: row for row in rows}
    for i, example in enumerate(examples):
        row, alone, n = by_example[example], zoo.row(batch, i), LENGTHS[i]
        if n == 1:
            assert row["delta_js"] is row["delta_alpha"] is row["flip_top"] is None
            continue
        alpha = model(alone).alpha[0, 1:-1].detach().numpy()
        top = int(alpha.argmax())
        rng = generator_of(example)
        r = int(rng.integers(1, n)) if drawn == "not_first" else [t for t in range(n) if t != top][rng.integers(n - 1)]
        p, q_top, q_r = (output_without(model, alone, gone) for gone in (set(), {top}, {r}))
        assert p is not None
        assert q_top is not None
        assert q_r is not None
        assert row["delta_alpha"] == pytest.approx(alpha[top] - alpha[r], abs=1e-12)
        assert row["js_top"] == pytest.approx(js(p, q_top), abs=1e-10)
        assert row["js_random"] == pytest.approx(js(p, q_r), abs=1e-10)
        assert row["delta_js"] == pytest.approx(js(p, q_top) - js(p, q_r), abs=1e-10)
        assert row["margin"] == pytest.approx(np.sort(p)[-1] - np.sort(p)[-2], abs=1e-10)
        assert row["flip_top"] == float(q_top.argmax() != p.argmax())
        assert row["flip_random"] == float(q_r.argmax() != p.argmax())


def test_the_other_item_is_any_but_the_most_attended() -> None:
    model, batch = zoo.network(), zoo.batch([5])
    alpha = model(batch).alpha[0, 1:-1].detach().numpy()
    experiment = find("erasure")
    gaps = set()
    for seed in range(60):
        rows = to_table(
            experiment.run(model, [(np.arange(1), batch)], experiment.config(), np.random.default_rng(seed))
        )
        gaps.add(round(rows["delta_alpha"][0].as_py(), 12))
    assert gaps == {round(float(alpha.max() - a), 12) for a in np.sort(alpha)[:-1]}


@each_task
@pytest.mark.parametrize("ranking", ["attention", "attention_gradient", "attention_x_gradient", "gradient_x_input"])
def test_share_removed_of_a_plain_loop(task: zoo.TaskName, ranking: str) -> None:
    model, batch = wavering(task), zoo.batch(LENGTHS, task)
    experiment = find("importance_sets")
    config = ImportanceSetsConfig(rankings=(ranking,))
    rows = to_table(experiment.run(model, [(np.arange(5), batch)], config, np.random.default_rng(0))).to_pylist()
    flips = 0
    for i, row in enumerate(rows):
        alone, n = zoo.row(batch, i), LENGTHS[i]
        removed = first_flip_by_loop(model, alone, order_by_loop(model, alone, ranking))
        assert row["removed"] == removed
        assert row["share"] == (None if removed is None else pytest.approx(removed / n))
        flips += removed is not None
    assert flips  # something did flip


def order_by_loop(model: AttentiveClassifier, text: Batch, ranking: str) -> list[int]:
    """The gradient by differences: one weight a little larger, nothing renormalised."""
    with torch.no_grad():
        output = model(text)
        alpha = output.alpha[0, 1:-1].numpy()
        label = int(output.predicted[0])
        slopes = []
        for t in range(len(alpha)):
            ends = []
            for step in (-1e-5, 1e-5):
                moved = output.alpha.clone()
                moved[0, 1 + t] += step
                ends.append(float(model(text, alpha=moved).probabilities[0, label]))
            slopes.append((ends[1] - ends[0]) / 2e-5)
    if ranking == "gradient_x_input":
        x = model.embed(text.passage).detach().requires_grad_()
        f = model(text, x=x).score(output.predicted)
        (slope,) = torch.autograd.grad(f.sum(), x)
        scores = (slope * x).sum(-1)[0, 1:-1].detach().numpy()
    else:
        scores = {
            "attention": alpha,
            "attention_gradient": np.array(slopes),
            "attention_x_gradient": alpha * np.array(slopes),
        }[ranking]
    return sorted(range(len(alpha)), key=lambda t: -scores[t])


def first_flip_by_loop(model: AttentiveClassifier, text: Batch, order: list[int]) -> int | None:
    p = output_without(model, text, set())
    assert p is not None
    for k in range(1, len(order) + 1):
        q = output_without(model, text, set(order[:k]))
        if q is not None and q.argmax() != p.argmax():
            return k
    return None


def smallest_by_trying(seen: Observed, row: int) -> int | None:
    """All proper subsets of one text, smallest first."""
    part = seen[row : row + 1]
    n, decided = int(part.n_words[0]), decision(part)
    for k in range(1, n):
        sets = list(combinations(range(n), k))
        alphas = part.alpha.expand(len(sets), -1).clone()
        for alpha, gone in zip(alphas, sets, strict=True):
            alpha[list(gone)] = 0.0
        kept = alphas[alphas.sum(1) > 0]
        p = part.decode((kept / kept.sum(1, keepdim=True)).unsqueeze(0))
        if flipped(p, decided).any():
            return k
    return None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("task", ["binary", "several"])
def test_the_smallest_set_is_exact_for_linear_readouts(task: zoo.TaskName, seed: int) -> None:
    model, batch = wavering(task), zoo.batch([12, 3, 1, 10, 8, 11, 2], task, seed)
    seen = observer(model)(np.arange(7), batch)
    found = smallest_sets(seen, decision(seen), np.full(7, np.nan))
    slow = [smallest_by_trying(seen, row) for row in range(7)]
    assert [None if np.isnan(k) else int(k) for k in found.high] == slow
    assert np.array_equal(found.low, found.high, equal_nan=True)
    assert any(k is not None for k in slow)


def test_the_smallest_set_for_many_labels_against_all_subsets() -> None:
    """Random instances of the arithmetic itself, with biases, zero weights and padding."""
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(60):
        T, labels, n = 9, int(rng.integers(2, 7)), int(rng.integers(2, 10))
        f = torch.from_numpy(rng.normal(size=(1, T, labels)) + 0.7 * rng.normal(size=labels))
        alpha = torch.from_numpy(rng.dirichlet(np.full(n, 0.5)))
        alpha[rng.integers(n)] *= float(rng.integers(2))
        alpha = torch.nn.functional.pad(alpha / alpha.sum(), (0, T - n)).unsqueeze(0)
        decided = (alpha @ f[0]).argmax(-1)
        best = None
        for k in range(1, n):
            for gone in combinations(range(n), k):
                rest = alpha[0].clone()
                rest[list(gone)] = 0
                if rest.sum() > 0 and int((rest @ f[0]).argmax()) != int(decided):
                    best = k
                    break
            if best:
                break
        found = exact_smallest(f, alpha, decided)[0]
        assert (None if np.isnan(found) else int(found)) == best
        sizes.append(best)
    assert {1, 2, 3, None} <= set(sizes)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("task", ["qa", "nli"])
def test_the_smallest_set_lies_between_its_bounds(task: zoo.TaskName, seed: int) -> None:
    model, batch = wavering(task), zoo.batch([9, 3, 1, 8, 7], task, seed)
    seen = observer(model)(np.arange(5), batch)
    experiment = find("importance_sets")
    table = to_table(experiment.run(model, [(np.arange(5), batch)], ImportanceSetsConfig(), np.random.default_rng(0)))
    for row in table.to_pylist():
        true = smallest_by_trying(seen, row["example"])
        if row["n_words"] == 1:
            assert row["smallest_low"] is row["smallest_high"] is true is None
        elif true is None:
            assert row["smallest_high"] is None
        else:
            assert row["smallest_low"] <= true
            assert row["smallest_high"] is None or true <= row["smallest_high"] <= (row["removed"] or np.inf)
            assert (true == 1) == (row["smallest_low"] == 1)
        if row["n_words"] <= 8:  # all sets were tried
            assert row["smallest_low"] == row["smallest_high"] == true


@pytest.mark.parametrize("seed", range(4))
def test_the_smallest_set_by_trying_all_is_the_exact_one(seed: int) -> None:
    """Of a model that is asked about each attention, as a transformer is, against the sort for linear readouts."""
    lengths = [8, 3, 1, 7, 2, 5]
    model, batch = wavering("several"), zoo.batch(lengths, "several", seed)
    exact, tried = (
        smallest_sets(seen, decision(seen), np.full(6, np.nan))
        for seen in (observer(model, general=general)(np.arange(6), batch) for general in (False, True))
    )
    assert np.array_equal(exact.high, tried.high, equal_nan=True)
    assert np.array_equal(tried.low, tried.high, equal_nan=True)
    assert not np.isnan(tried.high).all()


def test_sets_too_many_to_be_tried_leave_a_bound() -> None:
    model, batch = wavering("several"), zoo.batch([40, 30, 20, 25], "several")
    seen = observer(model, general=True)(np.arange(4), batch)
    found = smallest_sets(seen, decision(seen), np.full(4, np.nan))
    exact = smallest_sets(observer(model)(np.arange(4), batch), decision(seen), np.full(4, np.nan)).high
    assert exact.tolist() == [6, 2, 5, 2]
    assert found.low.tolist() == [2, 2, 3, 2]  # of 20 words all pairs were tried, of more only single ones
    assert np.isnan(found.high).all()


def test_no_ranking_is_better_than_the_smallest_set() -> None:
    model, batch = wavering("several"), zoo.batch([20, 30, 25, 8, 40, 33], "several")
    experiment = find("importance_sets")
    config = ImportanceSetsConfig(rankings=("attention", "attention_x_gradient", "random", "omission"))
    table = to_table(experiment.run(model, [(np.arange(6), batch)], config, np.random.default_rng(0)))
    rows = table.to_pylist()
    assert len(rows) == 6 * (1 + 1 + 5 + 1)
    assert {row["ranking"] for row in rows if row["example"] == 0} == {
        "attention",
        "attention_x_gradient",
        "omission",
        *(f"random {draw}" for draw in range(1, 6)),
    }
    assert all(row["removed"] is None or row["removed"] >= row["smallest_high"] for row in rows)
    assert any(row["removed"] is not None for row in rows)


@each_task
def test_general_and_pooled_agree(task: zoo.TaskName) -> None:
    model, batch = wavering(task), zoo.batch(LENGTHS, task)
    fast, slow = (observer(model, general=general)(np.arange(5), batch) for general in (False, True))
    assert isinstance(fast, PooledStates)
    torch.testing.assert_close(attention_gradient(fast), attention_gradient(slow), atol=1e-10, rtol=0)
    order = falling(torch.rand(5, 12, generator=torch.Generator().manual_seed(0)), fast.real)
    one, other = (seen.erase_along(order) for seen in (fast, slow))
    torch.testing.assert_close(one, other, atol=1e-10, rtol=0, equal_nan=True)
    for row, n in enumerate(LENGTHS):
        assert not one[row, : n - 1].isnan().any()
        assert one[row, n - 1 :].isnan().all()  # everything is gone


def test_a_weight_of_one_leaves_nothing() -> None:
    """The rest has no weight: there is no output without the first, and no flip."""
    model, batch = zoo.network(), zoo.batch([4])
    seen = observer(model)(np.arange(1), batch)
    alone = type(seen)(
        **{name: getattr(seen, name) for name in seen.__dataclass_fields__ if name != "alpha"},
        alpha=torch.tensor([[0.0, 1.0, 0.0, 0.0]], dtype=torch.float64),
    )
    p = alone.erase_along(torch.tensor([[0, 1, 2, 3]]))
    assert p[0, :, 0].isnan().tolist() == [False, True, True, True]
    assert flipped(p, decision(alone)).tolist() == [[False] * 4]
    assert np.isnan(exact_smallest(torch.ones(1, 4, 2), alone.alpha, torch.tensor([0]))).all()


def test_ties_go_in_the_order_of_the_text() -> None:
    real = torch.tensor([[True, True, True, True, False]])
    assert falling(torch.tensor([[0.0, 1.0, -0.0, 1.0, 9.0]]), real).tolist() == [[1, 3, 0, 2, 4]]


def test_a_model_without_a_decision_is_refused() -> None:
    model = zoo.network(task="several")
    model.link = SIGMOIDS
    for name in ("erasure", "flips", "importance_sets"):
        experiment = find(name)
        with pytest.raises(Mistake, match="chooses one of its labels; this one reads sigmoids"):
            next(experiment.run(model, [], experiment.config(), np.random.default_rng(0)))


def test_the_flip_table() -> None:
    top = [1, 1, 1, 0, 0, 0, 0, 1, None, 1]
    random = [1, 0, 0, 1, 0, 0, 0, 0, None, None]
    table = pa.table(
        {
            "predicted": [0, 0, 1, 1, 1, 1, 0, 0, 0, 0],
            "max_attention": [0.1] * 10,
            "flip_top": pa.array(top, pa.float64()),
            "flip_random": pa.array(random, pa.float64()),
            "margin": pa.array([0.05, 0.05, 0.2, 0.2, 0.7, 0.7, 1.0, 0.0, 0.3, None], pa.float64()),
        }
    )
    found = find("flips").summarise(table)
    line = found["overall"]
    assert (line["n"], line["undefined"]) == (8, 2)
    assert [line[cell]["count"] for cell in ("both", "only_top", "only_random", "neither")] == [1, 3, 1, 3]
    assert line["top"]["percent"] == 50.0
    assert line["random"]["percent"] == 25.0
    assert line["difference"] == 25.0
    assert line["p"] == pytest.approx(2 * (1 + 4) / 16)
    assert line["neither"]["low"] < 37.5 < line["neither"]["high"]
    by_class = found["by_class"]
    for cell in ("both", "only_top", "only_random", "neither"):
        assert sum(by_class[c][cell]["count"] for c in by_class) == line[cell]["count"]
    by_margin = found["by_margin"]
    assert [by_margin[name]["n"] for name in ("< .1", ".1 to .5", "≥ .5")] == [3, 2, 3]
    assert [by_margin[name]["top"]["count"] for name in ("< .1", ".1 to .5", "≥ .5")] == [3, 1, 0]
    empty = found["by_max_attention"]["[.5, .75)"]
    assert empty["n"] == 0
    assert empty["p"] is empty["top"]["percent"] is None


def test_texts_that_never_flip_are_reported_both_ways() -> None:
    table = pa.table(
        {
            "example": [0, 0, 1, 1, 2, 2, 3, 3],
            "predicted": [0] * 8,
            "n_words": [4, 4, 10, 10, 5, 5, 1, 1],
            "ranking": ["attention", "random 1"] * 4,
            "removed": pa.array([1, 2, 5, None, None, None, None, None], pa.float64()),
            "share": pa.array([0.25, 0.5, 0.5, None, None, None, None, None], pa.float64()),
            "smallest_low": pa.array([1, 1, 2, 2, None, None, None, None], pa.float64()),
            "smallest_high": pa.array([1, 1, 2, 2, None, None, None, None], pa.float64()),
        }
    )
    found = find("importance_sets").summarise(table)
    line = found["rankings"]["attention"]["overall"]
    assert (line["n"], line["single_item"], line["never"]) == (3, 1, 1)
    assert line["flipped"]["mean"] == pytest.approx(0.375)
    assert line["counted"]["mean"] == pytest.approx((0.25 + 0.5 + 1) / 3)
    assert line["times_smallest"]["mean"] == pytest.approx((1 + 2.5) / 2)
    assert line["optimal"] == 0.5
    assert found["smallest"]["none_flips"] == 1
    assert found["smallest"]["share"]["mean"] == pytest.approx((0.25 + 0.2) / 2)
    pair = found["paired"]["random/attention"]
    assert pair["n"] == 3
    assert pair["difference"] == pytest.approx((0.25 + 0.5 + 0) / 3)
    assert (pair["fewer"], pair["as_many"], pair["more"]) == pytest.approx((0, 1 / 3, 2 / 3))
    assert pair["effect_size"] == 1.0


def test_proportions_and_paired_counts() -> None:
    wilson = proportion(0, 10)
    z2 = stats.norm.ppf(0.975) ** 2
    assert wilson.low == 0.0
    assert wilson.high == pytest.approx(z2 / (10 + z2))
    assert np.isnan(proportion(0, 0).value)
    for count, n in [(0, 7), (3, 7), (7, 7), (12, 500)]:
        theirs = stats.binomtest(count, n).proportion_ci(0.9, method="wilson")
        ours = proportion(count, n, level=0.9)
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert mcnemar(9, 1) == pytest.approx(2 * (1 + 10) / 2**10)
    assert mcnemar(3, 3) == 1.0
    assert np.isnan(mcnemar(0, 0))
    first, second = np.array([3.0, 1.0, 5.0, 2.0]), np.array([1.0, 2.0, 5.0, 9.0])
    assert rank_biserial(first - second) == pytest.approx((2 - 1 - 3) / 6)  # |2|, |1|, |7| rank 2, 1, 3; 0 is left out
    assert np.isnan(rank_biserial(first - first))


@pytest.mark.parametrize("view", [View(), View(layer=0, heads=(1,)), View(layer=1, heads=(0, 2), row="mean")])
def test_the_same_questions_to_a_transformer(view: View) -> None:
    """Every prefix is an edited forward pass; the gradient by attention is that of differences."""
    model, batch = ToyTransformer(), zoo.batch([5, 3, 1])
    seen = observer(model, view)(np.arange(3), batch)
    assert isinstance(seen, EditedAttention)
    order = falling(seen.alpha, seen.real)
    along, decided = seen.erase_along(order), decision(seen)
    layer, heads = view.layer % 2, list(view.heads or range(3))
    torch.testing.assert_close(seen.shift(torch.zeros(3, 1, 5, dtype=torch.float64))[:, 0], seen.y, atol=1e-12, rtol=0)

    def output(row: int, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """With other weights of the words of one text, in the heads that are meant."""

        def edit(at: int, weights: torch.Tensor) -> torch.Tensor:
            edited = weights.clone()
            if at == layer:
                n = int(seen.n_words[row])
                for head in heads:
                    edited[0, head, :, 1 : 1 + n] = change(weights[0, head, :, 1 : 1 + n])  # between the markers
            return edited

        with torch.no_grad():
            p: torch.Tensor = model(zoo.row(batch, row), edit=edit).probabilities[0]
        return p

    for row, n in enumerate([5, 3, 1]):
        for k in range(n - 1):
            gone = order[row, : k + 1]

            def without_them(words: torch.Tensor, gone: torch.Tensor = gone) -> torch.Tensor:
                rest = words.clone()
                rest[:, gone] = 0.0
                return rest / rest.sum(-1, keepdim=True) * words.sum(-1, keepdim=True)

            torch.testing.assert_close(along[row, k], output(row, without_them), atol=1e-10, rtol=0)
        assert along[row, n - 1 :].isnan().all()
    slope = attention_gradient(seen)
    for row, n in enumerate([5, 3, 1]):
        for t in range(n):
            ends = []
            for step in (-1e-6, 1e-6):

                def larger(words: torch.Tensor, t: int = t, step: float = step) -> torch.Tensor:
                    moved = words.clone()
                    moved[:, t] += step * words.sum(-1)
                    return moved

                ends.append(float(output(row, larger)[decided[row]]))
            assert float(slope[row, t]) == pytest.approx((ends[1] - ends[0]) / 2e-6, abs=1e-7)


@pytest.mark.parametrize("name", ["erasure", "flips", "importance_sets"])
def test_rows_of_a_transformer(name: str) -> None:
    model, batch, experiment = ToyTransformer(), zoo.batch([6, 4, 1]), find(name)
    options = {"layer": 0, "heads": [1]} | ({"rankings": ["attention", "random", "gradient"]} if "sets" in name else {})
    config = experiment.config.parse(options, "test")
    table = to_table(experiment.run(model, [(np.arange(3), batch)], config, np.random.default_rng(0)))
    for row in table.to_pylist():
        if name == "importance_sets" and row["n_words"] > 1:
            assert row["smallest_low"] == row["smallest_high"]  # all sets of so few words were tried
    experiment.summarise(table)
