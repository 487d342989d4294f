"""The outcome of `uniform` in numbers: scores with trained and uniform attention, and tests of the difference."""

from __future__ import annotations

import pyarrow as pa

from heedful.experiments.beside import by_run, f1_by_run, over_seeds
from heedful.experiments.experiment import Summary
from heedful.experiments.summary import column, mean, plain
from heedful.measure.equivalence import below
from heedful.measure.levels import over_runs
from heedful.measure.paired import mcnemar, paired

MARGIN = 0.02  # of accuracy: see uniform_description.REASON


def summarise(table: pa.Table) -> Summary:
    """Accuracy and F1 of both (`trained`, `uniform`: mean and std over seeds); the `loss` of accuracy with an interval
    over seeds and texts; and its tests: `p` of no difference (signs of the texts' mean differences flipped), `mcnemar`
    of the run's own seed, `p_needless` of a loss of MARGIN or more, and `at_most`, the loss that is not exceeded (95%).
    """
    loss = by_run(table, "loss", "seed")
    found, small = over_runs(loss), below(loss, MARGIN)
    test = paired(loss.mean(0))
    f1 = {kind: f1_by_run(table, kind, "seed") for kind in ("trained", "uniform")}
    right = {
        kind: by_run(table, name, "seed").mean(1)
        for kind, name in (("trained", "right"), ("uniform", "right_uniform"))
    }
    tests = {
        "p": test.p,
        "mcnemar": mcnemar(int((loss[0] == 1).sum()), int((loss[0] == -1).sum())),
        "p_needless": small.p,
        "at_most": small.at_most,
    }
    line = {"runs": found.runs, "n": found.texts, "mean": found.mean, "low": found.low, "high": found.high}
    scores = {kind: {"accuracy": over_seeds(right[kind]), "f1": over_seeds(f1[kind])} for kind in f1}
    differences = {"loss": plain(line), "loss_f1": over_seeds(f1["trained"] - f1["uniform"])}
    return {
        "overall": scores | differences | plain(tests) | {"margin": MARGIN},
        "tvd": {"mean": mean(column(table, "tvd"))},
    }
