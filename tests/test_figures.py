"""Figures: they count what the tables hold, can be clicked, have no size of their own, and are exported."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from heedful.errors import Mistake
from heedful.experiments import find
from heedful.experiments.correlation.correlation import COLUMNS
from heedful.experiments.correlation.figures import agreement, tau_histogram
from heedful.experiments.framework.summary import BINS
from heedful.figures import theme
from heedful.figures.drawing import POINTS, class_names
from heedful.figures.figure import Figure, Spec, pair_name
from heedful.report import export, instances
from material import HOSTILE, PAIRS, findings_of, tables_of, trial_of

LABELS = ("negative", "positive")


def drawn(experiment: str, table: pa.Table, labels: Sequence[str] = LABELS) -> dict[str, Figure]:
    """The figures of an experiment by id."""
    return {figure.id: figure for figure in find(experiment).figures(trial_of(experiment, table, labels))}


def jsd_histogram(table: pa.Table, labels: Sequence[str] = LABELS) -> Spec:
    return drawn("adversarial", table, labels)["jsd"].spec


def rows_of(spec: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The rows of all its data that have `key`, without repeats."""
    parts = [spec, *spec["layer"]]
    found = [row for part in parts for row in part.get("data", {}).get("values", []) if key in row]
    return [json.loads(text) for text in dict.fromkeys(map(json.dumps, found))]


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return tables_of(700)


def test_a_bar_holds_the_texts_that_the_list_shows_for_it(tables: dict[str, pa.Table]) -> None:
    values, _, predicted = instances.measures(tables)
    pair = "attention/omission"
    made = {
        f"tau:{pair}": tau_histogram(trial_of("correlation", tables["correlation"]), pair, COLUMNS["tau"]),
        "jsd": jsd_histogram(tables["adversarial"]),
    }
    for measure, spec in made.items():
        bars = rows_of(spec, "texts")
        assert sum(bar["texts"] for bar in bars) == 700
        for bar in bars:
            inside = [
                place
                for place, value in values[measure].items()
                if (bar["low"] <= round(value, 6) < bar["high"] or (bar["closed"] and round(value, 6) == bar["high"]))
                and LABELS[predicted[place]] == bar["label"]
            ]
            assert bar["measure"] == measure
            assert len(inside) == bar["texts"]


def test_boxes_are_the_quantiles_of_the_summary(tables: dict[str, pa.Table]) -> None:
    findings = findings_of(tables)
    for name, figure in (("permutation", "permutation"), ("adversarial", "jsd-max-attention")):
        spec = drawn(name, tables[name])[figure].spec
        boxes = rows_of(spec, "q50")
        by_class = findings.summaries[name]["by_class_and_max_attention"]
        expected = {
            (LABELS[int(label)], 0.25 * i): line
            for label, lines in by_class.items()
            for i, line in enumerate(lines[key] for key in BINS)
            if line["n"]
        }
        assert {(box["label"], box["low"]) for box in boxes} == set(expected)
        for box in boxes:
            line = expected[box["label"], box["low"]]
            assert box["texts"] == line["n"]
            assert [box["q25"], box["q50"], box["q75"]] == pytest.approx(
                [line[q] for q in ("q25", "q50", "q75")], abs=1e-4
            )
        assert len(rows_of(spec, "example")) == POINTS


def test_agreement_has_every_pair_and_the_published_numbers(tables: dict[str, pa.Table]) -> None:
    summary = findings_of(tables).summaries["correlation"]
    rows = rows_of(agreement(summary, {"attention/omission": 0.33}), "pair")
    ours = [row for row in rows if "role" in row]
    assert [row["mean"] for row in ours] == sorted((row["mean"] for row in ours), reverse=True)
    assert {row["pair"] for row in ours} == {pair_name(pair) for pair in PAIRS}
    assert {"pair": "attention and leave-one-out", "mean": 0.33} in rows


def test_undefined_values_are_left_out() -> None:
    table = tables_of(30)["permutation"]
    nothing = table.set_column(table.schema.get_field_index("median"), "median", pa.nulls(30, pa.float64()))
    spec = drawn("permutation", nothing)["permutation"].spec
    assert rows_of(spec, "example") == []
    assert rows_of(spec, "q50") == []


def test_many_labels_are_drawn_together_and_like_names_kept_apart() -> None:
    table = tables_of(40, labels=9)["adversarial"]
    bars = rows_of(jsd_histogram(table, [f"label {i}" for i in range(9)]), "texts")
    assert {bar["label"] for bar in bars} == {"all labels"}
    long = "the same beginning of two long labels"
    assert len(set(class_names([long + " one", long + " two", HOSTILE[7]]))) == 3


def test_every_figure_of_a_page_is_as_wide_as_what_holds_it(tables: dict[str, pa.Table]) -> None:
    made = [figure for name, table in tables.items() for figure in drawn(name, table).values()]
    assert [figure.id for figure in made][:2] == ["agreement", "tau-attention-gradient_x_input"]
    assert {"permutation", "jsd", "jsd-max-attention", "exact-adam"} <= {figure.id for figure in made}
    for figure in made:
        assert figure.spec["width"] == "container"
        assert figure.read
        assert figure.spoken.endswith(".")
        colours = set(re.findall(r"var\(--(\w+)\)", json.dumps(figure.spec)))
        assert colours <= set(theme.PALETTE)
        assert "var(" not in json.dumps(theme.resolved(figure.spec))


def test_figures_are_written_as_svg_and_png(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    spec = jsd_histogram(tables["adversarial"])
    written = export.write_figures({"jsd/../../x": spec}, tmp_path / "figures")
    assert [path.name for path in written] == ["jsd-x.svg", "jsd-x.png"]
    svg = written[0].read_text()
    assert svg.startswith("<svg")
    assert theme.PALETTE[theme.CLASSES[0]][0] in svg
    assert written[1].read_bytes().startswith(b"\x89PNG")
    with pytest.raises(Mistake, match="is a file"):
        export.write_figures({"jsd": spec}, written[0])


def test_colours_of_classes_and_verdicts_can_be_read_on_their_ground() -> None:
    def light(colour: str) -> float:
        channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    def contrast(a: str, b: str) -> float:
        high, low = sorted((light(a), light(b)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    for scheme in (0, 1):
        for ground in ("surface", "raised"):
            for name in ("ink", "quiet", "accent", "for", "mixed", "against"):
                assert contrast(theme.PALETTE[name][scheme], theme.PALETTE[ground][scheme]) >= 4.5, name
        for name in theme.CLASSES:  # graphical objects: WCAG 2.2, 1.4.11
            assert contrast(theme.PALETTE[name][scheme], theme.PALETTE["surface"][scheme]) >= 3, name
