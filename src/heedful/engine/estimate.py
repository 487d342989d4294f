"""What a plan would take (`--dry-run`): tasks, forward passes, memory, and time from measured throughput."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heedful.config import ModelConfig
from heedful.engine.place import Place
from heedful.engine.plan import Plan, kinds_of
from heedful.engine.sizes import Size, Sizes, published_sizes, sizes
from heedful.engine.state import scan
from heedful.engine.task import Task
from heedful.engine.threads import cores as usable_cores
from heedful.engine.throughput import Throughput
from heedful.records import Split
from heedful.store.run import Run, runs_in

PROCESS = 450e6  # bytes of a worker that has loaded its libraries
WORD = 65.0  # bytes of a word of a corpus in memory: its form, its place in the text, the text
STATE = 12 * 4.0  # bytes of a word of a batch for each number of its state: gates, gradients, both directions
FORWARDS: Mapping[str, tuple[float, float]] = {  # of an experiment: by text, by word
    "correlation": (3, 1),  # the prediction, a gradient (forward and backward), and each word left out
    "permutation": (1, 0),
    "adversarial": (1, 0),
}


@dataclass(frozen=True)
class Estimate:
    tasks: dict[str, int]  # by kind
    left: dict[str, int]
    datasets: dict[str, dict[str, Any]]
    forward_passes: int
    core_seconds: dict[str, float]  # by dataset
    cores: int
    memory: int  # bytes of all workers together

    @property
    def seconds(self) -> float:
        return sum(self.core_seconds.values()) / self.cores

    def to_json(self) -> dict[str, Any]:
        return {
            "tasks": self.tasks,
            "left": self.left,
            "datasets": self.datasets,
            "forward_passes": self.forward_passes,
            "core_hours": sum(self.core_seconds.values()) / 3600,
            "cores": self.cores,
            "seconds": self.seconds,
            "memory": self.memory,
        }

    def describe(self) -> str:
        kinds = ", ".join(f"{n} {kind} ({self.left.get(kind, 0)} left)" for kind, n in self.tasks.items())
        lines = [f"tasks: {sum(self.tasks.values())}: {kinds}"]
        for name, row in self.datasets.items():
            texts = ", ".join(f"{split} {n}" for split, n in row["texts"].items())
            lines.append(
                f"  {name}: {row['runs']} runs; texts: {texts}; about {row['words']:.0f} words a text; "
                f"{row['core_hours']:.2f} core-hours left ({row['source']})"
            )
        hours = sum(self.core_seconds.values()) / 3600
        lines += [
            f"forward passes left: {self.forward_passes:,}",
            f"memory: about {self.memory / 1e9:.1f} GB on {self.cores} cores",
            f"time left: about {in_words(self.seconds)} on {self.cores} cores ({hours:.2f} core-hours)",
        ]
        return "\n".join(lines)


def estimate(plan: Plan, place: Place, cores: int | None = None, *, published: bool = False) -> Estimate:
    """`published`: all is to be done, on corpora of the sizes that were published."""
    n_cores = cores or usable_cores()
    existing = (
        [] if published or not place.runs.is_dir() else [run for run in runs_in(place.runs) if run.finished]
    )
    throughput = Throughput(existing)
    found = {} if published else scan(plan, place.runs)
    left = [task for key, task in plan.tasks.items() if published or found[key].state != "finished"]
    by_dataset: dict[str, Sizes] = {}
    for task in plan.of("train"):
        if task.config.dataset not in by_dataset:
            by_dataset[task.config.dataset] = (
                published_sizes(task.config.dataset)
                if published
                else sizes(task.config, place.data_dirs, _on_same_data(task, existing))
            )
    passes: Counter[str] = Counter()
    seconds: dict[str, float] = dict.fromkeys(by_dataset, 0.0)
    for task in left:
        here = by_dataset[task.config.dataset]
        forward, taken = cost(task, here, throughput)
        passes[task.kind] += round(forward)
        seconds[task.config.dataset] += taken
    runs = Counter(task.config.dataset for task in plan.of("train"))
    datasets = {
        name: {
            "runs": runs[name],
            "texts": {split: size.texts for split, size in here.items()},
            "words": here["train"].length,
            "core_hours": seconds[name] / 3600,
            "source": plan.sources[name].place,
        }
        for name, here in by_dataset.items()
    }
    memory = n_cores * max(
        (worker_memory(task.config.model, by_dataset[task.config.dataset]) for task in plan.of("train")),
        default=0,
    )
    return Estimate(
        kinds_of(plan.tasks.values()),
        kinds_of(left),
        datasets,
        passes.total(),
        seconds,
        n_cores,
        round(memory),
    )


def cost(task: Task, here: Sizes, throughput: Throughput) -> tuple[float, float]:
    """(forward passes, seconds of a core) of a task."""
    if task.kind == "train":
        epochs = task.config.training.epochs
        one_pass = throughput.train(task.config, here["train"])
        return epochs * (here["train"].texts + here["dev"].texts), epochs * one_pass
    if task.kind == "summarise":
        return 0.0, 0.5
    assert task.ask is not None
    split: Split = task.ask.split
    whole = here[split]
    texts = min(task.ask.limit or whole.texts, whole.texts)
    size = Size(texts, round(texts * whole.length))
    by_text, by_word = FORWARDS.get(task.ask.experiment, (1, 0))
    return by_text * size.texts + by_word * size.words, throughput.ask(task.config, task.ask, size)


def worker_memory(model: ModelConfig, here: Sizes) -> float:
    """Libraries, corpus, six copies of the weights while training, and the states of a batch."""
    from heedful.engine.rows import TOKENS

    corpus = sum(size.words for size in here.values())
    n_words: float = 60 * corpus**0.4  # types grow slower than words (Heaps 1978)
    weights = 4.0 * (
        n_words * model.embedding_dim + 8 * model.hidden_dim * (model.hidden_dim + model.embedding_dim)
    )
    return PROCESS + WORD * corpus + 6 * weights + TOKENS * model.hidden_dim * STATE


def in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"


def _on_same_data(task: Task, runs: list[Run]) -> Run | None:
    return next((run for run in runs if run.info["data"]["fingerprint"] == task.source), None)
