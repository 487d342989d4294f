"""A run in words: what was asked, its facts, its explainers, and the commands that make it again."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import EvaluationConfig, RunConfig
from heedful.engine.tasks.commands import settings, train_words, trial_words
from heedful.experiments import find
from heedful.explanation.drawing import visible
from heedful.figures.figure import join_words, method_name
from heedful.measure.statistics import Interval
from heedful.report import sample
from heedful.report.findings import Findings, Illustrated

NONE = "–"
RUNS = Path("runs")  # where `heedful train` puts runs
MARGIN = 0.05  # of accuracy above always the same answer, or there is little to explain


@dataclass(frozen=True, slots=True)
class Fact:
    name: str
    value: str
    note: str = ""


def question(findings: Findings) -> str:
    """One sentence for someone who has never read the papers."""
    on = "tested on" if "source" in findings.info["config"] else "trained on"
    questions = [find(name).asks or f"“{find(name).question}”" for name in findings.tables]
    return (
        f"Attention gives each word of a text a weight; the weights sum to 1 and are often shown as the reason for a "
        f"prediction. This model is {findings.description}, {on} {visible(findings.setting[0])}. "
        f"The tests ask {join_words(questions)}."
    )


def score(findings: Findings) -> Fact:
    """The score that the task is known by."""
    found = findings.performance
    name = "f1" if len(findings.labels) == 2 and found.get("f1") is not None else "accuracy"
    title = {"f1": "F1", "accuracy": "accuracy"}[name]
    if found.get(name) is None:
        return Fact(f"{title} on {found.get('split', findings.split)}", NONE, "the texts have no labels")
    others = [
        f"{said} {found[key]:.3f}"
        for key, said in (("accuracy", "accuracy"), ("roc_auc", "ROC AUC"))
        if found.get(key) and key != name
    ]
    baseline = found.get("baseline", {})
    others += [f"{baseline['name']} {baseline[name]:.3f}"] if baseline.get(name) is not None else []
    return Fact(f"{title} on {found['split']}", f"{found[name]:.3f}", ", ".join(others))


def warning(run: Illustrated) -> str:
    """Where the model hardly predicts, its attention says little."""
    truths = [example.label for example in run.examples.values() if example.label is not None]
    accuracy = run.findings.performance.get("accuracy")
    if not truths or accuracy is None:
        return ""
    usual, n = Counter(truths).most_common(1)[0]
    if accuracy >= n / len(truths) + MARGIN:
        return ""
    return (
        f"This model predicts hardly better (accuracy {accuracy:.2f}) than always answering "
        f"“{visible(run.findings.labels[usual], 40)}” ({n / len(truths):.2f}): its attention says little."
    )


def doubts(findings: Findings) -> list[str]:
    """What was found about the texts: copies, and texts that the model was trained on."""
    told = (visible(str(sentence), 400) for sentence in findings.info["data"].get("warnings", []))
    return [f"{sentence[:1].upper()}{sentence[1:]}." for sentence in told]


def facts(findings: Findings) -> list[Fact]:
    info = findings.info
    sizes = info["data"]["examples"]
    labels = [visible(label, 30) for label in findings.labels]
    shown = ", ".join(labels[:4]) + (f" and {len(labels) - 4} more" if len(labels) > 4 else "")
    dataset, encoder, attention = findings.setting
    n = max(len(set(table["example"].to_pylist())) for table in findings.tables.values())
    return [
        score(findings),
        Fact("data", visible(dataset, 80), ", ".join(f"{size:,} {split}" for split, size in sizes.items())),
        Fact("labels", str(len(labels)), shown),
        Fact("model", f"{encoder}, {attention}", _sizes(info)),
        Fact("texts tested", f"{n:,}", f"of the {findings.split} split"),
        Fact("seed", "not known" if findings.seed is None else str(findings.seed)),
    ]


def _sizes(info: Mapping[str, Any]) -> str:
    """Of one of our own models; a foreign one is described in words."""
    config = info["config"]
    if not config.get("model") or config.get("start"):
        return visible(str(info.get("model", {}).get("description", "")), 120)
    given = config.get("vectors")
    vectors = f"word vectors {visible(str(given), 60)}" if given else "no pretrained word vectors"
    return f"embedding {info['embedding_dim']}, hidden {config['model']['hidden_dim']}, {vectors}"


def explainer_rows(run: Illustrated) -> list[dict[str, Any]]:
    """The table of explainers, from the sample."""
    known = [run.examples[place].evidence for place in run.sampled]
    return [
        {
            "name": method_name(e.method),
            "kind": e.kind,
            "direction": "for and against" if e.signed else "strength only",
            "agreement": NONE if e.agreement is None else _short(e.agreement),
            "check": NONE if e.passed is None else f"{e.check}: within bounds in {e.passed} of {e.texts}",
            "forward": e.forward,
            "backward": e.backward,
            "found": NONE if e.found is None else f"{e.found:.0%}",
        }
        for e in (sample.explainers(run.sample, known) if len(run.sample) else ())
    ]


def _short(found: Interval) -> str:
    return f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def commands(findings: Findings, command: str) -> str:
    """What to type to make the run, its results and this page again."""
    folder = Path(findings.path).parent
    where = [] if folder == RUNS else ["--runs", str(folder)]
    config, model = findings.info["config"], shlex.quote(findings.path)
    if "source" in config:  # the model was trained elsewhere, and tried on these data
        lines, model = [], shlex.join(trial_words(EvaluationConfig.model_validate(config), folder)[1:])
    else:
        lines = [shlex.join([*train_words(RunConfig.model_validate(config)), *where])]
    by_ask: dict[str, list[str]] = {}
    for name, about in findings.asked.items():
        words = ["--split", findings.split]
        words += ["--limit", str(about["limit"])] if about.get("limit") else []
        words += settings(about.get("options", {}), find(name).config().model_dump(mode="json"))
        by_ask.setdefault(shlex.join(words), []).append(name)
    lines += [f"heedful run {' '.join(names)} --model {model} {options}" for options, names in by_ask.items()]
    return "\n".join(
        visible(line, 2000)
        for line in (*lines, command or f"heedful report {shlex.quote(findings.path)} -o report.html")
    )


def versions(findings: Findings) -> str:
    told = ", ".join(f"{name} {number}" for name, number in findings.info["versions"].items())
    fingerprint = str(findings.info["data"].get("fingerprint", ""))[:16]
    return f"Trained with {told}. Seed {findings.info['config']['seed']}. Fingerprint of the data: {fingerprint}."
