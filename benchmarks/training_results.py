"""Write docs/results/training.md: the test score of every finished run in a folder, beside the published one.

python benchmarks/training_results.py RUNS > docs/results/training.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from heedful.data.registry import CORPORA
from heedful.store.run import Run, runs_in

HEAD = """# Training on real corpora

Test scores of `heedful train NAME [--vectors glove6b_100d]` on the corpora of `HEEDFUL_DATA`, by encoder and attention,
with and without word vectors. Written by `python benchmarks/training_results.py RUNS > docs/results/training.md`.
The score is the paper's: F1 of the positive class (two labels) or accuracy. `paper` is Table 1 of Jain & Wallace 2019:
a BiLSTM with additive attention and 300-dimensional vectors; ours have 100. agnews, snli and babi3 have only a part
of their training data here.

| corpus | encoder | attention | vectors | seed | score | paper | best epoch of | minutes |
|---|---|---|---|---|---|---|---|---|"""


def row(run: Run) -> tuple[str, ...]:
    config, scores, epochs = run.config, run.summary("performance"), run.training()
    published = CORPORA[config.dataset].published if config.dataset in CORPORA else None
    metric = "f1" if published and published.metric == "f1" else "accuracy"
    best = max(epoch["epoch"] for epoch in epochs if epoch["best"])
    minutes = sum(epoch["seconds"] for epoch in epochs) / 60
    return (
        *(
            config.dataset,
            config.model.encoder,
            config.model.attention,
            config.vectors or "-",
            str(config.seed),
        ),
        *(
            f"{scores[metric]:.3f}",
            f"{published.score:.2f}" if published else "-",
            f"{best} of {len(epochs)}",
        ),
        f"{minutes:.1f}",
    )


def main() -> None:
    runs = [run for folder in sys.argv[1:] for run in runs_in(Path(folder)) if run.finished]
    print(HEAD)
    order = list(CORPORA)
    rows = sorted(
        (row(run) for run in runs), key=lambda r: (order.index(r[0]) if r[0] in order else 99, r[1:5])
    )
    for cells in rows:
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
