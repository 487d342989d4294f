"""What curves after training again say: against random words, text by text."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.config import RunConfig
from heedful.errors import Mistake
from heedful.experiments import Result, find
from heedful.experiments.ground_truth.retrain import RetrainConfig, copies
from material import table_of_retrain


@pytest.mark.parametrize(("lost", "grade"), [(0.2, "for"), (0.05, "mixed"), (0.0, "against")])
def test_the_grade_goes_by_what_is_lost_beyond_random_words(lost: float, grade: str) -> None:
    table = table_of_retrain(300, lost=lost)
    found = find("retrain").verdict(Result("retrain", table, {}))
    assert found is not None
    assert found.grade == grade
    assert found.value == pytest.approx(lost)
    summary = find("retrain").summarise(table)
    assert summary["against_random"]["omission"]["mean"] == pytest.approx(2 * lost)
    assert [point["fraction"] for point in summary["curves"]["attention"]] == [0.5, 0.9]
    assert summary["none"]["mean"] == pytest.approx(0.8)
    rows = [row for row in table.to_pylist() if row["method"] == "attention" and row["fraction"] == 0.9]
    assert summary["curves"]["attention"][1]["mean"] == pytest.approx(np.mean([row["correct"] for row in rows]))


def test_the_recursive_form_removes_a_share_of_what_is_left() -> None:
    config = RetrainConfig(methods=("omission",), fractions=(0.2, 0.6), recursive=True)
    made = copies(config, RunConfig(dataset="x"))
    edits = {name: one.data.edit for name, one in made.items()}
    second = edits["omission 0.6"]
    assert second is not None
    assert second.options["fraction"] == pytest.approx(0.5)
    assert second.options["base"] == made["omission 0.2"].model_dump(mode="json")


def test_wrong_settings_are_refused() -> None:
    for options, why in (
        ({"fractions": [0.5, 0.1]}, "fractions rise"),
        ({"fractions": [1.0]}, "fractions rise"),
        ({"methods": ["random"]}, "random words are always removed"),
        ({"methods": ["lpr"]}, "Did you mean 'lrp'"),
    ):
        with pytest.raises(Mistake, match=why):
            RetrainConfig.parse(options, "--set")
