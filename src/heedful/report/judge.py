"""The verdicts that a run's results allow."""

from __future__ import annotations

from heedful.report import sample, verdicts
from heedful.report.findings import Illustrated


def judged(run: Illustrated) -> dict[str, verdicts.Verdict]:
    """By experiment; `evidence` where the deciding words of the sample are known."""
    tables, found = run.findings.tables, {}
    known = [run.examples[place].evidence for place in run.sampled]
    if any(known):
        hits = sample.hits(run.sample, known, "attention")
        others = {
            e.method: e.found
            for e in sample.explainers(run.sample, known)
            if e.method != "attention" and e.found is not None
        }
        found["evidence"] = verdicts.evidence(hits, sample.chance(run.sample, known), others)
    if "permutation" in tables:
        found["permutation"] = verdicts.permutation(tables["permutation"])
    if "correlation" in tables:
        found["correlation"] = verdicts.agreement(tables["correlation"])
    if "adversarial" in tables:
        found["adversarial"] = verdicts.adversarial(tables["adversarial"], run.findings.epsilon)
    return found
