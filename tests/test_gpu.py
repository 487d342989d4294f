"""On a GPU everything is as on the CPU: each tensor is moved, and none is forgotten (see fake_gpu.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import zoo
from distinct import distinct
from fake_gpu import Elsewhere, a_gpu
from heedful.config import EncoderName, ModelConfig, TrainingConfig
from heedful.engine.running.processors import find_device
from heedful.engine.running.workspace import Workspace
from heedful.errors import Mistake
from heedful.experiments import find, to_table
from heedful.explainers import EXPLAINERS
from heedful.models import build
from heedful.models.training import TrainingState, fit, predict
from test_explainer_contract import FAST, METHODS
from test_training import encoded

CONFIG = TrainingConfig(epochs=2, batch_size=16, learning_rate=0.01)
# Every encoder, every task, and a query for each way of pooling it: what is moved depends on no more.
EACH = [
    *((encoder, zoo.TASK_NAMES[i % len(zoo.TASK_NAMES)]) for i, encoder in enumerate(zoo.ENCODER_NAMES)),
    *(("bilstm", task) for task in zoo.TASK_NAMES[1:]),
    *((encoder, "nli") for encoder in ("cnn", "average", "transformer")),
]


def fitted(device: torch.device, n_labels: int, has_query: bool, stop: bool = False) -> tuple[TrainingState, Any]:
    """Two epochs; with `stop` the second one by another network, from what the first has left."""

    def network() -> Any:
        config = ModelConfig(embedding_dim=8, hidden_dim=8)
        return build(config, 40, n_labels, has_query, 0).to(device)

    train, dev = (encoded(n, s, n_labels, has_query, device) for s, n in enumerate((60, 20)))
    model = network()
    steps = fit(model, train, dev, CONFIG, 0)
    if stop:
        after, model = next(steps), network()
        steps = fit(model, train, dev, CONFIG, 0, after)
    *_, last = steps
    return last, predict(model, dev)


@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize(("n_labels", "has_query"), [(2, False), (3, False), (3, True)])
def test_training_there_is_training_here(n_labels: int, has_query: bool, stop: bool) -> None:
    here, p = fitted(torch.device("cpu"), n_labels, has_query)
    with a_gpu() as gpu:
        there, q = fitted(gpu, n_labels, has_query, stop)
    assert [e.loss for e in there.history] == pytest.approx([e.loss for e in here.history], rel=1e-5)
    np.testing.assert_allclose(q, p, atol=1e-5)
    for kind in ("weights", "best", "optimiser"):
        kept, other = getattr(there, kind), getattr(here, kind)
        assert kept.keys() == other.keys()
        for name, tensor in kept.items():
            assert not isinstance(tensor, Elsewhere)  # kept in a file, so it must have come back
            torch.testing.assert_close(tensor, other[name], atol=1e-4, rtol=1e-3, msg=name)


@pytest.mark.parametrize("name", sorted(set(METHODS) - {"shap"}))  # it asks as lime does, more slowly
@pytest.mark.parametrize(("encoder", "task"), EACH)
def test_explainers(name: str, encoder: EncoderName, task: zoo.TaskName) -> None:
    texts = zoo.batch([5, 1, 9, 2], task)
    assert texts.labels is not None
    explainer, few = EXPLAINERS[name], FAST.get(name, {})
    here = explainer.run(zoo.network(encoder, task=task), texts, texts.labels, **few)
    with a_gpu() as gpu:
        model, moved = zoo.network(encoder, task=task).to(gpu), texts.to(gpu)
        assert moved.labels is not None
        there = explainer.run(model, moved, moved.labels, **few)
        assert there.passage.device == gpu
        torch.testing.assert_close(there.passage.detach().cpu(), here.passage)


@pytest.mark.parametrize("task", zoo.TASK_NAMES)
@pytest.mark.parametrize("name", ["correlation", "permutation", "adversarial"])
def test_experiments(name: str, task: zoo.TaskName) -> None:
    experiment, whole = find(name), distinct(zoo.batch([5, 1, 11, 2], task))
    config, places = experiment.config(), np.arange(4)

    def rows(model: Any, batch: Any) -> Any:
        chunks = experiment.run(model, [(places, batch)], config, np.random.default_rng(0))
        return to_table(chunks).to_pandas()

    here = rows(zoo.network(task=task), whole)
    with a_gpu() as gpu:
        there = rows(zoo.network(task=task).to(gpu), whole.to(gpu))
    for column in here.select_dtypes("number"):
        np.testing.assert_allclose(there[column], here[column], atol=1e-6, err_msg=column)


def test_a_gpu_that_torch_cannot_use_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert find_device(Workspace(tmp_path)) == torch.device("cpu")
    with pytest.raises(Mistake, match="torch cannot use it there"):
        find_device(Workspace(tmp_path, gpus=0.5))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert find_device(Workspace(tmp_path, gpus=0.5)) == torch.device("cuda")
