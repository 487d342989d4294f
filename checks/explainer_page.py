"""Write the tables of docs/explainers.md and docs/explainer_options.md: what explainers declare, and what Kindermans'
input-shift test says.

    python checks/explainer_page.py          # writes the pages again
    python checks/explainer_page.py --check  # exit code 1 if that would change them

The tables stand between `<!-- name -->` and `<!-- end of name -->`; all else on the pages is prose, and stays as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from heedful.config import EncoderName, ModelConfig
from heedful.data.text.vocabulary import END, PAD, START
from heedful.explainers import EXPLAINERS, Explainer
from heedful.models import AttentiveClassifier, build
from heedful.records import Batch, Tokens

DOCS = Path(__file__).parents[1] / "docs"
LENGTHS, N_WORDS = (5, 8), 50
# Enough to see whether scores change: a surrogate that draws the same words twice says the same of the same function.
FEW = {"n_samples": 10, "max_samples": 10, "n_permutations": 1, "n_steps": 8}


def main(options: list[str]) -> int:
    stale = []
    for name, table, lines in (
        ("explainers.md", "methods", methods_table()),
        ("explainer_options.md", "options", options_table()),
    ):
        page = DOCS / name
        before = page.read_text(encoding="utf-8")
        after = regenerated(before, name, table, lines)
        if "--check" not in options:
            page.write_text(after, encoding="utf-8")
        elif after != before:
            stale.append(name)
    if stale:
        print(f"{' and '.join(stale)} differ from what the explainers declare: run python checks/explainer_page.py")
    return 1 if stale else 0


def regenerated(page: str, file: str, name: str, lines: Sequence[str]) -> str:
    """The page with its table made again."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"{file}: {begin} and {end} must each stand there once.")
    head, rest = page.split(begin)
    return "\n".join([head + begin, *lines, end + rest.split(end)[1]])


def methods_table() -> list[str]:
    header = (
        *("method", "called", "kind", "signed", "used unless named", "needs", "cost for n words", "absent means"),
        *("checked on every call", "input shift", "source"),
    )
    return table(
        header,
        [
            (
                *(f"`{one.name}`", one.label, one.kind, "yes" if one.signed else "no", asked(one)),
                *(", ".join(sorted(one.needs)), one.cost, one.removal or "-"),
                *(one.axiom.name if one.axiom else "-", input_shift(one), one.citation),
            )
            for one in own()
        ],
    )


def own() -> list[Explainer]:
    """Those of heedful, whatever other packages are installed."""
    return [EXPLAINERS[name] for name in EXPLAINERS.places]


def asked(one: Explainer) -> str:
    """By `explain`, the playground and the report; by an audit, which asks all that are not slow."""
    if one.is_control:
        return "by audit" if one.usual else "no"
    return "yes" if one.usual else "no, slow" if one.slow else "by audit"


def options_table() -> list[str]:
    """One row for options that are alike in several methods."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    for one in own():
        for option in one.describe():
            rows.setdefault((option.name, option.type, option.default, option.help), []).append(f"`{one.name}`")
    lines = [
        (f"`{name}`", kind, default, meaning, ", ".join(methods))
        for (name, kind, default, meaning), methods in sorted(rows.items())
    ]
    return table(("option", "is", "default", "what it does", "methods"), lines)


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (header, ("---",) * len(header), *rows)]


def input_shift(explainer: Explainer) -> str:
    """The largest change of a score, relative to the largest, when inputs move and the first bias takes it back."""
    if not explainer.needs <= AttentiveClassifier.can:
        return "-"
    options = {name: value for name, value in FEW.items() if name in explainer.options}
    encoders: tuple[EncoderName, ...] = ("bilstm", "average")
    worst = 0.0
    for encoder in encoders:
        model, moved, texts = network(encoder), shifted(encoder), batch()
        target = model(texts).predicted
        here, there = (explainer.run(m, texts, target, **options).passage for m in (model, moved))
        worst = max(worst, float((here - there).abs().max() / here.abs().max()))
    return "yes" if worst < 1e-9 else f"no ({worst:.0%})"


def network(encoder: EncoderName) -> AttentiveClassifier:
    config = ModelConfig(encoder=encoder, attention="additive", embedding_dim=6, hidden_dim=8)
    made = build(config, N_WORDS, 2, False, 0).double().eval()
    assert isinstance(made, AttentiveClassifier)
    return made


def shifted(encoder: EncoderName) -> AttentiveClassifier:
    """f'(x + m) = f(x): embeddings moved by m, and the first layer's bias made to take it back."""
    moved = network(encoder)
    m = torch.linspace(-1, 2, moved.embedding.embedding_dim, dtype=torch.float64)
    first: Any = moved.encoder
    layers = (
        [(first.linear.weight, first.linear.bias)]
        if encoder == "average"
        else [(lstm.weight_ih_l0, lstm.bias_ih_l0) for lstm in (first.forwards, first.backwards)]
    )
    with torch.no_grad():
        moved.embedding.weight += m
        for weight, bias in layers:
            bias -= weight @ m
    return moved


def batch() -> Batch:
    """Random texts of so many words, each between its markers, padded to the longest."""
    n = torch.tensor(LENGTHS).unsqueeze(1) + 2  # (batch, 1)
    place = torch.arange(int(n.max()))  # (length,)
    present = place < n  # (batch, length)
    ids = torch.randint(4, N_WORDS, present.shape, generator=torch.Generator().manual_seed(0))
    ids = ids.masked_fill(place == n - 1, END).masked_fill(place == 0, START).masked_fill(~present, PAD)
    return Batch(Tokens(ids, present, (place > 0) & (place < n - 1)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
