"""Write docs/results/training.md: test scores of the finished runs in some folders, beside the published ones.

python checks/training_results.py RUNS... > docs/results/training.md
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from heedful.data.corpora.registry import CORPORA
from heedful.store.run import Run, runs_in

HEAD = """# Training on real corpora

With word vectors the paper's main model, a BiLSTM with additive attention, scores a little above the published numbers
on SST and IMDB (.83 and .91 for .81 and .88), a little below on 20 Newsgroups and AG News (.91 to .93 for .94, .95 for
.96), and as published on bAbI 1 (1.00). Where only a part of the training data is here, on bAbI 3 and SNLI, it stays
far below. Without vectors it loses about six points on SST.

Test scores of `heedful train NAME [--vectors glove6b_100d]` on the corpora of `HEEDFUL_DATA`, by encoder and attention,
with and without word vectors. Written by `python checks/training_results.py RUNS... > docs/results/training.md`.
The score is the paper's: F1 of the positive class (two labels) or accuracy; mean over seeds, their number in brackets
where there are several. `paper` is Table 1 of Jain & Wallace 2019: a BiLSTM with additive attention and vectors of 300
dimensions; ours have 100. agnews, snli and babi3 have only a part of their training data here.

`drawn`, `zeros`: what words without a vector get (the default is the paper's text, N(0, 1); zeros are its code).
`hidden` is the size of a state: 256 in the paper, 128 in its code for CNN and average (there with tanh). `epochs` is
the best epoch and the last one, of the first run that the row has; `minutes` are of one core, often beside other work.
Epochs are 8 (25 on snli, 100 on bAbI), as published, but 4 for imdb with dot attention (`--epochs 4`); snli and bAbI
end after 5 or 15 epochs without a better one (`--patience`).

| corpus | encoder | attention | hidden | vectors, drawn | vectors, zeros | no vectors | paper | epochs | minutes |
|---|---|---|---|---|---|---|---|---|---|"""
COLUMNS = ("normal", "zeros", "none")
Setting = tuple[str, str, str, str]


def score(run: Run) -> float:
    published = CORPORA[run.config.dataset].published if run.config.dataset in CORPORA else None
    return float(run.summary("performance")["f1" if published and published.metric == "f1" else "accuracy"])


def setting(run: Run) -> Setting:
    model = run.config.model
    size = f"{model.hidden_dim} tanh" if model.activation == "tanh" else str(model.hidden_dim)
    return run.config.dataset, model.encoder, model.attention, size


def cell(runs: list[Run]) -> str:
    if not runs:
        return "-"
    several = f" ({len(runs)})" if len(runs) > 1 else ""
    return f"{sum(map(score, runs)) / len(runs):.3f}{several}"


def line(where: Setting, runs: list[Run]) -> str:
    kinds: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        kinds[run.config.training.missing_vectors if run.config.vectors else "none"].append(run)
    published = CORPORA[where[0]].published if where[0] in CORPORA else None
    epochs = next(kinds[kind] for kind in COLUMNS if kinds[kind])[0].training()
    best = max(epoch["epoch"] for epoch in epochs if epoch["best"])
    cells = [
        *where,
        *(cell(kinds[kind]) for kind in COLUMNS),
        f"{published.score:.2f}" if published else "-",
        f"{best} of {len(epochs)}",
        f"{sum(epoch['seconds'] for epoch in epochs) / 60:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    grouped = defaultdict(list)
    runs = {run.name: run for folder in sys.argv[1:] for run in runs_in(Path(folder)) if run.finished}
    for run in runs.values():  # a run that is in two folders counts once
        grouped[setting(run)].append(run)
    order = list(CORPORA)
    print(HEAD)
    for where in sorted(grouped, key=lambda w: (order.index(w[0]) if w[0] in order else 99, *w[1:])):
        print(line(where, sorted(grouped[where], key=lambda run: run.config.seed)))


if __name__ == "__main__":
    main()
