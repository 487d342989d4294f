"""A run's findings made up for tests of the report: no training, no torch, and as hostile as asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from heedful import Explanation
from heedful.experiments import Result, find
from heedful.explanation.attribution import Attribution, Check, Cost
from heedful.explanation.record import Explained
from heedful.records import Example, Words
from heedful.report.findings import Findings, Illustrated, choose
from heedful.report.opening import Opening, typical
from heedful.report.published import published_in
from heedful.report.sample import choose_sample

LN2 = float(np.log(2))
PAIRS = {
    "attention/gradient_x_input": 0.4,
    "attention/omission": 0.3,
    "gradient_x_input/omission": 0.6,
    "attention/random": 0.0,
}
HOSTILE = (
    "</script><script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"'><svg/onload=window.hacked=1>",
    "{{7*7}}{%raw%}",
    "\u202eevil\u2066",
    "\u2028\u2029<!--<script>",
    "javascript:window.hacked=1",
    "x" * 100_000,
)
PLAIN = ("a", "film", "so", "dull", "and", "warm", "that", "nobody", "slept", "<b>", "&amp;")
METHODS = ("attention", "gradient_x_input", "integrated_gradients", "omission")


def words_of(forms: Sequence[str]) -> Words:
    ends = np.cumsum([len(form) + 1 for form in forms]) - 1
    offsets = np.stack([ends - [len(form) for form in forms], ends], axis=1).astype(np.int32)
    return Words(" ".join(forms), tuple(forms), offsets)


def table_of_deception(n: int = 60, seed: int = 0, left: float = 0.02) -> pa.Table:
    """Copies whose attention leaves this share of its mass on hidden words, and leave-one-out that still sees them."""
    rng = np.random.default_rng(seed)
    sizes, own = rng.integers(6, 20, n), rng.uniform(0.6, 0.9, n)
    base = {
        "example": np.arange(n),
        "predicted": rng.integers(0, 2, n),
        "max_attention": rng.random(n),
        "n_words": sizes,
        "deceived_mass": own * left,
        "control_correct": (rng.random(n) < 0.5) * 1.0,
        "chance": 1 / sizes,
    }
    tables = []
    for model, mass in {"lambda 0": own, "lambda 0.1": own * left * 3, "lambda 1": own * left}.items():
        for method in ("attention", "omission"):
            seen = mass if method == "attention" else rng.uniform(0.6, 0.9, n)
            here = {name: [value] * n for name, value in (("model", model), ("method", method))}
            found = {"question": [f"{model}: {method}"] * n, "share": seen, "auc": np.clip(seen * 1.1, 0, 1)}
            ranks = {"hit": (seen > 0.5) * 1.0, "precision": (seen > 0.5) * 1.0}
            masses = {"attention_mass": mass, "max_attention_mass": mass, "correct": np.ones(n)}
            tables.append(pa.table(base | found | here | ranks | masses))
    return pa.concat_tables(tables)


def table_of_heads(n: int = 60, seed: int = 0) -> pa.Table:
    """Of `n` texts, two layers of three heads: those of layer 0 hardly matter."""
    rng = np.random.default_rng(seed)
    base = common_columns(n, rng)
    change = np.clip(rng.normal(0.1, 0.02, n), 0, 1)
    return pa.concat_tables(
        pa.table(
            base
            | {"question": [f"layer {layer}, head {head}, {operation}"] * n, "operation": [operation] * n}
            | {"layer": np.full(n, layer), "head": np.full(n, head), "flipped": np.zeros(n, bool)}
            | {"tvd": change * layer * (head + 1), "logit": -change * layer}
        )
        for layer in range(2)
        for head in range(3)
        for operation in ("off", "uniform")
    )


def tables_of(
    n: int = 60,
    seed: int = 0,
    taus: dict[str, float] | None = None,
    change: float = 0.1,
    share: float = 0.9,
    labels: int = 2,
    lengths: Sequence[int] | None = None,
) -> dict[str, pa.Table]:
    """The three experiments of `n` texts, around the given means."""
    rng = np.random.default_rng(seed)
    sizes = np.array(lengths if lengths is not None else rng.integers(4, 20, n))
    attention = [rng.dirichlet(np.full(size, 0.6)) for size in sizes]
    base = {
        "example": np.arange(n),
        "predicted": rng.integers(0, labels, n),
        "max_attention": np.array([weights.max() for weights in attention]),
        "n_words": sizes,
    }
    correlation = [
        pa.table(
            base
            | {"pair": [pair] * n}
            | {name: np.clip(rng.normal(mean, 0.15, n), -1, 1) for name in ("tau", "spearman", "weighted_tau")}
            | {"p": rng.random(n), "overlap": rng.random(n), "overlap_expected": np.full(n, 0.3)}
            | {"same_first": (rng.random(n) < 1 / sizes + (1 - 1 / sizes) * mean) * 1.0}
            | {"same_first_expected": 1 / sizes}
        )
        for pair, mean in (taus or PAIRS).items()
    ]
    median = np.clip(rng.normal(change, 0.02, n), 0, 1)
    ceiling = np.full(n, LN2 * 0.95)
    jsd = np.clip(rng.normal(share, 0.03, n), 0, 1) * ceiling
    return {
        "correlation": pa.concat_tables(correlation),
        "permutation": pa.table(base | {"median": median, "mean": median, "max": median}),
        "adversarial": pa.table(
            base
            | {"jsd": jsd, "delta_y": np.full(n, 0.01), "bound": jsd, "ceiling": ceiling}
            | {"exact": np.ones(n, bool), "feasible": np.ones(n, bool)}
            | {"jsd_exact": jsd, "jsd_adam": jsd * 0.8, "gap": jsd * 0.2}
            | {"attention": attention, "adversarial": [weights[::-1].copy() for weights in attention]}
        ),
    }


def erased_tables_of(n: int = 60, seed: int = 0) -> dict[str, pa.Table]:
    """The experiments of Serrano & Smith 2019, of `n` texts."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(4, 20, n)
    base = {
        "example": np.arange(n),
        "predicted": rng.integers(0, 2, n),
        "max_attention": rng.random(n),
        "n_words": sizes,
    }
    js = rng.random((2, n)) / [[3], [6]]
    pair = {
        "delta_alpha": base["max_attention"] / 2,
        "js_top": js[0],
        "js_random": js[1],
        "delta_js": js[0] - js[1],
        "flip_top": (rng.random(n) < 0.3) * 1.0,
        "flip_random": (rng.random(n) < 0.1) * 1.0,
        "margin": rng.random(n),
    }
    removed = {"attention": sizes // 3 + 1, "attention_x_gradient": sizes // 4 + 1}
    removed |= {f"random {draw}": np.minimum(sizes // 2 + draw, sizes - 1) for draw in (1, 2)}
    rankings = [
        pa.table(
            base
            | {"ranking": [ranking] * n, "removed": gone.astype(float), "share": gone / sizes}
            | {"smallest_low": np.ones(n), "smallest_high": np.ones(n)}
        )
        for ranking, gone in removed.items()
    ]
    table = pa.table(base | pair)
    return {"erasure": table, "flips": table, "importance_sets": pa.concat_tables(rankings)}


def evidence_tables_of(n: int = 60, seed: int = 0, found: float = 0.7, effect: float = 0.5) -> dict[str, pa.Table]:
    """The experiments with known evidence: attention finds this share of it, leave-one-out all, the rest by chance."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(6, 20, n)
    base = {
        "example": np.arange(n),
        "predicted": rng.integers(0, 2, n),
        "max_attention": rng.random(n),
        "n_words": sizes,
        "effect": np.clip(rng.normal(effect, 0.05, n), 0, 1),
        "effect_random": np.clip(rng.normal(0.05, 0.02, n), 0, 1),
        "correct": (rng.random(n) < 0.95) * 1.0,
        "ranked_words": sizes,
        "evidence_words": np.full(n, 2),
        "chance": 2 / sizes,
    }
    rows = []
    for method, share in {"attention": found, "omission": 1.0, "random": None, "uniform": None}.items():
        precision = rng.binomial(2, 2 / sizes if share is None else share, n) / 2
        rows.append(
            pa.table(
                base
                | {"method": [method] * n, "precision": precision, "hit": (precision > 0) * 1.0}
                | dict.fromkeys(("best_f1", "iou_f1", "auprc", "auc"), precision)
                | {"rank": 1.5 + (1 - precision) * sizes / 2}
            )
        )
    table = pa.concat_tables(rows)
    return {
        "planted": table,
        **dict.fromkeys(
            ("pointing", "rationales", "contrast_sets"), table.drop_columns(["effect", "effect_random", "correct"])
        ),
    }


def common_columns(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """What every table has."""
    return {
        "example": np.arange(n),
        "predicted": rng.integers(0, 2, n),
        "max_attention": rng.random(n),
        "n_words": rng.integers(4, 20, n),
    }


def table_of_retrain(n: int = 60, seed: int = 0, lost: float = 0.05) -> pa.Table:
    """Of `n` texts, half and most of the words removed: without attended words this much accuracy is lost."""
    rng = np.random.default_rng(seed)
    base = common_columns(n, rng)
    right = np.arange(n) < 0.8 * n  # the same texts by any method, but for those that are lost
    tables = []
    for method, less in {"none": 0.0, "attention": lost, "omission": 2 * lost, "random": 0.0}.items():
        for fraction in (0.0,) if method == "none" else (0.5, 0.9):
            correct = right & (np.arange(n) >= less * n)
            tables.append(
                pa.table(
                    base
                    | {"removal": [f"{method} {fraction:g}"] * n, "method": [method] * n}
                    | {"fraction": np.full(n, fraction), "correct": correct * 1.0, "probability": rng.random(n)}
                )
            )
    return pa.concat_tables(tables)


def table_of_masked_twin(n: int = 60, seed: int = 0, strange: float = 0.05) -> pa.Table:
    """Of `n` texts: with random words hidden the model predicts so much fewer of them rightly than its twin."""
    rng = np.random.default_rng(seed)
    base = common_columns(n, rng)
    tables = []
    for method, drop in {"attention": 0.3, "omission": 0.5, "random": 0.1}.items():
        for fraction in (0.2, 0.8):
            names = {"masking": [f"{method} {fraction:g}"] * n, "method": [method] * n}
            lost = ("drop", "twin_drop", "sufficiency", "twin_sufficiency")
            drops = {who: np.clip(rng.normal(drop, 0.05, n), -1, 1) for who in lost}
            right = {"correct": np.arange(n) < (0.8 - strange) * n, "twin_correct": np.arange(n) < 0.8 * n}
            floats = {name: values * 1.0 for name, values in right.items()}
            tables.append(pa.table(base | names | {"fraction": np.full(n, fraction)} | drops | floats))
    return pa.concat_tables(tables)


def explained_of(place: int, example: Example, labels: Sequence[str], seed: int = 0) -> Explained:
    rng, n = np.random.default_rng([seed, place]), len(example.passage)

    def attribution(method: str) -> Attribution:
        signed = method != "attention"
        scores = rng.normal(size=n) if signed else rng.dirichlet(np.ones(n))
        if method == "omission":
            scores += [3.0 * (form in ("dull", "warm")) for form in example.passage.forms]
        check = Check("completeness gap", 0.5, False, 0.5, "raise --n-steps") if "integrated" in method else None
        kind: Any = "saliency" if signed else "attention"
        return Attribution(method, kind, signed, labels[place % 2], {"passage": scores}, None, check, Cost(2, 1))

    probabilities = np.full(len(labels), 0.1 / (len(labels) - 1))
    probabilities[place % 2] = 0.9
    truth = None if example.label is None else labels[example.label]
    attributions = tuple(map(attribution, METHODS))
    return Explained(example.id, example.passage, tuple(labels), probabilities, attributions, truth=truth)


def compared_tables_of(n: int = 60, seed: int = 0, lost: float = 0.2) -> dict[str, pa.Table]:
    """The experiments of Wiegreffe & Pinter 2019, of `n` texts: uniform attention loses about `lost` of accuracy."""
    rng = np.random.default_rng(seed)
    base = common_columns(n, rng)
    truth = base["predicted"].astype(float)

    def wrong(share: float) -> np.ndarray:
        """Labels of which that share is wrong."""
        return np.where(rng.random(n) < share, 1 - truth, truth)

    uniform = []
    for one in "01":
        trained, flat = wrong(0.1), wrong(0.1 + lost)
        right, right_uniform = (trained == truth) * 1.0, (flat == truth) * 1.0
        uniform.append(
            {"seed": [one] * n, "truth": truth, "trained": trained, "uniform": flat, "right": right}
            | {"right_uniform": right_uniform, "loss": right - right_uniform, "tvd": rng.random(n) / 4}
        )
    seeds = [
        {"seed": [one] * n, "jsd": rng.random(n) / 5, "tau": rng.random(n), "tvd": rng.random(n) / 9}
        | {"same": (rng.random(n) < 0.9) * 1.0}
        for one in "123"
    ]
    frozen = []
    for guide, share in {"uniform": 0.3, "trained": 0.2, "base": 0.15, "adversary": 0.4}.items():
        for one in "01":
            said = wrong(share)
            frozen.append(
                {"guide": [guide] * n, "seed": [one] * n, "truth": truth, "token_wise": said}
                | {"right": (said == truth) * 1.0, "right_base": np.ones(n), "tvd": rng.random(n) / 3}
            )
    adversary = 0.6 + 0.05 * rng.random(n)
    imitation = [
        {"lambda": [f"{lam:g}"] * n, "tvd": 0.02 + lam * rng.random(n), "jsd": far + 0.1 * rng.random(n)}
        | {"kl": 5 * far + rng.random(n), "adversary": adversary, "optimum": adversary}
        for lam, far in ((0.0, 0.05), (0.01, 0.2), (0.1, 0.5))
    ]
    made = {"uniform": uniform, "seeds": seeds, "frozen": frozen, "imitation": imitation}
    return {name: pa.concat_tables(pa.table(base | part) for part in parts) for name, parts in made.items()}


def trial_of(experiment: str, table: pa.Table, labels: Sequence[str] = ("negative", "positive")) -> Result:
    """A table with its summary."""
    return Result(experiment, table, find(experiment).summarise(table), labels=labels)


def findings_of(
    tables: dict[str, pa.Table], labels: Sequence[str] = ("negative", "positive"), name: str = "run"
) -> Findings:
    config = {
        "dataset": "sst",
        "model": {"encoder": "bilstm", "attention": "additive", "hidden_dim": 64},
        "seed": 0,
        "vectors": None,
    }
    info = {
        "config": config,
        "labels": list(labels),
        "task": "classification",
        "embedding_dim": 50,
        "data": {"examples": {"train": 10, "test": 60}, "fingerprint": "f" * 64},
        "versions": {"heedful": "0", "python": "3"},
    }
    performance = {"split": "test", "examples": 60, "accuracy": 0.8, "f1": 0.79, "roc_auc": 0.9}
    summaries = {experiment: find(experiment).summarise(table) for experiment, table in tables.items()}
    asked = {experiment: {"split": "test"} for experiment in tables}
    published, sources = published_in(("sst", "bilstm", "additive"))
    model = "a bidirectional LSTM with additive attention"
    return Findings(
        name, f"runs/{name}", info, performance, tables, summaries, asked, model, "test", {}, published, sources
    )


def illustrated(hostile: bool = False, n: int = 60, name: str = "run", **how: Any) -> Illustrated:
    """A run with texts; `hostile` ones try to break out of the page in every place where text goes."""
    labels = HOSTILE[:2] if hostile else ("negative", "positive")
    vocabulary = HOSTILE if hostile else PLAIN
    rng = np.random.default_rng(1)
    examples = {}
    for place in range(n):
        forms = [vocabulary[i] for i in rng.integers(0, len(vocabulary), rng.integers(4, 20))]
        known = (int(rng.integers(len(forms))),) if place % 2 else None
        id_ = f"{vocabulary[0]}:{place}" if hostile else f"test:{place}"
        examples[place] = Example(id_, words_of(forms), place % 2, evidence=known)
    tables = tables_of(n, lengths=[len(e.passage) for e in examples.values()], **how)
    findings = findings_of(tables, labels, HOSTILE[0] if hostile else name)
    choices, places = choose(map(findings.trial, tables), examples), choose_sample(examples)
    chosen, sample = (
        Explanation(tuple(explained_of(place, examples[place], labels) for place in some), name)
        for some in ([choice.place for choice in choices], places)
    )
    first = typical(tables, examples)
    assert first is not None
    projected = [[float(x)] for x in rng.normal(size=len(examples[first].passage))]
    arithmetic = {"link": "log_odds", "projected": projected, "bias": [0.1], "candidates": None}
    opening = Opening(first, explained_of(first, examples[first], labels), arithmetic)
    return Illustrated(findings, examples, choices, chosen, sample, places, sample, places, opening)
