"""Who makes the parts of a large explanation: this process, processes beside it, or those of a Ray cluster.

A part is made alone, by one thread, from its texts and nothing else, so its bytes are the same whoever makes it, and
whatever was made before. A worker loads the model once and is handed one part after another.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.engine.explaining.beside import beside_of
from heedful.engine.running.progress import ProgressBar
from heedful.errors import Mistake
from heedful.explanation.files import write_parquet
from heedful.files import whole_file
from heedful.records import Example

if TYPE_CHECKING:
    import pyarrow as pa

    from heedful.engine.sources.models import ModelSource
    from heedful.models.model import Model

LOOK = 0.3  # seconds between two looks at how far the workers are
AHEAD = 2  # parts handed out for each worker, so that none waits for us


@dataclass(frozen=True, slots=True)
class Job:
    """How texts are explained: all that a worker needs beside them."""

    source: ModelSource
    methods: tuple[Any, ...]  # as they were given
    target: str | int | None
    options: Mapping[str, Any]
    states: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    device: str | None = None
    batch_size: int | None = None

    def load(self) -> Model:
        from dataclasses import replace

        from heedful.engine.running.processors import torch_device

        model = self.source.load(torch_device(self.device))
        return model if self.batch_size is None else replace(model, batch_size=self.batch_size)


@dataclass(frozen=True, slots=True)
class Part:
    """Some texts, what stands beside each in the file, and where their explanation goes."""

    examples: Sequence[Example]
    beside: pa.Table | None
    file: Path


def make_part(model: Model, job: Job, part: Part, on_done: Callable[[int], None]) -> None:
    from heedful.engine.running.processors import threads
    from heedful.explainers.run import explain

    with threads(1):  # sums are rounded by how they are split among threads
        found = explain(model, part.examples, job.methods, job.target, on_done, job.states, **job.options)
    with whole_file(part.file) as temporary:
        write_parquet(found.columns, found.run, temporary, beside_of(found, part.beside))


def make_here(model: Model, job: Job, parts: Iterator[Part], bar: ProgressBar) -> None:
    for part in parts:
        make_part(model, job, part, bar.advance)


def make_beside(job: Job, parts: Iterator[Part], workers: int, bar: ProgressBar) -> None:
    """By so many processes; each tells how many texts it has done."""
    context = multiprocessing.get_context("spawn")
    done = context.Value("q", 0)
    told = 0
    with ProcessPoolExecutor(workers, context, _begin, (job, done)) as pool:
        try:
            waiting: set[Future[None]] = set()
            more = True
            while more or waiting:
                while more and len(waiting) < AHEAD * workers:
                    part = next(parts, None)
                    more = part is not None
                    if part is not None:
                        waiting.add(pool.submit(_make, part))
                finished, waiting = wait(waiting, LOOK, FIRST_COMPLETED)
                now = int(done.value)
                if now > told:
                    bar.advance(now - told)
                    told = now
                for one in finished:
                    one.result()
        except BrokenProcessPool:
            raise Mistake(
                "a worker of explain was killed (out of memory?): the parts that are done are kept; give the command "
                "again, with fewer --workers or a smaller --batch-size."
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


_worker: dict[str, Any] = {}  # of a process that was started for this: its job, its model, its counter


def _begin(job: Job, done: Any) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the command, which ends its workers
    _worker.update(job=job, model=None, done=done)


def _make(part: Part) -> None:
    if _worker["model"] is None:
        _worker["model"] = _worker["job"].load()

    def advance(texts: int) -> None:
        with _worker["done"].get_lock():
            _worker["done"].value += texts

    make_part(_worker["model"], _worker["job"], part, advance)


def make_on_ray(job: Job, parts: Iterator[Part], workers: int, address: str | None, bar: ProgressBar) -> None:
    """By so many processes of a cluster, which see the folder of the output; what a lost one had goes to others."""
    from heedful.engine.running.ray_cluster import RETRIES, import_ray, start

    ray = import_ray()
    ours = not ray.is_initialized()
    if ours:
        start(ray, workers, address)
    try:
        make = ray.remote(num_cpus=1, max_retries=RETRIES)(_make_on_ray)
        waiting: dict[Any, int] = {}
        shared, more = ray.put(job), True
        while more or waiting:
            while more and len(waiting) < AHEAD * workers:
                part = next(parts, None)
                more = part is not None
                if part is not None:
                    waiting[make.remote(shared, part)] = len(part.examples)
            finished, _ = ray.wait(list(waiting), num_returns=1, timeout=LOOK)
            for one in finished:
                ray.get(one)
                bar.advance(waiting.pop(one))
    finally:
        if ours:
            ray.shutdown()


def _make_on_ray(job: Job, part: Part) -> None:
    if _worker.get("job") != job:
        _worker.update(job=job, model=job.load())
    make_part(_worker["model"], job, part, lambda texts: time.sleep(0))
