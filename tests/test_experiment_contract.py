"""What holds for every experiment: its rows depend on the text alone, its summary on the rows alone."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import zoo
from distinct import distinct
from heedful.errors import Mistake
from heedful.experiments import EXPERIMENTS, Experiment, find, to_table
from heedful.experiments.adversarial.adversarial import AdversarialConfig
from heedful.models import AttentiveClassifier

LENGTHS = [5, 1, 11, 2, 8, 8]
# Options with which an experiment is fast; one that is not here is asked with its defaults.
FAST: dict[str, list[dict[str, Any]]] = {
    "correlation": [{}],
    "permutation": [{"permutations": 10}],
    "heads": [{}],
    "adversarial": [{}, {"method": "adam", "steps": 30}, {"compare": True, "refine": True, "steps": 30}],
    "erasure": [{}, {"drawn": "not_first"}],
    "flips": [{}],
    "uniform": [{}],
    "uniform_inference": [{}],
    "seeds": [{}],
    "frozen": [{}],
    "imitation": [{}],
    "importance_sets": [{}, {"rankings": ["attention", "omission", "random"], "draws": 2}],
    "deception": [{"methods": ["attention", "gradient_x_input", "omission"]}],
    "masked_twin": [{"methods": ["attention", "omission"], "fractions": [0.2, 0.8]}],
    "planted": [{"methods": ["attention", "gradient_x_input", "omission"]}],
    "pointing": [{"methods": ["attention", "omission"], "sentences": 4}],
    "retrain": [{"fractions": [0.5, 0.9]}, {"methods": ["omission"], "fractions": [0.5, 0.7], "recursive": True}],
    "alignment": [{"methods": ["attention", "omission"]}, {"methods": ["gradient"], "absolute": True}],
    "conicity": [{}],
    "planted_pairs": [{"methods": ["removal_interactions", "omission"]}],
    "contrast_sets": [{"methods": ["attention", "omission"], "shared": 0.1}],
    "stability": [{"methods": ["gradient_x_input", "omission"]}],
    "rationales": [{}, {"methods": ["omission"], "absolute": True}],
    "faithfulness": [{"exact": 5, "draws": 3}, {"exact": 0, "operators": ["delete"], "points": 6, "beam": 3}],
}
WITHOUT_QUERY: tuple[zoo.TaskName, ...] = ("binary", "several")
TASKS: dict[str, tuple[zoo.TaskName, ...]] = {"pointing": WITHOUT_QUERY}  # refused with a query
# What needs a model of another kind is asked of one in a test of its own.
ASKED = [name for name in EXPERIMENTS if find(name).needs <= AttentiveClassifier.can]
CASES = [
    (name, options, task)
    for name in ASKED
    for options in FAST.get(name, [{}])
    for task in TASKS.get(name, zoo.TASK_NAMES)
]
each_case = pytest.mark.parametrize(("name", "options", "task"), CASES)


def rows_of(
    name: str, options: dict[str, Any], task: zoo.TaskName, split: list[list[int]], seed: int = 0
) -> tuple[Experiment, pa.Table]:
    whole = distinct(zoo.batch(LENGTHS, task))
    experiment = find(name)
    batches = [(np.array(part), zoo.row(whole, part[0]) if len(part) == 1 else zoo.rows(whole, part)) for part in split]
    config = experiment.config.parse(options, name)
    return experiment, to_table(
        experiment.run(
            zoo.network(task=task),
            batches,
            config,
            np.random.default_rng(seed),
            **zoo.beside(experiment, config, whole, task),
        )
    )


@each_case
def test_rows_have_the_common_columns_do_not_depend_on_the_batches_and_have_a_summary_for_json(
    name: str, options: dict[str, Any], task: zoo.TaskName
) -> None:
    experiment, table = rows_of(name, options, task, [list(range(6))])
    model, batch = zoo.network(task=task), distinct(zoo.batch(LENGTHS, task))
    with torch.no_grad():
        output = model(batch)
    for row in table.to_pylist():
        assert row["predicted"] == output.predicted[row["example"]]
        assert row["max_attention"] == pytest.approx(float(output.alpha[row["example"]].max()), abs=1e-12)
        assert row["n_words"] == LENGTHS[row["example"]]
    assert sorted(set(table["example"].to_pylist())) == list(range(6))
    text = json.dumps(experiment.summarise(table), allow_nan=False)
    assert text == json.dumps(experiment.summarise(table), allow_nan=False)
    _, apart = rows_of(name, options, task, [[4], [5, 0, 2], [3, 1]])
    assert table.schema.equals(apart.schema)
    same_rows(table, apart)


def same_rows(one: pa.Table, other: pa.Table) -> None:
    for column in one.column_names:
        for value, again in zip(one[column].to_pylist(), other[column].to_pylist(), strict=True):
            if isinstance(value, float | list):
                assert value == pytest.approx(again, abs=1e-7)
            else:
                assert value == again


# Each experiment with every encoder and every attention, task by task.
LAYERS = [
    (
        name,
        zoo.ENCODER_NAMES[i % len(zoo.ENCODER_NAMES)],
        zoo.ATTENTION_NAMES[i % len(zoo.ATTENTION_NAMES)],
        TASKS.get(name, zoo.TASK_NAMES),
    )
    for name in ASKED
    for i in range(max(len(zoo.ENCODER_NAMES), len(zoo.ATTENTION_NAMES)))
]


@pytest.mark.parametrize(("name", "encoder", "attention", "tasks"), LAYERS)
def test_every_encoder_and_attention_can_be_asked(
    name: str, encoder: str, attention: str, tasks: tuple[zoo.TaskName, ...]
) -> None:
    """Rows that do not depend on the batches, and a summary of them; or a refusal that says why."""
    experiment, task = find(name), tasks[zoo.ATTENTION_NAMES.index(attention) % len(tasks)]
    model, whole = zoo.network(encoder, attention, task), distinct(zoo.batch([4, 2, 6], task))
    config = experiment.config.parse(FAST.get(name, [{}])[0], name)
    tables = []
    for split in ([[0, 1, 2]], [[2], [1, 0]]):
        batches = [(np.array(part), whole.rows(torch.tensor(part))) for part in split]
        given = zoo.beside(experiment, config, whole, task)
        tables.append(to_table(experiment.run(model, batches, config, np.random.default_rng(0), **given)))
    same_rows(*tables)
    json.dumps(experiment.summarise(tables[0]), allow_nan=False)


@pytest.mark.parametrize(("name", "options"), [("permutation", {}), ("adversarial", {"method": "adam", "steps": 5})])
def test_chance_comes_from_the_generator(name: str, options: dict[str, Any]) -> None:
    tables = [rows_of(name, options, "binary", [list(range(6))], seed)[1] for seed in (1, 1, 2)]
    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])


@pytest.mark.parametrize("name", ASKED)
def test_nothing_is_left_behind(name: str) -> None:
    model, batch = zoo.network(), zoo.batch(LENGTHS)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    ids, state, threads = batch.passage.ids.clone(), torch.get_rng_state(), torch.get_num_threads()
    experiment = find(name)
    given = zoo.beside(experiment, experiment.config(), batch)
    list(experiment.run(model, [(np.arange(6), batch)], experiment.config(), np.random.default_rng(0), **given))
    assert all(torch.equal(before[key], value) for key, value in model.state_dict().items())
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    assert torch.equal(ids, batch.passage.ids)
    assert torch.equal(state, torch.get_rng_state())
    assert threads == torch.get_num_threads()


@pytest.mark.parametrize("name", ASKED)
def test_a_float32_model_gives_nearly_the_same_rows(name: str) -> None:
    experiment, batch = find(name), distinct(zoo.batch([9, 14]))
    tables = [
        to_table(
            experiment.run(
                model,
                [(np.arange(2), batch)],
                experiment.config(),
                np.random.default_rng(0),
                **zoo.beside(experiment, experiment.config(), batch, dtype=model.dtype),
            )
        )
        for model in (zoo.network(), zoo.network().float())
    ]
    first = next(iter(experiment.columns))
    value = {
        "correlation": "tau",
        "permutation": "median",
        "adversarial": "jsd",
        "heads": "tvd",
        "erasure": "delta_js",
        "flips": "delta_js",
        "importance_sets": "smallest_high",
        "deception": "share",
        "masked_twin": "drop",
        "planted": "effect",
        "pointing": "auc",
        "retrain": "probability",
        "conicity": "conicity",
        "rationales": "precision",
        "uniform": "tvd",
        "uniform_inference": "tvd",
        "seeds": "jsd",
        "frozen": "tvd",
        "imitation": "jsd",
        "faithfulness": "comprehensiveness_best",
    }.get(name, first)
    one, other = (table[value].fill_null(-1.0).to_numpy() for table in tables)  # undefined in both or in none
    assert one == pytest.approx(other, abs=1e-3)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_model_that_cannot_is_refused_by_name(name: str) -> None:
    experiment = find(name)
    lacks = "attention" if "attends" in experiment.needs else "how probable"
    lacks = "selects the words" if "selects" in experiment.needs else lacks
    with pytest.raises(Mistake, match=rf"{name} needs a model .*{lacks}.*; bert can: embed\."):
        experiment.check(frozenset({"embed"}), "bert")
    if name in ASKED:
        experiment.check(zoo.network().can)


def test_a_wrong_name_or_setting_is_a_mistake() -> None:
    with pytest.raises(Mistake, match="Did you mean 'permutation'"):
        find("permutations")
    with pytest.raises(Mistake, match=r"there is no setting 'permutation'\. Known: .*permutations"):
        find("permutation").config.parse({"permutation": 3}, "--option")
    with pytest.raises(Mistake, match="epsilon"):
        AdversarialConfig.parse({"epsilon": 0}, "--option")
    with pytest.raises(Mistake, match="no rows"):
        to_table([])


def test_epsilon_is_that_of_the_paper_for_the_task() -> None:
    for task, epsilon in (("binary", 0.01), ("several", 0.01), ("nli", 0.05)):
        given = rows_of("adversarial", {"epsilon": epsilon}, task, [list(range(6))])[1]  # type: ignore[arg-type]
        assert rows_of("adversarial", {}, task, [list(range(6))])[1].equals(given)  # type: ignore[arg-type]


def test_exact_and_adam_are_compared_on_the_same_texts() -> None:
    experiment, table = rows_of("adversarial", {"compare": True, "steps": 50}, "binary", [list(range(6))])
    rows = table.to_pylist()
    for row in rows:
        assert row["jsd"] == row["jsd_exact"] >= row["jsd_adam"] - 1e-9
        assert row["gap"] == pytest.approx(row["jsd_exact"] - row["jsd_adam"])
        assert row["exact"] is True
        assert row["jsd"] <= row["ceiling"] + 1e-9
        assert len(row["attention"]) == len(row["adversarial"]) == len(row["adversarial_adam"]) == row["n_words"]
        assert sum(row["adversarial"]) == pytest.approx(1)
    summary = experiment.summarise(table)["overall"]
    assert summary["gap"]["mean"] == pytest.approx(summary["mean"] - summary["adam"]["mean"])
    assert summary["exact"] == 1.0
    assert summary["above_half"] == np.mean([row["jsd"] > 0.5 for row in rows])


def test_rows_can_be_summarised_where_torch_is_not_loaded() -> None:
    code = (
        "import sys, numpy as np, pyarrow as pa; from heedful.experiments import EXPERIMENTS, find\n"
        "t = pa.table({'predicted': [0, 1], 'max_attention': [.2, .8], 'median': [.1, .2]})\n"
        "assert find('permutation').summarise(t)['overall']['n'] == 2\n"
        "[find(name) for name in EXPERIMENTS]\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr
