"""The page of checks/language_study.py: summary, figure and Markdown from its rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heedful.figures.studies import differences
from heedful.measure.paired import paired
from heedful.measure.statistics import mean_interval
from heedful.report.export import svg

RESULTS = Path(__file__).parent.parent / "docs" / "results"
NAME = "language-models"
TITLES = {"blimp_evidence": "BLiMP", "agreement_linzen": "Linzen et al.", "agreement_gulordava": "Gulordava et al."}
LABELS = {
    "gradient": ("gradient (norm)", "1 forward, 1 backward"),
    "gradient_x_input": ("gradient × input", "1 forward, 1 backward"),
    "lrp": ("LRP, frozen", "1 forward, 1 backward"),
    "lrp:rule=attnlrp": ("LRP, AttnLRP", "1 forward, 1 backward"),
    "attention": ("attention (last layer)", "1 forward"),
    "omission": ("omission", "n + 1 forward"),
    "random": ("random order, one draw", "none"),
}
TWO_PASSES = ("gradient", "gradient_x_input", "lrp", "lrp:rule=attnlrp", "attention")
PUBLISHED = {  # GPT-2 small, mt-upc/logit-explanations, evaluation.ipynb: random and contrastive methods
    "BLiMP": (0.512, {"gradient norm": 0.546, "gradient × input": 0.475, "erasure": 0.625, "ALTI-Logit": 0.739}),
    "SVA (subject-verb agreement)": (
        0.283,
        {"gradient norm": 0.449, "gradient × input": 0.295, "erasure": 0.410, "ALTI-Logit": 0.604},
    ),
}


def summarise(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A few kB: of each corpus, method and kind of question the mean reciprocal rank, and its margin over chance."""
    found: dict[str, Any] = {}
    for corpus in TITLES:
        some = [row for row in rows if row["corpus"] == corpus and row["chance"] is not None]
        chance = np.array([row["chance"] for row in some])
        of: dict[str, Any] = {}
        for method in LABELS:
            for kind in ("contrast", "plain"):
                ranks = np.array([row[f"{method} {kind}"]["rank"] for row in some])
                drops = np.array([row[f"{method} {kind}"]["drop"] for row in some], dtype=float)
                margin = paired(ranks, chance)
                of[f"{method} {kind}"] = {
                    "rank": float(ranks.mean()),
                    "interval": list(mean_interval(ranks, within=(0, 1))),
                    "margin": margin.difference,
                    "margin_interval": [margin.low, margin.high],
                    "p": margin.p,
                    "drop": float(np.nanmean(drops)),
                    "seconds": float(np.mean([row["seconds"][method] for row in some])),
                }
        found[corpus] = {
            "texts": len(some),
            "right": float(np.mean([row["right"] for row in some])),
            "chance": float(chance.mean()),
            "methods": of,
        }
    return found


def write(rows: Sequence[dict[str, Any]], folder: Path = RESULTS) -> None:
    summary = summarise(rows)
    (folder / f"{NAME}.json").write_text(json.dumps(_rounded(summary), indent=1) + "\n", encoding="utf-8")
    (folder / f"{NAME}.svg").write_text(svg(figure(summary)), encoding="utf-8")
    (folder / f"{NAME}.md").write_text(page(summary), encoding="utf-8")


def figure(summary: dict[str, Any]) -> Any:
    rows = [
        {
            "panel": TITLES[corpus],
            "name": f"{LABELS[method][0]}{', contrast' if kind == 'contrast' else ''}",
            "value": told["margin"],
            "low": told["margin_interval"][0],
            "high": told["margin_interval"][1],
            "found": "undecided" if told["p"] > 0.05 else "better" if told["margin"] > 0 else "worse",
        }
        for corpus, of in summary.items()
        for key, told in of["methods"].items()
        for method, kind in [key.rsplit(" ", 1)]
        if method != "random"
    ]
    names = list(dict.fromkeys(str(row["name"]) for row in rows))
    title = "Reciprocal rank of the deciding word, above a random order"
    return differences(rows, list(TITLES.values()), names, "above random", title)


def page(summary: dict[str, Any]) -> str:
    blimp = summary["blimp_evidence"]
    best = max(TWO_PASSES, key=lambda method: blimp["methods"][f"{method} contrast"]["margin"])
    told = blimp["methods"][f"{best} contrast"]
    alti = PUBLISHED["BLiMP"][1]["ALTI-Logit"] - PUBLISHED["BLiMP"][0]
    low, high = told["margin_interval"]
    above = "above" if low > alti else "below" if high < alti else "not told apart from"
    lines = [
        "# Which explanation of a language model finds the word that decides?",
        "",
        f"**Of the methods of at most two passes {LABELS[best][0]} with contrast is best on BLiMP: reciprocal rank "
        f"{told['rank']:.3f}, {told['margin']:+.3f} ({low:+.3f} to {high:+.3f}) over a random order. That margin is "
        f"{above} ALTI-Logit's on GPT-2 small ({alti:+.3f}), which is another model's on another sample.**",
        "",
        f"![Above a random order]({NAME}.svg)",
        "",
        "*Reciprocal rank of the deciding word minus what a random order of the same words gets; mean over texts with "
        "its 95% interval. Colour: told from zero at 5%, each by itself.*",
        "",
        "SmolLM2-135M-Instruct says the right word more often than the wrong one in "
        + ", ".join(f"{of['right']:.0%} of {of['texts']} texts of {TITLES[corpus]}" for corpus, of in summary.items())
        + ". A method ranks the words of the text by how much they speak for the right word. *Drop* is what is lost "
        "by removing the word that it puts first, as a share of the most that removing any one word loses (BLiMP).",
        "",
        f"| with contrast | {' | '.join(TITLES.values())} | drop | passes | CPU ms |",
        "|---|" + "---|" * (len(TITLES) + 3),
        *_table(summary, "contrast"),
        f"| random order, expected | {' | '.join(format(of['chance'], '.3f') for of in summary.values())} | | | |",
        "",
        f"| without | {' | '.join(TITLES.values())} | drop | | |",
        "|---|" + "---|" * (len(TITLES) + 3),
        *_table(summary, "plain"),
        "",
        "Published for GPT-2 small (mt-upc/logit-explanations; its weights are not here, and its texts are others): "
        + "; ".join(
            f"{name}: random {chance:.3f}, " + ", ".join(f"{method} {value:.3f}" for method, value in of.items())
            for name, (chance, of) in PUBLISHED.items()
        )
        + ".",
        "",
        "Limits: one model; texts of at most 40 words with marked evidence, drawn with seed 0, fewer than 300 of each "
        "corpus where the machine was busy (the number stands above; more rows narrow the intervals); no correction "
        "for the number of methods. `python checks/language_study.py ask FOLDER ROWS.jsonl`, then `show ROWS.jsonl`.",
        "",
    ]
    return "\n".join(lines)


def _table(summary: dict[str, Any], kind: str) -> list[str]:
    lines = []
    for method, (label, passes) in LABELS.items():
        told = [of["methods"][f"{method} {kind}"] for of in summary.values()]
        cells = [f"{one['rank']:.3f} ({one['interval'][0]:.2f} to {one['interval'][1]:.2f})" for one in told]
        cost = f"{passes} | {1000 * told[0]['seconds']:.0f}" if kind == "contrast" else " | "
        lines.append(f"| {label} | {' | '.join(cells)} | {told[0]['drop']:.0%} | {cost} |")
    return lines


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value
