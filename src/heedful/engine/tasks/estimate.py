"""What a plan would take (`--dry-run`): tasks, forward passes, memory, and time from measured throughput."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from heedful.config import RunConfig, SourceConfig
from heedful.engine.running.processors import cores as usable_cores
from heedful.engine.running.workspace import Workspace
from heedful.engine.sources.data import Sizes, published_sizes, sizes
from heedful.engine.tasks.kinds import TASK_KINDS, run_config
from heedful.engine.tasks.plan import Plan, kinds_of
from heedful.engine.tasks.status import plan_status
from heedful.engine.tasks.task import Request, Task
from heedful.engine.tasks.throughput import Throughput
from heedful.store.run import Run, runs_in

PROCESS = 450e6  # bytes of a worker that has loaded its libraries
WORD = 65.0  # bytes of a word of a corpus in memory: its form, its place in the text, the text
STATE = 18 * 4.0  # bytes of a word of a step for each number of its state (checks/memory.py: the BiLSTM takes most)


@dataclass(frozen=True)
class Estimate:
    tasks: dict[str, int]  # by kind
    left: dict[str, int]
    asks: list[Request]  # of every run; of several datasets, where they differ in how many texts, each once
    datasets: dict[str, dict[str, Any]]
    forward_passes: int
    core_seconds: dict[str, float]  # by dataset
    chain: float  # seconds of the run that takes longest: no number of cores is faster
    cores: int
    memory: int  # bytes of all workers together

    @property
    def seconds(self) -> float:
        return max(sum(self.core_seconds.values()) / self.cores, self.chain)

    def to_json(self) -> dict[str, Any]:
        return {
            "tasks": self.tasks,
            "left": self.left,
            "asks": [ask.model_dump(mode="json") for ask in self.asks],
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
        limits: dict[tuple[str, str], list[str]] = {}
        for ask in self.asks:
            texts = "all" if ask.limit is None else f"{ask.limit:,}"
            limits.setdefault((ask.experiment, ask.split), []).append(texts)
        for number, ((experiment, split), every) in enumerate(limits.items()):
            begin = "  each run: train" if number == 0 else " " * len("  each run: train")
            lines.append(f"{begin} ─► {experiment} ({' or '.join(every)} {split} texts) ─► its summary")
        for name, row in self.datasets.items():
            texts = ", ".join(f"{split} {n}" for split, n in row["texts"].items())
            lines.append(
                f"  {name}: {row['runs']} run{'s' * (row['runs'] > 1)}; texts: {texts}; "
                f"about {row['words']:.0f} words a text; {core_hours(row['core_hours'])} left ({row['source']})"
            )
        hours = sum(self.core_seconds.values()) / 3600
        lines += [
            f"forward passes left: {self.forward_passes:,}",
            f"memory: about {self.memory / 1e9:.1f} GB on {self.cores} cores",
            f"time left: about {in_words(self.seconds)} on {self.cores} cores ({core_hours(hours)})",
        ]
        return "\n".join(lines)


def estimate(plan: Plan, workspace: Workspace, cores: int | None = None, *, published: bool = False) -> Estimate:
    """`published`: all is to be done, on corpora of the sizes that were published."""
    n_cores = cores or usable_cores()
    existing = (
        []
        if published or not workspace.runs.is_dir()
        else [run for run in runs_in(workspace.runs) if run.finished and run.trial is None]
    )
    throughput = Throughput(existing)
    found = {} if published else plan_status(plan, workspace)
    left = [task for key, task in plan.tasks.items() if published or found[key].state != "finished"]
    by_dataset: dict[str, Sizes] = {}
    for task in plan.of("train"):
        if task.config.dataset not in by_dataset:
            by_dataset[task.config.dataset] = (
                published_sizes(task.config.dataset)
                if published
                else sizes(run_config(task), workspace.data_dirs, _on_same_data(task, existing))
            )
    passes = 0
    seconds: dict[str, float] = dict.fromkeys(by_dataset, 0.0)
    ends: dict[str, float] = {}  # seconds until a task is done, if it never waits for a core
    for task in left:
        forward, taken = TASK_KINDS[task.kind].cost(task, by_dataset[task.config.dataset], throughput)
        passes += round(forward)
        seconds[task.config.dataset] += taken
        ends[task.key] = taken + max((ends.get(key, 0.0) for key in task.needs), default=0.0)
    runs = Counter(task.config.dataset for task in plan.of("train"))
    datasets = {
        name: {
            "runs": runs[name],
            "texts": {split: size.texts for split, size in here.items()},
            "words": here["train"].length,
            "core_hours": seconds[name] / 3600,
            "source": plan.sources[name].where,
        }
        for name, here in by_dataset.items()
    }
    memory = n_cores * max(
        (worker_memory(run_config(task), by_dataset[task.config.dataset]) for task in plan.of("train")), default=0
    )
    return Estimate(
        kinds_of(plan.tasks.values()),
        kinds_of(left),
        list({(a.experiment, a.split, a.limit): a for t in plan.of("experiment") if (a := t.ask)}.values()),
        datasets,
        passes,
        seconds,
        max(ends.values(), default=0.0),
        n_cores,
        round(memory),
    )


def worker_memory(config: RunConfig, here: Sizes) -> float:
    """Libraries, corpus, six copies of the weights while training, and the states of a step of long texts."""
    from heedful.engine.tasks.rows import TOKENS
    from heedful.models.training import STEP_TOKENS

    model = config.model
    if config.start is not None:
        return PROCESS + checkpoint_memory(config.start)
    step = 2 * config.training.batch_size * here["train"].length  # long texts are together in a batch
    corpus = sum(size.words for size in here.values())
    n_words: float = 60 * corpus**0.4  # types grow slower than words (Heaps 1978)
    weights = 4.0 * (n_words * model.embedding_dim + 8 * model.hidden_dim * (model.hidden_dim + model.embedding_dim))
    return PROCESS + WORD * corpus + 6 * weights + max(TOKENS, min(step, STEP_TOKENS)) * model.hidden_dim * STATE


def checkpoint_memory(start: SourceConfig) -> float:
    """Six copies of the weights, and what a backward pass may keep."""
    from heedful.engine.sources.huggingface import checkpoint_of
    from heedful.models.network import BACKWARD_MEMORY

    files = checkpoint_of(start.place).folder.glob("*.safetensors")
    return 6.0 * sum(path.stat().st_size for path in files) + BACKWARD_MEMORY


def core_hours(hours: float) -> str:
    return f"{hours:,.1f} core-hours" if hours >= 1 else f"{hours:.2g} core-hours"


def in_words(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"


def _on_same_data(task: Task, runs: list[Run]) -> Run | None:
    return next((run for run in runs if run.info["data"]["fingerprint"] == task.source), None)
