"""Methods as they are asked for: with options of their own, as functions; and every sentence that refuses one."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner

import heedful
import transformer_zoo as zoo
from heedful.auditing.ask.plan import named_methods
from heedful.cli import app
from heedful.cli.options import parse_settings
from heedful.errors import Mistake
from heedful.explainers import EXPLAINERS, Explainer, Scores
from heedful.explainers.methods import loadable, parse_methods, usual
from heedful.explainers.options import Option
from heedful.explainers.run import explain
from heedful.figures.figure import method_name
from heedful.records import Batch

TEXT = ["the film was good"]


def model() -> Any:
    return zoo.model("Bert")


def length(network: Any, batch: Batch, target: Tensor, *, factor: float = 1.0) -> Scores:
    return Scores(factor * batch.passage.mask.to(network.dtype))


def test_options_are_read_alike_from_text_and_from_python() -> None:
    typed = parse_methods(["lrp", "attention:layer=3,heads=[0,2]", "integrated_gradients:n_steps=7,method=fejer"])
    written = parse_methods(
        [
            "lrp",
            ("attention", {"layer": 3, "heads": [0, 2]}),
            ("integrated_gradients", {"n_steps": 7, "method": "fejer"}),
        ]
    )
    assert typed == written
    assert [one.as_given() for one in typed][:2] == ["lrp", ("attention", {"layer": 3, "heads": [0, 2]})]
    assert [one.explainer.name for one in parse_methods("all")] == list(EXPLAINERS)
    assert [one.explainer.name for one in parse_methods(["all"], usual)] == usual()


def test_an_option_of_one_method_is_its_own_and_comes_before_one_of_all() -> None:
    made = model()
    examples = made.examples(TEXT)
    found = explain(made, examples, ["gradient", ("omission", {"of": "probability"}), "attention:layer=0"], of="logit")
    options = [a.options for a in found[0].attributions]
    assert [one.get("of") for one in options] == ["logit", "probability", None]
    assert options[2]["layer"] == 0
    alone = explain(made, examples, ["attention"], layer=0)
    assert found[0].attributions[2].scores["passage"].tolist() == alone[0].attributions[0].scores["passage"].tolist()


def test_a_function_can_be_a_method() -> None:
    found = heedful.explain(model(), TEXT, ["lrp", length])
    assert found.methods == ["lrp", "length"]
    assert found[0].attribution("length").scores["passage"].tolist() == [1.0] * len(found[0].passage)
    twice = heedful.explain(model(), TEXT, [(length, {"factor": 2.0})])
    assert twice[0].attributions[0].options == {"factor": 2.0}
    own = Explainer("mine", "saliency", True, "none", length)
    assert heedful.explain(model(), TEXT, [own]).methods == ["mine"]


def lrp(network: Any, batch: Batch, target: Tensor) -> Scores:
    raise AssertionError


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        (
            ["lrp:epsilo=1"],
            r"lrp does not take the option 'epsilo'; it takes epsilon \(a number or none; default None\);",
        ),
        (["lrp:epsilo=1"], r'type lrp:epsilon=VALUE, or in Python \("lrp", \{"epsilon": VALUE\}\)'),
        (["uniform:seed=1"], "uniform does not take the option 'seed'; it takes no option"),
        (["lrp:"], "options of lrp: : expected KEY=VALUE, for example lrp:epsilon=VALUE"),
        (["lrp:epsilon=1,epsilon=2"], "epsilon is given twice"),
        (
            [("lrp", {"epsilon": "high"})],
            "lrp: epsilon='high': it should be a valid number; epsilon is a number or none",
        ),
        (["attention", "attention:layer=1"], "the method 'attention' is given twice"),
        (["all", "gradient"], "'all' is every method, and another was given beside it"),
        (["lpr"], "there is no explainer 'lpr'. Did you mean 'lrp'?"),
        ("lrp", r"give a list of methods, not one text: methods=\['lrp'\]"),
        (("lrp", {"epsilon": 1.0}), "give a list of methods, not one method"),
        ([], "methods is empty: name one of attention, rollout"),
        ([3], "3 is not a method: give a name"),
        ([len], "'len' cannot explain: a function that is given as a method is called as"),
        ([lambda network, batch: None], "cannot explain"),
        ([lrp], "the function 'lrp' has the name of a method that there is"),
    ],
)
def test_every_slip_is_one_sentence(methods: Any, said: str) -> None:
    with pytest.raises(Mistake, match=said):
        heedful.explain(model(), TEXT, methods)


def test_what_a_function_returns_is_scores() -> None:
    def wrong(network: Any, batch: Batch, target: Tensor) -> Tensor:
        return torch.zeros(1)

    with pytest.raises(Mistake, match=r"wrong returned .*heedful\.explainers\.Scores"):
        heedful.explain(model(), TEXT, [wrong])


def test_an_option_that_no_method_takes_names_those_that_they_take() -> None:
    with pytest.raises(
        Mistake, match=r"none of lrp, attention takes the option 'layr'; they take .*: type attention:layer="
    ):
        heedful.explain(model(), TEXT, ["lrp", "attention"], layr=1)


def test_an_audit_reads_methods_alike_and_asks_them_with_their_defaults() -> None:
    assert named_methods(["lime", "shap"]) == ["lime", "shap"]
    for given in ("lime:n_samples=5", ("lime", {"n_samples": 5}), length):
        with pytest.raises(Mistake, match="an audit runs methods with their defaults"):
            named_methods([given])


def test_options_say_their_types_defaults_and_bounds() -> None:
    described = {option.name: option for option in EXPLAINERS["lime"].describe()}
    assert described["n_samples"] == Option(
        "n_samples", "a whole number, at most 1,000,000", "1000", "edited texts to begin with"
    )
    assert str(described["operator"]) == "operator (delete or replace; default delete)"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--of", "logit", "--of", "probability"], "--of is given twice, but takes one value"),
        (["--n-steps", "3", "--set", "n_steps=4"], "n_steps is given by --n-steps and by --set n_steps"),
        (["--set", "layer=1", "--set", "layer=2"], "--set layer is given twice"),
        (["--set", "layer"], "--set layer: expected KEY=VALUE"),
        (["--set", "target=1"], "this is not an option of a method: give the label by --target"),
    ],
)
def test_nothing_wins_in_silence(words: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=said):
        CliRunner().invoke(app, ["explain", str(tmp_path), "a text", *words], catch_exceptions=False)


def test_a_key_is_set_once_in_every_command() -> None:
    assert parse_settings(["a=1", "b=[1, 2]", "c=x"]) == {"a": 1, "b": [1, 2], "c": "x"}
    with pytest.raises(Mistake, match="--set a is given twice"):
        parse_settings(["a=1", "a=2"])


def test_a_package_that_cannot_be_loaded_stops_only_who_names_its_method(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken_one", "no_such_package:THING", EXPLAINERS.group)
    monkeypatch.setitem(EXPLAINERS.__dict__, "found", {"broken_one": broken})
    assert "broken_one" in EXPLAINERS
    assert "broken_one" not in [one.name for one in loadable()]
    assert method_name("broken_one") == "broken one"
    assert "lrp" in heedful.explain(model(), TEXT).methods
    with pytest.raises(
        Mistake, match="the explainer 'broken_one' of the package 'no_such_package:THING' cannot be loaded"
    ):
        heedful.explain(model(), TEXT, ["broken_one"])
