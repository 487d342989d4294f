"""The same tasks on a Ray cluster of two nodes, one of which is killed half-way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from digests import digests
from heedful.engine.running.execute import execute
from heedful.engine.running.progress import Progress
from heedful.engine.running.workspace import Workspace
from heedful.engine.tasks.configure import configure
from heedful.engine.tasks.plan import Plan, ask, plan
from heedful.errors import Mistake
from planted_reviews import reviews as write_reviews

pytest.importorskip("ray", reason="Ray is not installed: pip install 'heedful[ray]'")
QUIET = Progress(quiet=True)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes of one core each, on this machine, with a home of their own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # stays on loopback
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()  # type: ignore[no-untyped-call]


def study(reviews: Path) -> Plan:
    configs = [
        configure(
            str(reviews),
            data={"tokenizer": "whitespace"},
            model={"encoder": encoder, "embedding_dim": 6, "hidden_dim": 8},
            training={"epochs": 4, "batch_size": 16},
            seed=seed,
        )
        for encoder in ("bilstm", "average")
        for seed in range(2)
    ]
    return plan(configs, [ask("permutation", limit=30), ask("adversarial", limit=30)])


def test_a_node_is_killed_and_nothing_is_lost(cluster: Any, tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv", 500)
    made = study(tmp_path / "reviews.csv")
    assert execute(made, Workspace(tmp_path / "here"), QUIET, "here", cores=1).complete
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    runs, struck = tmp_path / "runs", []

    def strike() -> None:
        while not list(runs.glob("*/SHA256SUMS")):
            time.sleep(0.05)
        cluster.remove_node(node, allow_graceful=False)
        struck.append(node)

    threading.Thread(target=strike, daemon=True).start()
    report = execute(made, Workspace(runs, checkpoint_every=0.0), QUIET, "ray")
    assert struck
    assert report.complete
    assert len(report.done) + len(report.kept) == len(made)
    assert digests(runs) == digests(tmp_path / "here")
    again = execute(made, Workspace(runs), QUIET, "ray")
    assert len(again.kept) == len(made)


@pytest.mark.long
def test_gpus_are_asked_of_ray(cluster: Any, tmp_path: Path) -> None:
    """Ray counts the GPUs that a node says it has, so where there is none a node can say it has one."""
    write_reviews(tmp_path / "reviews.csv", 40)
    made, place = study(tmp_path / "reviews.csv"), Workspace(tmp_path / "runs", gpus=0.5)
    with pytest.raises(Mistake, match=r"--gpus 0\.5: the Ray cluster has 0 GPUs"):
        execute(made, place, QUIET, "ray")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU: what follows is about a node where torch has none")
    cluster.add_node(num_cpus=1, num_gpus=1)
    cluster.wait_for_nodes()
    report = execute(made, place, QUIET, "ray")
    assert len(report.failed) == len(made.of("train"))  # each was given the GPU, and found it of no use
    assert all("torch cannot use it there" in failure.error for failure in report.failed)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1:1", *(pytest.param(other, marks=pytest.mark.long) for other in ("ray://127.0.0.1:1", "somewhere"))],
)
def test_an_address_where_no_cluster_is(address: str, tmp_path: Path) -> None:
    write_reviews(tmp_path / "reviews.csv", 40)
    with pytest.raises(Mistake, match=f"--address {address}: no Ray cluster can be reached"):
        execute(study(tmp_path / "reviews.csv"), Workspace(tmp_path / "runs"), QUIET, "ray", address=address)
